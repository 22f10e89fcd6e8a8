"""Sandboxes made ahead of time: by demand and in named pools."""
import concurrent.futures
import os
import re
import signal
import time

import pytest

import harness
import registry as reg
from e2e import leak_oracle as oracle

SPARE = re.compile(r"([0-9a-z]{26}) range (\d+) [^\n]* spare 1")  # a line of the launcher's ledger


@pytest.fixture(scope="module")
def server():
    """A daemon for this file: others' creates would change the numbers."""
    with harness.Daemon("pools") as daemon:
        yield daemon


def spares(daemon):
    """{id: id range} of spares, as the launcher wrote them down."""
    text = (daemon.run_dir / "ledger").read_bytes().decode(errors="replace") if (daemon.run_dir / "ledger").exists() else ""
    return dict(SPARE.findall(text))


def stats(daemon):
    return daemon.call("GET", "/osb/v1/pools/stats").json()


def drain(daemon):
    daemon.call("POST", "/osb/v1/pools/drain")
    harness.wait_until(lambda: not spares(daemon), 10, "no spare is left")


def wait_available(daemon, at_least=1):
    harness.wait_until(lambda: stats(daemon)["available"] >= at_least, 10, lambda: f"{at_least} spares: {stats(daemon)}")


def warm(daemon, **spec):
    """A spare of that shape waits, and none of another."""
    drain(daemon)
    daemon.delete(daemon.create(**spec))
    wait_available(daemon)


def hit(daemon, **spec):
    """A sandbox that was claimed; the proof is in the numbers."""
    warm(daemon, **spec)
    before = stats(daemon)["hits"]
    sandbox = daemon.create(**spec)
    assert stats(daemon)["hits"] == before + 1
    return sandbox


def pool_body(name, least=2, most=None, memory="64Mi", **shape):
    most = max(least, 1) if most is None else most
    return {"name": name, "template": {"image": {"uri": "host"}, "resourceLimits": {"memory": memory}, **shape},
            "capacitySpec": {"bufferMin": least, "bufferMax": most, "poolMin": 0, "poolMax": 20}}


def wait_pool(daemon, name, available):
    def there():
        status = daemon.call("GET", f"/v1/pools/{name}").json()["status"]
        return status if status["available"] == available else None

    return harness.wait_until(there, 10, lambda: daemon.call("GET", f"/v1/pools/{name}").json())


def test_the_second_create_of_a_kind_is_served_from_what_was_made_after_the_first(server):
    drain(server)
    before = stats(server)
    first = server.create()
    wait_available(server)
    waiting = spares(server)
    second = server.create()
    after = stats(server)
    assert (after["hits"] - before["hits"], after["misses"] - before["misses"]) == (1, 1)
    assert second in waiting and first not in waiting, "the spare became the sandbox, under its own id"
    harness.wait_until(lambda: second not in spares(server), 10, "and is a spare no more")
    assert {item["id"] for item in server.list()} == {first, second}, "spares are nobody's sandboxes"
    assert server.request("GET", f"/v1/sandboxes/{next(iter(spares(server) or {'x': 0}))}").status == 404
    assert server.output(second, "echo $((6*7))") == "42"
    server.delete_all()


def test_a_claimed_sandbox_is_its_claimers_in_every_respect(server):
    spec = {"resourceLimits": {"cpu": "500m", "memory": "96Mi"}}
    sandbox = hit(server, **spec)
    server.delete(sandbox)
    wait_available(server)
    hits = stats(server)["hits"]
    sandbox = server.create(**spec, env={"WHOSE": "mine"}, timeout=60, metadata={"tag": "claimed"})
    assert stats(server)["hits"] == hits + 1
    seen = server.get(sandbox)
    assert seen["metadata"] == {"tag": "claimed"} and seen["expiresAt"]
    assert server.output(sandbox, "echo $WHOSE") == "mine"
    assert server.output(sandbox, "hostname") == f"sbx-{sandbox[:8]}"
    assert server.call("GET", f"/v1/sandboxes/{sandbox}/stats").json()["memory"]["limitBytes"] == 96 << 20
    assert server.request("POST", f"/sandboxes/{sandbox}/proxy/44772/command", {"command": "true"}, key=False).status in (401, 403)
    assert server.output(sandbox, "id -u; grep -E '^(CapEff|Seccomp|NoNewPrivs):' /proc/self/status | tr '\\t' ' '") == (
        "1000\nCapEff: 0000000000000000\nNoNewPrivs: 1\nSeccomp: 2")
    server.delete(sandbox)


