"""When much is asked: 429 for the caller's own bound, 503 for everybody's, with a time, a code and a fix; nothing is left of what was refused."""
import hashlib
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync
from opensandbox.exceptions import SandboxApiException

from harness import Daemon, wait_until

BODY = {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "64Mi"}, "entrypoint": ["tail", "-f", "/dev/null"]}
KEYS = {"noisy": "noisy-key-0123456789", "calm": "calm-key-0123456789"}
LIMITS = """
sessions: {max_concurrent: 6}
limits:
  max_sandboxes_per_key: 4
  max_creates_in_flight: 2
  max_waiting_per_key: 8
  max_requests_per_key: 20
auth:
  keys:
""" + "".join(f"    - {{name: {name}, sha256: {hashlib.sha256(key.encode()).hexdigest()}}}\n" for name, key in KEYS.items())


@pytest.fixture(scope="module")
def daemon():
    with Daemon("admit", LIMITS) as one:
        yield one


@pytest.fixture(autouse=True)
def nothing_left(daemon):
    yield
    daemon.delete_all()


def create(daemon, who=None):
    return daemon.request("POST", "/v1/sandboxes", BODY, key=KEYS[who] if who else True)


def assert_refused(answer, status, code):
    assert (answer.status, answer.json()["code"]) == (status, code), answer.body
    assert int(answer.headers["Retry-After"]) >= 1
    assert answer.json()["message"] and answer.json()["hint"]


def test_a_key_at_its_bound_is_told_429_and_goes_on_after_a_delete(daemon):
    made = [create(daemon, "noisy").json()["id"] for _ in range(4)]
    assert_refused(create(daemon, "noisy"), 429, "SANDBOX::KEY_LIMIT_REACHED")
    assert create(daemon, "calm").status == 202
    daemon.delete(made[0])
    assert create(daemon, "noisy").status == 202


def test_a_full_server_tells_everybody_503_and_goes_on_after_a_delete(daemon):
    made = [create(daemon, who).json()["id"] for who in ("noisy", "noisy", "noisy", "calm", "calm", None)]
    for who in ("noisy", "calm", None):
        assert_refused(create(daemon, who), 503, "SANDBOX::LIMIT_REACHED")
    daemon.delete(made[0])
    assert create(daemon, "calm").status == 202


def test_what_is_refused_leaves_nothing(daemon):
    for _ in range(4):
        create(daemon, "noisy")
    before = daemon.list()
    for _ in range(20):
        assert create(daemon, "noisy").status == 429
    assert daemon.list() == before
    told = [line for line in (daemon.state / "audit" / "audit.jsonl").read_text().splitlines() if "KEY_LIMIT_REACHED" in line]
    assert 1 <= len(told) < 20, "a flood is told now and then, not line by line"


def test_a_key_that_floods_delays_another_by_little(daemon):
    """Sixteen clients of one key create and delete without a pause; a single create of another key comes through at once each time."""
    stop = time.monotonic() + 3
    seen = {"noisy": 0, "refused": 0}

    def flood(_):
        while time.monotonic() < stop:
            answer = create(daemon, "noisy")
            if answer.status == 202:
                seen["noisy"] += 1
                daemon.delete(answer.json()["id"])
            else:
                assert answer.status == 429, answer.body
                seen["refused"] += 1

    def calm():
        done = 0
        while time.monotonic() < stop:
            answer = create(daemon, "calm")
            assert answer.status == 202, answer.body
            daemon.delete(answer.json()["id"])
            done += 1
        return done

    with ThreadPoolExecutor(17) as pool:
        floods = [pool.submit(flood, i) for i in range(16)]
        calm_done = calm()
        for one in floods:
            one.result()
    assert calm_done > 0 and seen["noisy"] > 0
    assert seen["refused"] > 0, "the flood met its bounds"


def test_one_key_cannot_hold_every_request(daemon):
    """Each of the key's places is held by a command that goes on; the next request is refused, other keys are served."""
    sandbox = create(daemon, "noisy").json()["id"]
    token = daemon.token(sandbox)
    with ThreadPoolExecutor(20) as pool:
        held = [pool.submit(daemon.exec, sandbox, "while [ ! -e /tmp/go ]; do sleep 0.5; done", token=token) for _ in range(20)]
        wait_until(lambda: daemon.request("GET", "/v1/sandboxes", key=KEYS["noisy"]).status == 429, 20, "the key's places are taken")
        refused = daemon.request("GET", "/v1/sandboxes", key=KEYS["noisy"])
        assert refused.json()["code"] == "GENERAL::TOO_MANY_REQUESTS" and int(refused.headers["Retry-After"]) >= 1
        assert daemon.request("GET", "/v1/sandboxes", key=KEYS["calm"]).status == 200
        assert daemon.cli("exec", sandbox, "--", "touch", "/tmp/go").returncode == 0, "the local door has places of its own"
        assert {one.result().exit_code for one in held} == {0}
    assert daemon.request("GET", "/v1/sandboxes", key=KEYS["noisy"]).status == 200


def test_the_published_sdk_raises_with_status_and_code(daemon):
    for _ in range(4):
        create(daemon, "noisy")
    config = ConnectionConfigSync(domain=f"127.0.0.1:{daemon.port}", api_key=KEYS["noisy"], request_timeout=timedelta(seconds=10))
    with pytest.raises(SandboxApiException) as raised:
        SandboxSync.create("host", connection_config=config, timeout=timedelta(minutes=5), resource={"cpu": "1", "memory": "64Mi"})
    assert raised.value.status_code == 429
    assert raised.value.error.code == "SANDBOX::KEY_LIMIT_REACHED"


def test_the_command_line_tells_why_and_what_helps(daemon):
    for who in ("noisy", "noisy", "noisy", "calm", "calm", None):
        create(daemon, who)
    refused = daemon.cli("create")
    assert refused.returncode != 0
    assert b"maximum of 6 sandboxes" in refused.stderr and b"hint:" in refused.stderr


def sockets_of(daemon):
    """One for every sandbox that the launcher has made or begun to make."""
    return list((daemon.run_dir / "sandboxes").glob("*.sock"))


def test_a_reserve_that_no_host_has_refuses_every_create_and_leaves_nothing():
    with Daemon("short", "limits: {memory_reserve_percent: 99}\n") as short:
        for _ in range(5):
            assert_refused(create(short), 503, "SANDBOX::HOST_MEMORY_LOW")
        assert short.list() == [] and sockets_of(short) == []
    with Daemon("short", "limits: {pids_reserve: 4194304}\n") as short:
        assert_refused(create(short), 503, "SANDBOX::HOST_PIDS_LOW")
    with Daemon("short", "limits: {memory_overcommit_percent: 1}\n") as short:
        assert short.create(resourceLimits={"cpu": "1", "memory": "16Mi"}) and len(sockets_of(short)) > 0, "and this is where one would be seen"
        answer = short.request("POST", "/v1/sandboxes", {**BODY, "resourceLimits": {"cpu": "1", "memory": "512Gi"}})
        assert_refused(answer, 503, "SANDBOX::HOST_MEMORY_PROMISED")
