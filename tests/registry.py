"""Registries for the tests: images made in memory, a fake registry that can misbehave, and Debian's real one."""
import base64
import contextlib
import gzip
import hashlib
import http.client
import http.server
import io
import json
import shutil
import subprocess
import tarfile
import tempfile
import threading
import warnings
from pathlib import Path

import harness

OCI_MANIFEST = "application/vnd.oci.image.manifest.v1+json"
OCI_INDEX = "application/vnd.oci.image.index.v1+json"
DOCKER_MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
DOCKER_LIST = "application/vnd.docker.distribution.manifest.list.v2+json"
BUSYBOX = Path("/bin/busybox")


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def tar_of(files, links=()):
    """A layer: {path: bytes} and (path, target) symbolic links."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path, content in files.items():
            info = tarfile.TarInfo(path)
            info.size, info.mode = len(content), 0o755
            tar.addfile(info, io.BytesIO(content))
        for path, target in links:
            info = tarfile.TarInfo(path)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return out.getvalue()


def base_layer():
    """Enough of a system to run a sandbox in: one static program under the names a shell needs."""
    words = ["sh", "tail", "cat", "echo", "ls", "sleep", "id"]
    return tar_of({"bin/busybox": BUSYBOX.read_bytes(), "etc/passwd": b"root:x:0:0::/:/bin/sh\nuser:x:1000:1000::/:/bin/sh\n", "tmp/.keep": b"",
                   "etc/group": b"root:x:0:\nuser:x:1000:\n"}, [(f"bin/{word}", "busybox") for word in words])


class Image:
    """`layers` are plain tars, bottom first. What a test wants to be wrong it changes afterwards."""

    def __init__(self, layers, compress=True, docker=False, arch="amd64", env=()):
        self.blobs = {}
        kind = "application/vnd.docker.image.rootfs.diff.tar.gzip" if docker else "application/vnd.oci.image.layer.v1.tar" + ("+gzip" if compress else "")
        stored = [gzip.compress(layer, 1, mtime=0) if compress else layer for layer in layers]
        self.layers = [self.add(blob, kind) for blob in stored]
        config = {"os": "linux", "architecture": arch, "config": {"Env": list(env)}, "rootfs": {"type": "layers", "diff_ids": [digest(layer) for layer in layers]}}
        self.config = self.add(json.dumps(config).encode(), "application/vnd.oci.image.config.v1+json")
        self.type = DOCKER_MANIFEST if docker else OCI_MANIFEST
        self.seal()

    def add(self, blob, kind):
        self.blobs[digest(blob)] = blob
        return {"mediaType": kind, "digest": digest(blob), "size": len(blob)}

    def seal(self):
        self.manifest = json.dumps({"schemaVersion": 2, "mediaType": self.type, "config": self.config, "layers": self.layers}).encode()

    def descriptor(self, **platform):
        return {"mediaType": self.type, "digest": digest(self.manifest), "size": len(self.manifest), "platform": platform}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        registry = self.server.registry
        registry.requests.append((self.path, dict(self.headers)))
        self.close_connection = True
        with contextlib.suppress(OSError):
            for prefix, act in list(registry.acts.items()):
                if self.path.startswith(prefix):
                    return act(self)
            self.serve()

    def serve(self):
        registry = self.server.registry
        if self.path == "/v2/":
            return self.reply(200, b"{}")
        if "/manifests/" in self.path:
            repository, _, reference = self.path.removeprefix("/v2/").partition("/manifests/")
            found = registry.manifests.get((repository, reference))
            return self.reply(200, found[1], found[0]) if found else self.reply(404)
        blob = registry.blobs.get(self.path.rpartition("/blobs/")[2])
        return self.send_blob(blob) if blob is not None else self.reply(404)

    def send_blob(self, blob):
        """With ranges, as real registries do."""
        start = self.headers.get("Range", "")
        if not start:
            return self.reply(200, blob, "application/octet-stream")
        first = int(start.removeprefix("bytes=").rstrip("-"))
        self.reply(206, blob[first:], "application/octet-stream", {"Content-Range": f"bytes {first}-{len(blob) - 1}/{len(blob)}"})

    def reply(self, status, body=b"", kind="application/json", headers=None, length=None):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


class FakeRegistry:
    """Honest until `acts[prefix]` says otherwise: a function that answers requests whose path begins so."""

    def __init__(self, context=None):
        self.blobs, self.manifests, self.acts, self.requests = {}, {}, {}, []
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.registry, self.server.daemon_threads = self, True
        if context:
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.host = f"localhost:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    def put(self, name, image):
        """`name` is repository:tag. Returns the name to pull by."""
        repository, _, tag = name.partition(":")
        self.blobs.update(image.blobs)
        for reference in (tag, digest(image.manifest)):
            self.manifests[repository, reference] = (image.type, image.manifest)
        return f"{self.host}/{name}"

    def put_index(self, name, descriptors, kind=OCI_INDEX):
        repository, _, tag = name.partition(":")
        text = json.dumps({"schemaVersion": 2, "mediaType": kind, "manifests": descriptors}).encode()
        for reference in (tag, digest(text)):
            self.manifests[repository, reference] = (kind, text)
        return f"{self.host}/{name}"

    def asked(self, part):
        return [path for path, _ in self.requests if part in path]


class RealRegistry:
    """docker-registry of Debian on a port of its own, filled by plain HTTP."""

    def __init__(self, user=None, password=None):
        self.directory = Path(tempfile.mkdtemp(prefix="osb-registry-"))
        self.port = harness.free_port()
        self.host = f"localhost:{self.port}"
        self.user, self.password = user, password
        text = (f"version: 0.1\nlog: {{level: error}}\nstorage: {{filesystem: {{rootdirectory: {self.directory}/data}}}}\n"
                f"http: {{addr: 127.0.0.1:{self.port}}}\n")
        if user:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                import crypt  # the only bcrypt of the standard library
            hashed = crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16))
            (self.directory / "htpasswd").write_text(f"{user}:{hashed}\n")
            text += f"auth: {{htpasswd: {{realm: test, path: {self.directory}/htpasswd}}}}\n"
        (self.directory / "config.yml").write_text(text)

    def __enter__(self):
        self.process = subprocess.Popen(["docker-registry", "serve", self.directory / "config.yml"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        harness.wait_until(self.ready, 15, "docker-registry answers")
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait(10)
        shutil.rmtree(self.directory, ignore_errors=True)

    def ready(self):
        with contextlib.suppress(OSError):
            return self.call("GET", "/v2/").status in (200, 401)

    def call(self, method, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        sent = dict(headers or {})
        if self.user:
            sent["Authorization"] = "Basic " + base64.b64encode(f"{self.user}:{self.password}".encode()).decode()
        try:
            connection.request(method, path, body=body, headers=sent)
            return harness.Answer(connection.getresponse())
        finally:
            connection.close()

    def push(self, name, image):
        repository, _, tag = name.partition(":")
        for key, blob in image.blobs.items():
            begun = self.call("POST", f"/v2/{repository}/blobs/uploads/", b"")
            assert begun.status == 202, begun.body
            place = begun.headers["Location"].split(self.host)[-1].replace(f"http://127.0.0.1:{self.port}", "")
            put = self.call("PUT", f"{place}&digest={key}", blob, {"Content-Type": "application/octet-stream"})
            assert put.status == 201, put.body
        put = self.call("PUT", f"/v2/{repository}/manifests/{tag}", image.manifest, {"Content-Type": image.type})
        assert put.status == 201, put.body
        return f"{self.host}/{name}"
