"""What the client does with answers, told by a transport that answers without a network."""
import asyncio
import json
import time

import httpx
import pytest

import opensandbox_client as osb
from opensandbox_client import AsyncSandboxClient, SandboxClient
from opensandbox_client._events import Reader

SESSION = {
    "session_id": "abc", "state": "running", "runtime": "native", "image": "host", "ephemeral": True, "created_at": "2026-01-02T03:04:05.000006Z",
    "resources": {"memory_mb": 256}, "security": {"network_policy": "deny_all"}, "a_member_of_tomorrow": 1,
}
RESULT = {"session_id": "abc", "exec_id": "e1", "stdout": "hi\n", "stderr": "", "exit_code": 0, "cause": "exited", "timed_out": False, "duration_ms": 1.5}


class Script:
    """Answers requests in turn: a response, or an exception to raise. The last one repeats."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.requests = []

    def __call__(self, request):
        request.read()
        self.requests.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    def client(self, **options):
        return SandboxClient("http://test", transport=httpx.MockTransport(self), **options)


def refusal(status, code, headers=None, **more):
    return httpx.Response(status, json={"code": code, "message": "no", **more}, headers=headers or {})


def sandbox(script, **options):
    client = script.client(**options)
    made = client.create_sandbox()
    script.requests.clear()
    return made


def created():
    return httpx.Response(201, json=SESSION)


# ---- what is sent


@pytest.mark.parametrize("given", ["http://test", "http://test/", "http://test/api/v1", "http://test/api/v1/", "test"])
def test_the_address_may_be_given_with_or_without_the_path(given):
    script = Script(httpx.Response(200, json={"status": "healthy", "version": "1", "runtime": "native"}))
    SandboxClient(given, transport=httpx.MockTransport(script)).health()
    assert str(script.requests[0].url) == "http://test/api/v1/health"


def test_the_environment_names_the_daemon_and_the_key(monkeypatch):
    monkeypatch.setenv("OPENSANDBOX_URL", "http://elsewhere:1")
    monkeypatch.setenv("OPENSANDBOX_API_KEY", "secret")
    script = Script(created())
    SandboxClient(transport=httpx.MockTransport(script)).get_sandbox("a/b")
    assert str(script.requests[0].url) == "http://elsewhere:1/api/v1/sessions/a%2Fb"
    assert script.requests[0].headers["OPEN-SANDBOX-API-KEY"] == "secret"


def test_a_create_says_only_what_was_said():
    script = Script(created())
    client = script.client(runtime="native")
    client.create_sandbox()
    assert json.loads(script.requests[0].content) == {"runtime": "native"}
    client.create_sandbox("host", 300, False, {"A": "b"}, memory_mb=64, cpu_cores=0.5, disk_mb=8, pids=16, syscall_allowlist="minimal",
                          read_only_root=True, ephemeral=False, metadata={"m": "n"},
                          command_policy={"default": "deny", "rules": [{"program": "ls", "action": "allow"}]})
    assert json.loads(script.requests[1].content) == {
        "runtime": "native", "image": "host", "env": {"A": "b"}, "metadata": {"m": "n"}, "ephemeral": False,
        "resources": {"memory_mb": 64, "cpu_cores": 0.5, "disk_mb": 8, "pids": 16, "timeout_seconds": 300},
        "security": {"syscall_allowlist": "minimal", "read_only_root": True,
                     "command_policy": {"default": "deny", "rules": [{"program": "ls", "action": "allow"}]}}}
    assert script.requests[0].headers["Idempotency-Key"] != script.requests[1].headers["Idempotency-Key"]


def test_egress_is_asked_for_and_not_dropped():
    script = Script(refusal(400, "SECURITY::NETWORK_POLICY_UNSUPPORTED", field="security.network_policy"))
    with pytest.raises(osb.NetworkPolicyUnsupported):
        script.client().create_sandbox(egress_enabled=True)
    assert json.loads(script.requests[0].content) == {"security": {"network_policy": "allow_all"}}


def test_values_are_read_with_their_types():
    made = Script(created()).client().create_sandbox()
    assert (made.id, made.session.created_at.microsecond, made.session.created_at.utcoffset().total_seconds()) == ("abc", 6, 0)
    assert made.session.resources.memory_mb == 256 and made.session.expires_at is None and made.session.metadata == {}


# ---- what is repeated


@pytest.mark.parametrize("failure", [httpx.ReadError("cut"), httpx.RemoteProtocolError("cut"), httpx.ConnectError("refused"), refusal(503, "X"),
                                     refusal(429, "X"), refusal(409, "IDEMPOTENCY::IN_PROGRESS")])
def test_a_create_is_made_again_with_the_same_key(failure):
    script = Script(failure, created())
    assert script.client().create_sandbox().id == "abc"
    assert len(script.requests) == 2 and len({request.headers["Idempotency-Key"] for request in script.requests}) == 1
    assert len({request.content for request in script.requests}) == 1


@pytest.mark.parametrize("failure,expected", [(httpx.ReadError("cut"), osb.ConnectionLost), (httpx.ReadTimeout("late"), osb.SandboxTimeout),
                                              (refusal(503, "X"), osb.ServerUnavailable), (refusal(429, "X"), osb.TooMany)])
@pytest.mark.parametrize("kind", ["run", "execute"])
@pytest.mark.parametrize("stream", [False, True])
def test_a_command_is_never_sent_twice(failure, expected, kind, stream):
    script = Script(created(), failure)
    made = sandbox(script)
    with pytest.raises(expected):
        getattr(made, kind)("echo", stream=stream)
    assert len(script.requests) == 1


def test_a_command_that_cannot_have_left_is_sent_again():
    script = Script(created(), httpx.ConnectError("refused"), httpx.Response(200, json=RESULT))
    assert sandbox(script).run("echo hi").stdout == "hi\n"
    assert len(script.requests) == 2


def test_a_one_shot_run_is_repeated_only_when_nothing_was_done():
    script = Script(refusal(429, "X", {"Retry-After": "0"}), httpx.Response(200, json=RESULT))
    assert script.client().run("echo hi").exit_code == 0
    assert len({request.headers["Idempotency-Key"] for request in script.requests}) == 1 and len(script.requests) == 2
    script = Script(httpx.ReadError("cut"))
    with pytest.raises(osb.ConnectionLost):
        script.client().run("echo hi")
    assert len(script.requests) == 1


def test_the_number_of_retries_is_bounded():
    script = Script(httpx.ReadError("cut"))
    with pytest.raises(osb.ConnectionLost):
        script.client(max_retries=1).get_sandbox("abc")
    assert len(script.requests) == 2


def test_retry_after_is_honoured_when_short_and_told_when_long():
    script = Script(refusal(429, "SANDBOX::LIMIT_REACHED", {"Retry-After": "1"}), created())
    start = time.monotonic()
    script.client().create_sandbox()
    assert time.monotonic() - start >= 1
    script = Script(refusal(429, "SANDBOX::LIMIT_REACHED", {"Retry-After": "60"}))
    with pytest.raises(osb.TooManySandboxes) as caught:
        script.client().create_sandbox()
    assert caught.value.retry_after == 60 and len(script.requests) == 1


def test_an_upload_is_made_again_from_its_start(tmp_path):
    (tmp_path / "f").write_bytes(b"x" * 600_000)
    info = {"path": "/f", "type": "file", "size": 600_000, "mode": "644", "modified_at": "2026-01-02T03:04:05.000006Z"}
    script = Script(created(), httpx.WriteError("cut"), httpx.Response(201, json=info))
    assert sandbox(script).upload_file(tmp_path / "f", "/f").size == 600_000
    assert [len(request.content) for request in script.requests] == [600_000, 600_000]
    assert script.requests[1].headers["Content-Length"] == "600000"


def test_destroy_is_content_with_a_sandbox_that_is_gone():
    script = Script(created(), refusal(404, "SESSION::NOT_FOUND"))
    sandbox(script).destroy()


def test_an_error_in_the_block_is_not_hidden_by_the_destroy_after_it():
    script = Script(created(), refusal(500, "GENERAL::UNKNOWN_ERROR"))
    with pytest.raises(ZeroDivisionError), script.client().create_sandbox():
        1 / 0
    with pytest.raises(osb.SandboxError), script.client().create_sandbox():
        pass


# ---- errors


@pytest.mark.parametrize("status,code,path,expected", [
    (400, "SESSION::UNKNOWN_FIELD", "run", osb.InvalidRequest), (401, "SANDBOX::UNAUTHORIZED", "run", osb.NotAuthorized),
    (403, "COMMAND::DENIED", "run", osb.CommandDenied), (403, "OTHER", "run", osb.NotAuthorized), (404, "SESSION::NOT_FOUND", "run", osb.SandboxNotFound),
    (404, "FILE::NOT_FOUND", "download_file", osb.RemoteFileNotFound), (404, "SESSION::NOT_FOUND", "download_file", osb.SandboxNotFound),
    (409, "X", "run", osb.Conflict), (410, "X", "run", osb.SandboxEnded), (413, "X", "run", osb.TooLarge), (422, "CODE::LANGUAGE_MISSING", "execute", osb.LanguageMissing),
    (507, "X", "download_file", osb.DiskFull), (500, "X", "run", osb.SandboxError)])
def test_errors_have_their_class(status, code, path, expected):
    script = Script(created(), refusal(status, code, {"X-Request-ID": "r-1"}, field="command", advice="do it better", rule="no-rm"))
    made = sandbox(script)
    with pytest.raises(osb.SandboxError) as caught:
        getattr(made, path)("x")
    error = caught.value
    assert type(error) is expected
    assert (error.code, error.status, error.field, error.advice, error.rule, error.request_id) == (code, status, "command", "do it better", "no-rm", "r-1")
    assert str(error) == f"command: no. Do it better [{code}, request r-1]"


def test_no_daemon_says_what_to_do():
    with pytest.raises(osb.NotReachable) as caught:
        SandboxClient("http://127.0.0.1:65535", max_retries=0).health()
    assert "nothing answers at http://127.0.0.1:65535/api/v1" in str(caught.value) and "opensandbox daemon start" in str(caught.value)
    assert caught.value.cause and isinstance(caught.value.__cause__, httpx.ConnectError)


@pytest.mark.parametrize("answer", [httpx.Response(200, text="<html>"), httpx.Response(200, json=[]), httpx.Response(200, json={"session_id": "x"})])
def test_another_server_is_told_as_such(answer):
    with pytest.raises(osb.UnexpectedAnswer):
        Script(answer).client().get_sandbox("x")


def test_an_error_page_of_something_in_between_is_told():
    with pytest.raises(osb.ServerUnavailable) as caught:
        Script(httpx.Response(502, text="bad gateway")).client(max_retries=0).get_sandbox("x")
    assert "502: bad gateway" in str(caught.value)


# ---- streams


def sse(*events):
    return b"".join(b"event: %s\nid: %d\ndata: %s\n\n" % (event["type"].encode(), event["seq"], json.dumps(event).encode()) for event in events)


STARTED = {"type": "started", "seq": 1, "session_id": "abc", "exec_id": "e1"}
EXIT = {"type": "exit", "seq": 4, "exit": {"exit_code": 0, "cause": "exited", "timed_out": False, "duration_ms": 1}}
EURO = {"type": "stdout", "seq": 2, "data_base64": "4oI="}, {"type": "stdout", "seq": 3, "data_base64": "rA=="}


@pytest.mark.parametrize("size", [1, 2, 7, 1000])
def test_events_are_whole_however_the_bytes_come(size):
    wire = b": awake\n\n" + sse(STARTED, *EURO, EXIT).replace(b"\n", b"\r\n")
    reader = Reader()
    events = [event for start in range(0, len(wire), size) for event in reader.feed(wire[start:start + size])]
    assert [event.type for event in events] == ["started", "stdout", "stdout", "exit"]
    assert "".join(event.text for event in events) == "€" and b"".join(event.data for event in events) == "€".encode()
    assert reader.ended and reader.exec_id == "e1"


def test_half_a_character_at_the_end_is_told_as_such():
    reader = Reader()
    assert "".join(event.text for event in reader.feed(sse(STARTED, EURO[0], EXIT))) == "\ufffd"


def test_a_stream_reads_on_after_what_it_has():
    whole = sse(STARTED, *EURO, EXIT)
    cut = httpx.Response(200, content=sse(STARTED, EURO[0]) + b"data: {\"type\": \"std")
    script = Script(created(), cut, httpx.Response(200, content=whole))  # the second tells again what was told
    stream = sandbox(script).run("x", stream=True)
    assert [event.seq for event in stream] == [1, 2, 3, 4]
    assert stream.exit.exit_code == 0 and stream.exec_id == "e1"
    assert [(request.method, request.url.path, request.url.query) for request in script.requests] == [
        ("POST", "/api/v1/sessions/abc/exec", b""), ("GET", "/api/v1/sessions/abc/execs/e1/events", b"after=2")]


def test_a_stream_that_never_gets_further_gives_up():
    script = Script(created(), httpx.Response(200, content=sse(STARTED)))
    stream = sandbox(script).run("x", stream=True)
    import opensandbox_client._wire as wire
    wire_backoff, wire.backoff = wire.backoff, lambda *_: 0
    try:
        with pytest.raises(osb.ConnectionLost):
            list(stream)
    finally:
        wire.backoff = wire_backoff
    assert len(script.requests) == 9 and list(stream) == []


def test_a_stream_cut_before_the_command_started_is_not_repeated():
    script = Script(created(), httpx.Response(200, content=b""))
    with pytest.raises(osb.ConnectionLost):
        list(sandbox(script).run("x", stream=True))
    assert len(script.requests) == 1


def test_events_before_an_error_are_told_first():
    wire = sse(STARTED, {"type": "error", "seq": 0, "error": {"code": "COMMAND::DENIED", "message": "no", "rule": "r"}})
    stream = sandbox(Script(created(), httpx.Response(200, content=wire))).run("x", stream=True)
    assert next(stream).type == "started"
    with pytest.raises(osb.CommandDenied) as caught:
        next(stream)
    assert caught.value.rule == "r"


def test_an_interrupt_before_the_start_is_refused():
    stream = sandbox(Script(created(), httpx.Response(200, content=b""))).run("x", stream=True)
    with pytest.raises(osb.SandboxError, match="nothing to interrupt"):
        stream.interrupt()


# ---- both clients


def test_both_clients_have_the_same_surface():
    import inspect
    for plain, awaited in ((osb.SandboxClient, osb.AsyncSandboxClient), (osb.Sandbox, osb.AsyncSandbox), (osb.ExecStream, osb.AsyncExecStream)):
        names = {name for name in dir(plain) if not name.startswith("_")}
        assert names == {name for name in dir(awaited) if not name.startswith("_")}
        for name in names:
            if inspect.isfunction(getattr(plain, name)):
                assert inspect.iscoroutinefunction(getattr(awaited, name)), name
                assert list(inspect.signature(getattr(plain, name)).parameters) == list(inspect.signature(getattr(awaited, name)).parameters)


def test_the_awaited_client_reads_on_too():
    script = Script(created(), httpx.Response(200, content=sse(STARTED, EURO[0])), httpx.Response(200, content=sse(EURO[1], EXIT)))

    async def main():
        async with AsyncSandboxClient("http://test", transport=httpx.MockTransport(script)) as client:
            made = await client.create_sandbox()
            return [event.seq async for event in await made.run("x", stream=True)]

    assert asyncio.run(main()) == [1, 2, 3, 4]
