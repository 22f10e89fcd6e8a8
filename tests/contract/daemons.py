"""Daemons of every runtime, started the way each is meant to be used: native by root, process by a user without any privilege."""
import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import harness

USER = 61234  # nobody's: no entry in /etc/passwd, no group, no session
PROGRAMS = ("opensandbox", "opensandbox-serve", "opensandbox-confine", "opensandbox-execd")


class NativeDaemon(harness.Daemon):
    runtime = "native"
    uid = 0

    def __init__(self, name="native", config=""):
        super().__init__(name, config + "pool:\n  automatic: false\n")  # spares would be there after a destroy

    def helper(self):
        return self.launcher()

    def as_user(self, *words, **options):
        """A program of whoever runs this daemon, outside of every sandbox: the control of a denial."""
        return subprocess.run(words, capture_output=True, text=True, timeout=30, **options)


class ProcessDaemon(harness.Daemon):
    """serve, keeper and sandboxes of an ordinary user, with programs, run and state directory that are the user's own."""
    runtime = "process"
    uid = USER

    def __init__(self, name="process", config=""):
        super().__init__(name, config + "runtime: process\n")
        os.chown(self.directory, USER, USER)
        self.run_root = self.directory / "r"
        self.run_dir = self.run_root / self.instance
        self.programs = self.directory / "bin"
        self.programs.mkdir()
        for program in PROGRAMS:
            shutil.copy(harness.BUILD / program, self.programs)

    def user_environment(self):
        return {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "HOME": str(self.directory), "SECRET_OF_THE_USER": "canary-of-the-environment",
                **self.environment}

    def popen(self, words, home=None, runtime=None, **options):
        environment = self.user_environment()
        if home is not None:
            environment.update(HOME=str(home), XDG_RUNTIME_DIR=str(runtime))
        return subprocess.Popen([str(word) for word in words], user=USER, group=USER, extra_groups=[], env=environment, start_new_session=True, **options)

    def as_user(self, *words, input=None, timeout=60, text=True, env=None):
        return subprocess.run([str(word) for word in words], user=USER, group=USER, extra_groups=[], env={**self.user_environment(), **(env or {})},
                              capture_output=True, text=text, input=input, timeout=timeout)

    def start(self):
        self.write_config()
        with self.config.open("a") as config:
            config.write("process:\n  workspace: \"\"\n")
        self.config.write_text(self.config.read_text().replace("storage:\n", f"storage:\n  run_dir: {self.run_root}\n"))
        self.config.chmod(0o644)
        with self.log.open("ab") as log:
            self.process = self.popen([self.programs / "opensandbox", "serve", "--config", self.config], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        harness.wait_until(self.healthy, harness.START_SECONDS, lambda: f"serve is ready\n{self.tail()}")
        self.key = (self.state / "api-key").read_text().strip()
        return self

    def helper(self):
        """The pid of this instance's keeper, or None."""
        for pid, exe, command in harness.processes():
            if Path(exe).name.startswith("opensandbox-confine") and str(self.run_dir) in command:
                return pid
        return None

    def stop_launcher(self):
        harness.wait_until(lambda: self.helper() is None, 15, "the keeper ends when serve is gone")

    def cli(self, *words, input=None, timeout=60):
        return self.as_user(self.programs / "opensandbox", *words, input=input, timeout=timeout, text=False,
                            env={"OPENSANDBOX_HOST": f"unix://{self.run_dir}/api.sock"})


DAEMONS = {"native": NativeDaemon, "process": ProcessDaemon}


def pids_of(marker):
    """Processes of the host, those inside sandboxes among them, whose first word is `marker`."""
    return [pid for pid, _, command in all_processes() if command and command[0] == marker]


def all_processes():
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            with contextlib.suppress(OSError):
                yield int(entry), None, Path(f"/proc/{entry}/cmdline").read_bytes().decode(errors="replace").split("\0")
