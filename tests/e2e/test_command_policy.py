"""The command policy: what it refuses, what it asks, who answers, and that no door goes around it."""
import contextlib
import json
import os
import pty
import re
import select
import shlex
import socket
import subprocess
import threading
import time

import pytest

from e2e.shell_lines import Lines
from harness import EXECD_PORT, PROGRAM, ROOT, ApiError, Daemon, wait_until

POLICY = """
command_policy:
  ask_timeout_seconds: 30
  rules:
    - name: no-recursive-rm
      program: rm
      args_any: ["-*r*", "-*R*", "--recursive"]
      action: deny
      reason: delete files one by one
    - name: publishing
      program: [git, touch]
      args_any: [push, /workspace/published*]
      action: ask
      reason: other people will see it
    - name: no-ruby
      program: "code:ruby"
      action: deny
auth:
  keys:
    - {name: agent, key_file: %s}
"""
AGENT_KEY = "an-agent-key-of-the-tests"


@pytest.fixture(scope="module")
def guarded(tmp_path_factory):
    key = tmp_path_factory.mktemp("keys") / "agent.key"
    key.write_text(AGENT_KEY)
    key.chmod(0o600)
    with Daemon("policy", POLICY % key) as daemon:
        yield daemon


@pytest.fixture(scope="module")
def box(guarded):
    return guarded.create()


def refusal(answer, code):
    assert answer.status == 403, (answer.status, answer.body)
    body = answer.json()
    assert body["code"] == code, body
    return body


def audit_lines(daemon, action):
    lines = (daemon.state / "audit" / "audit.jsonl").read_text().splitlines()
    return [line for line in map(json.loads, lines) if line["action"] == action]


class Held:
    """A command sent from another thread, which waits for its answer."""

    def __init__(self, daemon, sandbox, command):
        self.answer = None
        self.token = daemon.token(sandbox)
        self.thread = threading.Thread(target=self.send, args=(daemon, sandbox, command))
        self.thread.start()

    def send(self, daemon, sandbox, command):
        self.answer = daemon.execd(sandbox, "POST", "/command", {"command": command}, token=self.token)

    def result(self):
        self.thread.join(30)
        assert self.answer is not None
        return self.answer


def question(daemon, command, key=True):
    """The approval that waits for this command."""
    def waiting():
        found = [a for a in daemon.call("GET", "/v1/approvals", key=key).json()["approvals"] if a["command"] == command]
        return found[0] if found else None
    return wait_until(waiting, 10, f"a question about {command}")


def exists(daemon, sandbox, path):
    return daemon.exec(sandbox, f"test -e {path}").exit_code == 0


# ---- deny

def test_a_refused_command_names_the_rule_and_does_not_run(guarded, box):
    assert guarded.exec(box, "mkdir -p /workspace/d && rm -f /workspace/nothing").exit_code == 0  # the control: rm itself is allowed
    body = refusal(guarded.execd(box, "POST", "/command", {"command": "rm -rf /workspace/d"}), "COMMAND::DENIED")
    assert body["rule"] == "no-recursive-rm"
    assert "no-recursive-rm" in body["message"] and "delete files one by one" in body["message"]
    assert exists(guarded, box, "/workspace/d")
    line = audit_lines(guarded, "command.refused")[-1]
    assert line["outcome"] == "COMMAND::DENIED" and line["detail"]["rule"] == "no-recursive-rm" and line["sandbox"] == box
    assert "rm -rf /workspace/d" in line["detail"]["command"]


@pytest.mark.parametrize("line", [
    "\\rm -rf /workspace/d", "r''m -rf /workspace/d", "/bin/rm -fr /workspace/d", "command rm -r /workspace/d", "exec rm -r /workspace/d",
    "echo x\nrm -r /workspace/d", "sh -c 'rm -r /workspace/d'", "echo $(rm -r /workspace/d)", "$(which rm) -r /workspace/d", "X=rm; $X -r /workspace/d",
    "echo /workspace/d | xargs rm -r", "find /workspace -name d -exec rm -r {} +", "env A=1 timeout 5 rm -r /workspace/d", "eval 'rm -r /workspace/d'",
    "echo 'rm -r /workspace/d' | sh", "bash <<< 'rm -r /workspace/d'", "f() { rm -r /workspace/d; }; f", "rm -$(echo r) /workspace/d",
])
def test_no_spelling_gets_past(guarded, box, line):
    guarded.output(box, "mkdir -p /workspace/d")
    refusal(guarded.execd(box, "POST", "/command", {"command": line}), "COMMAND::DENIED")
    assert exists(guarded, box, "/workspace/d")


