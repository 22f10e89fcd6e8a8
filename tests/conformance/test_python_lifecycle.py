"""Lifecycle through the published Python SDK: create, look, renew, pause, list, patch, kill."""
import time
import uuid
from datetime import datetime, timedelta, timezone

import pytest
from opensandbox.exceptions import SandboxApiException, SandboxException
from opensandbox.models.sandboxes import NetworkRule, SandboxFilter

UNKNOWN = "zzzzzzzzzzzzzzzzzzzzzzzzzz"
SMALL = {"cpu": "100m", "memory": "64Mi"}


def now():
    return datetime.now(timezone.utc)


async def test_a_created_sandbox_is_healthy_and_tells_what_it_is(sdk, box):
    assert await box.is_healthy()
    info = await box.get_info()
    assert info.id == box.id and info.status.state == "Running"
    assert info.entrypoint == ["tail", "-f", "/dev/null"]
    assert info.metadata["tag"] == "e2e-test"
    assert info.image.image == sdk.image
    assert timedelta(minutes=4) < info.expires_at - info.created_at <= timedelta(minutes=6)
    assert abs(now() - info.created_at) < timedelta(seconds=60)
    assert (await box.get_info()).created_at == info.created_at


async def test_without_a_timeout_it_never_expires(sdk):
    box = await sdk.create(timeout=None, metadata={"tag": "manual-e2e-test"})
    info = await box.get_info()
    assert info.expires_at is None and info.metadata["tag"] == "manual-e2e-test"


async def test_renew_moves_the_expiry(box):
    before = (await box.get_info()).expires_at
    answered = await box.renew(timedelta(minutes=20))
    after = (await box.get_info()).expires_at
    assert after > before and abs(answered.expires_at - after) < timedelta(seconds=10)
    assert timedelta(minutes=18) < after - now() < timedelta(minutes=22)


async def test_a_second_client_connects_by_id(sdk, box):
    other = await sdk.connect(box.id)
    done = await other.commands.run("echo connect-ok")
    assert [message.text for message in done.logs.stdout] == ["connect-ok"]
    await other.close()


@pytest.mark.parametrize("port", [44772, 18080, 8080, 3000])
async def test_endpoints_have_the_shape_clients_check(sdk, box, port):
    endpoint = (await box.get_endpoint(port)).endpoint
    assert "://" not in endpoint and not endpoint.endswith("/")
    assert endpoint.endswith(f"/{port}") if "/" in endpoint else endpoint.endswith(f":{port}")


async def test_the_server_proxy_mode_works(sdk, box):
    other = await sdk.connect(box.id, config=sdk.config(use_server_proxy=True))
    assert f"/sandboxes/{box.id}/proxy/18080" in (await other.get_endpoint(18080)).endpoint
    assert (await other.commands.run("echo through")).exit_code == 0
    await other.close()


async def test_the_network_policy_reads_as_deny_all_and_refuses_changes(box):
    policy = await box.get_egress_policy()
    assert policy.default_action == "deny" and not policy.egress
    with pytest.raises(SandboxException):
        await box.patch_egress_rules([NetworkRule(action="allow", target="example.com")])


async def test_pause_shows_at_once_and_resume_brings_it_back(sdk, box):
    await box.commands.run("sleep 300 & echo $! > /tmp/pid")
    await box.pause()
    assert (await box.get_info()).status.state == "Paused", "read once, without polling"
    assert not await box.is_healthy()
    with pytest.raises(SandboxApiException):
        await box.pause()
    back = await sdk.resume(box.id)
    assert (await back.get_info()).status.state == "Running" and await back.is_healthy()
    done = await back.commands.run("kill -0 $(cat /tmp/pid) && echo resume-ok")
    assert [message.text for message in done.logs.stdout] == ["resume-ok"], "its processes are still there"
    await back.close()


async def test_killed_is_gone(sdk, box):
    await box.kill()
    with pytest.raises(SandboxApiException) as raised:
        await box.get_info()
    assert raised.value.status_code == 404
    with pytest.raises(SandboxException):
        await sdk.connect(box.id)
    assert not await box.is_healthy()


async def make_three(sdk):
    """The manager suites' three: t1+prod, t1+dev, prod; the third paused."""
    tag = f"mgr-{uuid.uuid4().hex[:8]}"
    kinds = [{"team": "t1", "env": "prod"}, {"team": "t1", "env": "dev"}, {"env": "prod"}]
    boxes = [await sdk.create(metadata={"tag": tag, **kind}, resource=SMALL) for kind in kinds]
    await boxes[2].pause()
    return tag, [box.id for box in boxes]


