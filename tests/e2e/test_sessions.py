"""The session API on a real daemon: what it does, what it refuses, and that nothing of it is left."""
import base64
import hashlib
import re
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import Daemon, wait_until
from session_client import Sessions, events_of

SNIPPET = """
const base = "%s";
const s = await (await fetch(`${base}/sessions`, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({runtime: "native", resources: {memory_mb: 256, cpu_cores: 0.5, disk_mb: 100, timeout_seconds: 30}, security: {syscall_allowlist: "minimal", network_policy: "deny_all", read_only_root: true}, ephemeral: true})})).json();
const r = await (await fetch(`${base}/sessions/${s.session_id}/exec`, {method: "POST", headers: {"Content-Type": "application/json"}, body: JSON.stringify({command: "echo hello"})})).json();   // r.stdout === "hello\\n", r.exit_code === 0
await fetch(`${base}/sessions/${s.session_id}`, {method: "DELETE"});
if (r.stdout !== "hello\\n" || r.exit_code !== 0) throw new Error(JSON.stringify([s, r]));
"""
POLICY = {"rules": [{"name": "no-rm", "program": "rm", "action": "deny", "reason": "files stay"},
                    {"name": "ask-git", "program": "git", "action": "ask"}], "ask_timeout_seconds": 20}


@pytest.fixture(scope="module")
def daemon():
    with Daemon("sessions", "sessions: {max_concurrent: 8, allowed_origins: ['http://localhost:5173']}\n") as one:
        yield one


@pytest.fixture
def api(daemon):
    api = Sessions(daemon.sessions_url)
    yield api
    for session in Sessions(daemon.sessions_url, daemon.key).ids():
        Sessions(daemon.sessions_url, daemon.key).request("DELETE", f"/sessions/{session}")


@pytest.fixture
def session(api):
    return api.create()


# ---- the life of a session


