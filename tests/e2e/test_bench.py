"""The benchmark runs, and its JSON has the shape that programs read. Nothing here looks at a timing."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

import harness

BENCH = harness.BUILD / "opensandbox-bench"
ENVIRONMENT = {**os.environ, "OSB_ROOT": str(harness.ROOT), "OSB_BUILD_DIR": str(harness.BUILD)}


def start(*words):
    return subprocess.Popen([BENCH, *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT, text=True)


def left_of(pid):
    """Folders, cgroups and processes that carry the name of an instance of that run."""
    mark = f"-{pid}"
    found = [path for folder in (harness.RUN_ROOT, *Path("/sys/fs/cgroup").glob("*"), Path("/sys/fs/cgroup")) if folder.is_dir()
             for path in folder.glob(f"*bench-*{mark}")]
    return found + [command for _, _, command in harness.processes() if any(word.startswith("bench-") and word.endswith(mark) for word in command)]


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    folder = tmp_path_factory.mktemp("bench")
    bench = start("--quick", "--json", "--only", "lifecycle,exec", "--rounds", "3", "--out", str(folder))
    out, errors = bench.communicate(timeout=120)
    assert bench.returncode == 0, errors
    assert left_of(bench.pid) == []
    return json.loads(out), folder


def test_the_json_tells_where_and_how_it_was_measured(report):
    run, _ = report
    assert {"machine", "versions", "date", "command", "settings", "rows", "promises"} <= run.keys()
    assert run["settings"]["rounds"] == 3 and run["settings"]["quick"] is True
    assert run["settings"]["floor_ms"] > 0


def test_every_row_has_numbers_or_a_reason(report):
    rows = report[0]["rows"]
    for row in rows:
        assert row["name"] and row["group"] and row["unit"], row
        if "unusable" in row:
            assert row["unusable"], row
        else:
            assert row["n"] >= 1 and 0 < row["p50"] <= row["p99"] <= row["max"] and row["ratio"] > 0, row
    assert len({row["name"] for row in rows}) == len(rows), "names are unique"


def test_the_rows_of_our_own_paths_are_usable(report):
    rows = {row["name"]: row for row in report[0]["rows"]}
    for way in ("warm", "pooled parts", "fully cold"):
        for door in ("TCP", "unix socket"):
            assert "unusable" not in rows[f"{way}: create+exec+delete, {door}"], rows
    assert "unusable" not in rows["exec of busybox echo, TCP"]
    assert "unusable" not in rows["opensandbox run, daemon running"]
    for language in ("Python", "TypeScript"):
        assert "unusable" not in rows[f"our {language} SDK: create+run+destroy"], rows


def test_promises_are_answered_with_kept_or_not(report):
    promises = report[0]["promises"]
    assert promises and all(promise["text"] and isinstance(promise["kept"], bool) for promise in promises)


def test_files_are_written_too(report):
    run, folder = report
    assert json.loads((folder / "bench.json").read_text()) == run
    assert "| milliseconds | p50 |" in (folder / "bench.md").read_text()
    assert (folder / "performance-latency.svg").read_text().startswith("<svg ")


def test_an_interrupted_run_leaves_nothing():
    bench = start("--quick", "--only", "exec")
    # Where /run is a disk the bench keeps its run directory in memory, in a mount namespace of its own.
    runs = Path(f"/proc/{bench.pid}/root") / harness.RUN_ROOT.relative_to("/")
    harness.wait_until(lambda: list(runs.glob(f"bench-*-{bench.pid}/api.sock")), 30, "its daemon runs")
    bench.send_signal(signal.SIGINT)
    bench.communicate(timeout=30)
    assert bench.returncode == 130
    assert left_of(bench.pid) == []


def test_a_wrong_word_is_refused_before_anything_starts():
    bench = start("--only", "everything")
    _, errors = bench.communicate(timeout=10)
    assert bench.returncode == 2 and "no group 'everything'" in errors
