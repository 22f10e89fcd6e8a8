"""What a user gets: the npm package, installed in an empty folder, works and is typed; every example of the README is type-checked, runs and prints
what the README says."""
import json
import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from readme import examples

SDK = Path(__file__).resolve().parent.parent
BUILD = SDK.parent.parent / "build"
TOOLS = BUILD / "typescript" / "node_modules"
ENVIRONMENT = {**os.environ, "PATH": f"{BUILD / 'venv' / 'bin'}:{os.environ['PATH']}"}
EXAMPLES = examples(SDK / "README.md", "ts")
OPTIONS = {"compilerOptions": {"target": "ES2022", "module": "NodeNext", "strict": True, "lib": ["ES2022", "DOM", "DOM.AsyncIterable", "ESNext.Disposable"],
                               "typeRoots": [str(TOOLS / "@types")], "types": ["node"], "outDir": "out"}, "include": ["*.ts"]}
BROWSER = "import { runInOpenSandbox, type ExecResult } from 'opensandbox-client';\nexport const done: ExecResult = await runInOpenSandbox('x', 1);\n"


def node(*words, **options):
    return subprocess.run([BUILD / "venv" / "bin" / "node", *words], capture_output=True, text=True, timeout=60, **options)


def tsc(folder):
    return subprocess.run([TOOLS / ".bin" / "tsc", "-p", "."], cwd=folder, env=ENVIRONMENT, capture_output=True, text=True, timeout=100)


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """An empty folder with the package and nothing else installed."""
    folder = tmp_path_factory.mktemp("npm")
    words = ["npm", "pack", "--silent", "--ignore-scripts", "--pack-destination", folder]
    subprocess.run(words, cwd=SDK, env=ENVIRONMENT, check=True, capture_output=True, timeout=60)
    (folder / "package.json").write_text('{"name": "user", "private": true, "type": "module"}')
    words = ["npm", "install", "--silent", "--no-audit", "--no-fund", "--offline", next(folder.glob("opensandbox-client-*.tgz"))]
    subprocess.run(words, cwd=folder, env=ENVIRONMENT, check=True, capture_output=True, timeout=100)
    return folder


@pytest.fixture(scope="module")
def compiled(package, sessions):
    """The examples as JavaScript, for the daemon under test."""
    (package / "tsconfig.json").write_text(json.dumps(OPTIONS))
    for number, example in enumerate(EXAMPLES):
        (package / f"example{number}.ts").write_text(example.at(sessions))
    done = tsc(package)
    assert done.returncode == 0, done.stdout
    return package / "out"


def test_the_package_carries_types_licence_and_nothing_else(package):
    names = tarfile.open(next(package.glob("*.tgz"))).getnames()
    assert {"package/LICENSE", "package/README.md", "package/dist/index.d.ts", "package/dist/index.js", "package/dist/node.js"} <= set(names)
    assert all(name.startswith("package/dist/") or "/" not in name.removeprefix("package/") for name in names)
    assert sorted(path.name for path in (package / "node_modules").iterdir() if not path.name.startswith(".")) == ["opensandbox-client"]


def test_it_works_in_an_empty_folder(sessions, package):
    code = "import { runInOpenSandbox } from 'opensandbox-client'; process.stdout.write((await runInOpenSandbox('echo from npm', 20000)).stdout)"
    done = node("--input-type=module", "-e", code, cwd=package, env={"PATH": ENVIRONMENT["PATH"], "OPENSANDBOX_URL": sessions.sessions_url})
    assert done.stdout == "from npm\n", done.stderr


def test_its_types_need_no_node(package, tmp_path):
    """A browser project, without the types of Node, and a library check of our declarations."""
    options = {**OPTIONS["compilerOptions"], "types": [], "lib": ["ES2022", "DOM"], "noEmit": True}
    (tmp_path / "node_modules").symlink_to(package / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    (tmp_path / "tsconfig.json").write_text(json.dumps({"compilerOptions": options, "include": ["*.ts"]}))
    (tmp_path / "user.ts").write_text(BROWSER)
    assert tsc(tmp_path).returncode == 0, tsc(tmp_path).stdout
    (tmp_path / "user.ts").write_text(BROWSER.replace("ExecResult = ", "string = "))
    assert "is not assignable to type 'string'" in tsc(tmp_path).stdout


@pytest.mark.parametrize("number", range(len(EXAMPLES)), ids=[example.heading for example in EXAMPLES])
def test_example(sessions, compiled, number, tmp_path):
    done = node(compiled / f"example{number}.js", cwd=tmp_path, env={**os.environ, "OPENSANDBOX_URL": sessions.sessions_url})
    assert done.returncode == 0, done.stderr
    assert done.stdout == EXAMPLES[number].expected


def test_there_are_examples_and_each_says_what_it_prints():
    assert len(EXAMPLES) >= 8 and all(example.expected for example in EXAMPLES)
