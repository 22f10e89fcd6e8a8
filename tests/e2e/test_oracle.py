"""The leak oracle finds leaks: each kind is planted once. Without this, a clean report would prove nothing."""
import os
import subprocess
import time
from pathlib import Path

import pytest

from e2e import leak_oracle as oracle


def find(before, daemon, category):
    """What the oracle says is new in one category."""
    return oracle.surplus(before, oracle.take(daemon)).get(category)


def test_a_planted_cgroup_is_found(daemon):
    before = oracle.take(daemon)
    parent = next(iter(sorted(oracle.cgroup_dirs(daemon.instance), key=len)))
    planted = Path(parent) / "planted"
    planted.mkdir()
    try:
        assert str(planted) in find(before, daemon, "cgroups")
        with pytest.raises(AssertionError, match="planted"):
            oracle.assert_gone(before, daemon, seconds=0.2)
    finally:
        planted.rmdir()
    oracle.assert_gone(before, daemon)


def test_a_planted_process_is_found(daemon):
    daemon.delete(daemon.create())
    before = oracle.take(daemon)
    uid = oracle.FIRST_ID + min(oracle.range_blocks(daemon.instance)) * oracle.IDS_PER_BLOCK + 77
    with subprocess.Popen(["sleep", "30"], user=uid, group=uid, extra_groups=[]) as planted:
        time.sleep(0.1)
        assert any(line.startswith(f"{planted.pid} ") for line in find(before, daemon, "processes"))
        planted.kill()
    oracle.assert_gone(before, daemon)


def test_a_planted_file_is_found(daemon):
    before = oracle.take(daemon)
    planted = daemon.run_dir / "sandboxes" / "planted.sock"
    planted.touch()
    try:
        assert str(planted) in find(before, daemon, "files")
    finally:
        planted.unlink()


def test_a_live_sandbox_is_seen_in_every_way(daemon):
    before = oracle.take(daemon)
    sandbox = daemon.create()
    seen = oracle.surplus(before, oracle.take(daemon))
    assert {"cgroups", "processes", "files"} <= set(seen), "a sandbox holds these"
    assert any(sandbox in path for path in seen["files"])
    daemon.delete(sandbox)
    oracle.assert_gone(before, daemon)
    assert os.path.isdir(daemon.run_dir)
