"""Images from registries: the honest one, the private one, the cut one, and the ones that lie."""
import concurrent.futures
import contextlib
import gzip
import json
import signal
import ssl
import subprocess
import threading

import pytest

import harness
import registry as reg

CREATE = {"timeout": 600, "resourceLimits": {"memory": "128Mi"}, "entrypoint": ["tail", "-f", "/dev/null"]}


@pytest.fixture(scope="module")
def server():
    """A daemon for this file; names without a registry stay local."""
    with harness.Daemon("pull") as daemon:
        yield daemon


@pytest.fixture
def fake():
    with reg.FakeRegistry() as registry:
        yield registry


@pytest.fixture(scope="module")
def base():
    return reg.base_layer()


def small(text="x", **options):
    return reg.Image([reg.tar_of({"hello": text.encode()})], **options)


def pull(daemon, name, auth=None, key=True):
    """(status, last object) of POST /v1/images/pull."""
    body = {"name": name, **({"auth": auth} if auth else {})}
    answer = daemon.request("POST", "/v1/images/pull", body, key=key)
    lines = [json.loads(line) for line in answer.body.decode().splitlines() if line.strip()]
    last = lines[-1]
    return answer.status, last.get("error", last if answer.status != 200 else last.get("image"))


def refused(daemon, name, code, words=(), auth=None):
    status, error = pull(daemon, name, auth)
    assert "code" in error, f"{name} was pulled: {error}"
    assert error["code"] == code, error
    for word in words if isinstance(words, tuple) else (words,):
        assert word in error["message"], error
    assert name not in names(daemon), "nothing is left of a refused image"
    return error


def pulled(daemon, name, auth=None):
    status, image = pull(daemon, name, auth)
    assert status == 200 and image.get("name") == name, (status, image, daemon.tail()[-800:])
    return image


def names(daemon):
    return {image["name"] for image in daemon.call("GET", "/v1/images").json()["items"]}


def layers(daemon):
    return {path.name for path in (daemon.state / "images/layers").iterdir()}


def create(daemon, image, auth=None):
    body = {**CREATE, "image": {"uri": image, **({"auth": auth} if auth else {})}}
    return daemon.call("POST", "/v1/sandboxes", body, expect=(202,)).json()


def wait_state(daemon, sandbox, state, seconds=20):
    def reached():
        status = daemon.get(sandbox)["status"]
        assert status["state"] in (state, "Pending"), status
        return status if status["state"] == state else None

    return harness.wait_until(reached, seconds, lambda: f"{state}: {daemon.get(sandbox)['status']}")


# ---- the real registry


def test_two_images_of_a_real_registry_share_their_layers_and_run(server, base):
    with reg.RealRegistry() as real:
        one = real.push("tools/one:1", reg.Image([base, reg.tar_of({"hello": b"from one"})]))
        two = real.push("tools/two:1", reg.Image([base, reg.tar_of({"hello": b"from two"})], docker=True))
        before = layers(server)
        first = server.cli("image", "pull", one)
        assert first.returncode == 0, first.stderr
        assert first.stdout.decode().strip() == one
        assert len(layers(server) - before) == 2
        second = server.cli("image", "pull", two)
        assert second.returncode == 0, second.stderr
        assert second.stderr.decode().count(": exists") == 1, "the shared layer is not fetched again"
        assert len(layers(server) - before) == 3, "it is stored once"
        sandbox = create(server, one)
        assert sandbox["status"]["state"] == "Running", "what is here needs no pull"
        assert server.output(sandbox["id"], "cat /hello") == "from one"
        digest = server.call("GET", f"/v1/images/{two.replace('/', '%2F').replace(':', '%3A')}").json()
        assert digest["digest"].startswith("sha256:") and len(digest["layers"]) == 2
        listed = json.loads(server.cli("image", "inspect", one).stdout)
        assert listed["inUse"] is True
        server.delete(sandbox["id"])


