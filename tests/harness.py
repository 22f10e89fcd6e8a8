"""A daemon of our own for the tests: its own instance name, run and state directory, port and key.

Speaks REST with the standard library, so that what is tested is the server and not a client library.
"""
import contextlib
import http.client
import json
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("OSB_BUILD_DIR", ROOT / "build" / "release"))
PROGRAM = BUILD / "opensandbox"
RUN_ROOT = Path("/run/opensandbox")
EXECD_PORT = 44772
START_SECONDS = 30


def wait_until(condition, seconds, what):
    """Polls until `condition()` is true and returns its value; fails with `what` after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what() if callable(what) else what}")
        time.sleep(0.01)


def leaks_told():
    """What `doctor --leaks` calls unowned on this whole host, where others may run daemons too, or have left something."""
    found = subprocess.run([PROGRAM, "doctor", "--leaks"], capture_output=True, text=True, timeout=60)
    lines = {line for line in found.stdout.splitlines() if line and not line.startswith(("UNOWNED", "no leaks"))}
    assert found.returncode == (1 if lines else 0), found
    return lines


def assert_no_leak_but(before):
    wait_until(lambda: not leaks_told() - before, 10, lambda: f"doctor --leaks: {sorted(leaks_told() - before)}")


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def processes():
    """(pid, executable path, command line) of every process we may look at."""
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        with contextlib.suppress(OSError):
            command = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
            yield int(entry), os.readlink(f"/proc/{entry}/exe"), [word.decode(errors="replace") for word in command]


class Answer:
    def __init__(self, response):
        self.status = response.status
        self.headers = response.headers
        self.body = response.read()

    def json(self):
        return json.loads(self.body)


class ApiError(AssertionError):
    pass


class Execution:
    """What `POST /command` said, read to the end."""

    def __init__(self, events):
        self.events = events
        self.id = next((event["text"] for event in events if event["type"] == "init"), None)
        self.stdout = [event["text"] for event in events if event["type"] == "stdout"]
        self.stderr = [event["text"] for event in events if event["type"] == "stderr"]
        self.error = next((event["error"] for event in events if event["type"] == "error"), None)
        self.complete = next((event for event in events if event["type"] == "execution_complete"), None)

    @property
    def exit_code(self):
        if self.error is not None:
            return int(self.error["evalue"])
        return 0 if self.complete is not None else None


class Daemon:
    """`opensandbox serve` under test. Use as a context manager; leaving it deletes every sandbox and stops everything."""

    def __init__(self, name="test", config=""):
        self.instance = f"{name}-{secrets.token_hex(4)}"
        self.key = None
        self.port = free_port()
        self.directory = Path(tempfile.mkdtemp(prefix="osb-test-"))
        self.state = self.directory / "state"
        self.shared = self.directory / "shared"  # what sandboxes may mount of the host
        self.run_dir = RUN_ROOT / self.instance
        self.config = self.directory / "config.yaml"
        self.log = self.directory / "serve.log"
        self.process = None
        self.extra = config
        self.environment = {"OPENSANDBOX_SESSIONS_PORT": "0"}  # any number of daemons run side by side

    # ---- life

    def write_config(self):
        self.config.write_text(
            f"server:\n  listen: 127.0.0.1\n  port: {self.port}\n  instance: {self.instance}\n"
            f"storage:\n  state_dir: {self.state}\n  allowed_host_paths: ['{self.shared}']\n  volume_default_mb: 32\n"
            'images:\n  aliases:\n    "opensandbox/code-interpreter:latest": host\n    "python:3.11-slim": host\n' + self.extra)

    @property
    def sessions_url(self):
        """http://127.0.0.1:PORT/api/v1 of this daemon's session API."""
        return (self.run_dir / "sessions.address").read_text().strip()

    def start(self):
        self.shared.mkdir(exist_ok=True)
        self.write_config()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen([PROGRAM, "serve", "--config", self.config], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            env={"PATH": os.environ["PATH"], "LANG": "C.UTF-8", **self.environment}, start_new_session=True)
        wait_until(self.healthy, START_SECONDS, lambda: f"serve is ready\n{self.tail()}")
        self.key = (self.state / "api-key").read_text().strip()
        return self

    def healthy(self):
        if self.process.poll() is not None:
            raise AssertionError(f"serve ended with {self.process.returncode}\n{self.tail()}")
        with contextlib.suppress(OSError, http.client.HTTPException):
            return self.request("GET", "/health").status == 200
        return False

    def tail(self):
        return self.log.read_text(errors="replace")[-4000:] if self.log.exists() else ""

    def launcher(self):
        """The pid of this instance's launcher, or None."""
        for pid, exe, command in processes():
            if Path(exe).name.startswith("opensandbox-launch") and any(self.instance in word for word in command):
                return pid
        return None

    def kill_serve(self, number=signal.SIGKILL):
        self.process.send_signal(number)
        self.process.wait(30)

    def restart(self):
        """As a supervisor does it: serve is gone, start it again on the same state."""
        if self.process.poll() is None:
            self.kill_serve(signal.SIGTERM)
        return self.start()

    def stop(self):
        """Deletes all sandboxes, ends serve and the launcher, removes the directories."""
        try:
            if self.process and self.process.poll() is None:
                self.delete_all()
        finally:
            if self.process and self.process.poll() is None:
                self.process.terminate()
                try:
                    self.process.wait(15)
                except subprocess.TimeoutExpired:
                    self.process.kill()
                    self.process.wait(15)
            try:
                self.stop_launcher()
            finally:
                shutil.rmtree(self.directory, ignore_errors=True)

    def stop_launcher(self):
        """With nobody to serve and nothing to hold, the launcher ends by itself."""
        try:
            wait_until(lambda: self.launcher() is None, 15, "the launcher ends when serve is gone and no sandbox is left")
        except AssertionError:
            os.kill(self.launcher(), signal.SIGKILL)
            raise
        finally:
            shutil.rmtree(self.run_dir, ignore_errors=True)

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    # ---- REST

    def connection(self, timeout=60):
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def request(self, method, path, body=None, headers=None, key=True, timeout=60, connection=None):
        sent = {"OPEN-SANDBOX-API-KEY": self.key} if key is True and self.key else {}
        if isinstance(key, str):
            sent["OPEN-SANDBOX-API-KEY"] = key
        if isinstance(body, (dict, list)):
            body = json.dumps(body)
            sent["Content-Type"] = "application/json"
        sent.update(headers or {})
        ours = connection or self.connection(timeout)
        try:
            ours.request(method, path, body=body, headers=sent)
            return Answer(ours.getresponse())
        finally:
            if connection is None:
                ours.close()

    def call(self, method, path, body=None, expect=(200, 202, 204), **options):
        answer = self.request(method, path, body, **options)
        if answer.status not in expect:
            raise ApiError(f"{method} {path}: {answer.status} {answer.body[:500]!r}\n{self.tail()[-1500:]}")
        return answer

    def create(self, connection=None, **spec):
        """A sandbox; returns its id."""
        body = {"image": {"uri": "host"}, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "256Mi"}, "entrypoint": ["tail", "-f", "/dev/null"]}
        body.update(spec)
        return self.call("POST", "/v1/sandboxes", body, expect=(202,), connection=connection).json()["id"]

    def get(self, sandbox):
        return self.call("GET", f"/v1/sandboxes/{sandbox}").json()

    def delete(self, sandbox, connection=None):
        self.call("DELETE", f"/v1/sandboxes/{sandbox}", expect=(204,), connection=connection)

    def list(self):
        return self.call("GET", "/v1/sandboxes?pageSize=200").json()["items"]

    def delete_all(self):
        while items := self.list():
            for item in items:
                self.request("DELETE", f"/v1/sandboxes/{item['id']}")

    def token(self, sandbox):
        return self.call("GET", f"/v1/sandboxes/{sandbox}/endpoints/{EXECD_PORT}").json().get("headers", {})

    def execd(self, sandbox, method, path, body=None, timeout=60, connection=None, token=None, headers=None):
        """A request to execd through the proxy route, with the headers the endpoint answer hands out."""
        sent = {**(token or self.token(sandbox)), **(headers or {})}
        return self.request(method, f"/sandboxes/{sandbox}/proxy/{EXECD_PORT}{path}", body, headers=sent, key=False,
                            timeout=timeout, connection=connection)

    def exec(self, sandbox, command, timeout=60, connection=None, token=None, **options):
        """Runs a shell command in the sandbox to its end."""
        answer = self.execd(sandbox, "POST", "/command", {"command": command, **options}, timeout, connection, token)
        if answer.status != 200:
            raise ApiError(f"command: {answer.status} {answer.body[:500]!r}")
        return Execution([json.loads(line) for line in answer.body.decode().split("\n\n") if line.strip()])

    def output(self, sandbox, command, **options):
        """The standard output of a command that must succeed."""
        done = self.exec(sandbox, command, **options)
        assert done.exit_code == 0, f"{command}: {done.events}"
        return "\n".join("" if line == "\n" else line for line in done.stdout)

    # ---- the command line

    def cli(self, *words, input=None, timeout=60):
        """The CLI, talking to this daemon."""
        environment = {**os.environ, "OPENSANDBOX_HOST": f"unix://{self.run_dir}/api.sock"}
        return subprocess.run([PROGRAM, *words], input=input, timeout=timeout, capture_output=True, env=environment)
