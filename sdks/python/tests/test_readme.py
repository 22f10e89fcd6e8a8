"""Every example of the README runs, and prints what the README says."""
import os
import subprocess
import sys
from pathlib import Path

import pytest

from readme import examples

SDK = Path(__file__).resolve().parent.parent
EXAMPLES = examples(SDK / "README.md", "python")
TOP = examples(SDK.parent.parent / "README.md", "python")


@pytest.mark.parametrize("example", EXAMPLES, ids=[example.heading for example in EXAMPLES])
def test_example(sessions, example, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SDK / "src"), "OPENSANDBOX_URL": sessions.sessions_url}
    done = subprocess.run([sys.executable, "-c", example.at(sessions)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert done.stdout == example.expected


def test_there_are_examples_and_each_says_what_it_prints():
    assert len(EXAMPLES) >= 8 and all(example.expected for example in EXAMPLES)


@pytest.mark.parametrize("example", TOP, ids=range(len(TOP)))
def test_the_examples_of_the_top_readme(sessions, example, tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(SDK / "src"), "OPENSANDBOX_URL": sessions.sessions_url}
    done = subprocess.run([sys.executable, "-c", example.at(sessions)], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and done.stdout.startswith("hello\n"), done.stderr