def test_a_private_registry_wants_the_right_password_and_nobody_else_learns_it(server):
    with reg.RealRegistry("robot", "s3cr3t-pa55") as real:
        name = real.push("team/app:1", small("private"))
        refused(server, name, "SANDBOX::IMAGE_PULL_UNAUTHORIZED", "wants credentials")
        refused(server, name, "SANDBOX::IMAGE_PULL_UNAUTHORIZED", "does not accept", {"username": "robot", "password": "wr0ng-pa55"})
        failed = create(server, name, {"username": "robot", "password": "wr0ng-pa55"})
        assert wait_state(server, failed["id"], "Failed")["reason"] == "image_pull_failed"
        done = server.cli("image", "pull", "--username", "robot", "--password-stdin", name, input=b"s3cr3t-pa55\n")
        assert done.returncode == 0, done.stderr
        assert name in names(server)
        server.delete(failed["id"])
    for path in [server.log, *server.state.rglob("*")]:
        if path.is_file() and "layers" not in path.parts:
            content = path.read_bytes()
            assert b"s3cr3t-pa55" not in content and b"wr0ng-pa55" not in content, path


def test_a_login_of_the_configuration_is_used(base):
    with reg.RealRegistry("robot", "from-file") as real:
        name = real.push("team/app:1", small())
        daemon = harness.Daemon("login")
        (daemon.directory / "password").write_text("from-file\n")
        (daemon.directory / "password").chmod(0o600)
        daemon.extra = f"  registries: [{{host: \"{real.host}\", username: robot, password_file: {daemon.directory}/password}}]\n"
        daemon.extra += f"  default_registry: \"{real.host}/team\"\n"
        with daemon:
            pulled(daemon, name)
            pulled(daemon, "app:1")
            refused(daemon, "absent:1", "SANDBOX::IMAGE_NOT_FOUND")


# ---- create


def test_create_answers_pending_and_runs_when_the_image_is_there(server, fake, base):
    name = fake.put("app:1", reg.Image([base, reg.tar_of({"hello": b"late"})]))
    gate = threading.Event()
    fake.acts["/v2/app/blobs/"] = lambda h: (gate.wait(20), h.serve())
    made = [create(server, name) for _ in range(3)]
    ids = [one["id"] for one in made]
    assert all(one["status"]["state"] == "Pending" and one["status"]["reason"] == "image_pulling" for one in made)
    assert server.token(ids[0]), "endpoints may be asked for while it is pending"
    ping = server.execd(ids[0], "GET", "/ping")
    assert ping.status == 503 and ping.json()["code"] == "SANDBOX::NOT_READY"
    assert server.request("POST", f"/v1/sandboxes/{ids[0]}/pause").status == 409
    gate.set()
    for sandbox in ids:
        wait_state(server, sandbox, "Running")
        assert server.execd(sandbox, "GET", "/ping").status == 200
    assert server.output(ids[1], "cat /hello") == "late"
    blobs = fake.asked("/v2/app/blobs/")
    assert len(blobs) == len(set(blobs)), f"three creates, one pull: {blobs}"
    for sandbox in ids:
        server.delete(sandbox)


def test_create_fails_later_when_the_pull_does_and_at_once_when_nothing_can_be_pulled(server, fake):
    sandbox = create(server, f"{fake.host}/absent:1")["id"]
    status = wait_state(server, sandbox, "Failed")
    assert status["reason"] == "image_pull_failed" and "has no absent:1" in status["message"]
    server.delete(sandbox)
    answer = server.request("POST", "/v1/sandboxes", {**CREATE, "image": {"uri": "no-such-image:1"}})
    assert answer.status == 404 and answer.json()["code"] == "SANDBOX::IMAGE_NOT_FOUND"


