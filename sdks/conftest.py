"""The suites of our own SDKs: a daemon for those that need one."""
import os
import sys
from pathlib import Path

import pytest

import harness

SDKS = Path(__file__).resolve().parent
sys.path.insert(0, str(SDKS))  # what the suites of both languages use


def pytest_collection_modifyitems(items):
    """Without root and a built daemon only what needs no daemon runs; where all must run (CI, root) that is a failure."""
    reason = "needs root and a built daemon (./dev test)" if os.geteuid() or not harness.PROGRAM.exists() else None
    needy = [item for item in items if SDKS in item.path.parents and "sessions" in getattr(item, "fixturenames", ())]
    if reason and needy and os.environ.get("OSB_TESTS_MUST_RUN") == "1":
        raise pytest.UsageError(f"OSB_TESTS_MUST_RUN=1, but: {reason}")
    for item in needy if reason else ():
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def sessions():
    """A daemon whose session API the suites talk to."""
    with harness.Daemon("sdks") as daemon:
        yield daemon
