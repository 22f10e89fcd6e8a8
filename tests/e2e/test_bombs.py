"""Hostile payloads: a neighbour keeps its heartbeat, and after delete they are gone."""
import os
import threading
import time
from collections import Counter

import pytest

from e2e import leak_oracle as oracle

BEAT_SECONDS = 4
HEARTBEAT = f"""
import time
late, end = [], time.monotonic() + {BEAT_SECONDS}
while (now := time.monotonic()) < end:
    time.sleep(0.01)
    late.append(time.monotonic() - now - 0.01)
late.sort()
print(len(late), late[int(len(late) * 0.99)] * 1000)
"""

BOMBS = {
    "fork bomb": ":(){ :|:& };:; sleep 60",
    "fork bomb that ignores signals": "trap '' TERM INT HUP; f() { f | f & }; f; sleep 60",
    "memory bomb": "python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'; sleep 60",
    "disk filler": "while :; do dd if=/dev/zero of=/workspace/fill bs=1M 2>/dev/null; dd if=/dev/zero of=/tmp/fill bs=1M 2>/dev/null; done",
    "inode filler": "i=0; while :; do : > /workspace/f$i || sleep 0.01; i=$((i+1)); done",
    "endless output": "yes endless",
    "spinner": "for i in 1 2 3 4; do while :; do :; done & done; wait",
}


class Beat(threading.Thread):
    """A neighbour's heartbeat: inside it wakes every 10 ms, outside we ask it something every 20 ms. Both p99 in ms."""

    def __init__(self, daemon, sandbox):
        super().__init__()
        self.daemon, self.sandbox = daemon, sandbox
        self.inside = self.outside = self.failure = None

    def run(self):
        try:
            asker = threading.Thread(target=self.ask)
            asker.start()
            done = self.daemon.exec(self.sandbox, "cat > /tmp/beat.py <<'X'\n" + HEARTBEAT + "\nX\npython3 /tmp/beat.py", timeout=60)
            beats, self.inside = (float(word) for word in done.stdout[0].split())
            assert beats > BEAT_SECONDS * 10, f"only {beats} beats"
            asker.join()
        except Exception as error:
            self.failure = error

    def ask(self):
        connection, token, took = self.daemon.connection(), self.daemon.token(self.sandbox), []
        end = time.monotonic() + BEAT_SECONDS
        while (started := time.monotonic()) < end:
            assert self.daemon.execd(self.sandbox, "GET", "/ping", connection=connection, token=token).status == 200
            took.append(time.monotonic() - started)
            time.sleep(0.02)
        connection.close()
        self.outside = sorted(took)[int(len(took) * 0.99)] * 1000


def its_group(daemon, sandbox):
    """The v2 group of the berth it lies in, by the launcher's ledger; None once it is struck off."""
    for line in (daemon.run_dir / "ledger").read_text(errors="replace").splitlines():
        words = line.strip("\0 ").split()
        if words[:1] == [sandbox]:
            folders = [folder for folder in oracle.cgroup_dirs(daemon.instance) if folder.endswith(f"/berth-{words[2]}")]
            return folders[0] if folders else "being removed"
    return None


def is_gone(daemon, sandbox, pids):
    return its_group(daemon, sandbox) is None and not any(os.path.exists(f"/proc/{pid}") for pid in pids)


