"""What is the runtime process's own: it needs no root, nothing outlives anything, and what it cannot do it refuses."""
import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

import harness
import pytest
from contract.daemons import USER, pids_of
from contract.test_contract import marker, start_marked


@pytest.fixture(scope="module")
def host():
    from contract.daemons import ProcessDaemon
    with ProcessDaemon("contract-run") as daemon:
        yield daemon


def run(host, *words, input=None, **env):
    """`opensandbox run` as a user whom no daemon serves."""
    home = host.directory / "home"
    runtime = host.directory / "x"
    for folder in (home, runtime):
        folder.mkdir(exist_ok=True)
        folder.chmod(0o700)
        os.chown(folder, USER, USER)
    return host.as_user(host.programs / "opensandbox", "run", *words, input=input, env={"HOME": str(home), "XDG_RUNTIME_DIR": str(runtime), **env})


def left_of(host):
    return sorted(str(path.relative_to(host.directory)) for name in ("x", "home") for path in (host.directory / name).rglob("*")
                  if "/images" not in str(path))


def processes_of_user():
    return [pid for pid, _, _ in harness.processes() if os.stat(f"/proc/{pid}").st_uid == USER]


# ---- run

def test_run_needs_no_root_and_leaves_nothing(host):
    before = set(processes_of_user())
    done = run(host, "--runtime", "process", "--", "sh", "-c", "id -u; cat; exit 3", input="in\n")
    assert (done.stdout, done.returncode) == ("1000\nin\n", 3), done.stderr
    assert set(processes_of_user()) <= before
    assert left_of(host) == ["home/.local", "home/.local/state", "home/.local/state/opensandbox", "home/.local/state/opensandbox/private", "x/opensandbox"]


def test_subprocess_is_another_name_for_it(host):
    assert run(host, "--runtime", "subprocess", "--", "echo", "hi").stdout == "hi\n"
    assert run(host, "--", "echo", "hi", OPENSANDBOX_RUNTIME="subprocess").stdout == "hi\n"


def test_verbose_and_help_say_what_it_does_not_isolate(host):
    told = run(host, "--runtime", "process", "--verbose", "--", "true").stderr
    assert "runtime process" in told and "memory: a wall around each process only" in told and "processor: not limited" in told
    assert "not isolate" in " ".join(run(host, "--help").stdout.split()).replace("does not isolate everything", "not isolate")


def test_a_directory_as_workspace_keeps_what_is_written_and_shows_nothing_else(host):
    project = host.directory / "project"
    project.mkdir()
    os.chown(project, USER, USER)
    (host.directory / "beside").write_text("secret")
    os.symlink("../beside", project / "out")
    done = run(host, "--runtime", "process", "--workspace", str(project), "--", "sh", "-c", "echo made > made; cat out; stat -c %U made; ls /workspace/..")
    assert (project / "made").read_text() == "made\n" and (project / "made").stat().st_uid == USER
    assert "secret" not in done.stdout and "user" in done.stdout and "beside" not in done.stdout


@pytest.mark.parametrize("place", ["/", ".", "/etc/passwd", "/no/such/place"])
def test_a_workspace_that_would_show_the_home_is_refused(host, place):
    home = host.directory / "home"
    given = str(home) if place == "." else place
    done = run(host, "--runtime", "process", "--workspace", given, "--", "true")
    assert done.returncode in (2, 125) and "workspace" in done.stderr, done.stderr
    assert run(host, "--workspace", "/usr", "--", "true").returncode == 2, "and it is no option of other runtimes"


def test_a_user_without_home_and_session_gets_a_directory_of_his_own_unless_somebody_else_has_it(host):
    """/tmp is everybody's: what another user made there before is not trusted."""
    place = Path(f"/tmp/opensandbox-{USER}")
    words = [host.programs / "opensandbox", "run", "--runtime", "process", "--", "echo", "ran"]
    try:
        for owner, mode, works in ((0, 0o777, False), (USER, 0o777, False), (USER, 0o700, True)):
            shutil.rmtree(place, ignore_errors=True)
            place.mkdir()
            place.chmod(mode)
            os.chown(place, owner, owner)
            done = host.as_user(*words, env={"HOME": "/nonexistent", "XDG_RUNTIME_DIR": ""})
            assert (done.stdout == "ran\n") == works, (owner, done.stderr)
            assert works or (done.returncode == 125 and str(place) in done.stderr)
    finally:
        shutil.rmtree(place, ignore_errors=True)