def test_deleting_a_pending_sandbox_cancels_its_pull(server, fake):
    name = fake.put("slow:1", small("slow"))
    cut, gate = threading.Event(), threading.Event()

    def trickle(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(fake.blobs[handler.path.rpartition("/")[2]])))
        handler.end_headers()
        gate.set()
        handler.connection.settimeout(20)
        with contextlib.suppress(ConnectionError):
            handler.rfile.read(1)  # ends when the other side hangs up
        cut.set()

    layer = next(key for key in fake.blobs if key != json.loads(fake.manifests["slow", "1"][1])["config"]["digest"])
    fake.acts[f"/v2/slow/blobs/{layer}"] = trickle
    sandbox = create(server, name)["id"]
    assert gate.wait(20)
    server.delete(sandbox)
    assert cut.wait(10), f"the connection to the registry is closed\n{server.tail()}"
    assert server.request("GET", f"/v1/sandboxes/{sandbox}").status == 404
    assert name not in names(server)
    fake.acts.clear()
    pulled(server, name)


def test_killed_in_the_middle_of_a_pull_serve_tells_the_truth_and_goes_on_where_it_stopped(fresh_daemon, fake):
    image = reg.Image([reg.tar_of({"big": bytes(range(256)) * 8192})], compress=False)
    name = fake.put("big:1", image)
    layer, blob = image.layers[0]["digest"], image.blobs[image.layers[0]["digest"]]
    half, gate = threading.Event(), threading.Event()

    def stall(handler):
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(blob)))
        handler.end_headers()
        handler.wfile.write(blob[: len(blob) // 2])
        half.set()
        gate.wait(20)

    fake.acts[f"/v2/big/blobs/{layer}"] = stall
    sandbox = create(fresh_daemon, name)["id"]
    assert half.wait(20)
    part = fresh_daemon.state / "images/downloads" / (layer.removeprefix("sha256:") + ".part")
    harness.wait_until(lambda: part.exists() and part.stat().st_size == len(blob) // 2, 10, "half of it is on disk")
    fresh_daemon.kill_serve(signal.SIGKILL)
    gate.set()
    fake.acts.clear()
    fresh_daemon.restart()
    status = fresh_daemon.get(sandbox)["status"]
    assert (status["state"], status["reason"]) == ("Failed", "image_pull_failed") and "restarted" in status["message"]
    assert part.exists(), "the part survives"
    assert not list((fresh_daemon.state / "images/tmp").iterdir()), "the work directory does not"
    fake.requests.clear()
    pulled(fresh_daemon, name)
    ranges = [headers.get("Range") for path, headers in fake.requests if layer in path]
    assert ranges == [f"bytes={len(blob) // 2}-"]
    assert not list((fresh_daemon.state / "images/downloads").iterdir()), "a blob that became a layer need not stay"


# ---- a registry in trouble


def test_a_blob_cut_in_the_middle_goes_on_where_it_was_cut(server, fake):
    image = reg.Image([reg.tar_of({"data": b"0123456789abcdef" * 40000})], compress=False)
    name = fake.put("cut:1", image)
    layer, blob = image.layers[0]["digest"], image.blobs[image.layers[0]["digest"]]

    def once(handler):
        del fake.acts[f"/v2/cut/blobs/{layer}"]
        handler.reply(200, blob[: len(blob) // 2], length=len(blob))

    fake.acts[f"/v2/cut/blobs/{layer}"] = once
    pulled(server, name)
    ranges = [headers.get("Range") for path, headers in fake.requests if layer in path]
    assert ranges == [None, f"bytes={len(blob) // 2}-"]


def test_a_registry_that_fails_once_is_asked_again(server, fake):
    name = fake.put("flaky:1", small("flaky"))

    def once(handler):
        del fake.acts["/v2/flaky/manifests/"]
        handler.reply(503)

    fake.acts["/v2/flaky/manifests/"] = once
    pulled(server, name)


# ---- registries that lie


def swap(fake, image, content):
    """The registry serves other bytes under the layer's digest."""
    fake.blobs[image.layers[0]["digest"]] = content


def test_content_that_is_not_what_the_digest_says_is_refused(server, fake):
    image = small("honest")
    name = fake.put("wrong:1", image)
    honest = image.blobs[image.layers[0]["digest"]]
    swap(fake, image, honest[:-1] + bytes([honest[-1] ^ 1]))
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "has digest")
    swap(fake, image, honest + b"more")
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "where the manifest says")
    swap(fake, image, honest[:-1])
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "where the manifest says")
    swap(fake, image, honest)
    pulled(server, name)


def test_a_manifest_asked_for_by_digest_is_that_manifest(server, fake):
    image, other = small("asked"), small("other")
    fake.put("pinned:1", image)
    name = f"{fake.host}/pinned@{reg.digest(image.manifest)}"
    fake.blobs.update(other.blobs)
    fake.manifests["pinned", reg.digest(image.manifest)] = (other.type, other.manifest)
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "has digest")
    fake.put("pinned:1", image)
    pulled(server, name)


def test_documents_that_are_too_large_too_many_or_of_the_wrong_kind_are_refused(server, fake):
    image = small("kind")
    name = fake.put("kind:1", image)
    good = fake.manifests["kind", "1"]
    fake.manifests["kind", "1"] = (reg.OCI_MANIFEST, image.manifest + b" " * (4 << 20))
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "at most")
    fake.manifests["kind", "1"] = ("application/vnd.docker.distribution.manifest.v1+prettyjws", b'{"schemaVersion":1}')
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "manifest of type")
    fake.manifests["kind", "1"] = (reg.OCI_INDEX, image.manifest)
    refused(server, name, "SANDBOX::IMAGE_PULL_FAILED", "another type")
    many = small("many")
    many.layers *= 200
    many.seal()
    refused(server, fake.put("kind:many", many), "SANDBOX::IMAGE_PULL_FAILED", "layers")
    fake.manifests["kind", "1"] = good
    pulled(server, name)