def test_no_door_goes_around_it(guarded, box):
    guarded.output(box, "mkdir -p /workspace/d")
    bad = "rm -rf /workspace/d"
    refusal(guarded.execd(box, "POST", "/command", {"command": bad, "background": True}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/command", {"argv": ["rm", "-rf", "/workspace/d"]}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/code", {"code": bad}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/code", {"code": bad, "context": {"language": "bash"}}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/code", {"code": "puts 1", "context": {"language": "Ruby"}}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/code/context", {"language": "ruby"}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/pty", {}), "COMMAND::DENIED")  # what is typed cannot be seen
    refusal(guarded.execd(box, "POST", "/command", '{"command":"ls","command":"rm -rf /workspace/d"}'), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", "/command", {"command": "ls", "envs": {"BASH_ENV": "/workspace/x"}}), "COMMAND::DENIED")
    session = guarded.execd(box, "POST", "/session", {}).json()["session_id"]
    assert guarded.execd(box, "POST", f"/session/{session}/run", {"command": "echo fine"}).status == 200
    refusal(guarded.execd(box, "POST", f"/session/{session}/run", {"command": bad}), "COMMAND::DENIED")
    refusal(guarded.execd(box, "POST", f"/%73ession/{session}/run", {"command": bad}), "COMMAND::DENIED")
    assert exists(guarded, box, "/workspace/d")


def test_a_bash_context_is_judged_whatever_the_request_calls_it(guarded, box):
    guarded.output(box, "mkdir -p /workspace/d")
    context = guarded.execd(box, "POST", "/code/context", {"language": "bash"}).json()["id"]
    claim = {"id": context, "language": "python"}
    assert guarded.execd(box, "POST", "/code", {"code": "echo fine", "context": claim}).status == 200
    refusal(guarded.execd(box, "POST", "/code", {"code": "rm -rf /workspace/d", "context": claim}), "COMMAND::DENIED")
    assert exists(guarded, box, "/workspace/d")


def test_the_command_line_is_told(guarded, box):
    done = guarded.cli("exec", box, "rm", "-rf", "/workspace/d")
    assert done.returncode == 125 and b"no-recursive-rm" in done.stderr
    assert guarded.cli("exec", box, "echo", "fine").stdout == b"fine\n"
    typed = guarded.execd(box, "POST", "/osb/v1/exec", {"argv": ["python3"], "tty": {"cols": 80, "rows": 24}})
    assert "typed into a terminal" in refusal(typed, "COMMAND::DENIED")["message"]


def test_the_first_program_of_a_sandbox_is_judged(guarded):
    with pytest.raises(ApiError, match="no-recursive-rm"):
        guarded.create(entrypoint=["sh", "-c", "rm -rf /workspace; sleep 100"])
    made = guarded.create(entrypoint=["sleep", "1000"])
    guarded.delete(made)


def test_what_passes_does_not_run_the_refused_program_however_the_line_is_made(guarded, rounds):
    """Lines made at random: one that passes the policy is run by a real shell, and the program it refuses must not have run."""
    own = json.dumps({"rules": [{"name": "no-mark", "program": "mark", "action": "deny"}]})
    made = guarded.create(extensions={"opensandbox.commandPolicy": own})
    program = '#!/bin/sh\necho "$0 ran" >> /workspace/marked\n'
    guarded.output(made, f"mkdir /workspace/bin /workspace/d && printf %s {shlex.quote(program)} > /workspace/bin/mark && chmod +x /workspace/bin/mark")
    options = {"cwd": "/workspace/d", "timeout": 3000, "envs": {"PATH": "/workspace/bin:/usr/bin:/bin"}}
    # The control: it leaves its mark when it runs.
    assert guarded.output(made, "cp bin/mark bin/other && bin/other && cat marked && : > marked", cwd="/workspace") == "bin/other ran"
    lines, token = Lines(5), guarded.token(made)
    passed = refused = 0
    with contextlib.closing(guarded.connection()) as connection:
        for _ in range(rounds(250, 60)):
            answer = guarded.execd(made, "POST", "/command", {"command": lines.line(), **options}, token=token, connection=connection)
            assert answer.status in (200, 403), answer.body
            passed += answer.status == 200
            refused += answer.status == 403
    assert guarded.output(made, "cat /workspace/marked") == ""
    assert passed > 10 and refused > 10, (passed, refused)
    guarded.delete(made)


# ---- the sandbox's own

def test_a_sandboxs_own_policy_only_makes_it_stricter_and_survives_a_restart(guarded):
    own = json.dumps({"default": "deny", "rules": [{"program": ["ls", "rm"], "action": "allow"}]})
    made = guarded.create(extensions={"opensandbox.commandPolicy": own})
    for round in range(2):
        assert guarded.exec(made, "ls /").exit_code == 0
        refusal(guarded.execd(made, "POST", "/command", {"command": "cat /etc/hostname"}), "COMMAND::DENIED")
        body = refusal(guarded.execd(made, "POST", "/command", {"command": "rm -rf x"}), "COMMAND::DENIED")
        assert body["rule"] == "no-recursive-rm"  # the server's holds in any case
        if round == 0:
            guarded.restart()
    guarded.delete(made)
    for wrong, field in (("{", "opensandbox.commandPolicy"), ('{"rules":[{"program":"x"}]}', r"rules\[0\]"), ('{"defualt":"deny"}', "default")):
        with pytest.raises(ApiError, match=field):
            guarded.create(extensions={"opensandbox.commandPolicy": wrong})


# ---- ask

def test_an_allowed_command_runs_after_the_answer(guarded, box):
    command = "touch /workspace/published-1 && echo ran"
    held = Held(guarded, box, command)
    asked = question(guarded, command)
    assert asked["rule"] == "publishing" and asked["reason"] == "other people will see it" and asked["session_id"] == box and asked["state"] == "waiting"
    assert not exists(guarded, box, "/workspace/published-1")
    told = guarded.call("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow", "comment": "seen"}).json()
    assert told["state"] == "allowed" and told["answered_by"] == "default"
    assert b"ran" in held.result().body and exists(guarded, box, "/workspace/published-1")
    again = guarded.request("POST", f"/v1/approvals/{asked['id']}", {"answer": "deny"})
    assert again.status == 409 and again.json()["code"] == "COMMAND::ALREADY_ANSWERED"
    ask = audit_lines(guarded, "command.ask")[-1]
    answer = audit_lines(guarded, "command.answer")[-1]
    assert ask["detail"]["approval"] == answer["detail"]["approval"] == asked["id"]
    assert answer["actor"] == "default" and answer["detail"]["answer"] == "allow" and answer["detail"]["comment"] == "seen"
    assert ask["seq"] < answer["seq"] < audit_lines(guarded, "command.start")[-2]["seq"]


