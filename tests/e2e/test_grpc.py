"""gRPC: a client generated from the contract, reflection, health; what is too much, broken or without end is refused."""
import contextlib
import os
import signal
import socket
import threading
import time

import grpc
import pytest
from google.protobuf.descriptor_pool import DescriptorPool
from google.protobuf.message_factory import GetMessageClass
from google.rpc import error_details_pb2, status_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

import grpc_setup
import harness
from grpc_setup import SERVICE, GrpcDaemon
from harness import wait_until

SANITIZED = harness.BUILD.name == "asan"  # whose memory is not the program's
NOBODY = "00000000000000000000000000"


@pytest.fixture(scope="module")
def api():
    return grpc_setup.generate()


@pytest.fixture(scope="module")
def door():
    with GrpcDaemon() as daemon:
        yield daemon


@pytest.fixture
def client(door, api):
    with door.channel() as channel:
        yield Client(door, api, channel)


class Client:
    """The generated stub with the key in place."""

    def __init__(self, daemon, api, channel):
        self.daemon, self.pb, self.channel = daemon, api[0], channel
        self.stub = api[1].SessionServiceStub(channel)

    def __getattr__(self, method):
        call = getattr(self.stub, method)
        return lambda request, timeout=30, metadata=None: call(request, timeout=timeout, metadata=metadata or self.daemon.metadata)

    @contextlib.contextmanager
    def session(self, **fields):
        made = self.CreateSession(self.pb.CreateSessionRequest(**fields))
        try:
            yield made.session_id
        finally:
            with contextlib.suppress(grpc.RpcError):
                self.DeleteSession(self.pb.DeleteSessionRequest(session_id=made.session_id))

    def refused(self, method, request, **options):
        with pytest.raises(grpc.RpcError) as failed:
            answer = getattr(self, method)(request, **options)
            if hasattr(answer, "__next__"):
                list(answer)
        return failed.value


def error_info(error):
    """The stable code and what else the details say."""
    details = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(details["grpc-status-details-bin"])
    info = error_details_pb2.ErrorInfo()
    assert status.details[0].Unpack(info)
    assert details["opensandbox-error-code"] == info.reason and info.domain == "opensandbox"
    return info


# ---- what it is for

def test_a_generated_client_lives_a_whole_session(client):
    pb = client.pb
    made = client.CreateSession(pb.CreateSessionRequest(resources=pb.Resources(memory_mb=128, timeout_seconds=600), metadata={"who": "grpc"}))
    assert made.state == "running" and made.resources.memory_mb == 128 and made.metadata["who"] == "grpc"
    session = made.session_id
    result = client.Exec(pb.ExecRequest(session_id=session, command="cat; echo oops >&2; exit 7", stdin=b"\x00\xffin"))
    assert (result.stdout, result.stderr, result.end.exit_code, result.end.cause) == (b"\x00\xffin", b"oops\n", 7, "exited")
    assert client.Exec(pb.ExecRequest(session_id=session, argv=["printf", "%s", "a b"])).stdout == b"a b"
    got = client.GetSession(pb.GetSessionRequest(session_id=session))
    assert got.session_id == session and got.usage.pids >= 1
    assert session in [one.session_id for one in client.ListSessions(pb.ListSessionsRequest()).sessions]
    client.DeleteSession(pb.DeleteSessionRequest(session_id=session))
    assert client.refused("GetSession", pb.GetSessionRequest(session_id=session)).code() == grpc.StatusCode.NOT_FOUND


def test_events_come_while_the_command_runs(client):
    pb = client.pb
    with client.session() as session:
        events = client.ExecStream(pb.ExecRequest(session_id=session, command="echo one; until test -e /tmp/go; do sleep 0.05; done; echo two"))
        said = b""
        for event in events:
            said += event.stdout
            if said == b"one\n" and event.WhichOneof("event") == "stdout":  # it waits for what only happens now
                client.Exec(pb.ExecRequest(session_id=session, command="touch /tmp/go"))
            last = event
        assert said == b"one\ntwo\n" and last.exit.exit_code == 0 and not last.exit.timed_out


