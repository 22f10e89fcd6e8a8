"""run -it, exec -it and shell, typed at a terminal of our own. However they end, the terminal is as it was."""
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import time

import pytest

from harness import PROGRAM, wait_until

PATIENCE = 20


class Screen:
    """The command line at a terminal: what it shows, what is typed, how it ends."""

    def __init__(self, daemon, *words, rows=24, cols=80):
        self.master, self.slave = pty.openpty()
        self.resize(rows, cols)
        self.before = termios.tcgetattr(self.slave)
        self.shown = b""
        environment = {**os.environ, "OPENSANDBOX_HOST": f"unix://{daemon.run_dir}/api.sock", "TERM": "xterm"}
        self.process = subprocess.Popen([PROGRAM, *words], stdin=self.slave, stdout=self.slave, stderr=self.slave, env=environment,
                                        start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))

    def resize(self, rows, cols):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, keys):
        os.write(self.master, keys)

    def sees(self, mark):
        deadline = time.monotonic() + PATIENCE
        while mark not in self.shown:
            readable, _, _ = select.select([self.master], [], [], max(0, deadline - time.monotonic()))
            assert readable, f"{mark!r} not in {self.shown!r}"
            self.shown += os.read(self.master, 65536)
        before, _, self.shown = self.shown.partition(mark)
        return before

    def is_as_before(self):
        return termios.tcgetattr(self.slave) == self.before

    def is_raw(self):
        return not termios.tcgetattr(self.slave)[3] & (termios.ICANON | termios.ECHO | termios.ISIG)

    def status(self):
        """The exit status; the terminal must be as it was by then."""
        status = self.process.wait(PATIENCE)
        assert self.is_as_before()
        return status

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        os.close(self.master)
        os.close(self.slave)


def test_a_command_has_our_terminal_and_gives_it_back(daemon):
    with Screen(daemon, "run", "-it", "--", "sh", "-c", "tty; echo $TERM; stty size; read x; echo got-$x; exit 7", rows=33, cols=99) as screen:
        screen.sees(b"/dev/pts/0\r\nxterm\r\n33 99\r\n")
        assert screen.is_raw()
        screen.type(b"hello\r")
        screen.sees(b"got-hello\r\n")
        assert screen.status() == 7
    assert daemon.list() == []


def test_a_new_size_reaches_the_command(daemon, sandbox):
    with Screen(daemon, "exec", "-it", sandbox, "bash", "-c", "trap 'stty size; exit 3' WINCH; echo ready; while :; do read -t 0.1 x; done") as screen:
        screen.sees(b"ready\r\n")
        screen.resize(50, 132)
        screen.sees(b"50 132\r\n")
        assert screen.status() == 3


def in_front(screen, command):
    """Starts a cat and returns when it reads the terminal: from then on keys are for it."""
    screen.type(b"echo g''o; " + command + b"\r")
    screen.sees(b"go\r\n")
    screen.type(b"here\r")
    screen.sees(b"here\r\nhere\r\n")


def test_keys_are_signals_inside_and_jobs_can_be_controlled(daemon, sandbox):
    with Screen(daemon, "exec", "-it", sandbox, "bash", "--norc", "--noprofile") as screen:
        screen.type(b"PS1='$ '; bind 'set enable-bracketed-paste off'\r")
        in_front(screen, b"cat")
        screen.type(b"\x1a")
        screen.sees(b"Stopped")
        screen.type(b"fg; echo after-fg\r")
        screen.sees(b"\ncat\r\n")
        screen.type(b"x\r\x04")
        screen.sees(b"\nafter-fg\r\n")
        in_front(screen, b"cat")
        screen.type(b"\x03")
        screen.sees(b"$ ")
        screen.type(b"echo status-$?; exit 5\r")
        screen.sees(b"status-130\r\n")
        assert screen.status() == 5


def test_a_death_by_signal_is_128_and_its_number(daemon, sandbox):
    with Screen(daemon, "exec", "-t", sandbox, "sh", "-c", "kill -TERM $$") as screen:
        assert screen.status() == 128 + signal.SIGTERM
    with Screen(daemon, "exec", "-it", sandbox, "/no/such/program") as screen:
        assert screen.status() == 127


@pytest.mark.parametrize("number, status", [(signal.SIGTERM, 128 + 15), (signal.SIGHUP, 128 + 1), (signal.SIGSEGV, -11), (signal.SIGABRT, -6)])
def test_a_killed_command_line_leaves_the_terminal_as_it_was(daemon, number, status):
    with Screen(daemon, "run", "-it", "--", "sh", "-c", "trap '' HUP TERM INT; echo ready; while :; do sleep 1; done") as screen:
        screen.sees(b"ready\r\n")
        assert screen.is_raw()
        screen.process.send_signal(number)
        assert screen.status() == status
    if number in (signal.SIGTERM, signal.SIGHUP):
        assert daemon.list() == []
    else:
        daemon.delete_all()  # a crash leaves the sandbox to its expiry


def test_a_stopped_command_line_gives_the_terminal_back_for_so_long(daemon, sandbox):
    with Screen(daemon, "exec", "-it", sandbox, "sh", "-c", "echo ready; read x; echo got-$x; stty size") as screen:
        screen.sees(b"ready\r\n")
        screen.process.send_signal(signal.SIGTSTP)
        _, status = os.waitpid(screen.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status) and screen.is_as_before()
        screen.resize(20, 70)
        screen.process.send_signal(signal.SIGCONT)
        wait_until(screen.is_raw, PATIENCE, "the terminal is the command's again")
        screen.type(b"back\r")
        screen.sees(b"got-back\r\n20 70\r\n")
        assert screen.status() == 0


def test_a_sandbox_that_ends_leaves_the_terminal_as_it_was(daemon, sandbox):
    with Screen(daemon, "exec", "-it", sandbox, "sh", "-c", "echo ready; sleep 100") as screen:
        screen.sees(b"ready\r\n")
        daemon.delete(sandbox)
        assert screen.status() == 125
        screen.sees(b"the sandbox ended before the command did")


def test_shell_makes_a_sandbox_or_uses_one(daemon, sandbox):
    with Screen(daemon, "shell") as screen:
        screen.type(b"echo version-${BASH_VERSION:+bash}; pwd; exit 4\r")
        screen.sees(b"version-bash\r\n")
        screen.sees(b"/workspace\r\n")
        assert screen.status() == 4
    daemon.output(sandbox, "echo here > /workspace/note")
    with Screen(daemon, "shell", "-w", "/workspace", sandbox) as screen:
        screen.type(b"cat note; exit\r")
        screen.sees(b"\rhere\r\n")
        assert screen.status() == 0


def test_without_a_terminal_stdin_passes_as_it_is(daemon, sandbox):
    piped = daemon.cli("run", "-i", "--", "cat", input=b"bytes\0and\xff")
    assert (piped.returncode, piped.stdout) == (0, b"bytes\0and\xff")
    for words in (("run", "-it", "--", "true"), ("exec", "-t", sandbox, "true"), ("shell",)):
        refused = daemon.cli(*words, input=b"")
        assert refused.returncode == 2 and b"needs a terminal on stdin" in refused.stderr, refused
    confused = daemon.cli("shell", "--memory", "1Gi", sandbox, input=b"")
    assert confused.returncode == 2 and b"--memory is for a new sandbox" in confused.stderr