def test_the_snippet_people_know_runs_as_written(daemon, api, tmp_path):
    script = tmp_path / "snippet.mjs"
    script.write_text(SNIPPET % daemon.sessions_url)
    done = subprocess.run(["node", script], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stderr.decode()
    assert api.ids() == []


def test_a_session_says_what_it_is_and_what_it_uses(api):
    made = api.call("POST", "/sessions", {"resources": {"memory_mb": 64, "cpu_cores": 0.25, "disk_mb": 32, "pids": 40, "timeout_seconds": 1},
                                          "metadata": {"team": "a"}, "env": {"WHO": "me"}, "ephemeral": False,
                                          "security": {"read_only_root": False}}, expect=201)
    told = made.json()
    assert told["state"] == "running" and told["ephemeral"] is False and told["image"] == "host" and told["runtime"] == "native"
    assert told["resources"] == {"memory_mb": 64, "cpu_cores": 0.25, "disk_mb": 32, "pids": 40, "timeout_seconds": 1}
    assert told["security"] == {"syscall_allowlist": "default", "network_policy": "deny_all", "read_only_root": False}
    assert made.headers["X-Request-ID"] and made.headers["Location"].endswith(told["session_id"])
    seen = api.call("GET", f"/sessions/{told['session_id']}").json()
    assert seen["usage"]["pids"] >= 1 and seen["metadata"] == {"team": "a"} and seen["expires_at"] > seen["created_at"]
    wait_until(lambda: api.request("GET", f"/sessions/{told['session_id']}").status == 404, 10, "it ends when its second is over")


def test_lists_are_pages_of_the_callers_own(daemon, api):
    made = [api.create() for _ in range(3)]
    page = api.call("GET", "/sessions?page=2&page_size=2").json()
    assert page["total"] == 3 and [one["session_id"] for one in page["sessions"]] == made[:1]
    sandbox = daemon.create()
    assert sandbox not in Sessions(daemon.sessions_url, daemon.key).ids(), "a sandbox of the lifecycle API is no session"
    assert api.request("GET", f"/sessions/{sandbox}").code == "SESSION::NOT_FOUND"
    daemon.delete(sandbox)
    for bad in ("page=0", "page_size=1001", "page_size=x", "size=1"):
        assert api.request("GET", f"/sessions?{bad}").status == 400


def test_a_sandbox_is_never_used_again(api):
    seen = set()
    for _ in range(4):
        session = api.create()
        assert session not in seen
        seen.add(session)
        assert api.exec(session, "ls -A /workspace /tmp; touch /workspace/mine /tmp/mine")["stdout"].count("mine") == 0
        api.delete(session)
        assert api.request("POST", f"/sessions/{session}/exec", {"command": "true"}).status == 404
        assert api.request("DELETE", f"/sessions/{session}").status == 404


# ---- commands


def test_commands_answer_with_their_words_and_their_end(api, session):
    done = api.exec(session, "echo out; echo err >&2; exit 3")
    assert (done["stdout"], done["stderr"], done["exit_code"], done["cause"]) == ("out\n", "err\n", 3, "exited")
    assert api.exec(session, ["printf", "%s|", "a b", "$HOME"])["stdout"] == "a b|$HOME|"
    assert api.exec(session, "pwd; echo $X", cwd="/tmp", env={"X": "7"})["stdout"] == "/tmp\n7\n"
    killed = api.exec(session, "kill -9 $$")
    assert (killed["exit_code"], killed["cause"]) == (137, "signalled")
    missing = api.exec(session, ["no-such-program"])
    assert missing["exit_code"] == 127 and "No such" in missing["advice"]
    started = time.monotonic()
    late = api.exec(session, "(sleep 30 & sleep 30)", timeout_seconds=0.3)
    assert (late["exit_code"], late["cause"], late["timed_out"]) == (124, "timed_out", True) and late["duration_ms"] >= 300
    assert late["advice"] and time.monotonic() - started < 10
    assert "sleep" not in api.exec(session, "ps -e -o comm= || true")["stdout"]


def test_a_command_that_needs_too_much_memory_is_told_so(api):
    session = api.create(resources={"memory_mb": 32})
    end = api.exec(session, "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo ${#x}")
    assert end["cause"] == "out_of_memory" and end["exit_code"] == 137 and "memory_mb" in end["advice"]
    assert api.exec(session, "echo after")["stdout"] == "after\n"


def test_output_is_kept_byte_for_byte_and_bounded(api, session):
    events = api.stream(session, r"printf 'a\377\000b'; head -c 200000 /dev/zero")
    said = b"".join(base64.b64decode(data["data_base64"]) if "data_base64" in data else data["data"].encode()
                    for kind, _, data in events if kind == "stdout")
    assert said == b"a\xff\x00b" + bytes(200000)
    assert api.exec(session, r"printf '\377'")["stdout"] == "\ufffd"
    cut = api.exec(session, "head -c 1000 /dev/zero | tr '\\0' x", max_output_bytes=10)
    assert cut["stdout"] == "x" * 10 and cut["stdout_truncated"] is True and cut["exit_code"] == 0
    assert api.exec(session, "echo x", max_output_bytes=0)["stdout"] == ""


def test_standard_input_arrives_whole(api, session):
    text = "zeile ä\n" * 111_111 + "x"
    done = api.exec(session, "sha256sum", stdin=text)
    assert len(text.encode()) == 1_000_000 and done["stdout"].split()[0] == hashlib.sha256(text.encode()).hexdigest()
    assert api.exec(session, "cat", stdin="")["stdout"] == ""
    assert api.exec(session, "cat")["stdout"] == "", "without one it is empty"
    refused = api.request("POST", f"/sessions/{session}/exec", {"command": "cat", "stdin": "x" * (1024 * 1024 + 1)})
    assert refused.status == 413 and refused.json()["field"] == "stdin" and "advice" in refused.json()


def test_a_stream_is_resumed_after_any_number(api, session):
    events = api.stream(session, "for i in 1 2 3; do echo $i; sleep 0.05; done")
    assert [kind for kind, _, _ in events] == ["started", "stdout", "stdout", "stdout", "exit"]
    assert [int(number) for _, number, _ in events] == [data["seq"] for _, _, data in events] == [1, 2, 3, 4, 5]
    name = events[0][2]["exec_id"]
    assert events[-1][2]["exit"]["exit_code"] == 0
    again = events_of(api.call("GET", f"/sessions/{session}/execs/{name}/events?after=2").body)
    assert again == events[2:]
    assert events_of(api.call("GET", f"/sessions/{session}/execs/{name}/events", headers={"Last-Event-ID": "4"}).body) == events[4:]
    for bad, status in ((f"{'0' * 32}/events", 404), ("x/events", 404), (f"{name}/events?after=-1", 400)):
        assert api.request("GET", f"/sessions/{session}/execs/{bad}").status == status


def test_a_client_that_is_cut_off_reads_on(api, session):
    connection = api.begin("POST", f"/sessions/{session}/exec", {"command": "echo one; sleep 1; echo two; exit 5", "stream": True})
    response = connection.getresponse()
    first = b""
    while b"one" not in first:
        first += response.read1(4096)
    response.close()
    connection.close()
    name = events_of(first)[0][2]["exec_id"]
    rest = events_of(api.call("GET", f"/sessions/{session}/execs/{name}/events?after=2").body)
    assert [data.get("data") for kind, _, data in rest if kind == "stdout"] == ["two\n"]
    assert rest[-1][2]["exit"]["exit_code"] == 5


def test_a_command_is_interrupted(api, session):
    with ThreadPoolExecutor() as pool:
        connection = api.begin("POST", f"/sessions/{session}/exec", {"command": "sleep 60", "stream": True})
        response = connection.getresponse()
        first = response.read1(4096)
        name = events_of(first)[0][2]["exec_id"]
        rest = pool.submit(response.read)
        api.call("DELETE", f"/sessions/{session}/execs/{name}", expect=204)
        end = events_of(rest.result(20))[-1][2]["exit"]
        connection.close()
    assert end["cause"] == "interrupted" and end["exit_code"] == 143
    api.call("DELETE", f"/sessions/{session}/execs/{name}", expect=204)
    assert api.request("DELETE", f"/sessions/{session}/execs/{'0' * 32}").status == 404


def test_a_command_learns_that_its_session_ended(api, session):
    with ThreadPoolExecutor() as pool:
        running = pool.submit(api.exec, session, "echo here > /tmp/here; sleep 60")
        wait_until(lambda: api.exec(session, "cat /tmp/here 2>/dev/null")["stdout"] == "here\n", 10, "the command runs")
        api.exec(session, "sleep 0.2")  # the first word of a command may be kept back for a moment, to be sent with its output
        api.delete(session)
        end = running.result(20)
    assert end["cause"] == "session_ended" and end["exit_code"] == 137


def test_code_keeps_its_variables(api, session):
    def run(code, language="bash", **more):
        return api.call("POST", f"/sessions/{session}/code", {"code": code, "language": language, **more}).json()
    assert run("x=41; f() { echo $((x + 1)); }")["exit_code"] == 0
    assert run("f; echo; printf end")["stdout"] == "42\n\nend"
    assert run("exit 3")["exit_code"] == 3
    late = run("sleep 60", timeout_seconds=0.3)
    assert late["timed_out"] is True and late["exit_code"] == 124
    raised = run("print('before')\n1/0", "python")
    assert raised["exit_code"] == 1 and raised["error"]["name"] == "ZeroDivisionError" and raised["stdout"] == "before\n" and raised["duration_ms"] > 0
    assert run("6 * 7", "python")["results"] == [{"data": {"text/plain": "42"}}]
    unknown = api.request("POST", f"/sessions/{session}/code", {"code": "1", "language": "cobol"})
    assert unknown.status == 422 and unknown.code == "CODE::LANGUAGE_MISSING"


# ---- files


def test_files_go_in_and_come_out(api, session):
    content = bytes(range(256)) * 4000
    put = api.call("PUT", f"/sessions/{session}/files?path=deep/er/a%20b.bin&mode=600", content, expect=201).json()
    assert (put["path"], put["size"], put["mode"], put["type"]) == ("/workspace/deep/er/a b.bin", len(content), "600", "file")
    got = api.call("GET", f"/sessions/{session}/files?path=deep/er/a%20b.bin")
    assert got.body == content and got.headers["Content-Type"] == "application/octet-stream"
    assert api.exec(session, ["stat", "-c", "%s %a %U", "deep/er/a b.bin"])["stdout"] == f"{len(content)} 600 user\n"
    api.call("PUT", f"/sessions/{session}/files?path=empty", b"", expect=201)
    assert api.call("GET", f"/sessions/{session}/files?path=empty").body == b""
    api.call("PUT", f"/sessions/{session}/directories?path=x/y", expect=204)
    entries = api.call("GET", f"/sessions/{session}/directories?path=.").json()["entries"]
    assert [(Path(one["path"]).name, one["type"]) for one in entries] == [("deep", "directory"), ("empty", "file"), ("x", "directory")]
    api.call("DELETE", f"/sessions/{session}/files?path=empty", expect=204)
    for method, path, status in (("GET", "files?path=empty", 404), ("DELETE", "files?path=empty", 404), ("GET", "directories?path=nowhere", 404),
                                 ("GET", "files?path=x", 400), ("DELETE", "files?path=x", 400), ("GET", "files", 400), ("GET", "files?path=", 400),
                                 ("PUT", "files?path=z&mode=999", 400), ("PUT", "files?path=z&mode=4755", 400), ("GET", "files?path=a%00b", 400)):
        assert api.request(method, f"/sessions/{session}/{path}", b"" if method == "PUT" else None).status == status, path


def test_an_upload_past_the_disk_limit_leaves_nothing(api):
    session = api.create(resources={"disk_mb": 4})
    refused = api.request("PUT", f"/sessions/{session}/files?path=big", bytes(16 << 20))
    assert (refused.status, refused.code) in ((413, "SESSION::TOO_LARGE"), (507, "FILE::NO_SPACE")), refused.body
    assert api.call("GET", f"/sessions/{session}/directories?path=.").json()["entries"] == []


# ---- one request for everything


def test_a_run_leaves_nothing(daemon, api):
    done = api.call("POST", "/run", {"command": "cat; id -u", "stdin": "in\n", "resources": {"memory_mb": 64}, "env": {"A": "b"}}).json()
    assert done["stdout"] == "in\n1000\n" and done["exit_code"] == 0
    assert api.ids() == [] and daemon.list() == []
    events = events_of(api.call("POST", "/run", {"command": "echo x; exit 4", "stream": True}).body)
    assert [kind for kind, _, _ in events] == ["started", "stdout", "exit"] and events[-1][2]["exit"]["exit_code"] == 4
    for bad in ({"command": ""}, {"command": "x", "cwd": "/nowhere"}, {"command": "x", "ephemeral": True}, {"command": "x", "runtime": "docker"}):
        assert api.request("POST", "/run", bad).status == 400
    late = api.call("POST", "/run", {"command": "sleep 60", "timeout_seconds": 0.2}).json()
    assert late["timed_out"] is True
    assert daemon.list() == []


@pytest.mark.parametrize("stream", [True, False])
def test_a_run_ends_when_its_client_hangs_up(daemon, api, stream):
    connection = api.begin("POST", "/run", {"command": "sleep 300", "stream": stream})
    wait_until(lambda: len(api.ids()) == 1, 10, "the run is there")
    connection.close()
    wait_until(lambda: daemon.list() == [], 10, "nothing is left")


def test_a_run_does_not_outlive_its_daemon():
    with Daemon("session-run") as daemon:
        api = Sessions(daemon.sessions_url)
        kept = api.create(ephemeral=False)
        connection = api.begin("POST", "/run", {"command": "sleep 300"})
        wait_until(lambda: len(api.ids()) == 2, 10, "the run is there")
        daemon.kill_serve()
        daemon.start()
        connection.close()
        api = Sessions(daemon.sessions_url)
        assert api.ids() == [kept] and len(daemon.list()) == 1
        assert api.exec(kept, "echo still here")["stdout"] == "still here\n"


def test_a_key_makes_it_happen_once(api):
    headers = {"Idempotency-Key": "once-1"}
    first = api.call("POST", "/sessions", {"metadata": {"a": "b"}}, expect=201, headers=headers)
    again = api.call("POST", "/sessions", {"metadata": {"a": "b"}}, expect=201, headers=headers)
    assert first.json()["session_id"] == again.json()["session_id"] and again.headers["Idempotency-Replayed"] == "true"
    assert api.request("POST", "/sessions", {}, headers=headers).code == "IDEMPOTENCY::CONFLICT"
    api.delete(first.json()["session_id"])
    gone = api.request("POST", "/sessions", {"metadata": {"a": "b"}}, headers=headers)
    assert gone.status == 409 and gone.code == "IDEMPOTENCY::GONE"
    run = {"command": "sleep 1; echo ran"}
    with ThreadPoolExecutor() as pool:
        under_way = pool.submit(api.request, "POST", "/run", run, {"Idempotency-Key": "once-2"})
        wait_until(lambda: len(api.ids()) == 1, 10, "the run is there")
        assert api.request("POST", "/run", run, headers={"Idempotency-Key": "once-2"}).code == "IDEMPOTENCY::IN_PROGRESS"
        assert under_way.result(20).json()["stdout"] == "ran\n"
    assert api.request("POST", "/run", run, headers={"Idempotency-Key": "once-2"}).code == "IDEMPOTENCY::GONE"
    assert api.request("POST", "/sessions", {}, headers={"Idempotency-Key": "not a key"}).status == 400


# ---- bounds


def test_too_many_sessions_are_told_when_to_come_again(api):
    made = [api.create() for _ in range(8)]
    refused = api.request("POST", "/sessions", {})
    assert refused.status == 429 and refused.code == "SANDBOX::LIMIT_REACHED" and int(refused.headers["Retry-After"]) >= 1
    assert "max_concurrent" in refused.json()["advice"]
    assert api.request("POST", "/run", {"command": "true"}).status == 429
    api.delete(made[0])
    assert api.call("POST", "/run", {"command": "true"}).json()["exit_code"] == 0


def test_an_ephemeral_session_ends_when_nobody_uses_it():
    with Daemon("session-idle", "sessions: {idle_seconds: 2}\n") as daemon:
        api = Sessions(daemon.sessions_url)
        left, kept, busy = api.create(), api.create(ephemeral=False), api.create()
        done = api.exec(busy, "sleep 3; echo done")
        assert done["stdout"] == "done\n", "a command under way is use"
        assert api.request("GET", f"/sessions/{left}").status == 404
        wait_until(lambda: api.ids() == [kept], 10, "only the one that is to be kept is")
        assert '"idle"' in (daemon.state / "audit" / "audit.jsonl").read_text()


@pytest.mark.parametrize("body,field,code", [
    ({"resources": {"memory_mb": 0}}, "resources.memory_mb", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"memory_mb": -1}}, "resources.memory_mb", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"memory_mb": 2**63}}, "resources.memory_mb", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"memory_mb": 1.5}}, "resources.memory_mb", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"memory_mb": "256"}}, "resources.memory_mb", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"cpu_cores": 0}}, "resources.cpu_cores", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"disk_mb": 0}}, "resources.disk_mb", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"pids": 7}}, "resources.pids", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"timeout_seconds": 0}}, "resources.timeout_seconds", "SESSION::INVALID_PARAMETER"),
    ({"resources": {"memory": 256}}, "resources.memory", "SESSION::UNKNOWN_FIELD"),
    ({"resource": {}}, "resource", "SESSION::UNKNOWN_FIELD"),
    ({"security": {"network_policy": "allow_all"}}, "security.network_policy", "SECURITY::NETWORK_POLICY_UNSUPPORTED"),
    ({"security": {"syscall_allowlist": "all"}}, "security.syscall_allowlist", "SESSION::INVALID_PARAMETER"),
    ({"security": {"syscall_allowlist": "permissive"}}, "security.syscall_allowlist", "SESSION::INVALID_PARAMETER"),
    ({"security": {"command_policy": {"rules": [{"action": "maybe"}]}}}, None, "SESSION::INVALID_PARAMETER"),
    ({"runtime": "docker"}, "runtime", "RUNTIME::NOT_AVAILABLE"),
    ({"env": {"A=B": "x"}}, "env.A=B", "SESSION::INVALID_PARAMETER"),
    ({"env": {"A": 1}}, "env.A", "SESSION::INVALID_PARAMETER"),
    ({"metadata": {"bad key": "x"}}, None, "SESSION::INVALID_PARAMETER"),
    ({"image": "../../etc"}, "image", "SESSION::INVALID_PARAMETER"),
    ([], None, "SESSION::INVALID_JSON"),
])
def test_a_bad_create_names_its_field_and_leaves_nothing(api, body, field, code):
    refused = api.request("POST", "/sessions", body)
    assert refused.status == 400 and refused.code == code, refused.body
    assert field is None or refused.json()["field"] == field
    assert api.ids() == []


