"""kill -9 of each of our processes: nothing acknowledged is lost, nothing is left, the next request works."""
import contextlib
import http.client
import os
import shutil
import signal
import threading
import time

import harness
from e2e import leak_oracle as oracle


@contextlib.contextmanager
def daemon_that_leaves_nothing(name):
    """At the end its sandboxes are deleted, serve is stopped, the launcher follows by itself, and nothing of them is there."""
    with harness.Daemon(name) as daemon:
        yield daemon
        blocks = oracle.range_blocks(daemon.instance)
        daemon.delete_all()
        daemon.kill_serve(signal.SIGTERM)
        harness.wait_until(lambda: daemon.launcher() is None, 15, "the launcher ends too")
        oracle.assert_nothing_of(daemon, blocks)


def execd_of(daemon, sandbox):
    """The host pid of a sandbox's pid 1."""
    base = daemon.output(sandbox, "cat /proc/self/uid_map").split()[1]
    for entry in filter(str.isdigit, os.listdir("/proc")):
        status = oracle.status_of(entry)
        alive = status and not status["State"].strip().startswith("Z")
        if alive and status.get("NSpid", "").split()[-1:] == ["1"] and status["Uid"].split()[0] == str(int(base) + 65533):
            return int(entry)
    raise AssertionError("no pid 1 of that sandbox")


def test_sandboxes_survive_a_restart_of_serve(fresh_daemon):
    daemon = fresh_daemon
    keep, paused = daemon.create(metadata={"name": "keep"}), daemon.create(metadata={"name": "paused"})
    daemon.output(keep, "echo kept > /workspace/note; sleep 300 & echo $! > /tmp/pid")
    daemon.call("POST", f"/v1/sandboxes/{paused}/pause", expect=(202,))
    before = {item["id"]: item for item in daemon.list()}
    daemon.kill_serve()
    daemon.restart()
    after = {item["id"]: item for item in daemon.list()}
    assert after == before, "every field as it was"
    assert daemon.output(keep, "cat /workspace/note; kill -0 $(cat /tmp/pid) && echo alive") == "kept\nalive"
    daemon.call("POST", f"/v1/sandboxes/{paused}/resume", expect=(202,))
    assert daemon.output(paused, "echo thawed") == "thawed"


def test_a_clean_stop_of_serve_keeps_sandboxes_too(fresh_daemon):
    sandbox = fresh_daemon.create()
    fresh_daemon.kill_serve(signal.SIGTERM)
    assert fresh_daemon.process.returncode == 0
    fresh_daemon.restart()
    assert fresh_daemon.output(sandbox, "echo alive") == "alive"


def test_a_background_command_survives_a_restart_of_serve(fresh_daemon):
    sandbox = fresh_daemon.create()
    started = fresh_daemon.exec(sandbox, "echo one; sleep 1.5; echo two; exit 4", background=True)
    fresh_daemon.kill_serve()
    fresh_daemon.restart()

    def finished():
        status = fresh_daemon.execd(sandbox, "GET", f"/command/status/{started.id}").json()
        return None if status["running"] else status

    assert harness.wait_until(finished, 10, "the command ends")["exit_code"] == 4
    assert fresh_daemon.execd(sandbox, "GET", f"/command/{started.id}/logs").body == b"one\ntwo\n"


def test_the_launcher_killed_leaves_nothing_and_comes_back(fresh_daemon):
    daemon = fresh_daemon
    daemon.delete(daemon.create())
    before = oracle.take(daemon)
    boxes = [daemon.create() for _ in range(3)]
    daemon.exec(boxes[0], "sleep 300", background=True)
    launcher = daemon.launcher()
    os.kill(launcher, signal.SIGKILL)
    harness.wait_until(lambda: daemon.launcher() not in (None, launcher), 20, lambda: f"a new launcher\n{daemon.tail()}")

    def works():
        answer = daemon.request("POST", "/v1/sandboxes", {"image": {"uri": "host"}, "timeout": 60, "resourceLimits": {}, "entrypoint": ["sleep", "infinity"]})
        return answer.json()["id"] if answer.status == 202 else None

    fresh = harness.wait_until(works, 20, lambda: f"create works again\n{daemon.tail()}")
    assert daemon.output(fresh, "echo alive") == "alive"
    for item in daemon.list():
        if item["status"]["state"] == "Running":
            assert daemon.output(item["id"], "echo alive") == "alive", "what is said to run does run"
    daemon.delete_all()
    oracle.assert_gone(before, daemon, seconds=20)


def test_execd_killed_ends_its_sandbox_and_no_other(fresh_daemon):
    daemon = fresh_daemon
    daemon.delete(daemon.create())
    before = oracle.take(daemon)
    doomed, other = daemon.create(), daemon.create()
    daemon.exec(doomed, "sleep 300", background=True)
    os.kill(execd_of(daemon, doomed), signal.SIGKILL)

    def ended():
        answer = daemon.request("GET", f"/v1/sandboxes/{doomed}")
        return answer.status == 404 or answer.json()["status"]["state"] in ("Failed", "Terminated")

    harness.wait_until(ended, 10, "the sandbox is told dead")
    assert daemon.output(other, "echo alive") == "alive"
    daemon.delete_all()
    oracle.assert_gone(before, daemon)