async def ids(manager, tag, states=None, **metadata):
    found = await manager.list_sandbox_infos(SandboxFilter(states=states, metadata={"tag": tag, **metadata}, page_size=50))
    return {info.id for info in found.sandbox_infos}


async def test_list_filters_states_by_or_and_metadata_by_and(sdk):
    tag, (first, second, third) = await make_three(sdk)
    manager = await sdk.manager()
    assert await ids(manager, tag, ["Running", "Paused"]) == {first, second, third}
    assert await ids(manager, tag, ["Paused"]) == {third}
    assert await ids(manager, tag, ["Running"]) == {first, second}
    assert await ids(manager, tag) == {first, second, third}
    assert await ids(manager, tag, team="t1") == {first, second}
    assert await ids(manager, tag, team="t1", env="prod") == {first}
    assert await ids(manager, tag, env="prod") == {first, third}
    assert await ids(manager, tag, team="t2") == set()
    await manager.close()


async def test_list_pages(sdk):
    tag = f"page-{uuid.uuid4().hex[:8]}"
    made = [(await sdk.create(metadata={"tag": tag}, resource=SMALL)).id for _ in range(3)]
    manager = await sdk.manager()
    pages = [await manager.list_sandbox_infos(SandboxFilter(metadata={"tag": tag}, page=page, page_size=2)) for page in (1, 2, 3)]
    assert [[info.id for info in page.sandbox_infos] for page in pages] == [[made[2], made[1]], [made[0]], []], "newest first"
    paging = pages[0].pagination
    assert (paging.page, paging.page_size, paging.total_items, paging.total_pages, paging.has_next_page) == (1, 2, 3, 2, True)
    assert pages[1].pagination.has_next_page is False
    await manager.close()


async def test_metadata_patch_sets_removes_and_keeps(sdk):
    tag, (_, second, _) = await make_three(sdk)
    manager = await sdk.manager()
    patched = await manager.patch_sandbox_metadata(second, {"env": "stage", "team": None})
    assert patched.metadata == {"tag": tag, "env": "stage"}
    assert (await manager.get_sandbox_info(second)).metadata == {"tag": tag, "env": "stage"}
    assert await ids(manager, tag, env="stage") == {second}
    await manager.close()


async def test_every_operation_on_an_unknown_id_rejects(sdk):
    manager = await sdk.manager()
    for call in (manager.get_sandbox_info, manager.pause_sandbox, manager.resume_sandbox, manager.kill_sandbox):
        with pytest.raises(SandboxApiException) as raised:
            await call(UNKNOWN)
        assert raised.value.status_code == 404
    with pytest.raises(SandboxApiException):
        await manager.renew_sandbox(UNKNOWN, timedelta(minutes=5))
    with pytest.raises(SandboxApiException):
        await manager.patch_sandbox_metadata(UNKNOWN, {"a": "b"})
    await manager.close()


async def test_the_request_id_comes_back_with_the_error(sdk, box):
    wanted = f"e2e-{uuid.uuid4().hex}"
    with pytest.raises(SandboxApiException) as raised:
        await sdk.connect(UNKNOWN, config=sdk.config(headers={"X-Request-ID": wanted}))
    assert raised.value.status_code == 404 and raised.value.request_id == wanted
    manager = await sdk.manager(headers={"X-Request-ID": wanted})
    with pytest.raises(SandboxApiException) as raised:
        await manager.get_sandbox_info(UNKNOWN)
    assert raised.value.request_id == wanted
    await manager.close()


async def test_a_wrong_key_is_refused_and_makes_nothing(sdk):
    before = len(sdk.daemon.list())
    with pytest.raises(SandboxApiException) as raised:
        await sdk.create(config=sdk.config(api_key="not-the-key"))
    assert raised.value.status_code == 401 and raised.value.error.code == "INVALID_API_KEY"
    assert len(sdk.daemon.list()) == before


async def test_an_unknown_image_is_refused_with_a_code(sdk):
    with pytest.raises(SandboxApiException) as raised:
        await sdk.create(image="no-such-image:1.0")
    assert raised.value.status_code == 404 and "SANDBOX::IMAGE_NOT_FOUND" in str(raised.value)


async def test_create_is_usable_at_once(sdk):
    started = time.monotonic()
    box = await sdk.create()
    assert (await box.commands.run("echo ready")).exit_code == 0
    assert time.monotonic() - started < 5