def test_a_denied_command_never_runs(guarded, box):
    command = "touch /workspace/published-2"
    held = Held(guarded, box, command)
    asked = question(guarded, command)
    done = guarded.cli("approvals", "deny", asked["id"][:10], "--comment", "not today")
    assert done.returncode == 0, done.stderr
    body = refusal(held.result(), "COMMAND::NOT_APPROVED")
    assert "not today" in body["message"] and body["rule"] == "publishing"
    assert not exists(guarded, box, "/workspace/published-2")
    assert audit_lines(guarded, "command.answer")[-1]["actor"] == "local"
    assert audit_lines(guarded, "command.refused")[-1]["outcome"] == "COMMAND::NOT_APPROVED"


def test_the_command_line_lists_and_allows(guarded, box):
    command = "touch /workspace/published-3"
    held = Held(guarded, box, command)
    asked = question(guarded, command)
    listed = guarded.cli("approvals")
    assert asked["id"].encode() in listed.stdout and b"publishing" in listed.stdout
    assert guarded.cli("approvals", "allow", asked["id"]).returncode == 0
    assert held.result().status == 200
    assert guarded.cli("approvals", "ls", "-q").stdout == b""
    assert asked["id"] in guarded.cli("approvals", "ls", "--all", "-o", "json").stdout.decode()


