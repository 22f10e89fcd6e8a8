"""Recipes of images: what `images/build` and `opensandbox image build` make, and that nothing is left after they end in any way.

A tiny recipe and a stand-in for mmdebstrap (a root of the host's own bash and busybox) keep this short and off the network; the
driver, the namespaces, the layout and the import are the real ones.
"""
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from harness import PROGRAM, ROOT, wait_until

IMAGES = ROOT / "images"

# Called as mmdebstrap is: the last three words are suite, target and sources.
BOOTSTRAP = r"""#!/bin/bash
set -euo pipefail
root=${@: -2:1}
mkdir -p "$root"/{bin,usr/bin,etc,proc,dev,tmp,run,root,var/lib/dpkg,var/cache/apt,var/lib/apt/lists,var/log,workspace}
cp "$(readlink -f /bin/bash)" "$root/bin/bash"
ldd /bin/bash | grep -o '/[^ ]*' | while read -r file; do mkdir -p "$root${file%/*}"; cp -L "$file" "$root$file"; done
cp "$(command -v busybox)" "$root/bin/busybox"
for tool in sh cat mkdir rm find xargs ls sleep touch printf env tail id mv cp; do ln -s busybox "$root/bin/$tool"; done
printf '#!/bin/sh\n' >"$root/usr/bin/apt-get"
printf '#!/bin/sh\necho tiny 1.0\n' >"$root/usr/bin/dpkg-query"
chmod +x "$root"/usr/bin/*
printf 'root:x:0:0::/root:/bin/sh\nuser:x:1000:1000::/home/user:/bin/sh\n' >"$root/etc/passwd"
"""
RECIPE = "image=recipes/tiny:latest\nsuite=none\nparts=(first second)\nentrypoint=(/bin/tail -f /dev/null)\nworking_dir=/workspace\n"
BASE = "source /recipe/lib/steps.sh\nprintf base >/made\nplace etc/greeting\n"