def test_a_lost_stream_is_read_on(client):
    pb = client.pb
    with client.session() as session:
        events = list(client.ExecStream(pb.ExecRequest(session_id=session, command="echo one; echo two")))
        exec_id = events[0].started.exec_id
        again = list(client.ResumeEvents(pb.ResumeEventsRequest(session_id=session, exec_id=exec_id, after=events[0].seq)))
        assert b"".join(one.stdout for one in again) == b"one\ntwo\n" and again[-1].WhichOneof("event") == "exit"


def test_run_leaves_nothing(client):
    pb = client.pb
    before = {one["id"] for one in client.daemon.list()}
    result = client.Run(pb.RunRequest(exec=pb.ExecRequest(command="echo once")))
    assert result.stdout == b"once\n"
    events = list(client.RunStream(pb.RunRequest(exec=pb.ExecRequest(command="echo again; exit 3"))))
    assert events[-1].exit.exit_code == 3
    assert {one["id"] for one in client.daemon.list()} <= before


def test_files_go_both_ways(client):
    pb = client.pb
    content = os.urandom(3_000_000)

    def messages(session):
        yield pb.WriteFileRequest(open=pb.WriteFileOpen(session_id=session, path="/workspace/a/b.bin", mode="640"))
        for at in range(0, len(content), 1_000_000):
            yield pb.WriteFileRequest(data=content[at:at + 1_000_000])

    with client.session() as session:
        info = client.WriteFile(messages(session))
        assert (info.size, info.mode, info.type) == (len(content), "640", "file")
        assert b"".join(chunk.data for chunk in client.ReadFile(pb.ReadFileRequest(session_id=session, path="/workspace/a/b.bin"))) == content
        listed = client.ListDirectory(pb.ListDirectoryRequest(session_id=session, path="/workspace/a")).entries
        assert [entry.path.rsplit("/", 1)[-1] for entry in listed] == ["b.bin"]
        client.RemoveFile(pb.RemoveFileRequest(session_id=session, path="/workspace/a/b.bin"))
        missing = client.refused("ReadFile", pb.ReadFileRequest(session_id=session, path="/workspace/a/b.bin"))
        assert missing.code() == grpc.StatusCode.NOT_FOUND


def test_code_remembers_and_shows_its_results(client):
    pb = client.pb
    with client.session(resources=pb.Resources(memory_mb=512)) as session:
        assert client.RunCode(pb.CodeRequest(session_id=session, language="python", code="a = 20")).end.exit_code == 0
        result = client.RunCode(pb.CodeRequest(session_id=session, language="python", code="print('hi'); a + 22"))
        assert result.stdout == b"hi\n" and [one.data["text/plain"] for one in result.results] == ["42"]
        events = list(client.RunCodeStream(pb.CodeRequest(session_id=session, language="python", code="1 / 0")))
        assert events[-1].exit.error.name == "ZeroDivisionError"


def test_a_held_command_waits_for_its_answer(client):
    pb = client.pb
    policy = '{"default": "allow", "rules": [{"name": "careful", "program": "touch", "action": "ask"}, {"name": "never", "program": "rm", "action": "deny"}]}'
    with client.session(security=pb.Security(command_policy_json=policy)) as session:
        refused = client.refused("Exec", pb.ExecRequest(session_id=session, argv=["rm", "/tmp/x"]))
        assert refused.code() == grpc.StatusCode.PERMISSION_DENIED and error_info(refused).reason == "COMMAND::DENIED"
        events = client.ExecStream(pb.ExecRequest(session_id=session, argv=["touch", "/tmp/x"]))
        held = next(events).held
        assert held.rule.endswith("careful") and held.id in [one.id for one in client.ListApprovals(pb.ListApprovalsRequest()).approvals]
        assert client.AnswerApproval(pb.AnswerApprovalRequest(id=held.id, answer="allow")).state == "allowed"
        assert list(events)[-1].exit.exit_code == 0


