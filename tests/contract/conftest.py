import pytest

from contract.daemons import DAEMONS


@pytest.fixture(scope="module", params=["native", "process"])
def host(request):
    """A daemon of each runtime in turn; nothing of it may be left when its tests are over."""
    with DAEMONS[request.param](f"contract-{request.param}") as daemon:
        yield daemon


@pytest.fixture
def box(host):
    made = host.create()
    yield made
    host.request("DELETE", f"/v1/sandboxes/{made}")


@pytest.fixture
def process_daemon():
    """One of the runtime process, for a test that breaks it."""
    with DAEMONS["process"]("contract-own") as daemon:
        yield daemon