@pytest.mark.parametrize("body", [{}, {"command": ""}, {"command": []}, {"command": [""]}, {"command": 1}, {"command": "x", "timeout_seconds": 0},
                                  {"command": "x", "timeout_seconds": -1}, {"command": "x", "timeout_seconds": 86401}, {"command": "x", "cwd": "/nowhere"},
                                  {"command": "x", "max_output_bytes": 67108865}, {"command": "x\0y"}, {"command": "x", "tty": True}, {"command": "x" * 140000}])
def test_a_bad_exec_is_refused(api, session, body):
    assert api.request("POST", f"/sessions/{session}/exec", body).status == 400
    assert api.exec(session, "echo fine")["stdout"] == "fine\n"


# ---- who may call

CALL_AS = """
import sys
sys.path.insert(0, sys.argv[1])
from session_client import Sessions
print(Sessions(sys.argv[2], sys.argv[3] or None).request("GET", "/sessions").status)
"""


def status_as(uid, url, key=""):
    """What a program of this user is answered."""
    tests = Path(__file__).resolve().parent.parent
    done = subprocess.run(["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", sys.executable, "-c", CALL_AS, tests, url, key],
                          capture_output=True, timeout=60, text=True, cwd="/", env={"PYTHONDONTWRITEBYTECODE": "1"})
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def test_other_users_need_a_key_and_see_only_their_own(daemon, api, session):
    assert status_as(0, daemon.sessions_url) == 200
    assert status_as(4711, daemon.sessions_url) == 401
    assert status_as(4711, daemon.sessions_url, daemon.key) == 200
    assert status_as(4711, daemon.sessions_url, "wrong") == 401
    for headers, status in (({"X-API-Key": daemon.key}, 200), ({"Authorization": f"Bearer {daemon.key}"}, 200), ({"Authorization": "Bearer no"}, 401),
                            ({"Authorization": "Basic eA=="}, 401)):
        assert api.request("GET", "/sessions", headers=headers).status == status
    own = Sessions(daemon.sessions_url, daemon.key)
    assert session in own.ids(), "the first key sees everything"
    theirs = own.create()
    assert theirs not in api.ids() and api.request("GET", f"/sessions/{theirs}").status == 404
    assert api.request("POST", f"/sessions/{theirs}/exec", {"command": "true"}).status == 404


