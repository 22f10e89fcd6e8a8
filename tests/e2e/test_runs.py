"""Runs that outlive connections and restarts: nothing missing, nothing twice, bounded memory, the right end."""
import http.client
import json
import re
import socket
import threading
import time
from pathlib import Path

import harness
from e2e.test_restart import execd_of

GROWTH = 8 * 1024 * 1024


class Stream:
    """The events of one request to execd, read line by line as they come."""

    def __init__(self, daemon, sandbox, method, path, body=None, headers=None):
        self.connection = daemon.connection()
        sent = {**daemon.token(sandbox), "Content-Type": "application/json", **(headers or {})}
        self.connection.request(method, f"/sandboxes/{sandbox}/proxy/44772{path}", body=json.dumps(body) if body else None, headers=sent)
        self.response = self.connection.getresponse()

    def __iter__(self):
        while True:
            try:
                line = self.response.readline()
            except (OSError, http.client.HTTPException):
                return  # cut off
            if not line:
                return
            if line.strip():
                yield json.loads(line)

    def close(self):
        self.connection.close()


def numbered(events):
    return [event for event in events if "seq" in event]


def test_a_command_is_read_on_after_a_crash_of_serve(fresh_daemon):
    sandbox = fresh_daemon.create()
    stream = Stream(fresh_daemon, sandbox, "POST", "/command", {"command": "for i in $(seq 1 200); do echo line $i; sleep 0.02; done; exit 9"})
    seen = []
    for event in stream:
        if "seq" in event:
            seen.append(event)
        if len(seen) == 20:
            fresh_daemon.kill_serve()
            break
    seen += numbered(stream)  # what was on its way, if anything
    stream.close()
    fresh_daemon.restart()
    rest = Stream(fresh_daemon, sandbox, "GET", f"/osb/v1/runs/{seen[0]['run_id']}/events?since={seen[-1]['seq']}")
    assert rest.response.status == 200
    seen += numbered(rest)
    assert [event["seq"] for event in seen] == list(range(1, 203)), "init, 200 lines, the end: each once"
    assert [event["text"] for event in seen if event["type"] == "stdout"] == [f"line {number}" for number in range(1, 201)]
    assert seen[-1]["type"] == "error" and seen[-1]["error"]["evalue"] == "9"


def test_a_request_repeated_after_a_crash_does_not_run_twice(fresh_daemon):
    sandbox = fresh_daemon.create()
    request = ("POST", "/command", {"command": "echo x >> /tmp/count; sleep 1; cat /tmp/count"}, {"Idempotency-Key": "deploy:42"})
    first = Stream(fresh_daemon, sandbox, *request)
    run = next(iter(first))["run_id"]
    fresh_daemon.kill_serve()
    fresh_daemon.restart()
    events = list(Stream(fresh_daemon, sandbox, *request))
    assert events[0]["run_id"] == run
    assert [event["text"] for event in events if event["type"] == "stdout"] == ["x"]
    other = fresh_daemon.execd(sandbox, "POST", "/command", {"command": "true"}, headers={"Idempotency-Key": "deploy:42"})
    assert other.status == 422 and other.json()["code"] == "IDEMPOTENCY_CONFLICT"


def own_memory(pid):
    """Pages of the process itself; those of files and libraries come and go."""
    return int(re.search(r"RssAnon:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())[1]) * 1024


class Peak:
    """The most memory each of some processes had while this was open."""

    def __init__(self, *pids):
        self.pids = pids
        self.before = [own_memory(pid) for pid in pids]
        self.most = list(self.before)
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.look)

    def look(self):
        while not self.ended.wait(0.02):
            self.most = [max(most, own_memory(pid)) for most, pid in zip(self.most, self.pids)]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.thread.join()

    def growth(self):
        return [most - before for most, before in zip(self.most, self.before)]


def drain_chunks(source, slow_bytes):
    """Reads a chunked body; the first part of it slowly. Returns how many bytes came and the last of them."""
    total, tail = 0, b""
    while block := source.recv(65536):
        total, tail = total + len(block), (tail + block)[-400:]
        if total < slow_bytes:
            time.sleep(0.002)
    return total, tail


def test_a_flood_is_held_back_by_its_reader_and_costs_no_memory(daemon, sandbox):
    megabytes = 256
    daemon.output(sandbox, "seq 1 1000 | tail -n 1")  # everything is warm
    execd = execd_of(daemon, sandbox)
    token = "".join(f"{name}: {value}\r\n" for name, value in daemon.token(sandbox).items())
    body = json.dumps({"command": f"yes {'x' * 1000} | head -c {megabytes}000000; exit 5"})
    with Peak(daemon.process.pid, execd) as peak, socket.create_connection(("127.0.0.1", daemon.port), timeout=60) as client:
        client.sendall(f"POST /sandboxes/{sandbox}/proxy/44772/command HTTP/1.1\r\nHost: test\r\n{token}Connection: close\r\n"
                       f"Content-Length: {len(body)}\r\n\r\n{body}".encode())
        time.sleep(0.3)  # not at all for a while: the program waits, nothing collects
        total, tail = drain_chunks(client, slow_bytes=4_000_000)
    assert total > megabytes * 1_000_000
    assert b'"evalue":"5"' in tail
    assert all(growth <= GROWTH for growth in peak.growth()), peak.growth()


def shell(daemon, sandbox):
    """run(command) in a new bash session."""
    session = daemon.execd(sandbox, "POST", "/session", {"cwd": "/tmp"}).json()["session_id"]
    return lambda command: harness.Execution(list(Stream(daemon, sandbox, "POST", f"/session/{session}/run", {"command": command})))


FORGE = r"""
sh -c 'for f in /proc/$PPID/fd/*; do
  case $(readlink $f) in
    socket*) echo socket; (printf "S\0000\0/\0" > $f) 2>/dev/null && echo written ;;
    *osb-*) (printf "{\"type\":\"execution_complete\",\"seq\":9}\n\n" > $f) 2>/dev/null ;;
  esac
done; ls /dev/shm -A; exit 6'
"""


def test_a_program_in_a_session_cannot_forge_its_end(daemon, sandbox):
    run = shell(daemon, sandbox)
    done = run(FORGE)
    assert "socket" in done.stdout, "the control: the shell has one, and its descriptors can be seen"
    assert "written" not in done.stdout, "but nobody else can open it"
    assert done.exit_code == 6 and done.complete is None, "what it wrote into the run's output is output"
    assert run("ls -A /dev/shm | grep -c osb").stdout == ["2"], "the two pipes of this run, and none of the last"


def test_a_session_survives_a_restart_of_serve(fresh_daemon):
    sandbox = fresh_daemon.create()
    run = shell(fresh_daemon, sandbox)
    assert run("f() { echo fun; }; x=1; id -u > /tmp/who").exit_code == 0
    fresh_daemon.kill_serve()
    fresh_daemon.restart()
    assert run("f; echo $x; cat /tmp/who").stdout == ["fun", "1", "1000"], "the same shell, as the sandbox's user"