def test_nobody_answers_in_time(guarded):
    own = json.dumps({"ask_timeout_seconds": 1, "rules": [{"name": "mine", "program": "date", "action": "ask"}]})
    made = guarded.create(extensions={"opensandbox.commandPolicy": own})
    body = refusal(guarded.execd(made, "POST", "/command", {"command": "date"}), "COMMAND::NOT_APPROVED")
    assert "in time" in body["message"] and body["rule"] == "mine"
    assert [a["state"] for a in guarded.call("GET", "/v1/approvals?all=true").json()["approvals"] if a["session_id"] == made] == ["expired"]
    guarded.delete(made)


def test_who_hangs_up_withdraws_the_question(guarded, box):
    command = "touch /workspace/published-4"
    token = guarded.token(box)
    body = json.dumps({"command": command}).encode()
    head = f"POST /sandboxes/{box}/proxy/{EXECD_PORT}/command HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    with socket.create_connection(("127.0.0.1", guarded.port)) as client:
        client.sendall((head + "".join(f"{k}: {v}\r\n" for k, v in token.items()) + "\r\n").encode() + body)
        asked = question(guarded, command)
    wait_until(lambda: guarded.call("GET", f"/v1/approvals/{asked['id']}").json()["state"] == "withdrawn", 10, "the question is withdrawn")
    assert guarded.request("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow"}).status == 409
    assert not exists(guarded, box, "/workspace/published-4")


def send_create(daemon, entrypoint):
    """A create on a connection of its own, for whoever wants to hang up; its answer is not read."""
    body = json.dumps({"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "64Mi"}, "entrypoint": entrypoint}).encode()
    head = (f"POST /v1/sandboxes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
            f"OPEN-SANDBOX-API-KEY: {daemon.key}\r\n\r\n")
    client = socket.create_connection(("127.0.0.1", daemon.port))
    client.settimeout(30)
    client.sendall(head.encode() + body)
    return client


def test_a_held_create_goes_on_after_the_answer_and_ends_with_its_client(guarded):
    def sandboxes():
        return {item["id"] for item in guarded.call("GET", "/v1/sandboxes?pageSize=100").json()["items"]}
    before = sandboxes()
    stays, leaves = ["sh", "-c", "touch /workspace/published-a; sleep 1000"], ["touch", "/workspace/published-b"]
    with send_create(guarded, stays) as client:  # the control: its client stays
        asked = question(guarded, json.dumps(stays, separators=(",", ":")))
        assert asked["session_id"] == "" and sandboxes() == before
        guarded.call("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow"})
        assert client.recv(4096).startswith(b"HTTP/1.1 202 ")
    made = sandboxes() - before
    assert len(made) == 1
    with send_create(guarded, leaves):
        asked = question(guarded, json.dumps(leaves, separators=(",", ":")))
    wait_until(lambda: guarded.call("GET", f"/v1/approvals/{asked['id']}").json()["state"] == "withdrawn", 10, "the question is withdrawn")
    assert guarded.request("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow"}).status == 409
    refused = wait_until(lambda: [e for e in audit_lines(guarded, "command.refused") if "published-b" in e["detail"]["command"]], 10, "the refusal")
    assert refused[0]["outcome"] == "COMMAND::NOT_APPROVED"
    assert sandboxes() - before == made
    guarded.delete(made.pop())


def test_an_agent_does_not_approve_itself(guarded):
    made = guarded.call("POST", "/v1/sandboxes", {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "64Mi"},
                                                  "entrypoint": ["tail", "-f", "/dev/null"]}, key=AGENT_KEY).json()["id"]
    command = "touch /workspace/published-5"
    held = Held(guarded, made, command)
    asked = question(guarded, command, key=AGENT_KEY)
    own = guarded.request("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow"}, key=AGENT_KEY)
    assert own.status == 403 and own.json()["code"] == "COMMAND::SELF_APPROVAL"
    assert guarded.call("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow"}).json()["state"] == "allowed"
    assert held.result().status == 200
    other = guarded.create()
    command = "touch /workspace/published-6"
    held = Held(guarded, other, command)
    asked = question(guarded, command)
    assert guarded.request("GET", f"/v1/approvals/{asked['id']}", key=AGENT_KEY).status == 404  # not its sandbox
    assert guarded.request("POST", f"/v1/approvals/{asked['id']}", {"answer": "allow"}, key=AGENT_KEY).status == 404
    assert guarded.request("GET", "/v1/approvals", key=False).status == 401
    guarded.call("POST", f"/v1/approvals/{asked['id']}", {"answer": "deny"})
    refusal(held.result(), "COMMAND::NOT_APPROVED")
    guarded.delete(made)
    guarded.delete(other)