def test_the_variant_for_this_host_is_chosen_and_must_exist(server, fake):
    other, ours, newer = small("arm", arch="arm64"), small("ours"), small("newer")
    fake.put("multi:arm", other)
    fake.put("multi:ours", ours)
    fake.put("multi:newer", newer)
    foreign = fake.put_index("multi:foreign", [other.descriptor(os="linux", architecture="arm64"), other.descriptor(os="unknown", architecture="unknown")])
    refused(server, foreign, "SANDBOX::IMAGE_PULL_FAILED", ("no variant", "linux/arm64"))
    entries = [other.descriptor(os="linux", architecture="arm64"), newer.descriptor(os="linux", architecture="amd64", variant="v3"),
               ours.descriptor(os="linux", architecture="amd64")]
    for kind in (reg.OCI_INDEX, reg.DOCKER_LIST):
        assert pulled(server, fake.put_index("multi:1", entries, kind))["digest"] == reg.digest(ours.manifest)


def test_hostile_layers_are_refused_by_the_same_rules_as_imports(server, fake, tmp_path):
    before = layers(server)
    refused(server, fake.put("bad:up", reg.Image([reg.tar_of({"../../escape": b"x"})])), "SANDBOX::IMAGE_PULL_FAILED")
    through = reg.tar_of({"way/escape": b"x"}, [("way", str(tmp_path))])
    pulled(server, fake.put("bad:replaced", reg.Image([through])))  # the later link replaces the directory; nothing is followed
    assert not list(tmp_path.iterdir())
    bomb = gzip.compress(bytes(100 << 20), 6, mtime=0)
    image = small("bomb")
    image.layers[0] = image.add(bomb, image.layers[0]["mediaType"])
    image.seal()
    refused(server, fake.put("bad:bomb", image), "SANDBOX::IMAGE_PULL_FAILED")
    other = small("diff")
    other.layers[0] = other.add(gzip.compress(reg.tar_of({"hello": b"not what the configuration says"})), other.layers[0]["mediaType"])
    other.seal()
    refused(server, fake.put("bad:diff", other), "SANDBOX::IMAGE_PULL_FAILED", "has digest")
    assert len(layers(server) - before) == 1, "only the layer of the image that was accepted"


