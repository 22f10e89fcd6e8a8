"""opensandbox daemon start, status, reload, stop: what each says, and what it leaves alone."""
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path

import pytest

from harness import PROGRAM, ROOT, RUN_ROOT, free_port, processes, wait_until


class Place:
    """Directories and a configuration of our own, for daemons that the command line starts."""

    def __init__(self):
        self.instance = f"cli-{secrets.token_hex(4)}"
        self.directory = Path(tempfile.mkdtemp(prefix="osb-daemon-"))
        self.file = self.directory / "sandbox-config.yaml"
        self.state = self.directory / "state"
        self.port = free_port()
        self.run_dir = RUN_ROOT / self.instance
        self.write()

    def write(self, more="", port=None):
        self.file.write_text(f"server: {{port: {port or self.port}, instance: {self.instance}}}\nstorage: {{state_dir: {self.state}}}\n{more}")

    def run(self, *words, expect=0, cwd=None):
        done = subprocess.run([PROGRAM, "daemon", *words], capture_output=True, text=True, timeout=60, cwd=cwd, stdin=subprocess.DEVNULL)
        assert done.returncode == expect, f"{words}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done

    def status(self, expect=0):
        return json.loads(self.run("status", "--config", self.file, "--json", expect=expect).stdout)

    def cli(self, *words):
        environment = {**os.environ, "OPENSANDBOX_HOST": f"unix://{self.run_dir}/api.sock"}
        return subprocess.run([PROGRAM, *words], capture_output=True, text=True, timeout=60, env=environment)

    def launcher(self):
        return next((pid for pid, exe, words in processes() if Path(exe).name.startswith("opensandbox-launch") and any(self.instance in w for w in words)), None)

    def close(self):
        status = subprocess.run([PROGRAM, "daemon", "status", "--config", self.file, "--json"], capture_output=True, text=True)
        if status.returncode == 0:
            killed = self.cli("kill", "--all")
            assert killed.returncode == 0, killed.stderr
            self.run("stop", "--config", self.file)
        wait_until(lambda: self.launcher() is None, 15, "the launcher ends")
        shutil.rmtree(self.run_dir, ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)


@pytest.fixture
def place():
    made = Place()
    yield made
    made.close()


def test_start_status_stop(place):
    assert "not running" in place.run("status", "--config", place.file, expect=3).stdout
    assert place.status(expect=3) == {"running": False, "instance": place.instance}
    started = place.run("start", "--config", "./sandbox-config.yaml", cwd=place.directory).stdout  # returns when it answers
    assert f"http://127.0.0.1:{place.port}" in started and str(place.state / "api-key") in started and str(place.state / "serve.log") in started
    facts = place.status()
    assert facts["running"] and facts["healthy"] and facts["instance"] == place.instance and facts["runtime"] == "native"
    assert facts["address"] == f"http://127.0.0.1:{place.port}" and facts["configFile"] == str(place.file) and facts["sandboxes"] == 0
    assert facts["version"] and facts["uptimeSeconds"] >= 0 and Path(f"/proc/{facts['pid']}/exe").exists()
    shown = place.run("status", "--config", place.file).stdout
    assert "opensandbox is running" in shown and "uptime" in shown and str(place.file) in shown
    again = place.run("start", "--config", place.file).stdout
    assert "running already" in again and str(facts["pid"]) in again
    assert place.status()["pid"] == facts["pid"]
    assert "opensandbox stopped" in place.run("stop", "--config", place.file).stderr
    assert place.status(expect=3)["running"] is False
    assert "not running" in place.run("stop", "--config", place.file).stderr


def test_sandboxes_outlive_a_stop_and_are_found_again(place):
    place.run("start", "--config", place.file)
    made = place.cli("create", "--timeout", "10m", "--", "sleep", "1000").stdout.strip()
    assert place.status()["sandboxes"] == 1
    assert "1 sandbox lives on" in place.run("stop", "--config", place.file).stderr
    place.run("start", "--config", place.file)
    assert place.status()["sandboxes"] == 1 and made[:12] in place.cli("ls").stdout
    assert place.cli("exec", made, "echo", "still here").stdout == "still here\n"


def test_a_stale_pid_file_stops_nobody(place):
    place.run("start", "--config", place.file)
    pid = place.status()["pid"]
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{pid}").exists() or Path(f"/proc/{pid}/stat").read_text().split()[2] == "Z", 10, "it is gone")
    assert place.status(expect=3)["running"] is False
    assert (place.run_dir / "serve.pid").exists()
    (place.run_dir / "serve.pid").write_text(f"{os.getpid()}\n")  # a number that belongs to somebody else by now
    assert "not running" in place.run("stop", "--config", place.file).stderr
    place.run("start", "--config", place.file)
    assert place.status()["pid"] not in (pid, os.getpid())


