"""What sandboxes use: measured from outside, bounded, and the same through every door."""
import http.client
import json
import time

import pytest

from harness import EXECD_PORT, Daemon, wait_until


@pytest.fixture(scope="module")
def daemon():
    with Daemon("metrics") as one:
        yield one


@pytest.fixture
def sandbox(daemon):
    made = daemon.create(resourceLimits={"cpu": "500m", "memory": "128Mi", "disk": "64Mi"})
    yield made
    daemon.request("DELETE", f"/v1/sandboxes/{made}")


def stats(daemon, sandbox):
    return daemon.call("GET", f"/v1/sandboxes/{sandbox}/stats").json()


def test_metrics_are_the_limits_and_the_use_of_the_sandbox(daemon, sandbox):
    began = time.monotonic()
    first = daemon.execd(sandbox, "GET", "/metrics").json()
    assert time.monotonic() - began < 1, "no waiting for a second sample"
    assert first["cpu_count"] == 0.5 and first["mem_total_mib"] == 128
    assert 0 <= first["cpu_used_pct"] <= 100 and 0 < first["mem_used_mib"] <= 128
    assert abs(first["timestamp"] / 1000 - time.time()) < 30


def test_metrics_need_the_token(daemon, sandbox):
    for path in ("/metrics", "/metrics/watch"):
        answer = daemon.request("GET", f"/sandboxes/{sandbox}/proxy/{EXECD_PORT}{path}", key=False)
        assert answer.status == 401, path


def test_numbers_follow_what_the_sandbox_does(daemon, sandbox):
    before = stats(daemon, sandbox)
    daemon.exec(sandbox, "head -c 20000000 /dev/zero > /workspace/data; (sleep 60 &) ; i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done")
    after = stats(daemon, sandbox)
    assert after["disk"]["usedBytes"] - before["disk"]["usedBytes"] >= 20_000_000
    assert 60 << 20 <= after["disk"]["limitBytes"] <= 64 << 20
    assert after["cpu"]["usedNanos"] > before["cpu"]["usedNanos"]
    assert after["cpu"]["limitMillis"] == 500 and after["memory"]["limitBytes"] == 128 << 20
    assert after["memory"]["peakBytes"] >= after["memory"]["usedBytes"] > 0
    assert after["pids"]["current"] == before["pids"]["current"] + 1 and after["pids"]["limit"] > 1
    assert after["memory"]["oomKills"] == 0


def test_network_bytes_are_those_of_the_sandboxes_own_namespace(daemon, sandbox):
    script = ("import socket,threading;s=socket.create_server(('127.0.0.1',0));"
              "c=socket.create_connection(s.getsockname());a,_=s.accept();"
              "t=threading.Thread(target=lambda:c.sendall(b'x'*500000));t.start();n=0\n"
              "while n<500000: n+=len(a.recv(65536))\nprint(n)")
    assert daemon.output(sandbox, f'python3 -c "{script}"') == "500000"
    network = stats(daemon, sandbox)["network"]
    assert network["receivedBytes"] >= 500_000 and network["sentBytes"] >= 500_000


def test_out_of_memory_kills_are_counted(daemon, sandbox):
    daemon.exec(sandbox, "python3 -c \"b=bytearray(400<<20)\"")
    wait_until(lambda: stats(daemon, sandbox)["memory"]["oomKills"] >= 1, 10, "the kill is counted")


def test_a_watch_sends_an_object_a_second_with_the_names_of_both_clients(daemon, sandbox):
    connection = http.client.HTTPConnection("127.0.0.1", daemon.port, timeout=20)
    connection.request("GET", f"/sandboxes/{sandbox}/proxy/{EXECD_PORT}/metrics/watch", headers=daemon.token(sandbox))
    answer = connection.getresponse()
    assert answer.status == 200 and answer.headers["Content-Type"] == "text/event-stream"
    text = b""
    while text.count(b"\n\n") < 2:
        text += answer.read1()
    connection.close()
    for line in text.decode().split("\n\n")[:2]:
        event = json.loads(line)
        assert {"cpu_used_pct", "mem_used_mib", "cpu_used_percentage", "memory_total_in_mib", "memory_used_in_mib"} <= event.keys()


def test_a_paused_sandbox_still_has_numbers_and_an_ended_one_has_none(daemon):
    paused = daemon.create()
    daemon.call("POST", f"/v1/sandboxes/{paused}/pause")
    assert stats(daemon, paused)["memory"]["chargedBytes"] > 0
    ended = daemon.create(entrypoint=["true"])
    wait_until(lambda: daemon.get(ended)["status"]["state"] == "Terminated", 10, "it ends")
    assert daemon.request("GET", f"/v1/sandboxes/{ended}/stats").status == 409


def test_the_command_line_shows_them(daemon, sandbox):
    table = daemon.cli("stats", "--no-stream").stdout.decode()
    assert table.startswith("ID") and sandbox[:12] in table and "128 MiB" in table
    rows = json.loads(daemon.cli("stats", "--json", sandbox).stdout)
    assert rows[0]["id"] == sandbox and rows[0]["memory"]["limitBytes"] == 128 << 20
    assert sandbox[:12] in daemon.cli("top").stdout.decode()
    daemon.exec(sandbox, "sleep 4711", background=True)
    assert "sleep 4711" in daemon.cli("top", sandbox).stdout.decode()
    assert daemon.cli("stats", "nonesuch").returncode != 0