def test_redirects_are_followed_without_credentials_and_not_for_ever(server, fake):
    with reg.FakeRegistry() as elsewhere:
        image = small("redirected")
        name = fake.put("moved:1", image)
        elsewhere.blobs.update(image.blobs)
        layer = image.layers[0]["digest"]

        def challenge(handler):
            if "Authorization" not in handler.headers:
                return handler.reply(401, headers={"WWW-Authenticate": 'Basic realm="x"'})
            if layer in handler.path:
                return handler.reply(307, headers={"Location": f"http://{elsewhere.host}/blobs/{layer}"})
            return handler.serve()

        fake.acts["/v2/"] = challenge
        pulled(server, name, {"username": "me", "password": "sesame"})
        assert elsewhere.asked(layer), "the redirect was followed"
        assert not any("Authorization" in headers for _, headers in elsewhere.requests), "and the password stayed"
        assert any("Authorization" in headers for _, headers in fake.requests)
    loop = fake.put("loop:1", small("loop"))
    fake.acts = {"/v2/loop/manifests/": lambda h: h.reply(302, headers={"Location": h.path + "x"})}
    refused(server, loop, "SANDBOX::IMAGE_PULL_FAILED", "redirects more than")
    assert len(fake.asked("/v2/loop/")) <= 6
    fake.acts = {"/v2/loop/manifests/": lambda h: h.reply(302, headers={"Location": "http://registry.invalid/x"})}
    refused(server, loop, "SANDBOX::IMAGE_PULL_REFUSED", "plain http")
    fake.acts = {"/v2/loop/manifests/": lambda h: h.reply(302, headers={"Location": "https://169.254.169.254/latest"})}
    refused(server, loop, "SANDBOX::IMAGE_PULL_REFUSED", "not connecting")
    fake.acts = {"/v2/loop/manifests/": lambda h: h.reply(302, headers={"Location": "file:///etc/passwd"})}
    refused(server, loop, "SANDBOX::IMAGE_PULL_FAILED", "redirects to nowhere")
    fake.acts = {}
    pulled(server, loop)
    refused(server, "169.254.169.254/latest/meta-data:1", "SANDBOX::IMAGE_PULL_REFUSED", "not connecting")


def test_tokens_are_fetched_where_they_belong(server, fake):
    name = fake.put("tokens:1", small("tokens"))
    realm = f"http://{fake.host}/token"

    def guarded(handler):
        if handler.headers.get("Authorization") == "Bearer let-me-in":
            return handler.serve()
        handler.reply(401, headers={"WWW-Authenticate": f'Bearer realm="{realm}",service="s",scope="repository:everything:push"'})

    def token(handler):
        known = handler.headers.get("Authorization") == "Basic bWU6c2VzYW1l"
        handler.reply(200 if known else 401, json.dumps({"token": "let-me-in"}).encode() if known else b"")

    fake.acts = {"/v2/": guarded, "/token": token}
    auth = {"username": "me", "password": "sesame"}
    pulled(server, name, auth)
    asked = fake.asked("/token?")
    assert asked and all("scope=repository%3Atokens%3Apull" in path and "everything" not in path for path in asked)
    refused(server, name.replace(":1", ":2"), "SANDBOX::IMAGE_NOT_FOUND", auth=auth)
    refused(server, fake.put("other:1", small("other")), "SANDBOX::IMAGE_PULL_UNAUTHORIZED", auth={"username": "me", "password": "open"})
    elsewhere = fake.put("elsewhere:1", small("elsewhere"))
    realm = "https://tokens.invalid/token"
    refused(server, elsewhere, "SANDBOX::IMAGE_PULL_REFUSED", "tokens.invalid", auth)
    realm = "http://tokens.invalid/token"
    refused(server, elsewhere, "SANDBOX::IMAGE_PULL_REFUSED", "plain http", auth)
    realm = "not a url"
    refused(server, elsewhere, "SANDBOX::IMAGE_PULL_FAILED", "token service", auth)