class Typist:
    """Both sides of a terminal."""

    def __init__(self, client, session, **fields):
        self.pb, self.said, self.end, self.inputs = client.pb, b"", None, []
        self.more = threading.Condition()
        self.send(open=client.pb.TerminalOpen(session_id=session, **fields))
        self.call = client.Terminal(self.take())

    def send(self, **fields):
        with self.more:
            self.inputs.append(self.pb.TerminalInput(**fields))
            self.more.notify()

    def take(self):
        while True:
            with self.more:
                while not self.inputs:
                    self.more.wait()
                message = self.inputs.pop(0)
            if message is None:
                return
            yield message

    def until(self, text):
        for output in self.call:
            self.said += output.data
            if output.WhichOneof("output") == "exit":
                self.end = output.exit
            if text is not None and text in self.said:
                return
        assert text is None, self.said

    def close(self):
        with self.more:
            self.inputs.append(None)
            self.more.notify()


def test_a_terminal_talks_both_ways(client):
    with client.session() as session:
        typist = Typist(client, session, argv=["sh"], columns=80, rows=24)
        typist.send(data=b"stty size\n")
        typist.until(b"24 80")
        typist.send(resize=client.pb.TerminalSize(columns=100, rows=30))
        typist.send(data=b"stty size\n")
        typist.until(b"30 100")
        typist.send(data=b"exit 5\n")
        typist.until(None)
        assert typist.end.exit_code == 5
        typist.close()


# ---- cancelled, refused

def test_a_cancelled_call_withdraws_its_work(client):
    pb = client.pb
    before = len(client.daemon.list())
    call = client.RunStream(pb.RunRequest(exec=pb.ExecRequest(command="echo up; sleep 600")))
    assert next(call).WhichOneof("event") == "started"
    assert len(client.daemon.list()) == before + 1
    call.cancel()
    wait_until(lambda: len(client.daemon.list()) == before, 10, "the sandbox of a cancelled run is gone")


def test_a_deadline_of_the_client_ends_the_wait(client):
    pb = client.pb
    with client.session() as session:
        began = time.monotonic()
        late = client.refused("Exec", pb.ExecRequest(session_id=session, command="sleep 600"), timeout=0.5)
        assert late.code() == grpc.StatusCode.DEADLINE_EXCEEDED and time.monotonic() - began < 5
        assert client.Exec(pb.ExecRequest(session_id=session, command="echo still here")).stdout == b"still here\n"


def test_errors_carry_the_stable_code(client):
    pb = client.pb
    missing = client.refused("Exec", pb.ExecRequest(session_id=NOBODY, command="true"))
    assert missing.code() == grpc.StatusCode.NOT_FOUND and error_info(missing).reason == "SESSION::NOT_FOUND"
    with client.session() as session:
        both = client.refused("Exec", pb.ExecRequest(session_id=session, command="true", argv=["true"]))
    assert both.code() == grpc.StatusCode.INVALID_ARGUMENT and error_info(both).metadata["field"] == "command"
    policy = client.refused("CreateSession", pb.CreateSessionRequest(security=pb.Security(network_policy="allow_all")))
    assert policy.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.UNIMPLEMENTED)
    assert error_info(policy).metadata["field"].endswith("network_policy")


@pytest.mark.parametrize("metadata, code", [
    ((("x-other", "1"),), "MISSING_API_KEY"),
    ((("open-sandbox-api-key", "wrong"),), "INVALID_API_KEY"),
    ((("authorization", "Basic abc"),), "INVALID_API_KEY"),
])
def test_every_call_needs_a_key(client, metadata, code):
    error = client.refused("ListSessions", client.pb.ListSessionsRequest(), metadata=metadata)
    assert error.code() == grpc.StatusCode.UNAUTHENTICATED and error_info(error).reason == code


