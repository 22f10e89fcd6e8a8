"""A thousand sandboxes, and two hundred crashes in the middle of work: nothing is left, nothing is told that was not so."""
import contextlib
import http.client
import os
import random
import signal
import threading
import time
from pathlib import Path

import pytest

import harness
from e2e import leak_oracle as oracle

SEED = 20240229
WARM_UP = 40


def one_life(daemon, connection, token=""):
    """create, exec, delete on one connection."""
    sandbox = daemon.create(connection=connection)
    try:
        done = daemon.exec(sandbox, f"echo first; echo {token}last", connection=connection)
        if done.complete is not None:
            assert done.stdout == ["first", f"{token}last"], "told successful, so all of it must be there"
        return done.exit_code == 0
    finally:
        daemon.delete(sandbox, connection=connection)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_thousand_sandboxes_leave_nothing(fresh_daemon, rounds):
    daemon, connection = fresh_daemon, fresh_daemon.connection()
    for _ in range(WARM_UP):
        assert one_life(daemon, connection)
    oracle.settle(daemon)
    harness.wait_until(lambda: not oracle.sandbox_processes(daemon.instance), 10, "the warm-up is gone")
    before, told = oracle.take(daemon), harness.leaks_told()
    for number in range(rounds(1000, 100)):
        assert one_life(daemon, connection, str(number))
    oracle.assert_gone(before, daemon, seconds=20)
    assert len(oracle.range_blocks(daemon.instance)) <= 2, "ids go back: a thousand ranges would be sixteen blocks"
    harness.assert_no_leak_but(told)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_many_at_once_leave_nothing(fresh_daemon, rounds):
    daemon = fresh_daemon
    for _ in range(10):
        one_life(daemon, None)
    before, told = oracle.take(daemon), harness.leaks_told()
    made = [daemon.create(resourceLimits={"cpu": "100m", "memory": "32Mi"}) for _ in range(rounds(200, 30))]
    assert len(daemon.list()) == min(200, len(made))
    for sandbox in made[::20]:
        assert daemon.output(sandbox, "echo alive") == "alive"
    for sandbox in made:
        daemon.delete(sandbox)
    oracle.assert_gone(before, daemon, seconds=20)
    assert len(oracle.range_blocks(daemon.instance)) <= len(made) // 64 + 2
    harness.assert_no_leak_but(told)


class Worker(threading.Thread):
    """Makes and uses sandboxes until told to stop; errors are expected while we kill, lies are not."""

    def __init__(self, daemon, number):
        super().__init__(daemon=True)
        self.target, self.number = daemon, number
        self.stop = threading.Event()
        self.lies, self.successes = [], 0

    def run(self):
        turn = 0
        while not self.stop.is_set():
            turn += 1
            try:
                self.successes += one_life(self.target, None, f"{self.number}-{turn}-")
            except harness.ApiError:
                pass
            except AssertionError as lie:
                self.lies.append(str(lie))
            except (OSError, http.client.HTTPException, KeyError, ValueError):
                time.sleep(0.005)


def victims(daemon):
    """Pids of our processes by kind: serve, launch, the stem, execd."""
    launch = daemon.launcher()
    found = {"serve": [daemon.process.pid], "launch": [launch] if launch else [], "stem": stems(launch), "sprout": [int(pid) for pid in oracle.sprouts(daemon.instance)], "execd": []}
    for entry in oracle.sandbox_processes(daemon.instance):
        pid = entry.split()[0]
        status = oracle.status_of(pid)
        if status and status.get("NSpid", "").split()[-1:] == ["1"]:
            found["execd"].append(int(pid))
    return found


def stems(launch):
    """The child of the launcher that divides into sandboxes: it has their name and is in none of their groups."""
    with contextlib.suppress(OSError):
        children = Path(f"/proc/{launch}/task/{launch}/children").read_text().split()
        return [int(pid) for pid in children if "--stem" in Path(f"/proc/{pid}/cmdline").read_text() and not oracle.owner_of(pid)]
    return []


def supervise(daemon):
    """What systemd does: start serve again when it is gone, and wait until it answers."""
    if daemon.process.poll() is not None:
        daemon.start()
    harness.wait_until(lambda: creates(daemon), 30, lambda: f"the daemon works again\n{daemon.tail()}")


def creates(daemon):
    with contextlib.suppress(OSError, http.client.HTTPException, AssertionError, KeyError, ValueError):
        sandbox = daemon.create()
        daemon.delete(sandbox)
        return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_kill_nine_of_a_random_process_of_ours_leaves_nothing(fresh_daemon, rounds):
    daemon, dice = fresh_daemon, random.Random(SEED)
    for _ in range(WARM_UP):
        one_life(daemon, None)
    oracle.settle(daemon)
    harness.wait_until(lambda: not oracle.sandbox_processes(daemon.instance), 10, "the warm-up is gone")
    before, told = oracle.take(daemon), harness.leaks_told()
    killed, successes, lies = {"serve": 0, "launch": 0, "stem": 0, "sprout": 0, "execd": 0}, 0, []
    for number in range(rounds(200, 12)):
        worker = Worker(daemon, number)
        worker.start()
        time.sleep(dice.uniform(0.0, 0.06))  # the moment of the blow, not a synchronisation
        kind = dice.choice(["serve", "launch", "stem", "sprout", "execd"])
        pids = victims(daemon)[kind]
        if pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(dice.choice(pids), signal.SIGKILL)
                killed[kind] += 1
        if kind == "serve":
            daemon.process.wait(10)
        supervise(daemon)
        worker.stop.set()
        worker.join(60)
        assert not worker.is_alive(), f"round {number}: a request hangs\n{daemon.tail()}"
        successes, lies = successes + worker.successes, lies + worker.lies
        if number % 20 == 19:
            daemon.delete_all()
            oracle.assert_gone(before, daemon, seconds=20)
    assert not lies, lies[:5]
    daemon.delete_all()
    oracle.assert_gone(before, daemon, seconds=20)
    assert len(oracle.range_blocks(daemon.instance)) <= 2
    harness.assert_no_leak_but(told)
    print(f"killed {killed}; {successes} lives completed in between")
    assert all(count for kind, count in killed.items() if kind != "sprout"), "those are there only when the blow falls into a pause"