def test_a_registry_with_a_certificate_is_trusted_only_through_its_ca(server, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                    "-addext", "subjectAltName=DNS:localhost", "-keyout", tmp_path / "key.pem", "-out", tmp_path / "ca.pem"], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "ca.pem", tmp_path / "key.pem")
    with reg.FakeRegistry(context) as registry:
        name = registry.put("tls:1", small("tls"))
        status, error = pull(server, name)
        assert "code" in error and name not in names(server), "an unknown CA is not trusted"
        assert not registry.asked("/manifests/")
        with harness.Daemon("tls", f"  ca_file: {tmp_path}/ca.pem\n") as daemon:
            pulled(daemon, name)


# ---- what stays


def test_prune_and_the_bound_remove_what_nothing_needs(base):
    with reg.FakeRegistry() as fake, harness.Daemon("prune", "  max_bytes: 20000000\n") as daemon:
        used = fake.put("used:1", reg.Image([base]))
        pulled(daemon, used)
        sandbox = create(daemon, used)["id"]
        moving = fake.put("moving:1", small("old"))
        old = pulled(daemon, moving)["digest"]
        pulled(daemon, fake.put("moving:1", small("new")))
        assert old in names(daemon), "an image that lost its name is kept until somebody prunes"
        done = daemon.cli("image", "prune")
        assert done.stdout.decode().split() == [old], done
        assert {used, moving} <= names(daemon)
        big = fake.put("big:1", reg.Image([reg.tar_of({"data": b"%" * 12_000_000})]))
        more = fake.put("more:1", reg.Image([reg.tar_of({"data": b"&" * 12_000_000})]))
        pulled(daemon, big)
        pulled(daemon, more)
        harness.wait_until(lambda: big not in names(daemon), 10, "the least recently used image goes")
        assert {used, more} <= names(daemon), "neither the newest nor one that a sandbox runs on"
        in_use = daemon.cli("image", "rm", used)
        assert in_use.returncode != 0 and b"sandbox runs on" in in_use.stderr
        assert daemon.cli("image", "prune", "--all").returncode == 0
        assert names(daemon) == {"host", used}
        assert daemon.output(sandbox, "echo alive") == "alive"
        daemon.delete(sandbox)
        harness.wait_until(lambda: daemon.cli("image", "rm", used).returncode == 0, 10, "once the sandbox is gone the image may go")
        host_only = len(layers(daemon))
        assert host_only == 1 and not list((daemon.state / "images/tmp").iterdir())


def test_pulls_of_different_images_at_once_share_a_layer_too(server, fake):
    shared = reg.tar_of({"shared": b"s" * 500_000})
    pictures = [fake.put(f"at-once-{i}:1", reg.Image([shared, reg.tar_of({"own": str(i).encode()})])) for i in range(4)]
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        assert all(status == 200 and image.get("name") for status, image in pool.map(lambda name: pull(server, name), pictures))
    assert set(pictures) <= names(server)


def test_never_means_never_unless_the_operator_asks(fake):
    name = fake.put("app:1", small())
    with harness.Daemon("never", "  pull: never\n") as daemon:
        answer = daemon.request("POST", "/v1/sandboxes", {**CREATE, "image": {"uri": name}})
        assert answer.status == 404 and answer.json()["code"] == "SANDBOX::IMAGE_NOT_FOUND"
        assert not fake.requests
        assert daemon.cli("image", "pull", name).returncode == 0


def test_run_waits_for_its_image_and_leaves_nothing_when_there_is_none(server, fake, base):
    name = fake.put("run:1", reg.Image([base, reg.tar_of({"hello": b"run\n"})]))
    done = server.cli("run", "--image", name, "--", "cat", "/hello")
    assert (done.returncode, done.stdout) == (0, b"run\n"), done.stderr
    failed = server.cli("run", "--image", f"{fake.host}/absent:1", "--", "cat", "/hello")
    assert failed.returncode != 0 and b"has no absent:1" in failed.stderr
    assert not [one for one in server.list() if one["image"]["uri"].startswith(fake.host)]