@pytest.mark.parametrize("name, prefix", [("open-sandbox-api-key", ""), ("x-api-key", ""), ("authorization", "Bearer ")])
def test_a_key_may_stand_in_three_places(client, door, name, prefix):
    client.ListSessions(client.pb.ListSessionsRequest(), metadata=((name, prefix + door.key),))


# ---- health and reflection

def test_health_is_told_and_watched(door):
    with door.channel() as channel:
        health = health_pb2_grpc.HealthStub(channel)
        for service in ("", SERVICE):
            assert health.Check(health_pb2.HealthCheckRequest(service=service), timeout=10).status == health_pb2.HealthCheckResponse.SERVING
        watch = health.Watch(health_pb2.HealthCheckRequest(service=SERVICE), timeout=10)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        watch.cancel()
        with pytest.raises(grpc.RpcError) as unknown:
            health.Check(health_pb2.HealthCheckRequest(service="no.such"), timeout=10)
        assert unknown.value.code() == grpc.StatusCode.NOT_FOUND


def test_reflection_is_enough_to_call(door):
    """As grpcurl does it: nothing is known of the contract but what the server tells."""
    with door.channel() as channel:
        database = ProtoReflectionDescriptorDatabase(channel)
        assert {SERVICE, "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection"} <= set(database.get_services())
        service = DescriptorPool(database).FindServiceByName(SERVICE)
        method = service.methods_by_name["Run"]
        request = GetMessageClass(method.input_type)()
        request.exec.command = "echo reflected"
        call = channel.unary_unary(f"/{SERVICE}/{method.name}", type(request).SerializeToString, GetMessageClass(method.output_type).FromString)
        assert call(request, timeout=30, metadata=door.metadata).stdout == b"reflected\n"
        with pytest.raises(KeyError):
            DescriptorPool(database).FindMessageTypeByName("no.such.Message")


# ---- too much, broken, without end

def raw(client, method="Exec", message=b""):
    call = client.channel.unary_unary(f"/{SERVICE}/{method}")
    with pytest.raises(grpc.RpcError) as failed:
        call(message, timeout=20, metadata=client.daemon.metadata)
    return failed.value


def test_what_is_too_large_or_no_message_is_refused(client):
    assert raw(client, message=b"x" * (5 << 20)).code() == grpc.StatusCode.RESOURCE_EXHAUSTED
    broken = raw(client, message=b"\x0a\xff\xff\xff")
    assert broken.code() == grpc.StatusCode.INVALID_ARGUMENT and error_info(broken).reason == "GENERAL::MALFORMED"
    assert raw(client, method="NoSuchMethod").code() == grpc.StatusCode.UNIMPLEMENTED
    with client.daemon.channel() as channel:
        with pytest.raises(grpc.RpcError) as zipped:
            channel.unary_unary(f"/{SERVICE}/ListSessions")(b"", timeout=10, metadata=client.daemon.metadata, compression=grpc.Compression.Gzip)
        assert zipped.value.code() == grpc.StatusCode.UNIMPLEMENTED


def test_a_stream_that_says_nothing_is_cut(client):
    began = time.monotonic()
    silent = threading.Event()

    def nothing():
        silent.wait(60)
        return
        yield

    call = client.Terminal(nothing(), timeout=60)
    with pytest.raises(grpc.RpcError) as cut:
        list(call)
    silent.set()
    assert cut.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED and 5 < time.monotonic() - began < 25
    assert error_info(cut.value).reason == "GENERAL::MESSAGE_TIMEOUT"


def test_an_upload_without_end_ends_at_the_disk(client):
    pb = client.pb
    sent = 0

    def endless(session):
        nonlocal sent
        yield pb.WriteFileRequest(open=pb.WriteFileOpen(session_id=session, path="/workspace/big"))
        while True:
            sent += 1
            yield pb.WriteFileRequest(data=b"x" * (1 << 20))

    with client.session(resources=pb.Resources(disk_mb=16)) as session:
        full = client.refused("WriteFile", endless(session))
        assert full.code() == grpc.StatusCode.RESOURCE_EXHAUSTED and error_info(full).reason == "FILE::NO_SPACE"
        assert 8 <= sent <= 64


