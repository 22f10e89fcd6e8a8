"""`opensandbox run` is a transparent pipe: bytes, exit status and signals; against a daemon and with a private one."""
import hashlib
import json
import os
import secrets
import signal
import subprocess
import time
from pathlib import Path

import pytest

import harness
from e2e import leak_oracle as oracle

NOBODY = "unix:///run/opensandbox/no-such-instance/api.sock"


@pytest.fixture(params=["daemon", "private"])
def run(request, daemon):
    """run(*words) -> completed process, in both ways `run` can find its daemon."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPEN")}
    if request.param == "daemon":
        environment["OPENSANDBOX_HOST"] = f"unix://{daemon.run_dir}/api.sock"
    elif Path("/run/opensandbox/default/api.sock").exists():
        pytest.skip("a daemon of the default instance runs here: `run` would use it")

    def call(*words, options=(), **settings):
        return subprocess.run([harness.PROGRAM, "run", *options, "--", *words], env=environment, capture_output=True, **{"timeout": 60, **settings})

    call.environment = environment
    return call


def test_it_prints_hello(run):
    done = run("python3", "-c", 'print("hello")')
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello\n", b"")


def test_bytes_pass_through_unchanged(run):
    data = bytes(range(256)) * 64 + b"\0\r\n\xff no newline at the end"
    done = run("cat", input=data)
    assert done.returncode == 0 and done.stdout == data and done.stderr == b""


def test_standard_error_stays_apart(run):
    done = run("sh", "-c", "printf out; printf err >&2")
    assert (done.stdout, done.stderr) == (b"out", b"err")


@pytest.mark.parametrize("size", [10_000_000])
def test_ten_megabytes_go_in_and_out(run, size):
    data = secrets.token_bytes(1 << 16) * (size >> 16)
    done = run("sh", "-c", "sha256sum | cut -d' ' -f1 >&2", input=data)
    assert done.stderr.strip().decode() == hashlib.sha256(data).hexdigest()
    assert run("head", "-c", str(size), "/dev/zero").stdout == bytes(size)
    assert run("cat", input=data).stdout == data


@pytest.mark.parametrize("code", [0, 1, 2, 3, 42, 124, 125, 126, 127, 128, 129, 137, 200, 255])
def test_the_exit_status_is_the_commands_own(run, code):
    assert run("sh", "-c", f"exit {code}").returncode == code


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV, signal.SIGABRT, signal.SIGUSR1])
def test_a_command_ended_by_a_signal_says_so(run, number):
    done = run("python3", "-c", f"import os; os.kill(os.getpid(), {int(number)})")
    assert done.returncode == 128 + number


def test_a_missing_and_an_unexecutable_program(run):
    missing = run("osb-no-such-program")
    assert missing.returncode == 127 and b"osb-no-such-program" in missing.stderr
    assert run("/etc").returncode == 126


def test_arguments_and_environment_arrive_as_written(run):
    words = ["", "two words", "'", '"', "$HOME", "*", "a\nb", "--flag", "ä"]
    done = run("python3", "-c", "import json, os, sys; print(json.dumps([sys.argv[1:], os.environ['X'], os.getcwd()]))", *words,
               options=("-e", "X=one=two three", "-w", "/tmp"))
    assert json.loads(done.stdout) == [words, "one=two three", "/tmp"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
def test_signals_reach_the_command(run, number):
    code = (f"import os, signal, time\ndef told(*_):\n  os.write(1, b'got it\\n')\n  os._exit(17)\n"
            f"signal.signal({int(number)}, told)\nos.write(1, b'ready\\n')\ntime.sleep(60)")
    with subprocess.Popen([harness.PROGRAM, "run", "--", "python3", "-c", code], env=run.environment, stdout=subprocess.PIPE, start_new_session=True,
                          preexec_fn=lambda: signal.signal(number, signal.SIG_DFL)) as child:  # nohup around the tests is not the question
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(number)
        assert child.stdout.read() == b"got it\n"
        assert child.wait(30) == 17


def test_closing_our_output_ends_the_command(run):
    started = time.monotonic()
    with subprocess.Popen([harness.PROGRAM, "run", "--", "yes"], env=run.environment, stdout=subprocess.PIPE) as child:
        child.stdout.read(1000)
        child.stdout.close()
        child.wait(30)
    assert time.monotonic() - started < 20


def test_the_end_of_input_reaches_the_command(run):
    assert run("wc", "-c", input=b"").stdout.strip() == b"0"
    assert run("wc", "-c", input=b"abc").stdout.strip() == b"3"


def test_input_that_is_not_wanted_does_not_hide_the_end(run):
    done = run("head", "-c", "10", input=bytes(5_000_000))
    assert (done.returncode, done.stdout, done.stderr) == (0, bytes(10), b"")
    assert run("sh", "-c", "exit 5", input=bytes(5_000_000)).returncode == 5


def test_closed_standard_descriptors_stay_closed(run):
    assert run("cat", stdin=None, preexec_fn=lambda: os.close(0)).returncode == 0
    child = subprocess.run([harness.PROGRAM, "run", "--", "sh", "-c", "echo out; exit 3"], env=run.environment, preexec_fn=lambda: os.close(1), timeout=60)
    assert child.returncode == 3


def test_an_ignored_hangup_stays_ignored(run):
    with subprocess.Popen(["nohup", harness.PROGRAM, "run", "--", "sh", "-c", "echo ready; sleep 0.3; echo done"], env=run.environment,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL) as child:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGHUP)
        assert child.stdout.read() == b"done\n" and child.wait(30) == 0


def test_a_second_interrupt_ends_a_command_that_ignores_the_first(run):
    # os.write: print is not re-entrant, and the signal may come while the word before it is still being flushed.
    code = "import os, signal, time\nsignal.signal(2, lambda *_: os.write(1, b'once\\n'))\nos.write(1, b'ready\\n')\nwhile True: time.sleep(1)"
    with subprocess.Popen([harness.PROGRAM, "run", "--", "python3", "-c", code], env=run.environment, stdout=subprocess.PIPE, start_new_session=True) as child:
        assert child.stdout.readline() == b"ready\n"
        child.send_signal(signal.SIGINT)
        assert child.stdout.readline() == b"once\n"
        child.send_signal(signal.SIGINT)
        assert child.wait(10) == 130


def test_a_timeout_ends_a_stubborn_command(run):
    stubborn = "import os, signal\nsignal.signal(15, signal.SIG_IGN)\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0:\n    while True: pass\nwhile True: pass"
    started = time.monotonic()
    done = run("python3", "-c", stubborn, options=("--timeout", "1s"))
    assert done.returncode == 124 and time.monotonic() - started < 10
    assert run("true", options=("--timeout", "30s")).returncode == 0, "control"


def test_out_of_memory_is_told_to_the_person(run):
    done = run("python3", "-c", "x = bytearray(1 << 30)\nfor i in range(0, 1 << 30, 4096): x[i] = 1", options=("--memory", "64Mi"))
    assert done.returncode == 137 and b"memory" in done.stderr.lower()
    assert run("python3", "-c", "x = bytearray(8 << 20)", options=("--memory", "64Mi")).returncode == 0, "control"


def test_a_writable_root_only_when_asked_for(run):
    assert run("touch", "/usr/local/osb-x", options=("--mode", "root")).returncode == 1
    assert run("touch", "/usr/local/osb-x", options=("--mode", "root", "--rw")).returncode == 0
    assert not os.path.exists("/usr/local/osb-x")


def test_wrong_command_lines_are_told_with_status_two(run):
    for options in (("--memory", "lots"), ("--no-such-option",), ("--timeout", "-1s"), ("--mode", "god")):
        done = run("true", options=options)
        assert done.returncode == 2 and done.stderr, options


def private_leftovers():
    """Processes, cgroups and directories of private instances."""
    found = [f"process {pid} {command}" for pid, exe, command in harness.processes()
             if Path(exe).name.startswith("opensandbox") and any("private" in word for word in command)]
    found += [str(path) for folder in ("/run/opensandbox", "/var/lib/opensandbox/private") for path in Path(folder).glob("private-*")]
    for base, names, _ in os.walk("/sys/fs/cgroup"):
        found += [f"{base}/{name}" for name in names if name.startswith("opensandbox-private")]
        if base.count("/") > 4:
            names.clear()
    return found


def test_a_private_daemon_leaves_nothing(daemon):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("OPEN")}
    if Path("/run/opensandbox/default/api.sock").exists():
        pytest.skip("a daemon of the default instance runs here: `run` would use it")
    before = set(private_leftovers())
    for _ in range(3):
        assert subprocess.run([harness.PROGRAM, "run", "--", "true"], env=environment, capture_output=True, timeout=60).returncode == 0
    with subprocess.Popen([harness.PROGRAM, "run", "--", "sh", "-c", "echo ready; sleep 60"], env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout.readline() == b"ready\n"
        child.kill()
    harness.wait_until(lambda: set(private_leftovers()) <= before, 15, lambda: f"gone: {set(private_leftovers()) - before}")


def test_the_other_commands_agree_with_the_api(daemon):
    def cli(*words, ok=True):
        done = daemon.cli(*words)
        assert (done.returncode == 0) == ok, (words, done)
        return done.stdout.decode()

    sandbox = cli("create", "--name", "cli-test", "--memory", "128Mi").strip()
    try:
        assert sandbox in cli("ls")
        listed = json.loads(cli("ls", "-o", "json"))
        assert any(item["id"] == sandbox for item in (listed["items"] if isinstance(listed, dict) else listed))
        assert json.loads(cli("inspect", sandbox, "-o", "json"))["id" ] == sandbox
        assert cli("exec", sandbox, "--", "echo", "through exec") == "through exec\n"
        cli("pause", sandbox)
        assert daemon.get(sandbox)["status"]["state"] == "Paused"
        cli("resume", sandbox)
        assert daemon.get(sandbox)["status"]["state"] == "Running"
        before = daemon.get(sandbox)["expiresAt"]
        cli("renew", sandbox, "2h")
        assert daemon.get(sandbox)["expiresAt"] > before
    finally:
        cli("kill", sandbox)
    assert daemon.request("GET", f"/v1/sandboxes/{sandbox}").status == 404
    cli("inspect", sandbox, ok=False)


def test_errors_come_with_a_hint_and_without_colour(daemon):
    done = subprocess.run([harness.PROGRAM, "ls"], env={**os.environ, "OPENSANDBOX_HOST": NOBODY, "NO_COLOR": "1"}, capture_output=True, text=True, timeout=30)
    assert done.returncode == 1 and "no-such-instance" in done.stderr and "hint" in done.stderr.lower()
    assert "\x1b" not in done.stderr
    assert "did you mean" in subprocess.run([harness.PROGRAM, "inspct"], capture_output=True, text=True, timeout=30).stderr


def test_doctor_tells_what_this_host_gives(daemon, leaks_before):
    done = daemon.cli("doctor")
    assert done.returncode == 0, done
    text = done.stdout.decode().lower()
    for word in ("seccomp", "cgroup", "landlock", "namespace"):
        assert word in text
    harness.assert_no_leak_but(leaks_before)


def test_doctor_finds_a_group_that_nobody_owns(daemon):
    group = Path(min(oracle.cgroup_dirs(daemon.instance), key=len), "stray")
    group.mkdir()
    try:
        assert any(str(group) in line for line in harness.leaks_told())
    finally:
        group.rmdir()
    assert not any(str(group) in line for line in harness.leaks_told())
