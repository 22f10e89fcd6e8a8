"""What holds a payload in, asked from inside; each denial with its control outside or beside it."""
import json
import os
import secrets
import subprocess
from pathlib import Path

import pytest

import harness


def status_inside(daemon, sandbox):
    return dict(line.split(":\t", 1) for line in daemon.output(sandbox, "cat /proc/self/status").splitlines() if ":\t" in line)


def status_outside():
    return dict(line.split(":\t", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line)


def python(code):
    """A shell command that runs this Python text."""
    return "python3 -c " + "'" + code.replace("'", "'\\''") + "'"


def test_a_payload_has_no_capability_in_any_set(daemon, sandbox):
    sets = ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    inside, outside = status_inside(daemon, sandbox), status_outside()
    assert {name: int(inside[name], 16) for name in sets} == dict.fromkeys(sets, 0)
    assert int(outside["CapEff"], 16) and int(outside["CapBnd"], 16), "control: root outside has them"


def test_a_payload_is_under_a_filter_and_cannot_gain_privileges(daemon, sandbox):
    inside, outside = status_inside(daemon, sandbox), status_outside()
    assert (inside["Seccomp"].strip(), inside["NoNewPrivs"].strip()) == ("2", "1")
    assert (outside["Seccomp"].strip(), outside["NoNewPrivs"].strip()) == ("0", "0"), "control: not here"


def test_root_mode_keeps_exactly_eight_capabilities(daemon):
    sandbox = daemon.create(extensions={"opensandbox.mode": "root"})
    inside = status_inside(daemon, sandbox)
    expected = sum(1 << bit for bit in (0, 1, 3, 4, 5, 6, 7, 10))  # chown dac_override fowner fsetid kill setgid setuid net_bind_service
    assert int(inside["CapEff"], 16) == int(inside["CapBnd"], 16) == expected
    assert daemon.output(sandbox, "id -u") == "0"
    assert (inside["Seccomp"].strip(), inside["NoNewPrivs"].strip()) == ("2", "1")
    daemon.delete(sandbox)


def test_the_network_is_only_loopback(daemon, sandbox):
    interfaces = [line.split(":")[0].strip() for line in daemon.output(sandbox, "cat /proc/net/dev").splitlines() if ":" in line]
    assert interfaces == ["lo"]
    connect = python(f"import socket; s = socket.socket(); s.settimeout(3); s.connect(('127.0.0.1', {daemon.port})); print('reached')")
    assert "reached" not in "".join(daemon.exec(sandbox, connect).stdout)
    outside = subprocess.run(connect, shell=True, capture_output=True, text=True)
    assert outside.stdout == "reached\n", "control: the same words reach the daemon from outside"
    anywhere = python("import socket; s = socket.socket(); s.settimeout(3); s.connect(('192.0.2.1', 80))")
    assert any("unreachable" in line or "refused" in line for line in daemon.exec(sandbox, anywhere).stderr)


def test_loopback_inside_works_and_is_private(daemon, sandbox):
    neighbour = daemon.create()
    serve = python("import socket; s = socket.socket(); s.bind(('127.0.0.1', 5555)); s.listen(); c, _ = s.accept(); c.sendall(b'hi')")
    ask = python("import socket, time\nfor _ in range(100):\n  try:\n    s = socket.create_connection(('127.0.0.1', 5555)); break\n"
                 "  except OSError: time.sleep(0.05)\nprint(s.recv(9))")
    daemon.exec(sandbox, serve, background=True)
    refused = python("import socket; print(socket.socket().connect_ex(('127.0.0.1', 5555)))")
    assert daemon.output(neighbour, refused) == "111", "the neighbour's loopback is another one"
    assert daemon.output(sandbox, ask) == "b'hi'", "control: the sandbox itself gets through"
    daemon.delete(neighbour)


def test_secrets_of_the_host_cannot_be_read(daemon, sandbox):
    outside = Path("/etc/shadow").read_text()
    assert outside, "control: root outside reads it"
    inside = daemon.exec(sandbox, "cat /etc/shadow")
    assert inside.exit_code != 0 or "\n".join(inside.stdout) not in outside
    root = daemon.create(extensions={"opensandbox.mode": "root"})
    entries = {line.split(":")[1] for line in outside.splitlines() if ":" in line and len(line.split(":")[1]) > 4}
    told = "\n".join(daemon.exec(root, "cat /etc/shadow").stdout)
    assert not any(entry in told for entry in entries), "nor by root inside"
    daemon.delete(root)


@pytest.mark.parametrize("folder", ["/etc", "/root", "/var/lib", "/tmp", "/home", "/opt", "/srv"])
def test_host_files_outside_usr_are_invisible(daemon, sandbox, folder):
    if not os.path.isdir(folder):
        pytest.skip(f"this host has no {folder}")
    canary = Path(folder) / f"osb-canary-{secrets.token_hex(6)}"
    canary.write_text("canary")
    canary.chmod(0o644)
    try:
        assert subprocess.run(["test", "-r", canary]).returncode == 0, "control: it is there"
        assert daemon.exec(sandbox, f"test -e {canary}").exit_code == 1
        assert canary.name not in "\n".join(daemon.exec(sandbox, f"ls -a {folder}").stdout)
    finally:
        canary.unlink()


def test_usr_of_the_host_is_visible(daemon, sandbox):
    inside = daemon.output(sandbox, "sha256sum < /usr/bin/env").split()[0]
    outside = subprocess.run("sha256sum < /usr/bin/env", shell=True, capture_output=True, text=True).stdout.split()[0]
    assert inside == outside


def test_every_sandbox_has_its_own_range_of_host_ids(daemon, sandbox):
    other = daemon.create()
    maps = [daemon.output(one, "cat /proc/self/uid_map; cat /proc/self/gid_map").split() for one in (sandbox, other)]
    for words in maps:
        assert words[0] == words[3] == "0" and words[2] == words[5] == "65536" and words[1] == words[4]
        assert int(words[1]) >= 0x40000000
    assert abs(int(maps[0][1]) - int(maps[1][1])) >= 65536
    assert Path("/proc/self/uid_map").read_text().split()[1] == "0", "control: outside 0 is 0"
    daemon.delete(other)


def test_the_host_sees_a_payload_under_its_range(daemon, sandbox):
    word = f"osb-marker-{secrets.token_hex(6)}"
    daemon.exec(sandbox, f"exec -a {word} sleep 60", background=True)
    pid = harness.wait_until(lambda: next((pid for pid, _, command in harness.processes() if command[0] == word), None), 10, "the marker runs")
    base = int(daemon.output(sandbox, "cat /proc/self/uid_map").split()[1])
    uids = [int(uid) for uid in next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("Uid:")).split()[1:]]
    assert all(base < uid < base + 65536 for uid in uids)