def test_a_slow_reader_holds_the_writer_not_the_memory(client, door):
    pb = client.pb
    with client.session() as session:
        before = {name: measure(pid)["rss"] for name, pid in (("serve", door.process.pid), ("door", door.door()))}
        call = client.ExecStream(pb.ExecRequest(session_id=session, command="head -c 200000000 /dev/zero"))
        assert next(call).WhichOneof("event") == "started"
        time.sleep(1)  # nobody reads meanwhile; what is measured is what has gathered
        after = {"serve": measure(door.process.pid)["rss"], "door": measure(door.door())["rss"]}
        assert SANITIZED or all(after[name] - before[name] < 24 * 1024 for name in before), (before, after)
        call.cancel()


PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"


def frame(kind, flags=0, stream=0, payload=b""):
    return len(payload).to_bytes(3, "big") + bytes((kind, flags)) + stream.to_bytes(4, "big") + payload


SETTINGS = frame(4)
# :method POST, :scheme http, :path /, :authority a: enough to open a stream.
HEADERS = b"\x83\x86\x84\x41\x01a"


def resets(count):
    return b"".join(frame(1, 4, 2 * i + 1, HEADERS) + frame(3, 0, 2 * i + 1, b"\0\0\0\x08") for i in range(count))


HOSTILE = {
    "no preface": b"GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "no settings first": PREFACE + frame(6, 0, 0, b"12345678"),
    "header bomb": PREFACE + SETTINGS + frame(1, 0, 1, HEADERS) + frame(9, 0, 1, b"\x40" * 16000) * 4,
    "continuations without end": PREFACE + SETTINGS + frame(1, 0, 1, HEADERS) + frame(9, 0, 1, b"") * 1000,
    "rapid reset": PREFACE + SETTINGS + resets(5000),
    "settings flood": PREFACE + SETTINGS * 5000,
    "ping flood": PREFACE + SETTINGS + frame(6, 0, 0, b"12345678") * 5000,
    "priority flood": PREFACE + SETTINGS + frame(2, 0, 1, b"\0\0\0\0\0") * 5000,
    "empty data flood": PREFACE + SETTINGS + frame(1, 4, 1, HEADERS) + frame(0, 0, 1, b"") * 5000,
    "a frame too long for its kind": PREFACE + SETTINGS + frame(6, 0, 0, b"x" * 16000),
}


def closed_after(port, sent, seconds=10):
    """What a connection that sends this gets before it is closed; fails when it stays open."""
    with socket.create_connection(("127.0.0.1", port), timeout=seconds) as peer:
        got = b""
        with contextlib.suppress(ConnectionError):
            peer.sendall(sent)
            while part := peer.recv(65536):
                got += part
        return got


@pytest.mark.parametrize("kind", HOSTILE)
def test_hostile_connections_are_closed(door, api, kind):
    closed_after(door.grpc_port, HOSTILE[kind])
    with door.channel() as channel:
        Client(door, api, channel).ListSessions(api[0].ListSessionsRequest())


def test_an_ordinary_connection_stays_open(door):
    """The positive control: what is refused above is not refused for beginning."""
    with socket.create_connection(("127.0.0.1", door.grpc_port), timeout=1) as peer:
        peer.sendall(PREFACE + SETTINGS + frame(6, 0, 0, b"12345678"))
        got = b""
        with contextlib.suppress(TimeoutError):
            while frame(6, 1, 0, b"12345678") not in got:
                got += peer.recv(4096)
        assert frame(6, 1, 0, b"12345678") in got


# ---- many

def measure(pid):
    fields = dict(line.split(":", 1) for line in open(f"/proc/{pid}/status"))
    return {"rss": int(fields["VmRSS"].split()[0]), "threads": int(fields["Threads"]), "fds": len(os.listdir(f"/proc/{pid}/fd"))}


