"""bench/lifecycle runs from both languages, and its JSON has the shape that programs read. Nothing here looks at a timing."""
import json
import os
import subprocess
import sys

import pytest

import harness

FOLDER = harness.ROOT / "bench" / "lifecycle"
PROGRAMS = {"python": [sys.executable, FOLDER / "lifecycle.py"], "typescript": [os.environ.get("OSB_NODE", "node"), FOLDER / "lifecycle.mjs"]}


def run(client, *words):
    return subprocess.run([*PROGRAMS[client], *words], capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize("client", PROGRAMS)
def test_both_tell_the_same_rows(daemon, client):
    done = run(client, "-n", "3", "--json", "--url", daemon.sessions_url, "--no-docker")
    assert done.returncode == 0, done.stderr
    report = json.loads(done.stdout)
    assert report["n"] == 3 and report["client"] == client and report["skipped"] == [{"name": "docker", "why": "left out (--no-docker)"}]
    names = [row["name"] for row in report["rows"]]
    assert names[0].startswith("floor: ") and names[1].startswith("opensandbox, ") and names[2:] == ["  create", "  exec", "  delete"]
    for row in report["rows"]:
        assert row["n"] == 3 and 0 < row["p50_ms"] <= row["p99_ms"] and row["mean_ms"] > 0 and row["ratio"] > 0, row


@pytest.mark.parametrize("client", PROGRAMS)
def test_the_table_says_what_was_left_out(daemon, client):
    done = run(client, "-n", "1", "--url", daemon.sessions_url, "--docker-image", "no-such-image-anywhere")
    assert done.returncode == 0, done.stderr
    assert "mean" in done.stdout and "x floor" in done.stdout and "docker: skipped, " in done.stdout


@pytest.mark.parametrize("client", PROGRAMS)
def test_without_a_daemon_it_says_what_to_do(client):
    done = run(client, "-n", "1", "--url", "http://127.0.0.1:65535")
    assert done.returncode == 1 and "opensandbox daemon start" in done.stderr