@pytest.mark.parametrize("name", BOMBS)
def test_a_neighbour_keeps_its_heartbeat_and_delete_ends_it(daemon, name):
    neighbour = daemon.create()
    daemon.exec(neighbour, "python3 -c pass")  # page cache and endpoint are warm
    before = oracle.take(daemon)
    hostile = daemon.create(resourceLimits={"cpu": "1", "memory": "128Mi", "pids": "256", "disk": "64Mi"})
    daemon.exec(hostile, BOMBS[name], background=True)
    beat = Beat(daemon, neighbour)
    beat.start()
    beat.join(60)
    assert beat.failure is None, beat.failure
    pids = oracle.processes_in(its_group(daemon, hostile))
    assert pids, "the bomb is there"
    started = time.monotonic()
    daemon.delete(hostile)
    while not is_gone(daemon, hostile, pids):
        assert time.monotonic() - started < 2, f"still there 2 s after delete: {oracle.surplus(before, oracle.take(daemon))}"
        time.sleep(0.01)
    print(f"{name}: heartbeat p99 inside {beat.inside:.1f} ms, asked {beat.outside:.1f} ms; gone after {time.monotonic() - started:.2f} s")
    assert beat.inside <= 100 and beat.outside <= 100
    oracle.assert_gone(before, daemon)
    daemon.delete(neighbour)


def test_out_of_memory_is_told(daemon, sandbox):
    done = daemon.exec(sandbox, "exec python3 -c 'x = []\nwhile True: x.append(bytearray(1 << 20))'", timeout=60)
    assert done.error and done.exit_code != 0
    assert "memory" in str(done.error).lower(), done.error
    fine = daemon.exec(sandbox, "exit 9")
    assert "memory" not in str(fine.error).lower(), "control: an ordinary failure does not say so"
    assert daemon.output(sandbox, "echo alive") == "alive", "the sandbox itself lives on"


def test_the_disk_limit_is_an_error_inside_and_costs_the_host_nothing(daemon):
    sandbox = daemon.create(resourceLimits={"cpu": "1", "memory": "256Mi", "disk": "32Mi"})
    done = daemon.exec(sandbox, "for i in 1 2 3 4 5 6 7 8; do dd if=/dev/zero of=/workspace/fill$i bs=1M count=8 2>&1 || exit 9; done")
    assert done.exit_code == 9 and "No space left" in "\n".join(done.stdout)
    used = sum(int(size) for size in daemon.output(sandbox, "stat -c %s /workspace/fill*").split())
    assert 8 << 20 <= used <= 33 << 20, "control: up to the limit it may write"
    large = daemon.exec(sandbox, "rm /workspace/fill*; exec dd if=/dev/zero of=/workspace/large bs=1M count=100")
    assert large.exit_code != 0, "one file past the limit is refused too, by its size"
    daemon.delete(sandbox)


def test_the_process_limit_is_an_error_inside(daemon):
    sandbox = daemon.create(resourceLimits={"cpu": "1", "memory": "256Mi", "pids": "32"})
    count = "i=0; while [ $i -lt %d ]; do sleep 5 & i=$((i+1)); done; echo started"
    refused = daemon.exec(sandbox, count % 100)
    assert refused.exit_code != 0 or "fork" in "\n".join(refused.stderr)
    daemon.delete(sandbox)
    wide = daemon.create(resourceLimits={"cpu": "1", "memory": "256Mi", "pids": "200"})
    assert daemon.exec(wide, count % 100).stderr == [], "control: a higher limit lets them run"
    daemon.delete(wide)


def test_an_output_nobody_reads_stays_bounded(daemon, sandbox):
    def resident(pid):
        with open(f"/proc/{pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024

    daemon.exec(sandbox, "true")
    before = resident(daemon.process.pid)
    daemon.exec(sandbox, "yes 0123456789abcdef0123456789abcdef", background=True)
    connection = daemon.connection()
    connection.request("POST", f"/sandboxes/{sandbox}/proxy/44772/command", body='{"command": "yes unread"}',
                       headers={**daemon.token(sandbox), "Content-Type": "application/json"})
    assert connection.getresponse().status == 200
    time.sleep(3)  # the load itself, not a synchronisation
    assert resident(daemon.process.pid) - before < 64, "serve does not store what nobody reads"
    assert daemon.output(sandbox, "echo alive") == "alive"
    connection.close()
    assert Counter(item["id"] for item in daemon.list())[sandbox] == 1