def test_a_command_cut_off_by_a_crash_is_not_told_successful(fresh_daemon):
    sandbox = fresh_daemon.create()
    connection = fresh_daemon.connection()
    connection.request("POST", f"/sandboxes/{sandbox}/proxy/44772/command", body='{"command": "echo begun; sleep 5; echo done"}',
                       headers={**fresh_daemon.token(sandbox), "Content-Type": "application/json"})
    response = connection.getresponse()
    assert b"init" in response.readline()
    os.kill(execd_of(fresh_daemon, sandbox), signal.SIGKILL)
    try:
        rest = response.read()
    except (OSError, http.client.HTTPException) as cut:
        rest = getattr(cut, "partial", b"")
    assert b"execution_complete" not in rest


def test_the_lifetime_left_is_kept_over_a_restart(fresh_daemon):
    sandbox = fresh_daemon.create(timeout=120)
    expires = fresh_daemon.get(sandbox)["expiresAt"]
    fresh_daemon.kill_serve()
    time.sleep(0.2)
    fresh_daemon.restart()
    assert fresh_daemon.get(sandbox)["expiresAt"] == expires


def test_a_stopped_daemon_leaves_nothing():
    with daemon_that_leaves_nothing("gone") as daemon:
        daemon.exec(daemon.create(), "sleep 300", background=True)
        daemon.create()


def create_when_possible(daemon):
    """For the moment in which a launcher finds out that it has to go: until then a create may be refused, but only in passing."""
    body = {"image": {"uri": "host"}, "timeout": 60, "resourceLimits": {}, "entrypoint": ["sleep", "infinity"]}

    def made():
        answer = daemon.request("POST", "/v1/sandboxes", body)
        assert answer.status in (202, 503), f"{answer.status} {answer.body[:300]!r}"
        return answer.json()["id"] if answer.status == 202 else None

    return harness.wait_until(made, 20, lambda: f"create works\n{daemon.tail()}")


def test_a_restart_at_once_finds_a_launcher_that_works():
    """What `systemctl restart` does: the next serve is there while the launcher is still taking its things apart, or keeps on."""
    with daemon_that_leaves_nothing("again") as daemon:
        kept = None
        for number in range(8):
            boxes = [daemon.create() for _ in range(3)]
            assert daemon.output(boxes[0], "echo alive") == "alive"
            if kept:
                assert daemon.output(kept, "echo alive") == "alive", "it lived through the restart"
                daemon.delete(kept)
            kept = boxes.pop() if number % 2 else None
            for box in boxes:
                daemon.delete(box)
            daemon.restart()


def test_a_launcher_whose_state_directory_was_removed_makes_way_for_the_next():
    """It lives on because a sandbox does; what it builds sandboxes from went with the directory."""
    with daemon_that_leaves_nothing("wiped") as daemon:
        daemon.create()
        daemon.kill_serve(signal.SIGTERM)
        shutil.rmtree(daemon.state)
        daemon.start()
        boxes = [daemon.create() for _ in range(12)]  # more than the roots that are held ready
        assert daemon.output(boxes[-1], "echo alive") == "alive"
        assert len(daemon.list()) == len(boxes)


def test_a_launcher_with_another_state_directory_makes_way_for_the_next():
    """The configuration was changed between two runs of serve, and a sandbox keeps the launcher of the first alive."""
    with daemon_that_leaves_nothing("moved") as daemon:
        daemon.create()
        daemon.kill_serve(signal.SIGTERM)
        daemon.state = daemon.directory / "elsewhere"
        daemon.start()
        assert daemon.output(daemon.create(), "echo alive") == "alive"
        with open(f"/proc/{daemon.launcher()}/cmdline", "rb") as words:
            assert str(daemon.state).encode() in words.read().split(b"\0")
        assert len(daemon.list()) == 1


def test_a_launcher_whose_run_directory_was_removed_makes_way_for_the_next():
    with daemon_that_leaves_nothing("homeless") as daemon:
        lost = daemon.create()
        shutil.rmtree(daemon.run_dir)
        box = create_when_possible(daemon)
        assert daemon.output(box, "echo alive") == "alive"
        harness.wait_until(lambda: daemon.get(lost)["status"]["state"] == "Failed", 20, "what nobody can reach any more has ended")


def test_a_launcher_killed_under_load_costs_clients_at_most_a_moment():
    """Whoever asks meanwhile waits for the next one; what was lost is asked for again. Nothing is left that nobody knows."""
    with daemon_that_leaves_nothing("blows") as daemon:
        body = {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"memory": "128Mi"}, "entrypoint": ["sleep", "infinity"]}
        done, wrong, lives = threading.Event(), [], []

        def judged(answer, good):
            if answer.status != good and not (answer.status == 503 and answer.headers["Retry-After"]):
                wrong.append((answer.status, answer.body[:300]))
            return answer.status == good

        def client():
            while not done.is_set():
                answer = daemon.request("POST", "/v1/sandboxes", body)
                if judged(answer, 202) and judged(daemon.request("DELETE", f"/v1/sandboxes/{answer.json()['id']}"), 204):
                    lives.append(1)

        clients = [threading.Thread(target=client) for _ in range(4)]
        for thread in clients:
            thread.start()
        try:
            for _ in range(4):
                begun = len(lives)
                harness.wait_until(lambda: len(lives) > begun + 8, 20, lambda: f"lives go on\n{wrong}\n{daemon.tail()}")
                if launcher := daemon.launcher():
                    os.kill(launcher, signal.SIGKILL)
        finally:
            done.set()
            for thread in clients:
                thread.join()
        assert not wrong
