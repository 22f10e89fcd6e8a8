"""The client against a real daemon."""
import asyncio
import threading
import uuid

import pytest

import harness
import opensandbox_client as osb
from cutting_proxy import CuttingProxy
from opensandbox_client import AsyncSandboxClient, SandboxClient


@pytest.fixture(scope="module")
def client(sessions):
    with SandboxClient(sessions.sessions_url) as made:
        yield made


@pytest.fixture
def sandbox(client):
    with client.create_sandbox(memory_mb=256) as made:
        yield made


# ---- life


def test_a_sandbox_lives_until_it_is_destroyed(client):
    sandbox = client.create_sandbox(image="host", timeout=120, memory_mb=128, metadata={"who": "me"}, env={"GREETING": "hi"})
    info = sandbox.info()
    assert (info.session_id, info.state, info.image, info.ephemeral) == (sandbox.id, "running", "host", True)
    assert info.resources.memory_mb == 128 and info.metadata["who"] == "me" and info.security.network_policy == "deny_all"
    assert 0 < (info.expires_at - info.created_at).total_seconds() <= 120
    assert sandbox.run("echo $GREETING").stdout == "hi\n"
    assert client.get_sandbox(sandbox.id).run(["echo", "$GREETING"]).stdout == "$GREETING\n"
    assert sandbox.id in [other.id for other in client.list_sandboxes()]
    sandbox.destroy()
    sandbox.destroy()
    with pytest.raises(osb.SandboxNotFound) as caught:
        sandbox.info()
    assert caught.value.code == "SESSION::NOT_FOUND" and caught.value.request_id
    assert sandbox.id not in [other.id for other in client.list_sandboxes()]


def test_the_same_key_gives_the_same_sandbox(client):
    key = uuid.uuid4().hex
    with client.create_sandbox(idempotency_key=key) as first:
        assert client.create_sandbox(idempotency_key=key).id == first.id
        with client.create_sandbox() as other:
            assert other.id != first.id


def test_what_is_refused_says_which_field(client):
    for options, kind, field in (({"memory_mb": 1}, osb.InvalidRequest, "resources.memory_mb"),
                                 ({"egress_enabled": True}, osb.NetworkPolicyUnsupported, "security.network_policy"),
                                 ({"syscall_allowlist": "everything"}, osb.InvalidRequest, "security.syscall_allowlist")):
        with pytest.raises(kind) as caught:
            client.create_sandbox(**options)
        assert caught.value.field == field and caught.value.request_id, caught.value


def test_the_health_names_the_runtime(client):
    assert client.health().runtime == "native"


# ---- commands


def test_a_command_tells_what_it_printed_and_how_it_ended(sandbox):
    done = sandbox.run("cat; echo oh >&2; pwd; echo $A; exit 3", stdin="in\n", cwd="/tmp", env={"A": "b"})
    assert (done.stdout, done.stderr, done.exit_code, done.cause, done.timed_out) == ("in\n/tmp\nb\n", "oh\n", 3, "exited", False)
    assert done.session_id == sandbox.id and done.exec_id and done.duration_ms > 0


def test_a_command_past_its_time_is_a_result(sandbox):
    late = sandbox.run("echo begun; sleep 60", timeout=0.3)
    assert (late.stdout, late.exit_code, late.timed_out, late.cause) == ("begun\n", 124, True, "timed_out")


def test_output_past_the_bound_is_cut_and_says_so(sandbox):
    done = sandbox.run("yes | head -c 100000", max_output_bytes=1000)
    assert len(done.stdout) == 1000 and done.stdout_truncated and not done.stderr_truncated


def test_a_stream_tells_events_as_they_come(sandbox):
    stream = sandbox.run("echo first; read line; echo $line >&2", stream=True, stdin="second\n")
    events = list(stream)
    assert [event.type for event in events] == ["started", "stdout", "stderr", "exit"]
    assert [event.text for event in events] == ["", "first\n", "second\n", ""]
    assert [event.seq for event in events] == sorted({event.seq for event in events})
    assert stream.exit.exit_code == 0 and stream.exec_id == events[0].exec_id


def test_bytes_that_are_no_text_come_whole(sandbox):
    stream = sandbox.run(r"printf '\377\000\342\202'; printf '\254'", stream=True)
    assert b"".join(event.data for event in stream if event.type == "stdout") == b"\xff\x00\xe2\x82\xac"


def test_interrupt_stops_the_command(sandbox):
    stream = sandbox.run("echo begun; sleep 60", stream=True)
    for event in stream:
        if event.text == "begun\n":
            stream.interrupt()
    assert stream.exit.cause == "interrupted"


def test_two_commands_run_side_by_side(client, sandbox):
    """The first waits for what the second does."""
    done = []
    thread = threading.Thread(target=lambda: done.append(sandbox.run("mkfifo p; cat p", timeout=20)))
    thread.start()
    sandbox.run("until [ -p p ]; do sleep 0.01; done; echo from the other > p", timeout=20)
    thread.join(30)
    assert done[0].stdout == "from the other\n"