def test_a_claimed_sandbox_ends_at_its_deadline(server):
    sandbox = hit(server)
    soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    server.call("POST", f"/v1/sandboxes/{sandbox}/renew-expiration", {"expiresAt": soon})
    harness.wait_until(lambda: server.request("GET", f"/v1/sandboxes/{sandbox}").status == 404, 15, "it expires")


def test_the_first_program_of_the_claimer_runs_and_a_wrong_one_is_its_error(server):
    warm(server)
    sandbox = server.create(entrypoint=["sh", "-c", "echo $WHOSE > /tmp/first; exec sleep 100"], env={"WHOSE": "claimer"})
    assert harness.wait_until(lambda: server.exec(sandbox, "cat /tmp/first").stdout, 10, "the program ran") == ["claimer"]
    wait_available(server)
    refused = server.request("POST", "/v1/sandboxes", {"image": {"uri": "host"}, "resourceLimits": {"cpu": "1", "memory": "256Mi"},
                                                      "entrypoint": ["/no/such/program"]})
    assert refused.status == 400 and refused.json()["code"] == "DOCKER::INVALID_ENTRYPOINT"
    server.delete(sandbox)


def test_nothing_of_the_pool_or_of_one_claimer_is_seen_by_another(server):
    """XS-07: environment, files, history, processes, machine-id, hostname and random numbers."""
    look = ("env | grep -c FIRST; ls -A /tmp /workspace /home/user /root 2>/dev/null | grep -c secret; "
            "cat /etc/machine-id; hostname; cat /proc/sys/kernel/random/uuid; "
            "stat -c %Y /workspace; find / -xdev -newer /etc/machine-id -type f 2>/dev/null | grep -v ^/proc | sort | tr '\\n' ' '")
    warm(server)
    first = server.create(env={"FIRST": "secret"})
    server.output(first, "echo secret > /tmp/secret; echo secret > /workspace/secret; echo secret > /home/user/.bash_history")
    one = server.output(first, look).split("\n")
    server.delete(first)
    wait_available(server)
    second = server.create()
    assert server.call("GET", f"/v1/sandboxes/{second}/stats").json()["pids"]["current"] == 1, "its agent and nothing else"
    two = server.output(second, look).split("\n")
    drain(server)
    cold = server.create(metadata={"cold": "yes"}, platform={"os": "linux", "arch": os.uname().machine.replace("x86_64", "amd64").replace("aarch64", "arm64")})
    three = server.output(cold, look).split("\n")
    assert two[0] == "0" and two[1] == "0", two
    assert len({run[2] for run in (one, two, three)}) == 3, "machine-ids differ"
    assert len({run[3] for run in (one, two, three)}) == 3, "hostnames differ"
    assert len({run[4] for run in (one, two, three)}) == 3
    assert two[6:] == three[6:], "the same files as in one that was made on the spot"
    server.delete_all()


def test_a_killed_spare_is_replaced_and_never_handed_out(server):
    drain(server)
    warm(server)
    victim, number = next(iter(spares(server).items()))
    lost = stats(server)["lost"]
    uid = str(oracle.FIRST_ID + int(number) * oracle.RANGE_STRIDE + 65533)
    pids = [entry for entry in filter(str.isdigit, os.listdir("/proc")) if (oracle.status_of(entry) or {}).get("Uid", "").split()[:1] == [uid]]
    assert pids, "the spare's pid 1 is there"
    os.kill(int(pids[0]), signal.SIGKILL)
    harness.wait_until(lambda: stats(server)["lost"] == lost + 1 and victim not in spares(server), 10, "its end is noticed")
    wait_available(server)
    made = [server.create() for _ in range(3)]
    assert victim not in made
    server.delete_all()


@pytest.mark.parametrize("who", ["serve", "launcher"])
def test_kill_9_leaves_no_spare(who):
    with harness.Daemon("spares") as daemon:
        kept = daemon.create()
        wait_available(daemon)
        old = spares(daemon)
        assert old
        if who == "serve":
            daemon.kill_serve()
            harness.wait_until(lambda: not spares(daemon), 10, "spares go with whoever could claim them")
            daemon.restart()
        else:
            os.kill(daemon.launcher(), signal.SIGKILL)
            harness.wait_until(lambda: daemon.launcher() and not set(old) & set(spares(daemon)), 20, "the spares of the old launcher are gone")
        assert daemon.output(kept, "echo alive") == "alive", "a claimed one lives on"
        assert [item["id"] for item in daemon.list()] == [kept]
        warm(daemon)
        assert not set(old) & set(spares(daemon))
        daemon.delete_all()
        daemon.kill_serve(signal.SIGTERM)
        blocks = oracle.range_blocks(daemon.instance)
        oracle.assert_nothing_of(daemon, blocks)


