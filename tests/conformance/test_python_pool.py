"""The client-side pools of the published Python SDK, with their state in memory: only ordinary create, connect, renew, list, kill."""
import asyncio
import uuid
from datetime import timedelta

import pytest
from opensandbox.exceptions import PoolAcquireFailedException, PoolEmptyException, PoolNotRunningException
from opensandbox.pool import (AcquirePolicy, InMemoryAsyncPoolStateStore, InMemoryPoolStateStore, PoolCreationSpec, SandboxPoolAsync,
                              SandboxPoolSync)

from conformance.conftest import IMAGE, Awaited

UNKNOWN = "zzzzzzzzzzzzzzzzzzzzzzzzzz"


class Pool:
    """Either pool behind one face, and what the server says about its sandboxes."""

    def __init__(self, sdk, **options):
        self.sdk = sdk
        self.tag = f"pool-{uuid.uuid4().hex[:8]}"
        self.name = options.pop("name", self.tag)
        kind, self.store = (SandboxPoolAsync, InMemoryAsyncPoolStateStore()) if sdk.is_async else (SandboxPoolSync, InMemoryPoolStateStore())
        spec = PoolCreationSpec(image=IMAGE, entrypoint=["tail", "-f", "/dev/null"], resource={"cpu": "100m", "memory": "64Mi"},
                                metadata={"tag": self.tag})
        self.pool = sdk._face(kind(pool_name=self.name, state_store=self.store, connection_config=options.pop("config", sdk.config()),
                                   creation_spec=spec, drain_timeout=timedelta(seconds=5), **{"max_idle": 1, **options}))

    async def idle(self, count, seconds=20):
        deadline = asyncio.get_running_loop().time() + seconds
        while (snapshot := await self.pool.snapshot()).idle_count != count:
            assert asyncio.get_running_loop().time() < deadline, f"{snapshot.idle_count} idle, not {count}: {snapshot.last_error}"
            await asyncio.sleep(0.02)
        return snapshot

    async def acquire(self, policy=AcquirePolicy.FAIL_FAST):
        made = await self.pool.acquire(timedelta(minutes=5), policy)
        return made if self.sdk.is_async else Awaited(made)

    def tagged(self):
        return [item for item in self.sdk.daemon.list() if item.get("metadata", {}).get("tag") == self.tag]

    async def __aenter__(self):
        await self.pool.start()
        return self

    async def __aexit__(self, *_):
        await self.pool.shutdown(False)
        for item in self.tagged():
            self.sdk.daemon.request("DELETE", f"/v1/sandboxes/{item['id']}")


async def test_a_pool_warms_up_and_hands_out_a_working_sandbox(sdk):
    async with Pool(sdk) as pool:
        snapshot = await pool.idle(1)
        assert snapshot.state.value == "HEALTHY"
        box = await pool.acquire()
        done = await box.commands.run("echo pooled")
        assert [message.text for message in done.logs.stdout] == ["pooled"]
        await pool.idle(1)  # warmed again
        await box.kill()


async def test_a_drained_pool_fails_fast_or_creates(sdk):
    async with Pool(sdk) as pool:
        await pool.idle(1)
        await pool.pool.resize(0)
        await pool.pool.release_all_idle()
        await pool.idle(0)
        with pytest.raises(PoolEmptyException):
            await pool.acquire()
        box = await pool.acquire(AcquirePolicy.DIRECT_CREATE)
        assert await box.is_healthy() and len(pool.tagged()) == 1
        await box.kill()


async def test_a_stale_entry_fails_at_once_and_leaves_nothing(sdk):
    async with Pool(sdk, max_idle=0) as pool:
        put = pool.store.put_idle
        await put(pool.name, UNKNOWN) if sdk.is_async else put(pool.name, UNKNOWN)
        with pytest.raises(PoolAcquireFailedException):
            await pool.acquire()
        box = await pool.acquire(AcquirePolicy.DIRECT_CREATE)
        assert await box.is_healthy()
        await box.kill()


async def test_two_at_once_get_two_sandboxes(sdk):
    async with Pool(sdk, max_idle=2) as pool:
        await pool.idle(2)
        boxes = await asyncio.gather(pool.acquire(), pool.acquire())
        assert len({box.id for box in boxes}) == 2
        for box in boxes:
            await box.kill()


async def test_released_sandboxes_are_gone_from_the_server_and_a_stopped_pool_gives_none(sdk):
    async with Pool(sdk) as pool:
        await pool.idle(1)
        await pool.pool.resize(0)
        await pool.pool.release_all_idle()
        for _ in range(200):
            if not pool.tagged():
                break
            await asyncio.sleep(0.02)
        assert pool.tagged() == []
        await pool.pool.shutdown(True)
        with pytest.raises(PoolNotRunningException):
            await pool.acquire(AcquirePolicy.DIRECT_CREATE)