class Kitchen:
    """A folder of recipes with one in it, and a place to work."""

    def __init__(self, folder):
        self.recipes, self.work, self.marks = folder / "images", folder / "work", folder / "marks"
        tools = folder / "tools"
        for made in (self.work, self.marks, tools, self.recipes / "tiny" / "parts", self.recipes / "tiny" / "rootfs" / "etc"):
            made.mkdir(parents=True)
        shutil.copy(IMAGES / "build", self.recipes)
        shutil.copytree(IMAGES / "lib", self.recipes / "lib")
        (tools / "mmdebstrap").write_text(BOOTSTRAP)
        (tools / "mmdebstrap").chmod(0o755)
        tiny = self.recipes / "tiny"
        (tiny / "recipe").write_text(RECIPE)
        (tiny / "environment").write_text('# a remark\nGREETING=say "hello"\nPATH=/usr/bin:/bin\n')
        (tiny / "rootfs" / "etc" / "greeting").write_text("good day\n")
        self.part("base", BASE)
        self.part("first", "printf ' first' >>/made\n")
        self.part("second", "printf ' second' >>/made\n")
        self.env = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}", "TMPDIR": str(self.work), "OPENSANDBOX_RECIPES": str(self.recipes)}
        self.out = folder / "out"

    def part(self, name, text):
        (self.recipes / "tiny" / "parts" / f"{name}.sh").write_text(text)

    def command(self, *words):
        return [str(self.recipes / "build"), "tiny", "--out", str(self.out), *words]

    def build(self, *words):
        return subprocess.run(self.command(*words), env=self.env, capture_output=True, text=True, timeout=60)

    def start(self):
        return subprocess.Popen(self.command(), env=self.env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def left(self):
        """Folders, mounts and processes of a build."""
        mounts = [line for line in Path("/proc/self/mounts").read_text().splitlines() if str(self.work) in line]
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                if os.readlink(f"/proc/{entry}/root").startswith(str(self.work)):
                    found.append(entry)
            except OSError:
                pass
        return sorted(path.name for path in self.work.iterdir()) + mounts + found


@pytest.fixture
def kitchen(tmp_path):
    return Kitchen(tmp_path)


def until_stage(process, name):
    for line in process.stdout:
        if line.split()[-1] == name:
            return
    raise AssertionError(f"the build ended before {name}")


def test_a_recipe_gives_a_layout_whose_digests_are_right(kitchen):
    done = kitchen.build()
    assert done.returncode == 0, done.stderr
    assert [line.split()[:4] for line in done.stdout.splitlines()[:-1]] == [
        ["stage", str(number + 1), "5", name] for number, name in enumerate(["system", "base", "first", "second", "pack"])]
    assert done.stdout.splitlines()[-1].split()[:2] == ["done", "recipes/tiny:latest"]
    blobs = {path.name: path.read_bytes() for path in (kitchen.out / "blobs" / "sha256").iterdir()}
    assert all(hashlib.sha256(content).hexdigest() == name for name, content in blobs.items())
    entry = json.loads((kitchen.out / "index.json").read_text())["manifests"][0]
    manifest = json.loads(blobs[entry["digest"].removeprefix("sha256:")])
    config = json.loads(blobs[manifest["config"]["digest"].removeprefix("sha256:")])
    assert config["config"]["Env"] == ['GREETING=say "hello"', "PATH=/usr/bin:/bin"]
    assert config["config"]["WorkingDir"] == "/workspace"
    assert config["rootfs"]["diff_ids"] == [manifest["layers"][0]["digest"]]
    assert kitchen.left() == []


def test_the_same_recipe_twice_gives_the_same_layer(kitchen):
    kitchen.env["SOURCE_DATE_EPOCH"] = "1700000000"
    assert kitchen.build().returncode == 0
    first = (kitchen.out / "index.json").read_text()
    shutil.rmtree(kitchen.out)
    assert kitchen.build().returncode == 0
    assert (kitchen.out / "index.json").read_text() == first


def test_the_image_is_imported_and_runs_in_a_sandbox(kitchen, daemon):
    environment = {**kitchen.env, "OPENSANDBOX_HOST": f"unix://{daemon.run_dir}/api.sock"}
    done = subprocess.run([PROGRAM, "image", "build", "tiny", "--only", "second"], env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "recipes/tiny:latest\n"
    assert "recipes/tiny:latest" in daemon.cli("image", "ls", "-q").stdout.decode().split()
    made = daemon.create(image={"uri": "recipes/tiny"}, entrypoint=["/bin/tail", "-f", "/dev/null"])
    try:
        assert daemon.output(made, "cat /made /etc/greeting; echo $GREETING; pwd; cat /etc/opensandbox-parts") == \
            'base secondgood day\nsay "hello"\n/workspace\nsecond'
        # What the build used is not in the image.
        assert daemon.exec(made, "cat /recipe/lib/steps.sh").exit_code != 0
        assert daemon.exec(made, "cat /run/trust/bundle.crt").exit_code != 0
    finally:
        daemon.delete(made)
        daemon.cli("image", "rm", "recipes/tiny")
    assert kitchen.left() == []


def test_words_that_are_wrong_try_nothing(kitchen, daemon):
    for words, told in ((("--only", "nonsense"), "no part 'nonsense'"), (("--more",), "unknown option")):
        done = kitchen.build(*words)
        assert (done.returncode, done.stdout) == (2, "") and told in done.stderr
    unknown = subprocess.run([PROGRAM, "image", "build", "unknown"], env={**kitchen.env, "OPENSANDBOX_HOST": f"unix://{daemon.run_dir}/api.sock"},
                             capture_output=True, text=True, timeout=30)
    assert unknown.returncode == 2 and "there is: tiny" in unknown.stderr
    assert kitchen.left() == []


def test_a_part_that_fails_ends_the_build_and_names_its_log(kitchen, daemon):
    kitchen.part("first", "echo the reason >&2\nexit 7\n")
    assert kitchen.build().returncode == 7
    assert kitchen.left() == [] and not kitchen.out.exists()
    done = subprocess.run([PROGRAM, "image", "build", "tiny"], env={**kitchen.env, "OPENSANDBOX_HOST": f"unix://{daemon.run_dir}/api.sock"},
                          capture_output=True, text=True, timeout=60)
    assert done.returncode == 1 and "stage 3 of 5 (first)" in done.stderr and "the reason" in done.stderr
    log = Path(re.search(r"whole log: (\S+)", done.stderr)[1])
    assert "the reason" in log.read_text()
    shutil.rmtree(log.parent)
    assert kitchen.left() == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_build_and_all_it_made(kitchen, number):
    kitchen.part("first", "sleep 300 & sleep 300\n")
    process = kitchen.start()
    until_stage(process, "first")
    process.send_signal(number)
    assert process.wait(20) == 128 + number
    wait_until(lambda: kitchen.left() == [], 10, kitchen.left)


def test_a_build_that_is_killed_takes_its_processes_along_and_the_next_one_its_folder(kitchen):
    kitchen.part("first", "sleep 300 & sleep 300\n")
    process = kitchen.start()
    until_stage(process, "first")
    process.kill()
    process.wait(20)
    # Only the folder stays: the kernel ended the processes, and with them went the namespace and its mounts.
    wait_until(lambda: len(kitchen.left()) == 1, 20, kitchen.left)
    kitchen.part("first", "true\n")
    assert kitchen.build().returncode == 0
    assert kitchen.left() == []


def test_the_dockerfile_takes_the_same_steps_with_the_same_environment():
    folder = IMAGES / "code-interpreter"
    docker = (folder / "Dockerfile").read_text()
    parts = subprocess.run([IMAGES / "build", "code-interpreter", "--parts"], capture_output=True, text=True, check=True).stdout.split()
    assert re.findall(r"parts/(\w+)\.sh", docker) == parts
    assert f"finish.sh {' '.join(parts[1:])}" in docker
    block = re.search(r"^ENV PATH=.*?[^\\]$", docker, re.S | re.M)[0].removeprefix("ENV ")
    lines = [line for line in (folder / "environment").read_text().splitlines() if line and not line.startswith("#")]
    assert [word.strip() for word in block.split("\\\n")] == lines
    assert all((folder / "parts" / f"{part}.sh").exists() for part in parts)