def test_a_one_shot_run_leaves_nothing(client):
    before = {sandbox.id for sandbox in client.list_sandboxes()}
    done = client.run("echo $A; cat", env={"A": "b"}, stdin="in", timeout=20, memory_mb=128)
    assert (done.stdout, done.exit_code) == ("b\nin", 0)
    assert "".join(event.text for event in client.run("echo streamed", stream=True)) == "streamed\n"
    assert {sandbox.id for sandbox in client.list_sandboxes()} <= before


# ---- a stream over a connection that is cut again and again

LINES = "".join(f"line {number}\n" for number in range(1, 81))
SLOW = "for i in $(seq 1 80); do echo line $i; sleep 0.005; done"


def test_a_cut_stream_reads_on_without_loss_or_repetition(sessions):
    with CuttingProxy(sessions.sessions_url) as proxy, SandboxClient(proxy.url) as client, client.create_sandbox() as sandbox:
        events = list(sandbox.run(SLOW, stream=True))
        assert "".join(event.text for event in events) == LINES
        assert [event.seq for event in events] == list(range(events[0].seq, events[0].seq + len(events)))
        assert [event.type for event in events if event.type not in ("stdout",)] == ["started", "exit"]
        assert proxy.cuts >= 3


async def test_the_awaited_stream_reads_on_too(sessions):
    with CuttingProxy(sessions.sessions_url) as proxy:
        async with AsyncSandboxClient(proxy.url) as client, await client.create_sandbox() as sandbox:
            assert "".join([event.text async for event in await sandbox.run(SLOW, stream=True)]) == LINES
        assert proxy.cuts >= 3


def test_cut_code_reads_on(sessions):
    with CuttingProxy(sessions.sessions_url) as proxy, SandboxClient(proxy.url) as client, client.create_sandbox() as sandbox:
        code = "import time\nfor i in range(1, 81):\n    print('line', i, flush=True)\n    time.sleep(0.005)"
        stream = sandbox.execute(code, stream=True)
        assert "".join(event.text for event in stream if event.type == "stdout") == LINES
        assert stream.exit.exit_code == 0 and proxy.cuts >= 1


# ---- code


def test_code_keeps_its_variables_and_tells_results(sandbox):
    assert sandbox.execute("x = 41; print('set')").stdout == "set\n"
    done = sandbox.execute("x + 1")
    assert done.exit_code == 0 and done.results[0].data["text/plain"] == "42"
    types = [event.type for event in sandbox.execute("print('p'); x", stream=True)]
    assert types[0] == "started" and types[-1] == "exit" and {"stdout", "result"} <= set(types)
    failed = sandbox.execute("1 / 0")
    assert failed.exit_code == 1 and failed.error.name == "ZeroDivisionError" and failed.error.traceback


def test_a_language_that_is_not_there_is_an_error(sandbox):
    with pytest.raises(osb.LanguageMissing) as caught:
        sandbox.execute("x", language="cobol")
    assert caught.value.code == "CODE::LANGUAGE_MISSING"


# ---- files


def test_files_go_in_and_out(sandbox, tmp_path):
    big = bytes(range(256)) * 8192  # 2 MiB
    (tmp_path / "big").write_bytes(big)
    info = sandbox.upload_file(tmp_path / "big", "deep/in/big.bin", mode="755")
    assert (info.path, info.size, info.type) == ("/workspace/deep/in/big.bin", len(big), "file")
    assert sandbox.run("stat -c %a deep/in/big.bin").stdout == "755\n"
    assert sandbox.download_file("/workspace/deep/in/big.bin") == big
    assert sandbox.download_file("deep/in/big.bin", tmp_path / "back") == tmp_path / "back" and (tmp_path / "back").read_bytes() == big
    assert sorted(path.name for path in tmp_path.iterdir()) == ["back", "big"], "no half file is left"
    sandbox.write_text("a ü&b.txt", "grüße\n")
    assert sandbox.read_text("a ü&b.txt") == "grüße\n" and sandbox.upload_file(b"", "empty").size == 0
    sandbox.make_directory("made/too")
    assert {entry.path: entry.type for entry in sandbox.list_files()} == {
        "/workspace/a ü&b.txt": "file", "/workspace/deep": "directory", "/workspace/empty": "file", "/workspace/made": "directory"}
    sandbox.delete_file("empty")
    assert "/workspace/empty" not in [entry.path for entry in sandbox.list_files("/workspace")]