@pytest.mark.timeout(120)
def test_ten_thousand_calls_leave_no_growth(client, door, rounds):
    pb, calls = client.pb, rounds(10_000, 1_000)
    pids = {"serve": door.process.pid, "door": door.door()}

    def many(count):
        for _ in range(count):
            client.ListSessions(pb.ListSessionsRequest())

    many(500)
    before = {name: measure(pid) for name, pid in pids.items()}
    sandboxes = len(door.list())
    many(calls)
    wait_until(lambda: measure(pids["serve"])["fds"] <= before["serve"]["fds"] + 2, 10, "connections of ended calls are closed")
    after = {name: measure(pid) for name, pid in pids.items()}
    for name in pids:
        assert after[name]["fds"] <= before[name]["fds"] + 2, (before, after)
        assert after[name]["threads"] <= before[name]["threads"] + 4, (before, after)
        assert SANITIZED or after[name]["rss"] <= before[name]["rss"] + 2048, (before, after)
    assert len(door.list()) == sandboxes
    # The measure sees what it is to see: calls that are held.
    with client.session() as session:
        held = [client.ExecStream(pb.ExecRequest(session_id=session, command="sleep 60")) for _ in range(30)]
        for call in held:
            next(call)
        assert measure(pids["serve"])["fds"] >= after["serve"]["fds"] + 30
        assert measure(pids["door"])["fds"] >= after["door"]["fds"] + 30
        for call in held:
            call.cancel()
    wait_until(lambda: measure(pids["door"])["fds"] <= after["door"]["fds"] + 2, 10, "held calls are gone")


def test_connections_are_bounded_and_the_program_comes_back(api):
    with GrpcDaemon("bound", "  max_connections: 4\n") as daemon:
        with daemon.channel() as channel:
            Client(daemon, api, channel).ListSessions(api[0].ListSessionsRequest())
            first = daemon.door()
            os.kill(first, signal.SIGKILL)
            wait_until(lambda: daemon.door() not in (None, first), 10, "opensandbox-grpc is started again")
        idle = [socket.create_connection(("127.0.0.1", daemon.grpc_port)) for _ in range(4)]
        for peer in idle:
            peer.sendall(PREFACE + SETTINGS)
            assert peer.recv(1)
        with daemon.channel() as channel:
            client = Client(daemon, api, channel)
            with pytest.raises(grpc.RpcError):
                client.ListSessions(api[0].ListSessionsRequest(), timeout=1)
            for peer in idle:
                peer.close()
            wait_until(lambda: not failed(lambda: client.ListSessions(api[0].ListSessionsRequest(), timeout=5)), 15, "a place is free again")
        door = daemon.door()
        daemon.kill_serve()
        wait_until(lambda: not os.path.exists(f"/proc/{door}") or daemon.door() is None, 10, "it ends with serve")
        daemon.start()


def failed(call):
    try:
        call()
        return False
    except grpc.RpcError:
        return True


def test_the_program_has_no_privilege_left(client, door):
    client.ListSessions(client.pb.ListSessionsRequest())  # it has begun
    status = dict(line.split(":", 1) for line in open(f"/proc/{door.door()}/status"))
    assert int(status["CapEff"], 16) == 0 and status["NoNewPrivs"].strip() == "1"
    limits = open(f"/proc/{door.door()}/limits").read()
    assert f"Max address space         {3 << 30}" in limits or SANITIZED
    serve = dict(line.split(":", 1) for line in open(f"/proc/{door.process.pid}/status"))
    assert int(serve["CapEff"], 16) != 0, "the control: where it comes from there is something to lose"


def test_off_is_off(daemon):
    """A daemon that was not asked for gRPC has no such process and no such socket."""
    assert GrpcDaemon.door(daemon) is None
    assert not (daemon.run_dir / "grpc.sock").exists()