def test_an_image_with_spares_can_be_removed(server):
    with reg.FakeRegistry() as registry:
        name = registry.put("pooled:1", reg.Image([reg.base_layer()]))
        server.call("POST", "/v1/images/pull", {"name": name}, timeout=120)
    warm(server, image={"uri": name})
    assert spares(server)
    server.call("DELETE", f"/v1/images/{name.replace('/', '%2F')}")
    assert not [shape for shape in stats(server)["shapes"] if shape["image"] == name]


def test_many_creates_at_once_find_an_empty_pool_and_all_work(server):
    drain(server)
    spec = {"resourceLimits": {"memory": "48Mi"}}
    with concurrent.futures.ThreadPoolExecutor(16) as many:
        made = list(many.map(lambda _: server.create(**spec), range(48)))
        assert len(set(made)) == 48
        assert set(many.map(lambda sandbox: server.output(sandbox, "hostname"), made)) == {f"sbx-{sandbox[:8]}" for sandbox in made}
        list(many.map(server.delete, made))


def test_a_reload_drains_and_the_next_miss_begins_anew(server):
    warm(server)
    old = set(spares(server))
    server.process.send_signal(signal.SIGHUP)
    harness.wait_until(lambda: not old & set(spares(server)), 10, "the old ones go")
    warm(server)


def test_switched_off_nothing_is_made_ahead_of_time():
    with harness.Daemon("nopool", "pool:\n  automatic: false\n") as daemon:
        for _ in range(3):
            daemon.delete(daemon.create())
        assert not spares(daemon) and stats(daemon)["automatic"] is False and stats(daemon)["made"] == 0


def test_doctor_knows_spares(server):
    warm(server)
    assert spares(server)
    leaks = server.cli("doctor", "--leaks")
    for spare in spares(server):
        assert spare.encode() not in leaks.stdout


# ---- named pools


def test_a_named_pool_from_its_making_to_its_end(server):
    made = server.request("POST", "/v1/pools", pool_body("agents", 2, env={"POOL": "yes"}))
    assert made.status == 201, made.body
    assert made.json()["capacitySpec"] == {"bufferMin": 2, "bufferMax": 2, "poolMin": 0, "poolMax": 20}
    again = server.request("POST", "/v1/pools", pool_body("agents"))
    assert again.status == 409 and again.json()["code"] == "KUBERNETES::POOL_ALREADY_EXISTS"
    status = wait_pool(server, "agents", 2)
    assert status == {"total": 2, "allocated": 0, "available": 2, "revision": status["revision"]} and status["revision"]
    box = server.call("POST", "/v1/sandboxes", {"extensions": {"poolRef": "agents"}, "timeout": 600}, expect=(202,)).json()["id"]
    assert server.output(box, "echo $POOL; hostname") == f"yes\nsbx-{box[:8]}"
    assert server.call("GET", f"/v1/sandboxes/{box}/stats").json()["memory"]["limitBytes"] == 64 << 20
    assert wait_pool(server, "agents", 2)["allocated"] == 1
    resized = server.call("PUT", "/v1/pools/agents", {"capacitySpec": {"bufferMin": 4, "bufferMax": 4, "poolMin": 0, "poolMax": 20}})
    assert resized.json()["capacitySpec"]["bufferMin"] == 4
    wait_pool(server, "agents", 4)
    assert "agents" in [item["name"] for item in server.call("GET", "/v1/pools").json()["items"]]
    assert server.request("DELETE", "/v1/pools/agents").status == 204
    for method, body in (("GET", None), ("PUT", {"capacitySpec": pool_body("x")["capacitySpec"]}), ("DELETE", None)):
        gone = server.request(method, "/v1/pools/agents", body)
        assert gone.status == 404 and gone.json()["code"] == "KUBERNETES::POOL_NOT_FOUND", (method, gone.body)
    unknown = server.request("POST", "/v1/sandboxes", {"extensions": {"poolRef": "agents"}})
    assert unknown.status == 404 and unknown.json()["code"] == "KUBERNETES::POOL_NOT_FOUND"
    assert server.output(box, "echo lives on") == "lives on"
    server.delete(box)


