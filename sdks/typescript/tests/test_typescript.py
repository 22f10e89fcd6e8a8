"""Node runs each *.test.mjs once; each of its cases is reported as one test here."""
import os
import re
import subprocess
from pathlib import Path

import pytest

from cutting_proxy import CuttingProxy

HERE = Path(__file__).parent
CASES = [(suite.name, name) for suite in sorted(HERE.glob("*.test.mjs")) for name in re.findall(r"^test\('((?:[^'\\]|\\.)+)'", suite.read_text(), re.M)]


def node(suite, environment):
    done = subprocess.run([os.environ.get("OSB_NODE", "node"), "--test", "--test-reporter=tap", HERE / suite], env={**os.environ, **environment},
                          capture_output=True, text=True, timeout=100)
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def offline_tap():
    return node("offline.test.mjs", {})


def judge(tap, name):
    lines = tap.splitlines()
    verdicts = [index for index, line in enumerate(lines) if re.fullmatch(rf"\s*(not )?ok \d+ - {re.escape(name)}", line)]
    assert verdicts, f"node did not report this case:\n{tap[-3000:]}"
    assert "not ok" not in lines[verdicts[0]], "\n".join(lines[verdicts[0]:verdicts[0] + 40])


@pytest.mark.parametrize("name", [name for suite, name in CASES if suite == "offline.test.mjs"])
def test_offline(offline_tap, name):
    judge(offline_tap, name)


@pytest.fixture(scope="module")
def daemon_tap(sessions):
    with CuttingProxy(sessions.sessions_url) as proxy:
        tap = node("daemon.test.mjs", {"OPENSANDBOX_URL": sessions.sessions_url, "OSB_KEY": sessions.key, "OSB_CUT_URL": proxy.url})
        return tap, proxy.cuts


@pytest.mark.parametrize("name", [name for suite, name in CASES if suite == "daemon.test.mjs"])
def test_daemon(daemon_tap, name):
    judge(daemon_tap[0], name)


def test_the_proxy_has_cut_streams(daemon_tap):
    assert daemon_tap[1] >= 6


def test_node_reports_exactly_the_cases_of_the_suites(offline_tap, daemon_tap):
    assert len(CASES) == len(set(CASES))
    for suite, tap in (("offline.test.mjs", offline_tap), ("daemon.test.mjs", daemon_tap[0])):
        assert f"# pass {len([name for where, name in CASES if where == suite])}" in tap and "# fail 0" in tap, tap[-3000:]
