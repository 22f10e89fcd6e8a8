"""Diagnostics of sandboxes that run, are paused, failed or ended, as the API and the command line tell them."""
import pytest

from harness import Daemon, wait_until


@pytest.fixture(scope="module")
def daemon():
    with Daemon("diag") as one:
        yield one


def content(daemon, sandbox, kind, scope):
    return daemon.call("GET", f"/v1/sandboxes/{sandbox}/diagnostics/{kind}?scope={scope}").json()


def test_logs_of_a_first_program_with_hostile_bytes(daemon):
    sandbox = daemon.create(entrypoint=["sh", "-c", r"printf 'plain\n\033[2Jescape \377 byte\n'; exec sleep 300"])
    wait_until(lambda: "byte" in content(daemon, sandbox, "logs", "container")["content"], 10, "it has spoken")
    text = content(daemon, sandbox, "logs", "container")["content"]
    assert text == "plain\n\ufffd[2Jescape \ufffd byte\n"
    older = daemon.call("GET", f"/v1/sandboxes/{sandbox}/diagnostics/logs?tail=1")
    assert older.headers["Deprecation"] == "true" and older.body.decode() == "\ufffd[2Jescape \ufffd byte\n"


def test_much_output_is_bounded_and_told_as_truncated(daemon):
    sandbox = daemon.create(entrypoint=["sh", "-c", "yes 0123456789 | head -c 1000000; echo the-end; exec sleep 300"])
    wait_until(lambda: content(daemon, sandbox, "logs", "container")["content"].endswith("the-end\n"), 15, "it has spoken")
    answer = content(daemon, sandbox, "logs", "container")
    assert answer["truncated"] is True and len(answer["content"]) <= 256 * 1024


def test_a_failed_and_an_ended_sandbox_still_tell_what_happened(daemon):
    failed = daemon.create(entrypoint=["sh", "-c", "exit 3"])
    wait_until(lambda: daemon.get(failed)["status"]["state"] == "Failed", 10, "it fails")
    events = content(daemon, failed, "events", "lifecycle")["content"]
    assert [line.split()[1] for line in events.splitlines()] == ["created", "started", "failed"]
    logs = content(daemon, failed, "logs", "all")
    assert "not kept" in logs["content"] and logs["warnings"]
    assert "exit code 3" in daemon.call("GET", f"/v1/sandboxes/{failed}/diagnostics/summary").body.decode()


def test_a_paused_sandbox_is_not_waited_for(daemon):
    sandbox = daemon.create()
    daemon.call("POST", f"/v1/sandboxes/{sandbox}/pause")
    for kind in ("logs", "events", "inspect", "summary"):
        assert content(daemon, sandbox, kind, "all")["kind"] == kind
    assert "Paused" in content(daemon, sandbox, "inspect", "container")["content"]


def test_the_command_line_shows_events_and_says_why_there_are_no_logs(daemon):
    sandbox = daemon.create(entrypoint=["true"])
    wait_until(lambda: daemon.get(sandbox)["status"]["state"] == "Terminated", 10, "it ends")
    shown = daemon.cli("events", sandbox)
    assert shown.returncode == 0 and b"created" in shown.stdout and b"exited" in shown.stdout
    logs = daemon.cli("logs", sandbox)
    assert logs.returncode != 0 and b"not kept" in logs.stderr