def test_a_request_that_contradicts_its_pool_is_refused_by_name(server):
    server.call("POST", "/v1/pools", pool_body("strict", 1), expect=(201,))
    wrong = {"resourceLimits.memory": {"resourceLimits": {"memory": "128Mi"}}, "image.uri": {"image": {"uri": "debian:99"}, "entrypoint": ["x"]},
             "extensions.opensandbox.mode": {"extensions": {"poolRef": "strict", "opensandbox.mode": "root"}}}
    for field, body in wrong.items():
        refused = server.request("POST", "/v1/sandboxes", {"extensions": {"poolRef": "strict"}, **body})
        assert refused.status == 400 and refused.json()["field"] == field, refused.body
    server.call("DELETE", "/v1/pools/strict")


def test_a_pool_of_a_pod_template_and_one_of_nonsense(server):
    template = {"spec": {"containers": [{"name": "c", "image": "host", "resources": {"limits": {"memory": "64Mi"}}}]}}
    body = {**pool_body("pod", 1), "template": template}
    server.call("POST", "/v1/pools", body, expect=(201,))
    wait_pool(server, "pod", 1)
    server.call("DELETE", "/v1/pools/pod")
    template["spec"]["hostNetwork"] = True
    refused = server.request("POST", "/v1/pools", body)
    assert refused.status == 400 and refused.json()["field"] == "template.spec.hostNetwork"


def test_named_pools_outlive_serve_and_those_of_the_file_cannot_be_changed():
    config = "pools:\n  - {name: filed, image: host, memory: 64Mi, buffer_min: 1}\n"
    with harness.Daemon("named", config) as daemon:
        wait_pool(daemon, "filed", 1)
        assert daemon.request("DELETE", "/v1/pools/filed").status == 403
        daemon.call("POST", "/v1/pools", pool_body("stored", 1), expect=(201,))
        wait_pool(daemon, "stored", 1)
        daemon.kill_serve()
        daemon.restart()
        wait_pool(daemon, "stored", 1)
        wait_pool(daemon, "filed", 1)
        box = daemon.call("POST", "/v1/sandboxes", {"extensions": {"poolRef": "stored"}, "timeout": 600}, expect=(202,)).json()["id"]
        daemon.kill_serve()
        daemon.restart()
        assert daemon.call("GET", "/v1/pools/stored").json()["status"]["allocated"] == 1, "claimed ones are counted again"
        assert daemon.output(box, "echo alive") == "alive"


def test_the_command_line_makes_scales_drains_and_removes(server):
    def cli(*words):
        done = server.cli("pool", *words)
        assert done.returncode == 0, done.stderr
        return done.stdout.decode()

    cli("create", "--image", "host", "--memory", "64Mi", "--buffer-min", "1", "byhand")
    wait_pool(server, "byhand", 1)
    assert re.search(r"byhand +host +1 +0 +1\.\.1", cli("ls")), cli("ls")
    cli("scale", "--buffer-min", "3", "byhand")
    wait_pool(server, "byhand", 3)
    assert cli("drain", "byhand") == "3 ended\n"
    wait_pool(server, "byhand", 3)
    assert "byhand" in cli("stats")
    cli("rm", "byhand")
    assert "byhand" not in cli("ls", "-q")
    assert b"KUBERNETES" not in server.cli("pool", "rm", "byhand").stdout
    assert server.cli("pool", "rm", "byhand").returncode != 0


def test_the_numbers_for_a_collector(server):
    text = server.call("GET", "/osb/v1/pools/stats", headers={"Accept": "text/plain"}).body.decode()
    assert re.search(r"^opensandbox_pool_hits_total \d+$", text, re.M) and "# TYPE opensandbox_pool_misses_total counter" in text
    assert server.request("GET", "/osb/v1/pools/stats", key=False).status == 401


def test_the_published_sdk_takes_from_a_pool(server):
    from datetime import timedelta

    sdk = pytest.importorskip("opensandbox")
    from opensandbox.config import ConnectionConfigSync

    server.call("POST", "/v1/pools", pool_body("sdk", 1, memory="96Mi"), expect=(201,))
    wait_pool(server, "sdk", 1)
    hits = stats(server)["hits"]
    config = ConnectionConfigSync(domain=f"127.0.0.1:{server.port}", api_key=server.key, protocol="http", request_timeout=timedelta(seconds=30))
    box = sdk.SandboxSync.create("host", connection_config=config, timeout=timedelta(minutes=5), resource={"cpu": "1", "memory": "96Mi"},
                                 extensions={"poolRef": "sdk"}, env={"WHO": "sdk"})
    try:
        assert stats(server)["hits"] == hits + 1
        assert "".join(line.text for line in box.commands.run("echo $WHO").logs.stdout).strip() == "sdk"
    finally:
        box.kill()
        box.close()
    server.call("DELETE", "/v1/pools/sdk")