def test_without_the_runtime_a_user_is_told_of_it(host):
    done = run(host, "--", "true")
    assert done.returncode == 125 and "--runtime process" in done.stderr


def test_root_is_refused(host):
    done = subprocess.run([str(harness.PROGRAM), "run", "--runtime", "process", "--", "true"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 125 and "does not run as root" in done.stderr


def test_the_examples_of_the_documentation_work_as_written(host):
    block = (harness.ROOT / "docs" / "runtimes.md").read_text().split("```")[1]
    lines = [line.split("#")[0].strip() for line in block.splitlines() if line.strip()]
    assert len(lines) == 4, "the page shows run twice, serve and doctor"
    project = host.directory / "home" / "project"
    project.mkdir(exist_ok=True)
    (project / "Makefile").write_text("test:\n\techo passed > result\n")
    os.chown(project, USER, USER)
    environment = {"HOME": str(project.parent), "XDG_RUNTIME_DIR": str(host.directory / "x"), "PATH": f"{host.programs}:/usr/bin:/bin",
                   "OPENSANDBOX_SERVER_PORT": "0"}
    for line in lines:
        ends = " serve " not in line
        command = f"cd {project.parent} && {line}" if ends else f"cd {project.parent} && {{ {line} & s=$!; until {SELF_TEST}; do sleep 0.1; done; kill $s; wait $s; }}"
        done = host.as_user("sh", "-c", command, env=environment)
        assert done.returncode == 0, (line, done.stdout, done.stderr)
    assert (project / "result").read_text() == "passed\n"


SELF_TEST = "id=$(opensandbox create 2>/dev/null) && test \"$(opensandbox exec $id -- echo up)\" = up"


# ---- a host that does not allow it

# Runs by root: a user namespace that maps every id to itself and allows no further one, then the user in it.
REFUSING = """
import ctypes, os, sys
asked, told = os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    assert ctypes.CDLL(None).unshare(0x10000000) == 0
    os.write(asked[1], b"x"), os.read(told[0], 1)
    os.setgroups([]), os.setresgid(0, 0, 0), os.setresuid(0, 0, 0)
    open("/proc/sys/user/max_user_namespaces", "w").write(sys.argv[1])
    os.setresgid(*[int(sys.argv[2])] * 3), os.setresuid(*[int(sys.argv[2])] * 3)
    os.execv(sys.argv[3], sys.argv[3:])
os.read(asked[0], 1)
for name in ("uid_map", "gid_map"): open(f"/proc/{child}/{name}", "w").write("0 0 65536")
os.write(told[1], b"x")
os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.parametrize("allowed", ["0", "100"])
def test_where_user_namespaces_are_refused_it_says_how_to_allow_them_and_runs_nothing(host, allowed):
    run(host, "--help")  # makes the home
    words = ["/usr/bin/python3", "-c", REFUSING, allowed, str(USER), str(host.programs / "opensandbox"), "run", "--runtime", "process", "--", "echo", "ran"]
    environment = {**host.user_environment(), "HOME": str(host.directory / "home"), "XDG_RUNTIME_DIR": str(host.directory / "x")}
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=60)
    if allowed != "0":
        assert (done.returncode, done.stdout) == (0, "ran\n"), f"control: {done.stderr}"
        return
    assert done.returncode == 125 and "ran" not in done.stdout, done.stderr
    assert "lets no ordinary user make user namespaces" in done.stderr
    assert "user.max_user_namespaces" in done.stderr and "apparmor_restrict_unprivileged_userns" in done.stderr


def test_every_wall_that_cannot_be_built_stops_the_sandbox(host):
    """Each step of the way in is made to fail, and to die, by the keeper itself."""
    run_dir, socket_path = host.directory / "k", host.directory / "k" / "launch.sock"
    steps = ["user_namespace", "join_network", "hostname", "keyring", "writable_layer", "image_layers", "root_overlay", "host_view", "proc", "proc_masks", "sys",
             "dev", "etc", "scratch", "root_switch", "rlimits", "landlock_rules", "capabilities", "no_new_privs", "landlock", "descriptors", "seccomp", "exec"]
    before = set(processes_of_user())
    for flag in ("--fail-at", "--die-at"):
        for step in steps:
            failed, detail = create_once(host, run_dir, socket_path, flag, step)
            # Whoever dies before its maps are written is missed by the keeper that writes them, or else at the end of its pipe.
            named = {step} if flag == "--fail-at" else {"exec", "user_namespace"} if step == "user_namespace" else {"exec"}
            assert failed in named, (flag, step, failed, detail)
    assert set(processes_of_user()) <= before
    assert not run_dir.exists()


STEPS = ("none validate ledger id_range user_namespace network_namespace cgroup cgroup_limits disk listener clone cgroup_attach cgroup_namespace join_network "
         "hostname keyring writable_layer image_layers root_overlay host_view proc proc_masks root_switch sys dev etc scratch rlimits landlock_rules join_user "
         "capabilities no_new_privs landlock descriptors seccomp exec entrypoint").split()


def create_once(host, run_dir, socket_path, flag, step):
    """Speaks the launcher's language to a keeper of our own; the name of the step that failed and the keeper's words."""
    layer = next((host.state / "images" / "layers").iterdir()).name
    script = f"""
import ctypes, fcntl, os, socket, struct, subprocess, time
keeper = subprocess.Popen([{str(host.programs / "opensandbox-confine")!r}, "--run-dir", {str(run_dir)!r}, "--data-dir", {str(host.state)!r}, "--execd",
                           {str(host.programs / "opensandbox-execd")!r}, "--private", {flag!r}, {step!r}])
deadline = time.monotonic() + 20
while True:
    client = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    try: client.connect({str(socket_path)!r}); break
    except OSError:
        assert time.monotonic() < deadline and keeper.poll() is None
        time.sleep(0.005)
setup = os.memfd_create("setup")
os.write(setup, b'{{"uid":1000,"gid":1000,"one_user":true,"entrypoint":[]}}')
limits = struct.pack("<QIIQQQI4x", 128 << 20, 1000, 64, 16 << 20, 4096, 50_000_000, 1000)
policy = struct.pack("<BBB", 0, 1, 0)
request = struct.pack("<IIQ32sQ", 1, 2, 9, b"a" * 26, 0) + limits + policy + struct.pack("<BBBBB3x", 1, 0, 0, 0, 0)
request += bytes(-len(request) % 4) + struct.pack("<I", 1) + {layer.encode()!r}
socket.send_fds(client, [request], [setup])
answer = client.recv(65536)
failed, sys = struct.unpack_from("<Ii", answer, 16)
print(failed, answer[32:128].split(b"\\0")[0].decode())
client.close()
keeper.wait(20)
"""
    done = host.as_user("/usr/bin/python3", "-c", script)
    assert done.returncode == 0, done.stderr
    number, _, detail = done.stdout.strip().partition(" ")
    return STEPS[int(number)], detail


# ---- nothing outlives anything

@pytest.mark.parametrize("victim", ["serve", "keeper"])
def test_the_death_of_serve_or_of_the_keeper_leaves_no_process(process_daemon, victim):
    daemon = process_daemon
    box = daemon.create()
    word, _ = start_marked(daemon, box)
    os.kill(daemon.process.pid if victim == "serve" else daemon.helper(), signal.SIGKILL)
    harness.wait_until(lambda: not pids_of(word), 10, "no process is left")
    if victim == "serve":
        harness.wait_until(lambda: daemon.helper() is None, 10, "the keeper follows")
        daemon.process.wait(10)
        daemon.restart()
    harness.wait_until(lambda: daemon.request("GET", f"/v1/sandboxes/{box}").status == 404 or daemon.get(box)["status"]["state"] in ("Terminated", "Failed"), 10,
                       "its end is told")
    assert list((daemon.run_dir / "sandboxes").glob("*")) == []
    again = daemon.create()
    assert daemon.output(again, "echo works") == "works"


def is_alive(pid):
    """A killed process holds its locks until the kernel is done with it; a zombie holds nothing."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def test_the_death_of_both_leaves_no_process_and_the_next_start_sweeps(host):
    home, runtime = host.directory / "home", host.directory / "x"
    word = marker()
    run(host, "--help")  # makes both
    process = host.popen([host.programs / "opensandbox", "run", "--runtime", "process", "--", "bash", "-c", f"exec -a {word} sleep 300"], stdin=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, home=home, runtime=runtime)
    harness.wait_until(lambda: pids_of(word), 20, "it runs")
    ours = [pid for pid, exe, command in harness.processes() if os.stat(f"/proc/{pid}").st_uid == USER
            and (pid == process.pid or any("private-run" in part for part in command)) and "execd" not in exe]
    assert len(ours) == 3, "the command line, its daemon and its keeper"
    for number in (signal.SIGSTOP, signal.SIGKILL):  # all at once: whoever is left for a moment tidies up
        for pid in ours:
            os.kill(pid, number)
    process.wait(10)
    harness.wait_until(lambda: not pids_of(word), 10, "no process is left")
    harness.wait_until(lambda: not any(is_alive(pid) for pid in ours), 10, "the killed are dead")
    assert list((runtime / "opensandbox").glob("private-run*")), "control: nobody was left to tidy up"
    run(host, "--runtime", "process", "--", "true")
    assert not list((runtime / "opensandbox").glob("private-run*")) and not list((home / ".local/state/opensandbox/private").glob("*")), "files of the dead are swept"


# ---- what it cannot do

@pytest.mark.parametrize("change,word", [
    ({"extensions": {"opensandbox.mode": "root"}}, "never root"), ({"extensions": {"opensandbox.root": "rw"}}, "read-only root"),
    ({"volumes": [{"name": "v", "mountPath": "/data", "pvc": {"claimName": "data"}}]}, "volumes"), ({"resourceLimits": {"cpu": "1", "memory": "64Mi", "disk": "9000Gi"}}, "memory"),
    ({"image": {"uri": "debian:12"}}, "image")])
def test_what_it_cannot_do_is_refused_and_leaves_nothing(host, change, word):
    body = {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "64Mi"}, "entrypoint": ["tail", "-f", "/dev/null"], **change}
    answer = host.request("POST", "/v1/sandboxes", body)
    told = answer.json()
    assert 400 <= answer.status < 500 and word in json.dumps(told), told
    assert host.list() == [] and not list((host.run_dir / "sandboxes").iterdir())


def test_it_neither_pauses_nor_takes_snapshots(host):
    box = host.create()
    for path in (f"/v1/sandboxes/{box}/pause", f"/v1/sandboxes/{box}/snapshots"):
        answer = host.request("POST", path, {"name": "x"} if "snap" in path else None)
        assert answer.status in (400, 409, 501) and "runtime" in answer.body.decode(), answer.body
    assert host.output(box, "echo alive") == "alive"
    refused = host.execd(box, "POST", "/command", {"command": "id", "uid": 0})
    assert refused.status == 400 and b"one user" in refused.body
    host.delete(box)


def test_a_neighbour_of_the_same_user_is_another_world(host):
    one, other = host.create(), host.create()
    host.output(one, "echo secret > /tmp/note; echo secret > /dev/shm/note")
    word, _ = start_marked(host, one)
    assert host.exec(other, "cat /tmp/note /dev/shm/note").exit_code != 0
    first_words = "for p in /proc/[0-9]*/cmdline; do tr '\\0' '\\n' < $p | head -n 1; done"
    assert word not in host.output(other, first_words) and word in host.output(one, first_words)
    assert host.output(one, "cat /tmp/note") == "secret", "control"
    for box in (one, other):
        host.delete(box)


def test_the_real_user_behind_a_payload_is_the_one_who_asked(host):
    box = host.create()
    word, pid = start_marked(host, box)
    status = Path(f"/proc/{pid}/status").read_text()
    assert f"Uid:\t{USER}\t{USER}\t{USER}\t{USER}" in status, "said plainly in docs/runtimes.md: to the kernel it is the same user"
    assert host.output(box, "cat /proc/self/uid_map").split() == ["1000", str(USER), "1"]
    host.delete(box)
