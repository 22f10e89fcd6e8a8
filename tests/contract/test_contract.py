"""What every runtime promises, asked of each in the same words. Each denial has its control beside it."""
import contextlib
import json
import os
import pty
import secrets
import socket
import subprocess
import time
import urllib.error
import urllib.request
from datetime import datetime, timedelta, timezone
from pathlib import Path
from urllib.parse import quote

import harness
import pytest
from contract.daemons import pids_of


def python(code):
    """A shell command that runs this Python text."""
    return "/usr/bin/python3 -c '" + code.replace("'", "'\\''") + "'"


def said(host, box, code):
    return json.loads(host.output(box, python(code)))


def marker():
    return f"osb-{secrets.token_hex(6)}"


def start_marked(host, box):
    """A program inside that goes on; its name on the host and its pid there."""
    word = marker()
    host.exec(box, f"bash -c 'exec -a {word} sleep 300'", background=True)
    return word, harness.wait_until(lambda: pids_of(word), 10, "the marked program runs")[0]


# ---- what it does

def test_it_says_which_runtime_it_is(host):
    assert host.call("GET", "/v1/version").json()["runtime"] == host.runtime


def test_a_command_has_its_output_and_its_exit_code(host, box):
    done = host.exec(box, "echo out; echo err >&2; exit 7")
    assert (done.stdout, done.stderr, done.exit_code) == (["out"], ["err"], 7)
    assert host.exec(box, "true").exit_code == 0
    assert host.exec(box, "kill -9 $$").exit_code == 137


def test_the_command_line_makes_uses_and_ends_a_sandbox(host):
    made = host.cli("create").stdout.decode().strip()
    assert host.cli("exec", made, "--", "sh", "-c", "cat; exit 5", input=b"through").stdout == b"through"
    assert host.cli("exec", made, "--", "sh", "-c", "exit 5").returncode == 5
    assert host.cli("kill", made).returncode == 0
    assert host.request("GET", f"/v1/sandboxes/{made}").status == 404


def test_output_is_streamed_while_the_command_runs(host, box):
    connection = host.connection()
    body = json.dumps({"command": "echo first; while [ ! -e /tmp/go ]; do sleep 0.02; done; echo last"})
    connection.request("POST", f"/sandboxes/{box}/proxy/{harness.EXECD_PORT}/command", body, {**host.token(box), "Content-Type": "application/json"})
    answer, early = connection.getresponse(), b""
    while b"first" not in early:
        early += answer.read1(4096)
    assert b"last" not in early
    host.output(box, "touch /tmp/go")
    assert b"last" in answer.read()
    connection.close()


