"""What bad input gets: an error with a code; nothing half-made; a daemon that lives and serves others meanwhile."""
import json
import socket
import time

import pytest

from e2e import leak_oracle as oracle

GOOD = {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "128Mi"}, "entrypoint": ["tail", "-f", "/dev/null"]}


def limits(**values):
    return {**GOOD, "resourceLimits": {**GOOD["resourceLimits"], **values}}


REFUSED = {
    "not JSON": (b"{", {400, 422}),
    "empty body": (b"", {400, 422}),
    "not an object": (b"[]", {400, 422}),
    "text": (b'"x"', {400, 422}),
    "trailing text": (json.dumps(GOOD).encode() + b"x", {400, 422}),
    "not UTF-8": (b'{"image": {"uri": "\xff\xfe"}}', {400, 422}),
    "too deep": (b'{"metadata":' * 5000 + b"1" + b"}" * 5000, {400, 413, 422}),
    "no image": ({key: value for key, value in GOOD.items() if key != "image"}, {400, 422}),
    "unknown image": ({**GOOD, "image": {"uri": "no-such-image:9"}}, {404}),
    "image that climbs": ({**GOOD, "image": {"uri": "../../../etc"}}, {400, 404, 422}),
    "image is a number": ({**GOOD, "image": 7}, {400, 422}),
    "no limits": ({key: value for key, value in GOOD.items() if key != "resourceLimits"}, {400, 422}),
    "memory zero": (limits(memory="0"), {400}),
    "memory negative": (limits(memory="-1Gi"), {400}),
    "memory past 64 bits": (limits(memory="99999999999999999999Gi"), {400}),
    "memory not a number": (limits(memory="NaN"), {400}),
    "memory infinite": (limits(memory="inf"), {400}),
    "memory tiny": (limits(memory="1"), {400}),
    "memory is a number": (limits(memory=5), {400, 422}),
    "cpu zero": (limits(cpu="0"), {400}),
    "cpu negative": (limits(cpu="-1"), {400}),
    "cpu absurd": (limits(cpu="1e400"), {400}),
    "cpu not a number": (limits(cpu="nan"), {400}),
    "pids zero": (limits(pids="0"), {400}),
    "pids absurd": (limits(pids="4000000000"), {400}),
    "disk zero": (limits(disk="0"), {400}),
    "disk past 64 bits": (limits(disk="18446744073709551616"), {400}),
    "timeout zero": ({**GOOD, "timeout": 0}, {400, 422}),
    "timeout short": ({**GOOD, "timeout": 59}, {400, 422}),
    "timeout negative": ({**GOOD, "timeout": -1}, {400, 422}),
    "timeout past 63 bits": (json.dumps(GOOD).replace("600", "9223372036854775808").encode(), {400, 422}),
    "timeout a fraction": ({**GOOD, "timeout": 60.5}, {400, 422}),
    "timeout text": ({**GOOD, "timeout": "soon"}, {400, 422}),
    "entrypoint empty": ({**GOOD, "entrypoint": []}, {400, 422}),
    "entrypoint not a list": ({**GOOD, "entrypoint": "sh"}, {400, 422}),
    "entrypoint with a zero byte": ({**GOOD, "entrypoint": ["a\0b"]}, {400, 422}),
    "environment with a zero byte": ({**GOOD, "env": {"A": "x\0y"}}, {400, 422}),
    "environment name with =": ({**GOOD, "env": {"A=B": "x"}}, {400, 422}),
    "metadata not text": ({**GOOD, "metadata": {"a": 1}}, {400, 422}),
    "reserved metadata": ({**GOOD, "metadata": {"opensandbox.io/x": "1"}}, {400}),
    "unknown mode": ({**GOOD, "extensions": {"opensandbox.mode": "god"}}, {400, 422}),
    "unknown profile": ({**GOOD, "extensions": {"opensandbox.syscalls": "all"}}, {400, 422}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_create_is_refused_and_makes_nothing(daemon, name):
    body, statuses = REFUSED[name]
    before = oracle.take(daemon)
    answer = daemon.request("POST", "/v1/sandboxes", body, headers={"Content-Type": "application/json"})
    assert answer.status in statuses, (answer.status, answer.body[:300])
    told = answer.json()
    assert told["code"] and told["message"], "a stable code and a sentence"
    assert answer.headers["X-Request-ID"]
    oracle.assert_gone(before, daemon)


def test_the_good_create_is_accepted(daemon):
    """The control of every case above."""
    sandbox = daemon.call("POST", "/v1/sandboxes", GOOD, expect=(202,)).json()["id"]
    daemon.delete(sandbox)


def test_an_entrypoint_that_does_not_exist_leaves_nothing(daemon):
    before = oracle.take(daemon)
    answer = daemon.request("POST", "/v1/sandboxes", {**GOOD, "entrypoint": ["/no/such/program"]})
    assert 400 <= answer.status < 600 and answer.json()["code"], answer.body
    oracle.assert_gone(before, daemon)


@pytest.mark.parametrize("key, code", [(False, "MISSING_API_KEY"), ("wrong", "INVALID_API_KEY"), ("", "MISSING_API_KEY"), ("x" * 4096, "INVALID_API_KEY")])
def test_a_wrong_key_is_refused(daemon, key, code):
    answer = daemon.request("POST", "/v1/sandboxes", GOOD, key=key)
    assert answer.status == 401 and answer.json()["code"] == code
    assert daemon.request("GET", "/v1/sandboxes").status == 200, "control"


IDS = ["zzzzzzzzzzzzzzzzzzzzzzzzzz", "x", "..", "%2e%2e", "..%2f..%2fetc%2fpasswd", "%2fetc%2fpasswd", "a%00b", "%ff%fe", "x" * 5000, "'%20or%201=1", "%0d%0aX-Y:%20z"]


@pytest.mark.parametrize("name", IDS)
def test_unknown_and_climbing_ids_are_refused(daemon, name):
    for method, rest in (("GET", ""), ("DELETE", ""), ("POST", "/pause"), ("POST", "/resume"), ("GET", "/endpoints/44772"), ("GET", "/proxy/44772/ping"),
                         ("PATCH", "/metadata")):
        answer = daemon.request(method, f"/v1/sandboxes/{name}{rest}", b"{}" if method == "PATCH" else None)
        assert 400 <= answer.status < 500, (method, rest, answer.status)
        assert answer.body, "never an empty error"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "99999999999999999999"])
