"""Time limits end everything they cover, whatever the payload does about it."""
import time
from datetime import datetime, timedelta, timezone

from e2e import leak_oracle as oracle

# Ignores what can be ignored, leaves its process group and session twice, and spins.
STUBBORN = """
import os, signal, sys
for number in range(1, 65):
    try: signal.signal(number, signal.SIG_IGN)
    except (OSError, ValueError): pass
for _ in range(2):
    if os.fork(): os._exit(0)
    os.setsid()
open('/tmp/ready', 'w').close()
while True: pass
"""


def start_stubborn(daemon, sandbox):
    daemon.output(sandbox, "cat > /tmp/stubborn.py <<'X'\n" + STUBBORN + "\nX\npython3 /tmp/stubborn.py & while [ ! -e /tmp/ready ]; do sleep 0.01; done")


def expire(daemon, sandbox, seconds):
    at = (datetime.now(timezone.utc) + timedelta(seconds=seconds)).isoformat()
    daemon.call("POST", f"/v1/sandboxes/{sandbox}/renew-expiration", {"expiresAt": at}, expect=(200,))


def test_expiry_ends_a_sandbox_that_ignores_every_signal(daemon):
    before = oracle.take(daemon)
    sandbox, neighbour = daemon.create(), daemon.create()
    start_stubborn(daemon, sandbox)
    expire(daemon, sandbox, 1.5)
    started = time.monotonic()
    while daemon.request("GET", f"/v1/sandboxes/{sandbox}").status != 404:
        assert time.monotonic() - started < 6, "not gone 4.5 s after its expiry"
        time.sleep(0.05)
    assert time.monotonic() - started > 1, "control: not before its time"
    assert daemon.output(neighbour, "echo alive") == "alive", "control: only this one"
    daemon.delete(neighbour)
    oracle.assert_gone(before, daemon)


def test_expiry_holds_while_the_daemon_is_away(fresh_daemon):
    sandbox = fresh_daemon.create()
    start_stubborn(fresh_daemon, sandbox)
    expire(fresh_daemon, sandbox, 2)
    fresh_daemon.kill_serve()
    deadline = time.monotonic() + 8
    while oracle.sandbox_processes(fresh_daemon.instance):
        assert time.monotonic() < deadline, "the launcher does not need serve to keep a deadline"
        time.sleep(0.05)
    fresh_daemon.restart()
    assert fresh_daemon.request("GET", f"/v1/sandboxes/{sandbox}").status == 404


def test_a_command_timeout_ends_the_command(daemon, sandbox):
    started = time.monotonic()
    done = daemon.execd(sandbox, "POST", "/command", {"command": "trap '' TERM INT; echo begun; while :; do :; done", "timeout": 1000})
    assert 0.9 < time.monotonic() - started < 6
    assert b'"error"' in done.body and b"begun" in done.body and b"execution_complete" not in done.body
    assert b"execution_complete" in daemon.execd(sandbox, "POST", "/command", {"command": "sleep 0.2", "timeout": 5000}).body, "control"


def test_delete_ends_a_paused_stubborn_sandbox(daemon):
    before = oracle.take(daemon)
    sandbox = daemon.create()
    start_stubborn(daemon, sandbox)
    daemon.call("POST", f"/v1/sandboxes/{sandbox}/pause", expect=(202,))
    daemon.delete(sandbox)
    oracle.assert_gone(before, daemon, seconds=3)


def test_a_sandbox_ends_with_its_entrypoint(daemon):
    sandbox = daemon.create(entrypoint=["sh", "-c", "sleep 1; exit 3"])
    assert daemon.get(sandbox)["status"]["state"] == "Running", "control: it runs first"
    deadline = time.monotonic() + 6
    while (answer := daemon.request("GET", f"/v1/sandboxes/{sandbox}")).status == 200 and answer.json()["status"]["state"] == "Running":
        assert time.monotonic() < deadline
        time.sleep(0.05)
    if answer.status == 200:
        assert answer.json()["status"]["state"] == "Failed" and "3" in answer.json()["status"]["message"]
        daemon.delete(sandbox)