def test_a_file_that_is_not_there_is_an_error_and_leaves_none(sandbox, tmp_path):
    for work in (lambda: sandbox.download_file("nothing"), lambda: sandbox.download_file("nothing", tmp_path / "x"), lambda: sandbox.list_files("nothing"),
                 lambda: sandbox.delete_file("nothing")):
        with pytest.raises(osb.RemoteFileNotFound):
            work()
    assert list(tmp_path.iterdir()) == []


# ---- the command policy


def test_a_refused_command_names_its_rule_and_an_allowed_one_runs(client):
    policy = osb.CommandPolicy(default="allow", rules=[osb.CommandRule(name="no-rm", program="rm", action="deny", reason="keep it")])
    with client.create_sandbox(command_policy=policy) as sandbox:
        for stream in (False, True):
            with pytest.raises(osb.CommandDenied) as caught:
                list(sandbox.run("rm x", stream=True)) if stream else sandbox.run("rm x")
            assert caught.value.rule == "no-rm" and caught.value.code == "COMMAND::DENIED"
        assert sandbox.run("echo fine").exit_code == 0


@pytest.mark.parametrize("answer", ["allow", "deny"])
def test_a_command_waits_for_an_answer(sessions, client, answer):
    policy = {"default": "ask", "ask_timeout_seconds": 30}
    with client.create_sandbox(command_policy=policy) as sandbox:
        stream = sandbox.run("echo ran", stream=True)
        held = next(stream)
        assert held.type == "held" and held.approval.session_id == sandbox.id
        assert held.approval.id in [asked.id for asked in client.list_approvals()]
        with pytest.raises(osb.NotAuthorized) as caught:
            client.answer_approval(held.approval.id, "allow")
        assert caught.value.code == "COMMAND::SELF_APPROVAL"
        with SandboxClient(sessions.sessions_url, api_key=sessions.key) as person:
            settled = person.answer_approval(held.approval.id, answer, comment="by a test")
        assert settled.state == ("allowed" if answer == "allow" else "denied") and settled.comment == "by a test"
        assert client.get_approval(held.approval.id).state == settled.state
        if answer == "allow":
            assert "".join(event.text for event in stream) == "ran\n"
        else:
            with pytest.raises(osb.CommandNotApproved, match="by a test"):
                list(stream)


# ---- keys, and limits


def test_a_key_of_this_daemon_is_taken_and_another_is_not(sessions):
    with SandboxClient(sessions.sessions_url, api_key=sessions.key) as client:
        assert client.run("echo in", timeout=20).stdout == "in\n"
    with pytest.raises(osb.NotAuthorized), SandboxClient(sessions.sessions_url, api_key="wrong") as client:
        client.list_sandboxes()


# ---- the awaited client


async def test_the_awaited_client_does_it_all(sessions, tmp_path):
    async with AsyncSandboxClient(sessions.sessions_url) as client:
        async with await client.create_sandbox(env={"A": "b"}) as sandbox:
            one, two = await asyncio.gather(sandbox.run("echo $A"), sandbox.run("echo two"))
            assert (one.stdout, two.stdout) == ("b\n", "two\n")
            assert (await sandbox.execute("6 * 7")).results[0].data["text/plain"] == "42"
            (tmp_path / "in").write_bytes(b"x" * 700_000)
            assert (await sandbox.upload_file(tmp_path / "in", "in")).size == 700_000
            await sandbox.download_file("in", tmp_path / "out")
            assert (tmp_path / "out").read_bytes() == (tmp_path / "in").read_bytes()
            stream = await sandbox.run("echo begun; sleep 60", stream=True)
            async for event in stream:
                if event.text == "begun\n":
                    await stream.interrupt()
            assert stream.exit.cause == "interrupted"
            assert sandbox.id in [other.id for other in await client.list_sandboxes()]
        with pytest.raises(osb.SandboxNotFound):
            await sandbox.info()
        assert (await client.run("echo once", timeout=20)).stdout == "once\n"


# ---- a daemon that is full, and one that restarts


def test_a_full_daemon_says_when_to_ask_again_and_a_restarted_one_reads_on():
    with harness.Daemon("sdks-small", "sessions:\n  max_concurrent: 1\n") as daemon:
        daemon.environment["OPENSANDBOX_SESSIONS_PORT"] = str(harness.free_port())  # the same after the restart
        daemon.restart()
        with SandboxClient(daemon.sessions_url, max_retries=0) as client, client.create_sandbox() as sandbox:
            with pytest.raises(osb.TooManySandboxes) as caught:
                client.create_sandbox()
            assert caught.value.status == 429 and caught.value.retry_after is not None
            stream = sandbox.run("echo first; until [ -e go ]; do sleep 0.01; done; echo second", stream=True)
            seen = []
            for event in stream:
                seen.append(event.text)
                if event.text == "first\n":
                    daemon.kill_serve()
                    daemon.start()
                    client.get_sandbox(sandbox.id).write_text("go", "")
            assert "".join(seen) == "first\nsecond\n" and stream.exit.exit_code == 0