def test_a_bad_configuration_starts_nothing(place):
    place.file.write_text("resources:\n  memory_mb: lots\nserver:\n  prot: 1\n")
    done = place.run("start", "--config", place.file, expect=2)
    assert "sandbox-config.yaml:2: resources.memory_mb" in done.stderr and "did you mean port" in done.stderr
    assert "sandbox-config.yaml" in place.run("start", "--config", place.directory / "none" / "sandbox-config.yaml", expect=2).stderr
    place.write()
    assert place.status(expect=3)["running"] is False


def test_a_taken_port_is_told_and_leaves_nothing(place):
    import socket
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        place.write(port=taken.getsockname()[1])
        done = place.run("start", "--config", place.file, expect=1)
        assert "in use" in done.stderr, done.stderr
        assert place.status(expect=3)["running"] is False
    place.write()


def test_reload_tells_what_changed_and_what_waits(place):
    place.run("start", "--config", place.file)
    pid = place.status()["pid"]
    assert "nothing differs" in place.run("reload", "--config", place.file).stdout
    place.write("resources: {memory_mb: 777}\ncommand_policy: {rules: [{name: no-date, program: date, action: deny}]}\npool: {parts: 3}\n")
    report = json.loads(place.run("reload", "--config", place.file, "--json").stdout)["changes"]
    assert {(c["key"], c["restart"]) for c in report} == {("resources.memory_mb", False), ("command_policy.rules", False), ("pool.parts", True)}
    assert next(c for c in report if c["key"] == "resources.memory_mb") == {"key": "resources.memory_mb", "from": "512", "to": "777", "restart": False}
    made = place.cli("create", "--timeout", "5m", "--", "sleep", "1000").stdout.strip()
    refused = place.cli("exec", made, "date")
    assert refused.returncode == 125 and "no-date" in refused.stderr  # in force at once
    shown = place.run("reload", "--config", place.file).stdout
    assert "needs a restart" in shown and "pool.parts: 8 -> 3" in shown and "memory_mb" not in shown
    assert place.status()["pid"] == pid


def test_a_bad_file_changes_nothing_and_says_why(place):
    place.run("start", "--config", place.file)
    place.file.write_text(place.file.read_text() + "command_policy: {rules: [{program: date, action: never}]}\n")
    # The command line reads the file first, to learn which daemon is meant; the daemon's own word comes through its socket.
    assert "rules[0].action" in place.run("reload", "--config", place.file, expect=2).stderr
    answer = subprocess.run(["curl", "-s", "--unix-socket", place.run_dir / "api.sock", "-X", "POST", "http://x/osb/v1/daemon/reload"], capture_output=True, text=True)
    told = json.loads(answer.stdout)
    assert told["code"] == "CONFIG::INVALID" and "stays in force" in told["message"] and "rules[0].action" in told["message"]
    place.write()
    made = place.cli("create", "--timeout", "5m", "--", "sleep", "1000").stdout.strip()
    assert place.cli("exec", made, "date").returncode == 0
    assert "nothing differs" in place.run("reload", "--config", place.file).stdout


def test_in_the_foreground_it_stays(place):
    process = subprocess.Popen([PROGRAM, "daemon", "start", "--foreground", "--config", place.file], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        wait_until(lambda: (place.run_dir / "api.sock").exists(), 20, "it listens")
        wait_until(lambda: place.status()["pid"] == process.pid, 10, "it is this very process")
    finally:
        process.terminate()
        assert process.wait(30) == 0
        process.stderr.close()


def test_remote_callers_cannot_reload(daemon):
    assert daemon.request("POST", "/osb/v1/daemon/reload").status == 404
    assert daemon.request("GET", "/osb/v1/daemon").status == 404


@pytest.mark.skipif(not shutil.which("systemd-analyze"), reason="needs systemd-analyze")
def test_systemd_understands_the_unit(tmp_path):
    unit = (ROOT / "deploy" / "opensandbox.service").read_text()
    # verify looks for the programs; they are not installed here.
    (tmp_path / "opensandbox.service").write_text(unit.replace("/usr/bin/opensandbox", str(PROGRAM)))
    done = subprocess.run(["systemd-analyze", "verify", "--man=no", tmp_path / "opensandbox.service"], capture_output=True, text=True, timeout=60)
    complaints = [line for line in done.stderr.splitlines() if "opensandbox.service" in line]
    assert done.returncode == 0 and complaints == [], done.stderr