def test_impossible_ports_are_refused(daemon, sandbox, port):
    assert daemon.request("GET", f"/v1/sandboxes/{sandbox}/endpoints/{port}").status in (400, 404, 422)
    assert daemon.request("GET", f"/v1/sandboxes/{sandbox}/endpoints/8080").status == 200, "control"


def test_the_proxy_wants_its_token(daemon, sandbox):
    path = f"/sandboxes/{sandbox}/proxy/44772/ping"
    assert daemon.request("GET", path, key=False).status == 401
    assert daemon.request("GET", path, key=False, headers={"X-EXECD-ACCESS-TOKEN": "0" * 64}).status == 401
    other = daemon.create()
    assert daemon.request("GET", path, key=False, headers=daemon.token(other)).status == 401, "another sandbox's token"
    assert daemon.request("GET", path, key=False, headers=daemon.token(sandbox)).status == 200, "control"
    daemon.delete(other)


def resident_mib(pid):
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmRSS")) // 1024


def talk(daemon, data, seconds=20):
    """Sends raw bytes; returns what came back until the server closed or fell silent."""
    got = b""
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=seconds) as stream:
        try:
            stream.sendall(data)
            while chunk := stream.recv(65536):
                got += chunk
                if b"\r\n\r\n" in got and b"100 Continue" not in got:
                    break
        except OSError:
            pass
    return got


def head(daemon, *lines):
    return "\r\n".join(["POST /v1/sandboxes HTTP/1.1", f"Host: 127.0.0.1:{daemon.port}", f"OPEN-SANDBOX-API-KEY: {daemon.key}",
                        "Content-Type: application/json", *lines, "", ""]).encode()


def test_a_two_gibibyte_body_is_refused_before_it_is_read(daemon):
    before = resident_mib(daemon.process.pid)
    started = time.monotonic()
    got = talk(daemon, head(daemon, f"Content-Length: {2 << 30}") + b" " * (1 << 20))
    assert got.startswith(b"HTTP/1.1 413"), got[:200]
    assert time.monotonic() - started < 10
    assert resident_mib(daemon.process.pid) - before < 16
    assert daemon.request("GET", "/health").status == 200