def test_the_operator_decides_who_needs_a_key():
    config = "sessions: {require_key: false, users_without_key: [4711], listen: '::1'}\n"
    with Daemon("session-users", config) as daemon:
        assert status_as(4711, daemon.sessions_url) == 200
        assert status_as(4712, daemon.sessions_url) == 401
        assert Sessions(daemon.sessions_url).create() in Sessions(daemon.sessions_url).ids()
        daemon.config.write_text(daemon.config.read_text().replace("require_key: false", "require_key: true"))
        daemon.process.send_signal(1)
        wait_until(lambda: status_as(0, daemon.sessions_url) == 401, 10, "the reload counts")
        assert status_as(0, daemon.sessions_url, daemon.key) == 200


def test_pages_of_strangers_stay_out(daemon, api):
    port = api.url.port
    for host, status in ((f"127.0.0.1:{port}", 200), (f"localhost:{port}", 200), ("127.9.9.9", 200), ("[::1]:1", 200), ("evil.example", 403),
                         (f"127.0.0.1.evil.example:{port}", 403), ("127.0.0.1@evil.example", 400), ("192.168.0.1", 403)):
        assert api.request("GET", "/sessions", headers={"Host": host}).status in (status, 403 if status == 400 else status), host
    for origin, status in (("http://localhost:5173", 200), ("http://localhost:5174", 403), ("null", 403), ("http://evil.example", 403)):
        reply = api.request("GET", "/sessions", headers={"Origin": origin})
        assert reply.status == status
        assert reply.headers.get("Access-Control-Allow-Origin") == (origin if status == 200 else None)
    asked = api.request("OPTIONS", "/sessions", headers={"Origin": "http://localhost:5173", "Access-Control-Request-Method": "POST"})
    assert asked.status == 204 and "POST" in asked.headers["Access-Control-Allow-Methods"]
    assert api.request("OPTIONS", "/sessions", headers={"Origin": "http://evil.example"}).status == 403
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        assert api.request("POST", "/sessions", "{}", headers={"Content-Type": kind} if kind else {}).status == 415
    assert api.request("PATCH", "/sessions").status == 405 and api.request("GET", "/nothing").status == 404
    assert api.ids() == []