def test_bad_answers_are_told(guarded):
    for body, field in (({"answer": "yes"}, "answer"), ({}, "answer"), ({"answer": "deny", "comment": "x" * 2000}, "comment")):
        answer = guarded.request("POST", "/v1/approvals/nothing", body)
        assert answer.status == 400 and answer.json()["field"] == field
    assert guarded.request("POST", "/v1/approvals/nothing", {"answer": "deny"}).status == 404


def test_the_stream_tells_questions_and_answers(guarded, box):
    connection = guarded.connection(20)
    connection.request("GET", "/v1/approvals/watch", headers={"OPEN-SANDBOX-API-KEY": guarded.key})
    stream = connection.getresponse()
    assert stream.status == 200 and stream.headers["Content-Type"] == "text/event-stream"

    def next_event():
        event = None
        for raw in iter(stream.readline, b""):
            line = raw.decode().strip()
            if line.startswith("event: "):
                event = line[7:]
            if line.startswith("data: "):
                return event, json.loads(line[6:])
        raise AssertionError("the stream ended")

    command = "touch /workspace/published-7"
    held = Held(guarded, box, command)
    event, asked = next_event()
    assert event == "asked" and asked["command"] == command
    guarded.call("POST", f"/v1/approvals/{asked['id']}", {"answer": "deny"})
    event, settled = next_event()
    assert event == "settled" and settled["id"] == asked["id"] and settled["state"] == "denied"
    held.result()
    connection.close()


def test_watch_asks_at_a_terminal(guarded, box):
    master, slave = pty.openpty()
    environment = {**os.environ, "OPENSANDBOX_HOST": f"unix://{guarded.run_dir}/api.sock"}
    watching = subprocess.Popen([PROGRAM, "approvals", "watch"], stdin=slave, stdout=slave, stderr=slave, env=environment, start_new_session=True)
    try:
        held = Held(guarded, box, "touch /workspace/published-8")
        shown = b""
        while b"allow it?" not in shown:
            assert select.select([master], [], [], 15)[0], shown
            shown += os.read(master, 4096)
        assert b"publishing" in shown and b"published-8" in shown
        os.write(master, b"y\n")
        assert held.result().status == 200
    finally:
        watching.terminate()
        watching.wait(10)
        os.close(master)
        os.close(slave)


def test_the_page_is_served_without_anything_inline(guarded):
    page = guarded.request("GET", "/approvals", key=False)
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert b"<script src=" in page.body and b"style=" not in page.body and b"onclick" not in page.body
    for name, kind in (("app.js", "text/javascript"), ("style.css", "text/css")):
        part = guarded.request("GET", f"/approvals/{name}", key=False)
        assert part.status == 200 and part.headers["Content-Type"].startswith(kind)
        assert b"localStorage" not in part.body and b"innerHTML" not in part.body


def test_the_examples_of_the_documentation_run(guarded):
    text = (ROOT / "docs" / "command-policy.md").read_text()
    blocks = re.findall(r"^```sh\n(.*?)^```", text, re.S | re.M)
    assert len(blocks) >= 3
    environment = {**os.environ, "SERVER": f"http://127.0.0.1:{guarded.port}", "KEY": guarded.key, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}",
                   "OPENSANDBOX_HOST": f"unix://{guarded.run_dir}/api.sock"}
    for block in blocks:
        done = subprocess.run(["bash", "-euo", "pipefail", "-c", block], capture_output=True, text=True, timeout=30, env=environment)
        assert done.returncode == 0 and '"code"' not in done.stdout, f"{block}\n{done.stdout}{done.stderr}"


# ---- the server goes

def test_a_stop_ends_what_waits(fresh_daemon):
    own = json.dumps({"rules": [{"program": "date", "action": "ask"}]})
    made = fresh_daemon.create(extensions={"opensandbox.commandPolicy": own})
    held = Held(fresh_daemon, made, "date")
    question(fresh_daemon, "date")
    began = time.monotonic()
    fresh_daemon.kill_serve(15)
    assert time.monotonic() - began < 20
    refusal(held.result(), "COMMAND::NOT_APPROVED")
    fresh_daemon.start()
    assert fresh_daemon.call("GET", "/v1/approvals?all=true").json()["approvals"] == []