def test_an_endless_chunked_body_is_cut(daemon):
    before = resident_mib(daemon.process.pid)
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    got = talk(daemon, head(daemon, "Transfer-Encoding: chunked") + chunk * 64)
    assert got == b"" or got.startswith(b"HTTP/1.1 413"), got[:200]
    assert resident_mib(daemon.process.pid) - before < 16
    assert daemon.request("GET", "/health").status == 200


FRAMING = {
    "two lengths": ["Content-Length: 2", "Content-Length: 3"],
    "length list": ["Content-Length: 2, 2"],
    "length and chunked": ["Content-Length: 2", "Transfer-Encoding: chunked"],
    "chunked, identity": ["Transfer-Encoding: chunked, identity"],
    "identity": ["Transfer-Encoding: identity"],
    "negative length": ["Content-Length: -1"],
    "hex length": ["Content-Length: 0x10"],
    "signed length": ["Content-Length: +2"],
    "second host": ["Host: elsewhere", "Content-Length: 2"],
    "folded line": ["X-A: a\r\n b", "Content-Length: 2"],
    "space before colon": ["X-A : a", "Content-Length: 2"],
    "zero byte": ["X-A: a\0b", "Content-Length: 2"],
}


@pytest.mark.parametrize("name", FRAMING)
def test_ambiguous_framing_is_refused_and_the_connection_closed(daemon, name):
    smuggled = b"{}GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as stream:
        stream.sendall(head(daemon, *FRAMING[name]) + smuggled)
        got = b""
        while chunk := stream.recv(65536):
            got += chunk
    assert got.startswith(b"HTTP/1.1 4"), got[:200]
    assert got.count(b"HTTP/1.1 ") == 1, "nothing after it is answered"


def test_a_bomb_of_headers_is_refused(daemon):
    assert talk(daemon, head(daemon, *[f"X-{n}: y" for n in range(500)], "Content-Length: 0")).startswith(b"HTTP/1.1 4")
    assert talk(daemon, head(daemon, "X-Long: " + "y" * 100_000, "Content-Length: 0")).startswith(b"HTTP/1.1 4")
    assert daemon.request("GET", "/health", headers={f"X-{n}": "y" for n in range(50)}).status == 200, "control"


@pytest.mark.timeout(90)
def test_slow_clients_are_shut_out_and_hold_nobody_up(daemon):
    slow = [socket.create_connection(("127.0.0.1", daemon.port), timeout=60) for _ in range(40)]
    for stream in slow[:20]:
        stream.sendall(b"GET /health HT")  # a head that never ends
    for stream in slow[20:]:
        stream.sendall(head(daemon, "Content-Length: 1000") + b"{")  # a body that never comes
    started = time.monotonic()
    while slow:
        asked = time.monotonic()
        assert daemon.request("GET", "/health").status == 200
        assert time.monotonic() - asked < 1, "others are served meanwhile"
        slow = [stream for stream in slow if not closed(stream)]
        assert time.monotonic() - started < 60, f"{len(slow)} slow connections are still open"
        time.sleep(0.25)


def closed(stream):
    stream.settimeout(0.001)
    try:
        while chunk := stream.recv(4096):
            assert chunk.startswith((b"HTTP/1.1 4", b"\r", b"{")) or chunk
    except TimeoutError:
        return False
    except OSError:
        pass
    stream.close()
    return True


def test_a_client_that_hangs_up_in_the_middle_of_a_create_leaves_nothing(daemon):
    before = oracle.take(daemon)
    body = json.dumps(GOOD).encode()
    for _ in range(20):
        with socket.create_connection(("127.0.0.1", daemon.port), timeout=10) as stream:
            stream.sendall(head(daemon, f"Content-Length: {len(body)}") + body)
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")  # reset, not close
    time.sleep(0.5)  # those creates that were read are finished, and belong to their owner
    daemon.delete_all()
    oracle.assert_gone(before, daemon)


def test_bad_commands_are_refused(daemon, sandbox):
    cases = [b"{", b"[]", {"command": ""}, {}, {"command": 7}, {"command": "true", "cwd": "/no/such"}, {"command": "true", "timeout": -1},
             {"command": "true", "gid": 5}, {"command": "true", "uid": 2 ** 32}, {"command": "a\0b"}]
    for body in cases:
        answer = daemon.execd(sandbox, "POST", "/command", body)
        assert 400 <= answer.status < 500 and answer.json().get("code"), (body, answer.status, answer.body[:200])
    assert daemon.exec(sandbox, "true").exit_code == 0, "control"