def test_files_go_in_and_come_out(host, box):
    content = os.urandom(300_000)
    parts = [("metadata", json.dumps({"path": "/workspace/in.bin"}).encode()), ("file", content)]
    body = b"".join(f'--B\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode() + data + b"\r\n" for name, data in parts)
    assert host.execd(box, "POST", "/files/upload", body + b"--B--\r\n", headers={"Content-Type": "multipart/form-data; boundary=B"}).status == 200
    assert host.output(box, "stat -c '%s %U' /workspace/in.bin; cp /workspace/in.bin /workspace/out.bin") == "300000 user"
    assert host.execd(box, "GET", f"/files/download?path={quote('/workspace/out.bin')}").body == content


def test_a_terminal_is_the_sandboxs_own(host, box):
    ours, theirs = pty.openpty()
    command = ["sh", "-c", "test -t 0 && tty && stat -c %U $(tty)"]
    socket_path = f"unix://{host.run_dir}/api.sock"
    words = [str(harness.PROGRAM), "exec", "-it", "--host", socket_path, box, "--", *command]
    process = subprocess.Popen(words, stdin=theirs, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    out, err = process.communicate(timeout=30)
    os.close(ours), os.close(theirs)
    assert out.split() == [b"/dev/pts/0", b"user"], err


def test_a_port_inside_is_reached_through_the_proxy(host, box):
    host.exec(box, "cd /workspace && echo hello > page && exec /usr/bin/python3 -m http.server --bind 127.0.0.1 8123", background=True)
    headers = host.call("GET", f"/v1/sandboxes/{box}/endpoints/8123").json().get("headers", {})

    def ask():
        answer = host.request("GET", f"/sandboxes/{box}/proxy/8123/page", headers=headers, key=False)
        return answer if answer.status == 200 else None

    assert harness.wait_until(ask, 20, "the server inside answers").body == b"hello\n"


def test_the_session_api_runs_one_shot_and_names_the_runtime(host):
    def ask(**more):
        request = urllib.request.Request(host.sessions_url + "/run", json.dumps({"command": "echo $((6 * 7)); exit 3", **more}).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read())

    done = ask(runtime=host.runtime)
    assert (done["stdout"], done["exit_code"]) == ("42\n", 3), done
    with pytest.raises(urllib.error.HTTPError) as refused:
        ask(runtime="process" if host.runtime == "native" else "native")
    assert refused.value.code == 400 and host.runtime in refused.value.read().decode()


def test_the_environment_is_the_requests_own(host):
    box = host.create(env={"GIVEN": "yes"})
    names = said(host, box, "import os, json; print(json.dumps(dict(os.environ)))")
    assert names["GIVEN"] == "yes" and names["HOME"] == "/home/user"
    assert "SECRET_OF_THE_USER" not in names and "canary" not in json.dumps(names)
    host.delete(box)


def test_metrics_tell_what_is_used_and_the_limits(host):
    box = host.create(resourceLimits={"cpu": "1", "memory": "128Mi"})
    told = host.execd(box, "GET", "/metrics").json()
    assert told["mem_total_mib"] == 128 and 0 < told["mem_used_mib"] < 128
    host.delete(box)


# ---- how it ends

def test_a_command_timeout_is_a_hard_kill(host, box):
    word = marker()
    stubborn = f"trap '' TERM INT HUP; bash -c 'trap \"\" TERM; exec -a {word} sleep 300' & echo begun; while :; do :; done"
    body = host.execd(box, "POST", "/command", {"command": stubborn, "timeout": 700}).body
    assert b"begun" in body and b"execution_complete" not in body
    harness.wait_until(lambda: not pids_of(word), 5, "what it started is dead too")
    assert host.output(box, "echo alive") == "alive", "control: the sandbox is not"


def test_the_deadline_ends_everything_in_it(host):
    box, neighbour = host.create(), host.create()
    word, _ = start_marked(host, box)
    at = (datetime.now(timezone.utc) + timedelta(seconds=1.2)).isoformat()
    host.call("POST", f"/v1/sandboxes/{box}/renew-expiration", {"expiresAt": at}, expect=(200,))
    assert pids_of(word), "control: not before its time"
    harness.wait_until(lambda: host.request("GET", f"/v1/sandboxes/{box}").status == 404, 8, "it is gone")
    assert not pids_of(word)
    assert host.output(neighbour, "echo alive") == "alive", "control: only this one"
    host.delete(neighbour)


def test_the_end_of_the_first_program_is_told_with_its_status(host):
    box = host.create(entrypoint=["sh", "-c", "sleep 0.5; exit 3"])
    assert host.get(box)["status"]["state"] == "Running"

    def ended():
        status = host.get(box)["status"]
        return status if status["state"] in ("Terminated", "Failed") else None

    status = harness.wait_until(ended, 10, "it ends")
    assert "3" in status["message"], status
    host.delete(box)


def test_a_first_program_that_cannot_start_leaves_nothing(host):
    before = len(host.list())
    answer = host.request("POST", "/v1/sandboxes", {"image": {"uri": "host"}, "resourceLimits": {"cpu": "1", "memory": "64Mi"}, "timeout": 600,
                                                    "entrypoint": ["/no/such/program"]})
    assert answer.status == 400 and "entrypoint" in answer.body.decode()
    assert len(host.list()) == before and not list((host.run_dir / "sandboxes").iterdir())


def test_destroy_leaves_nothing(host):
    mounts = Path("/proc/mounts").read_text()
    boxes = [host.create() for _ in range(4)]
    words = [start_marked(host, box)[0] for box in boxes]
    sockets = {path.name for path in (host.run_dir / "sandboxes").iterdir()}
    assert sockets == {f"{box}.sock" for box in boxes}, "control: they are there"
    for box in boxes:
        host.delete(box)
    harness.wait_until(lambda: not any(pids_of(word) for word in words), 10, "no process is left")
    assert not list((host.run_dir / "sandboxes").iterdir())
    assert Path("/proc/mounts").read_text() == mounts


# ---- what holds it in

def test_a_payload_has_no_privilege(host, box):
    status = dict(line.split(":\t", 1) for line in host.output(box, "cat /proc/self/status").splitlines() if ":\t" in line)
    assert {name: int(status[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")} == dict.fromkeys(
        ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), 0)
    assert (status["Seccomp"].strip(), status["NoNewPrivs"].strip()) == ("2", "1")
    assert host.output(box, "id -u; id -g") == "1000\n1000"
    assert host.exec(box, python("import os; os.setuid(0)")).exit_code != 0


def test_the_root_is_read_only_and_the_workspace_is_not(host, box):
    for folder in ("/", "/usr", "/usr/bin", "/etc", "/home", "/dev", "/sys", "/proc", "/var"):
        refused = host.exec(box, f"touch {folder}/osb-x")
        assert refused.exit_code != 0, folder
    for folder in ("/workspace", "/tmp", "/var/tmp", "$HOME", "/run", "/dev/shm"):
        assert host.exec(box, f"touch {folder}/osb-x && rm {folder}/osb-x").exit_code == 0, f"control: {folder}"
    assert host.exec(box, "mount -o remount,rw / || chmod 777 /etc/passwd || ln -f /etc/passwd /etc/osb").exit_code != 0


def test_there_is_no_network(host, box):
    interfaces = [line.split(":")[0].strip() for line in host.output(box, "cat /proc/net/dev").splitlines() if ":" in line]
    assert interfaces == ["lo"]
    reach = f"import socket; s = socket.socket(); s.settimeout(3); s.connect((\"127.0.0.1\", {host.port})); print(\"reached\")"
    assert "reached" not in "".join(host.exec(box, python(reach)).stdout)
    assert host.as_user("/usr/bin/python3", "-c", reach).stdout == "reached\n", "control: outside it is there"
    far = host.exec(box, python("import socket; s = socket.socket(); s.settimeout(3); s.connect((\"192.0.2.1\", 80))"))
    assert any("unreachable" in line for line in far.stderr)


DENIED = """
import ctypes, json, os
libc = ctypes.CDLL(None, use_errno=True)
def call(number, *arguments):  # in a process of its own: the filter kills for some
    if (child := os.fork()) == 0:
        os._exit(0 if libc.syscall(number, *[ctypes.c_long(a) for a in arguments]) >= 0 else ctypes.get_errno())
    status = os.waitpid(child, 0)[1]
    return "SIGSYS" if os.WIFSIGNALED(status) and os.WTERMSIG(status) == 31 else os.WEXITSTATUS(status)
calls = {"unshare user": (272, 0x10000000), "unshare mount": (272, 0x20000), "mount": (165, 0, 0, 0, 0, 0), "bpf": (321, 0, 0, 0),
         "perf_event_open": (298, 0, 0, 0, 0, 0), "keyctl": (250, 0, -3, 0), "add_key": (248, 0, 0, 0, 0, -3), "userfaultfd": (323, 0),
         "io_uring_setup": (425, 1, 0), "open_by_handle_at": (304, -1, 0, 0), "init_module": (175, 0, 0, 0), "kexec_load": (246, 0, 0, 0, 0),
         "setns": (308, 0, 0), "pivot_root": (155, 0, 0), "chroot": (161, 0), "ptrace init": (101, 16, 1, 0, 0), "swapon": (167, 0, 0),
         "reboot": (169, 0, 0, 0, 0), "fsopen": (430, 0, 0), "getpid": (39,), "getuid": (102,)}
print(json.dumps({name: call(*arguments) for name, arguments in calls.items()}))
"""


def test_dangerous_system_calls_are_refused_and_harmless_ones_are_not(host, box):
    inside = said(host, box, DENIED)
    harmless = {"getpid", "getuid"}
    assert {name: inside[name] for name in harmless} == dict.fromkeys(harmless, 0), "control"
    refused = {name: error for name, error in inside.items() if name not in harmless}
    assert set(refused.values()) <= {1, 13, 38, "SIGSYS"}, refused  # EPERM, EACCES, ENOSYS, or the end of the process
    outside = json.loads(host.as_user("/usr/bin/python3", "-c", DENIED).stdout)
    assert outside["unshare user"] == 0 and outside["keyctl"] == 0, "control: the same user may outside"


def test_a_payload_ends_up_alone_with_its_own_processes(host, box):
    word = marker()
    outsider = subprocess.Popen(["bash", "-c", f"exec -a {word} sleep 300"], user=host.uid, group=host.uid, extra_groups=[])
    try:
        pid = harness.wait_until(lambda: pids_of(word), 10, "the outsider runs")[0]
        probe = f"""
import ctypes, json, os
seen = []
for entry in os.listdir("/proc"):
    if entry.isdigit():
        try: seen.append(open("/proc/" + entry + "/cmdline").read().split(chr(0))[0])
        except OSError: pass
def kill(pid):
    try: os.kill(pid, 0); return "may"
    except OSError as error: return error.errno
class Vec(ctypes.Structure): _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]
def read_memory(pid):
    buffer = ctypes.create_string_buffer(8)
    here = Vec(ctypes.cast(buffer, ctypes.c_void_p), 8)
    return ctypes.CDLL(None).process_vm_readv(pid, ctypes.byref(here), 1, ctypes.byref(here), 1, 0)
print(json.dumps(dict(seen="{word}" in seen, kill=kill({pid}), memory=read_memory({pid}), init=read_memory(1), own=kill(os.getpid()),
    environ=os.access("/proc/1/environ", os.R_OK), root=os.access("/proc/1/root/", os.R_OK), lowest=min(int(e) for e in os.listdir("/proc") if e.isdigit()) >= 1)))
"""
        inside = said(host, box, probe)
        assert not inside["seen"] and inside["kill"] == 3 and inside["memory"] == inside["init"] == -1
        assert not inside["environ"] and not inside["root"] and inside["own"] == "may"
        assert host.as_user("/usr/bin/python3", "-c", f"import os; os.kill({pid}, 0); print('may')").stdout == "may\n", "control: outside it may"
    finally:
        outsider.kill()
        outsider.wait()


def test_sockets_of_the_host_are_out_of_reach(host, box):
    """The session bus, docker.sock, an agent with keys: by path and by abstract name, of the very same user."""
    path, name = str(host.directory / "bus"), f"osb-bus-{secrets.token_hex(6)}"
    reach = f"""
import json, socket
def ask(address):
    try: socket.socket(socket.AF_UNIX).connect(address); return "reached"
    except OSError as error: return error.errno
print(json.dumps([ask({path!r}), ask("\\0" + {name!r})]))
"""
    with socket.socket(socket.AF_UNIX) as bus, socket.socket(socket.AF_UNIX) as abstract:
        bus.bind(path), abstract.bind("\0" + name)
        os.chmod(path, 0o777)
        bus.listen(), abstract.listen()
        assert json.loads(host.as_user("/usr/bin/python3", "-c", reach).stdout) == ["reached", "reached"], "control: outside it may"
        assert "reached" not in said(host, box, reach)
    for place in ("/run/docker.sock", "/var/run/docker.sock", "/run/dbus", "/run/user", str(host.run_dir), str(host.state)):
        assert host.exec(box, f"test -e {place}").exit_code == 1, place


def test_files_of_the_user_and_the_host_are_not_there(host, box):
    secret = host.directory / f"id_{secrets.token_hex(4)}"
    secret.write_text("canary")
    secret.chmod(0o644)
    assert host.as_user("cat", str(secret)).stdout == "canary", "control: outside it may be read"
    assert host.exec(box, f"cat {secret}").exit_code == 1
    assert host.output(box, "ls /home") == "user" and host.output(box, "ls -A /home/user") == ""
    for place in ("/etc/shadow", "/root/.ssh", "/var/lib", "/boot", "/etc/ssh"):
        assert host.exec(box, f"cat {place} 2>/dev/null || ls -A {place} | grep .").exit_code != 0, place
    escape = "for p in /proc/1/root /proc/1/cwd /proc/self/root/.. /workspace/../../..; do ls $p/boot $p/var/lib/dpkg 2>/dev/null; done"
    assert host.exec(box, escape).stdout == []


def test_devices_and_kernel_files_are_few_and_harmless(host, box):
    allowed = {"fd", "full", "mqueue", "null", "ptmx", "pts", "random", "shm", "stderr", "stdin", "stdout", "tty", "urandom", "zero"}
    assert set(host.output(box, "ls /dev").split()) == allowed
    assert host.exec(box, "echo x > /dev/null && head -c 4 /dev/urandom | wc -c").stdout == ["4"], "control: those work"
    assert host.exec(box, "exec 3< /dev/tty").exit_code != 0, "no terminal of the host's"
    for path in ("/proc/kcore", "/proc/keys", "/proc/kallsyms", "/proc/sysrq-trigger"):
        assert host.exec(box, f"test -e {path} && head -c 1 {path} | grep -q .").exit_code != 0, path
    for path in ("/proc/sys/kernel/core_pattern", "/proc/self/oom_score_adj", "/proc/sysrq-trigger"):
        assert host.exec(box, f"echo 1 > {path}").exit_code != 0, path


# ---- what bounds it

def test_a_fork_bomb_is_bounded_and_the_neighbour_does_not_feel_it(host, box):
    bombed = host.create(resourceLimits={"cpu": "1", "memory": "128Mi", "pids": "40"})
    bomb = "import os, json, time\nmade = 0\ntry:\n    while made < 400:\n        if os.fork() == 0: time.sleep(60)\n        made += 1\nexcept OSError as error: print(json.dumps([made, error.errno]))"
    made, error = said(host, bombed, bomb)
    assert 10 < made <= 40 and error == 11
    assert host.output(box, "echo alive") == "alive"
    host.delete(bombed)


def test_a_memory_hog_is_bounded(host):
    box = host.create(resourceLimits={"cpu": "1", "memory": "128Mi"})
    assert host.exec(box, python("x = bytearray(40 << 20); print(len(x))")).exit_code == 0, "control: what fits is given"
    hog = host.exec(box, python("x = []\nwhile len(x) < 1024: x.append(bytearray(1 << 20))\nprint(\"all of it\")"), timeout=60)
    assert hog.exit_code != 0 and "all of it" not in hog.stdout
    assert host.output(box, "echo alive") == "alive"
    host.delete(box)


def test_many_processes_together_are_bounded_too(host):
    box = host.create(resourceLimits={"cpu": "1", "memory": "128Mi"})
    hogs = """
import mmap, os, time
def hog():
    memory = mmap.mmap(-1, 40 << 20)  # shared memory, which no limit of a process counts
    for at in range(0, 40 << 20, 4096): memory[at] = 1
    time.sleep(2)
children = []
for _ in range(6):
    if (child := os.fork()) == 0: hog()
    children.append(child)
    time.sleep(0.1)
print([os.waitpid(child, 0)[1] for child in children].count(9) > 0)
"""
    assert host.output(box, python(hogs)) == "True"
    alone = host.exec(box, python("import mmap, time\nm = mmap.mmap(-1, 400 << 20)\nfor at in range(0, 400 << 20, 4096): m[at] = 1\ntime.sleep(9)"))
    assert alone.exit_code == 137 and alone.events[-1]["cause"] == "out_of_memory", alone.events
    assert host.output(box, "echo alive") == "alive"
    host.delete(box)


def test_the_disk_is_bounded(host):
    box = host.create(resourceLimits={"cpu": "1", "memory": "256Mi", "disk": "16Mi"})
    assert host.exec(box, "head -c 8M /dev/zero > /workspace/fits").exit_code == 0, "control"
    full = host.exec(box, "head -c 12M /dev/zero > /workspace/more")
    assert full.exit_code != 0 and any("No space" in line for line in full.stderr)
    host.delete(box)


# ---- who it cannot be asked by, and what for

def test_an_unknown_image_is_refused_and_leaves_nothing(host):
    answer = host.request("POST", "/v1/sandboxes", {"image": {"uri": "no-such-image:1"}, "resourceLimits": {"cpu": "1", "memory": "64Mi"}, "timeout": 600,
                                                    "entrypoint": ["sleep", "infinity"]})
    assert answer.status in (400, 404) and "image" in answer.body.decode()
    with contextlib.suppress(FileNotFoundError):
        assert not list((host.run_dir / "sandboxes").iterdir())


def test_twenty_at_once_do_not_disturb_each_other(host):
    boxes = [host.create(env={"NUMBER": str(number)}) for number in range(20)]
    began = time.monotonic()
    assert [host.output(box, "echo $NUMBER; hostname").split()[0] for box in boxes] == [str(number) for number in range(20)]
    assert time.monotonic() - began < 30
    for box in boxes:
        host.delete(box)
