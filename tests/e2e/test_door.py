"""./dev: quiet on stdout, works from anywhere, without HOME, through a path with spaces."""
import os
import subprocess

import pytest

import harness

DEV = harness.ROOT / "dev"

pytestmark = pytest.mark.skipif(harness.BUILD != harness.ROOT / "build" / "release", reason="./dev run uses the release build")


def door(*words, cwd="/", environment=None, path=DEV):
    return subprocess.run([path, *words], cwd=cwd, env=environment, capture_output=True, text=True, timeout=110)


def test_run_prints_only_what_the_command_prints(tmp_path):
    door("version")  # builds what is not built
    done = door("run", "--", "python3", "-c", 'print("hello")', cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "hello\n", "")


def test_it_needs_neither_home_nor_a_plain_path(tmp_path):
    link = tmp_path / "a folder with spaces"
    link.mkdir()
    (link / "dev").symlink_to(DEV)
    done = door("run", "--", "sh", "-c", "exit 7", cwd=link, environment={"PATH": os.environ["PATH"]}, path=link / "dev")
    assert (done.returncode, done.stdout) == (7, "")


def test_other_words_go_to_opensandbox():
    done = door("version")
    assert done.returncode == 0 and done.stdout.startswith("opensandbox")
    assert door("no-such-word").returncode == 2


def test_help_lists_the_words():
    done = door("help")
    assert done.returncode == 0
    for word in ("run", "test", "build", "lint", "fmt", "bench", "shell"):
        assert f"\n  {word}" in done.stdout