def test_the_root_is_read_only_and_scratch_is_not(daemon, sandbox):
    for folder in ("/usr", "/usr/bin", "/etc", "/"):
        refused = daemon.exec(sandbox, f"touch {folder}/osb-x")
        assert refused.exit_code != 0 and "Read-only file system" in refused.stderr[0], folder
    for folder in ("/tmp", "/workspace", "$HOME"):
        assert daemon.exec(sandbox, f"touch {folder}/osb-x && rm {folder}/osb-x").exit_code == 0, f"control: {folder}"


def test_a_writable_root_is_a_layer_of_its_own(daemon):
    sandbox = daemon.create(extensions={"opensandbox.root": "rw", "opensandbox.mode": "root"})
    name = f"/usr/local/osb-{secrets.token_hex(6)}"
    assert daemon.exec(sandbox, f"touch {name} && test -e {name}").exit_code == 0, "control: allowed when asked for"
    assert not os.path.exists(name), "and the host does not see it"
    daemon.delete(sandbox)


@pytest.mark.parametrize("path", ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sysrq-trigger", "/proc/sys/kernel/core_pattern", "/sys/kernel/uevent_helper"])
def test_kernel_files_are_masked(daemon, path):
    sandbox = daemon.create(extensions={"opensandbox.mode": "root"})
    probe = python("import sys\nfor mode in ('rb', 'wb'):\n  try:\n    f = open(sys.argv[1], mode); data = f.read(64) if mode == 'rb' else b''\n"
                   "    print(mode, 'opened', len(data))\n  except OSError as e: print(mode, 'refused')") + f" {path}"
    said = dict(line.split(" ", 1) for line in daemon.output(sandbox, probe).splitlines())
    assert said["wb"] == "refused"
    if "/sys/" not in path:
        assert said["rb"] in ("refused", "opened 0")
    daemon.delete(sandbox)
    if os.path.exists(path):
        mode = "rb" if os.access(path, os.R_OK) and path != "/proc/sysrq-trigger" else "wb"
        with open(path, mode, buffering=0) as control:
            assert mode == "wb" or path == "/proc/keys" or control.read(1) is not None, "control: root outside opens it"


def test_no_new_namespace_mount_or_raw_socket(daemon, sandbox):
    attempts = {"unshare -U true": "unshare -U true", "mount -t tmpfs x /tmp": "unshare -m mount -t tmpfs x /mnt",
                python("import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"): None,
                python("import socket; socket.socket(socket.AF_ALG, socket.SOCK_SEQPACKET)"): "true",
                python("import ctypes, sys; sys.exit(0 if ctypes.CDLL(None).syscall(425, 8, 0) >= 0 else 1)"): "true"}
    for inside, outside in attempts.items():
        assert daemon.exec(sandbox, inside).exit_code != 0, inside
        control = subprocess.run(outside or inside, shell=True, capture_output=True)
        assert control.returncode == 0, f"control: {outside or inside}: {control.stderr}"


def test_processes_of_host_and_neighbour_are_invisible(daemon, sandbox):
    neighbour = daemon.create()
    word = f"osb-marker-{secrets.token_hex(6)}"
    daemon.exec(neighbour, f"exec -a {word} sleep 60", background=True)
    listing = "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"
    harness.wait_until(lambda: word in daemon.output(neighbour, listing), 10, "control: the neighbour sees its own")
    seen = daemon.output(sandbox, listing)
    assert word not in seen and "opensandbox serve" not in seen
    assert int(daemon.output(sandbox, "ls -d /proc/[0-9]* | wc -l")) < 10
    daemon.delete(neighbour)


def test_a_payload_starts_with_three_descriptors(daemon, sandbox):
    opened = python("import os; print(sorted(os.listdir('/proc/self/fd')))")
    assert daemon.output(sandbox, opened) == str(["0", "1", "2", "3"]), "3 is the listing itself"


def test_files_of_one_sandbox_are_not_in_another(daemon, sandbox):
    neighbour = daemon.create()
    daemon.output(sandbox, "echo mine > /workspace/note; echo mine > /tmp/note; echo mine > /dev/shm/note")
    for folder in ("/workspace", "/tmp", "/dev/shm"):
        assert daemon.output(sandbox, f"cat {folder}/note") == "mine", "control"
        assert daemon.exec(neighbour, f"test -e {folder}/note").exit_code == 1
    daemon.delete(neighbour)


def test_environment_of_the_daemon_does_not_leak(daemon, sandbox):
    names = {line.split("=")[0] for line in daemon.output(sandbox, "env").splitlines()}
    assert not names & {"OPENSANDBOX_SERVER_API_KEY", "SSH_AUTH_SOCK", "OSB_BUILD_DIR", "SUDO_USER"}
    assert daemon.key not in json.dumps(daemon.output(sandbox, "env; cat /proc/1/environ /proc/1/cmdline 2>/dev/null; true"))