def test_health_is_for_everybody_and_the_address_is_told(daemon, api):
    assert Sessions(daemon.sessions_url, "no such key").call("GET", "/health").json()["runtime"] == "native"
    assert f'"sessions":"{api.url.netloc}"' in daemon.tail(), "the log says where"


def test_a_port_that_is_taken_is_told_by_its_key():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        daemon = Daemon("session-port")
        daemon.environment["OPENSANDBOX_SESSIONS_PORT"] = str(taken.getsockname()[1])
        try:
            with pytest.raises(AssertionError, match="sessions.port"):
                daemon.start()
        finally:
            daemon.stop()


# ---- the command policy holds here too


def test_refused_and_held_commands(daemon, api):
    session = api.create(security={"command_policy": POLICY})
    refused = api.request("POST", f"/sessions/{session}/exec", {"command": "echo a && rm -rf /workspace"})
    assert refused.status == 403 and refused.code == "COMMAND::DENIED" and refused.json()["rule"] == "no-rm"
    assert api.exec(session, "echo fine")["stdout"] == "fine\n"
    assert api.request("POST", "/run", {"command": "rm x", "security": {"command_policy": POLICY}}).status == 403
    connection = api.begin("POST", f"/sessions/{session}/exec", {"command": "git --version || echo no git", "stream": True})
    response = connection.getresponse()
    held = events_of(response.read1(65536))
    assert held[0][0] == "held" and held[0][1] is None
    question = held[0][2]["approval"]
    assert question["rule"] == "ask-git" and question["session_id"] == session and question["state"] == "waiting"
    assert [one["id"] for one in api.call("GET", "/approvals").json()["approvals"]] == [question["id"]]
    assert api.call("GET", f"/approvals/{question['id']}").json()["state"] == "waiting"
    privileged = Sessions(daemon.sessions_url, daemon.key)
    assert privileged.call("POST", f"/approvals/{question['id']}", {"answer": "allow", "comment": "go on"}).json()["state"] == "allowed"
    rest = events_of(response.read())
    connection.close()
    assert [kind for kind, _, _ in rest][0] == "started" and rest[-1][0] == "exit"


# ---- docs/sessions.md: every example runs as it is written, but for the port


@pytest.mark.parametrize("language,program,words", [("sh", ["sh"], ['"stdout":"hello\\n"', '"exit_code":3', '"stdout":"5\\n"']),
                                                    ("js", ["node"], ["1\n2\n3\n"]), ("python", [sys.executable], ["['3', '2', '1']", "42"])])
def test_the_examples_of_the_page(daemon, api, tmp_path, language, program, words):
    page = (Path(__file__).resolve().parent.parent.parent / "docs" / "sessions.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", page, re.M | re.S)
    assert blocks
    said = ""
    for number, block in enumerate(blocks):
        script = tmp_path / f"example{number}.{'mjs' if language == 'js' else language}"
        script.write_text(block.replace("127.0.0.1:9111", api.url.netloc))
        done = subprocess.run([*program, script], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        said += done.stdout
    assert all(word in said for word in words), said
    assert api.ids() == []
