"""The published TypeScript SDK: node runs typescript.test.mjs once, each of its cases is reported as one test here."""
import os
import re
import subprocess
from pathlib import Path

import pytest

SUITE = Path(__file__).with_name("typescript.test.mjs")
NAMES = re.findall(r"^test\('((?:[^'\\]|\\.)+)'", SUITE.read_text(), re.M)


@pytest.fixture(scope="module")
def tap(daemon):
    """What node printed, in the Test Anything Protocol."""
    environment = {**os.environ, "OSB_DOMAIN": f"127.0.0.1:{daemon.port}", "OSB_API_KEY": daemon.key, "OSB_SHARED": str(daemon.shared)}
    done = subprocess.run([os.environ.get("OSB_NODE", "node"), "--test", "--test-reporter=tap", SUITE], env=environment, capture_output=True, text=True,
                          timeout=110)
    return done.stdout + done.stderr


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", NAMES)
def test_typescript(tap, name):
    lines = tap.splitlines()
    verdicts = [index for index, line in enumerate(lines) if re.fullmatch(rf"\s*(not )?ok \d+ - {re.escape(name)}", line)]
    assert verdicts, f"node did not report this case:\n{tap[-3000:]}"
    assert "not ok" not in lines[verdicts[0]], "\n".join(lines[verdicts[0]:verdicts[0] + 40])


def test_node_reports_exactly_the_cases_of_the_suite(tap):
    assert len(NAMES) == len(set(NAMES)) >= 15
    assert f"# pass {len(NAMES)}" in tap and "# fail 0" in tap, tap[-3000:]
