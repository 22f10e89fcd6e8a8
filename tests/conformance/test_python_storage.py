"""Snapshots and volumes through the published Python SDK, with the fixtures of the published suites."""
import asyncio
import os

import pytest
from opensandbox.exceptions import SandboxApiException
from opensandbox.models.sandboxes import PVC, Host, SnapshotFilter, Volume

CLAIM = "opensandbox-e2e-pvc-test"


async def lines(box, command):
    done = await box.commands.run(command)
    assert done.error is None, done.error
    return [message.text for message in done.logs.stdout]


async def fails(box, command):
    return (await box.commands.run(command)).error is not None


async def settled(manager, snapshot):
    while snapshot.status.state == "Creating":
        await asyncio.sleep(0.02)
        snapshot = await manager.get_snapshot(snapshot.id)
    return snapshot


async def test_a_snapshot_makes_a_sandbox_with_the_same_files(sdk, box):
    manager = await sdk.manager()
    await lines(box, "echo kept > /workspace/note; echo tmp > /tmp/note")
    made = await box.create_snapshot("base")
    assert made.status.state == "Creating" and made.status.reason == "snapshot_accepted"
    assert made.status.message == "Snapshot creation accepted." and made.name == "base" and made.sandbox_id == box.id
    assert made.status.last_transition_at >= made.created_at
    ready = await settled(manager, made)
    assert ready.status.state == "Ready" and ready.status.reason and ready.status.message and ready.created_at == made.created_at
    listed = await manager.list_snapshots(SnapshotFilter(sandbox_id=box.id, states=["Ready"]))
    assert [row.id for row in listed.snapshot_infos] == [made.id]
    copy = await sdk.create(None, snapshot_id=made.id)
    assert await lines(copy, "cat /workspace/note /tmp/note") == ["kept", "tmp"]
    info = await copy.get_info()
    assert info.snapshot_id == made.id and info.image is None
    with pytest.raises(SandboxApiException) as refused:
        await manager.delete_snapshot(made.id)
    assert refused.value.status_code == 409
    await copy.kill()
    await manager.delete_snapshot(made.id)
    for _ in range(500):
        try:
            await manager.get_snapshot(made.id)
        except SandboxApiException as gone:
            assert gone.status_code == 404
            break
        await asyncio.sleep(0.02)
    else:
        pytest.fail("the snapshot stays")


async def test_host_volumes(sdk):
    top = sdk.daemon.shared / "host-volume-test"
    top.mkdir(exist_ok=True)
    (top / "marker.txt").write_text("opensandbox-e2e-marker\n")
    os.chmod(top, 0o755)
    box = await sdk.create(volumes=[Volume(name="host-data", host=Host(path=str(top)), mount_path="/mnt/host-data"),
                                    Volume(name="host-ro", host=Host(path=str(top)), mount_path="/mnt/host-data-ro", read_only=True)])
    assert await lines(box, "cat /mnt/host-data/marker.txt") == ["opensandbox-e2e-marker"]
    await lines(box, "echo 'written-from-sandbox' > /mnt/host-data/sandbox-output.txt")
    assert await lines(box, "cat /mnt/host-data-ro/sandbox-output.txt") == ["written-from-sandbox"]
    assert await lines(box, "test -d /mnt/host-data && echo OK") == ["OK"]
    assert await fails(box, "echo x > /mnt/host-data-ro/no.txt")
    assert (top / "sandbox-output.txt").read_text() == "written-from-sandbox\n"


async def test_named_volumes(sdk):
    pvc = PVC(claimName=CLAIM)
    first = await sdk.create(volumes=[Volume(name="pvc-data", pvc=pvc, mount_path="/mnt/pvc-data")])
    await lines(first, "cd /mnt/pvc-data; echo pvc-marker-data > marker.txt; mkdir -p datasets/train; echo pvc-subpath-marker > datasets/train/marker.txt")
    await first.kill()
    box = await sdk.create(volumes=[Volume(name="pvc-ro", pvc=pvc, mount_path="/mnt/pvc-ro", read_only=True),
                                    Volume(name="pvc-sub", pvc=pvc, mount_path="/mnt/train", sub_path="datasets/train")])
    assert await lines(box, "cat /mnt/pvc-ro/marker.txt") == ["pvc-marker-data"]
    assert await fails(box, "touch /mnt/pvc-ro/x")
    assert await lines(box, "cat /mnt/train/marker.txt") == ["pvc-subpath-marker"]
    assert await lines(box, "ls /mnt/train") == ["marker.txt"]
    await lines(box, "echo subpath-write-test > /mnt/train/output.txt")
    assert await lines(box, "cat /mnt/train/output.txt; rm /mnt/train/output.txt") == ["subpath-write-test"]


async def test_a_volume_that_is_not_allowed_is_refused(sdk):
    with pytest.raises(SandboxApiException) as refused:
        await sdk.create(volumes=[Volume(name="etc", host=Host(path="/etc"), mount_path="/mnt/etc")])
    assert refused.value.status_code == 400 and refused.value.error.code == "VOLUME::HOST_PATH_NOT_ALLOWED"
