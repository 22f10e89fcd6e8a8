"""Options and fixtures of the suites that need a real daemon."""
import os
import signal

import pytest

from harness import PROGRAM, Daemon, leaks_told


def pytest_addoption(parser):
    parser.addoption("--quick", action="store_true", help="fewer rounds in the slow tests")


def pytest_configure():
    """What these tests start must not inherit that hang-ups are ignored, as under nohup: a command line honours that."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def why_not():
    if os.geteuid() != 0:
        return "needs root: sandboxes are made by a privileged launcher"
    if not PROGRAM.exists():
        return f"{PROGRAM} is not built: ./dev build"
    return None


def pytest_collection_modifyitems(items):
    """A machine that cannot run these says so; where they must run (CI, root) that is a failure."""
    reason = why_not()
    if not reason:
        return
    if os.environ.get("OSB_TESTS_MUST_RUN") == "1":
        raise pytest.UsageError(f"OSB_TESTS_MUST_RUN=1, but: {reason}")
    for item in items:
        item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="session")
def rounds(pytestconfig):
    """rounds(full, quick): how often a slow test goes round."""
    return lambda full, quick: quick if pytestconfig.getoption("--quick") else full


@pytest.fixture(scope="session")
def leaks_before():
    """What others had left on this host when the tests began: a daemon that was killed and never started again leaves its groups."""
    return leaks_told()


@pytest.fixture(scope="session")
def daemon(leaks_before):
    """One daemon for all tests that do not break it. At the end nothing of it may be left."""
    with Daemon("shared") as shared:
        yield shared


@pytest.fixture
def sandbox(daemon):
    """A fresh sandbox of the shared daemon."""
    made = daemon.create()
    yield made
    daemon.request("DELETE", f"/v1/sandboxes/{made}")


@pytest.fixture
def fresh_daemon():
    """A daemon for a test that breaks it."""
    with Daemon("fresh") as fresh:
        yield fresh
