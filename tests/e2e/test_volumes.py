"""Volumes: directories of the host behind the operator's list, and named ones with a size of their own."""
import json
import os
import shutil
from pathlib import Path

import pytest

import harness


def host(name, path, where, **more):
    return {"name": name, "host": {"path": str(path)}, "pvc": None, "mountPath": where, **more}


def named(name, claim, where, sub_path=None, read_only=False, **pvc):
    item = {"name": name, "pvc": {"claimName": claim, **pvc}, "host": None, "mountPath": where, "readOnly": read_only}
    return {**item, "subPath": sub_path} if sub_path else item


@pytest.fixture(scope="module")
def shared(daemon):
    """The daemon, and the one directory of the host that it shares. Beside it lies what no sandbox may see."""
    secret = daemon.directory / "secret"
    secret.mkdir()
    (secret / "key").write_text("hidden\n")
    yield daemon, daemon.shared
    shutil.rmtree(secret)


def refused(daemon, *volumes, **more):
    body = {"image": {"uri": "host"}, "entrypoint": ["tail", "-f", "/dev/null"], "resourceLimits": {}, "timeout": 600, "volumes": list(volumes), **more}
    answer = daemon.request("POST", "/v1/sandboxes", body)
    assert answer.status >= 400, answer.body
    return answer.status, answer.json()["code"]


def test_a_host_directory_is_shared_with_the_rights_of_its_owner(shared):
    daemon, top = shared
    work = top / "work"
    work.mkdir()
    (work / "marker.txt").write_text("opensandbox-e2e-marker\n")
    (work / "private").write_text("root only\n")
    os.chmod(work / "private", 0o600)
    os.chown(work, 4321, 4321)
    os.chown(work / "marker.txt", 4321, 4321)
    sandbox = daemon.create(volumes=[host("data", work, "/mnt/host-data"), host("log", top / "a/b/logs", "/tmp/made/logs"),
                                     host("ro", work, "/workspace/ro", readOnly=True), host("one", work / "marker.txt", "/mnt/marker")])
    assert daemon.output(sandbox, "cat /mnt/host-data/marker.txt /mnt/marker") == "opensandbox-e2e-marker\nopensandbox-e2e-marker"
    daemon.output(sandbox, "echo out > /mnt/host-data/out; mkdir /mnt/host-data/d; echo log > /tmp/made/logs/execd.log; echo more >> /mnt/marker")
    assert daemon.output(sandbox, "stat -c '%u:%g' /mnt/host-data/out /mnt/host-data/marker.txt /mnt/host-data/private | paste -sd ' '") == (
        "1000:1000 1000:1000 65534:65534")
    info = os.stat(work / "out")
    assert (info.st_uid, info.st_gid, (work / "out").read_text()) == (4321, 4321, "out\n")
    assert (top / "a/b/logs/execd.log").read_text() == "log\n"
    assert (work / "marker.txt").read_text() == "opensandbox-e2e-marker\nmore\n"
    assert daemon.exec(sandbox, "cat /mnt/host-data/private").exit_code != 0, "another owner's file keeps its mode"
    for way in ("echo x > /workspace/ro/new", "rm /workspace/ro/marker.txt", "chmod 777 /workspace/ro/marker.txt", "mount -o remount,rw /workspace/ro"):
        assert daemon.exec(sandbox, way).exit_code != 0, way
    assert not (work / "new").exists()
    flags = daemon.output(sandbox, "grep -c ' /mnt/host-data .*nosuid,nodev' /proc/self/mountinfo")
    assert flags == "1"
    assert daemon.exec(sandbox, "ls /mnt/host-data/../../secret").exit_code != 0
    # root in the sandbox has no more rights there than the owner has
    root = daemon.create(volumes=[host("data", work, "/data")], extensions={"opensandbox.mode": "root", "opensandbox.root": "rw"})
    daemon.output(root, "echo root > /data/by-root; stat -c %u /data/by-root")
    assert os.stat(work / "by-root").st_uid == 4321
    assert daemon.exec(root, "cat /data/private").exit_code != 0
    assert daemon.exec(root, "mknod /data/null c 1 3").exit_code != 0
    for one in (sandbox, root):
        daemon.delete(one)
    assert (work / "out").exists(), "what is the host's stays"


def test_a_path_that_leads_out_of_the_shared_directory_is_refused(shared):
    daemon, top = shared
    (top / "way-out").symlink_to(top.parent / "secret")
    (top / "inside").mkdir(exist_ok=True)
    (top / "way-in").symlink_to(top / "inside")
    (top / "inside" / "up").symlink_to("../../secret")
    for path in (top.parent / "secret", top / "way-out", top / "way-out/new", "/etc", "/", f"{top}x", top.parent / "new"):
        assert refused(daemon, host("v", path, "/mnt/v")) == (400, "VOLUME::HOST_PATH_NOT_ALLOWED"), path
    assert not (top.parent / "secret" / "new").exists() and not (top.parent / "new").exists()
    assert refused(daemon, host("v", f"{top}/../secret", "/mnt/v")) == (400, "VOLUME::INVALID_HOST_PATH")
    sandbox = daemon.create(volumes=[host("v", top / "way-in", "/mnt/v")])
    daemon.output(sandbox, "echo through > /mnt/v/note")
    daemon.delete(sandbox)
    assert (top / "inside" / "note").read_text() == "through\n"
    # A link inside the volume means what it would mean if the volume were the whole file system.
    assert refused(daemon, host("v", top / "inside", "/mnt/v", subPath="up/key"))[0] == 400
    sandbox = daemon.create(volumes=[host("v", top / "inside", "/mnt/v", subPath="sub/way")])
    daemon.output(sandbox, "echo below > /mnt/v/note")
    daemon.delete(sandbox)
    assert (top / "inside/sub/way/note").read_text() == "below\n"


def test_wrong_volumes_are_told_what_is_wrong(shared):
    daemon, top = shared
    good = host("v", top, "/mnt/v")
    before, volumes_before = daemon.list(), daemon.call("GET", "/v1/volumes").json()
    code = lambda *volumes, **more: refused(daemon, *volumes, **more)[1].removeprefix("VOLUME::")
    assert code({**good, "name": "Bad_Name"}) == "INVALID_NAME"
    assert code(good, {**good, "mountPath": "/mnt/w"}) == "DUPLICATE_NAME"
    assert code({"name": "v", "mountPath": "/mnt/v"}) == "INVALID_BACKEND"
    assert code({**good, "pvc": {"claimName": "x"}}) == "INVALID_BACKEND"
    assert code({"name": "v", "ossfs": {"bucket": "b"}, "mountPath": "/mnt/v"}) == "UNSUPPORTED_BACKEND"
    for path in ("relative", "", "/", "/proc/x", "/sys", "/dev/shm", "/etc/hosts", "/mnt/../etc", "/run", "/" + "x" * 300):
        assert code({**good, "mountPath": path}) == "INVALID_MOUNT_PATH", path
    assert code(good, {**good, "name": "w", "mountPath": "/mnt/v/inner"}) == "INVALID_MOUNT_PATH"
    for path in ("/absolute", "../up", "a/../../b"):
        assert code({**good, "subPath": path}) == "INVALID_SUB_PATH", path
    assert code({**good, "host": {"path": "relative"}}) == "INVALID_HOST_PATH"
    assert code(named("v", "Not_A_Label", "/mnt/v")) == "INVALID_PVC_NAME"
    assert code(named("v", "nowhere", "/mnt/v", createIfNotExists=False)) == "PVC_NOT_FOUND"
    assert refused(daemon, named("v", "x", "/mnt/v", storage="lots"))[0] == 422
    assert code({**good, "mountPath": "/usr/share/new-place"}) == "INVALID_MOUNT_PATH"
    assert daemon.list() == before
    assert daemon.call("GET", "/v1/volumes").json() == volumes_before, "a create that failed made no volume"


def test_a_named_volume_is_shared_limited_and_survives(shared):
    daemon, _ = shared
    one = daemon.create(volumes=[named("data", "shared-by-several", "/mnt/pvc-data", storage=None, storageClass=None, accessModes=None)])
    daemon.output(one, "echo pvc-marker-data > /mnt/pvc-data/marker.txt; mkdir -p /mnt/pvc-data/datasets/train; "
                       "echo pvc-subpath-marker > /mnt/pvc-data/datasets/train/marker.txt; ln -s /datasets /mnt/pvc-data/way")
    two = daemon.create(volumes=[named("data", "shared-by-several", "/data"),
                                 named("sub", "shared-by-several", "/mnt/train", "datasets/train"),
                                 named("ro", "shared-by-several", "/home/user/ro", read_only=True)])
    assert daemon.output(two, "cat /data/marker.txt; ls /mnt/train; cat /mnt/train/marker.txt; stat -c %u:%g /data/marker.txt") == (
        "pvc-marker-data\nmarker.txt\npvc-subpath-marker\n1000:1000")
    daemon.output(two, "echo from-two > /data/note")
    assert daemon.output(one, "cat /mnt/pvc-data/note") == "from-two", "both see the same files at once"
    assert daemon.exec(two, "touch /home/user/ro/x").exit_code != 0
    assert daemon.output(two, "cat /home/user/ro/note") == "from-two"
    assert daemon.exec(one, "dd if=/dev/zero of=/mnt/pvc-data/big bs=1M count=64 2>/dev/null").exit_code != 0, "32 MiB is the limit"
    daemon.output(one, "rm /mnt/pvc-data/big")
    # Links inside the volume lead nowhere else, and the launcher may come and go.
    os.kill(daemon.launcher(), 9)
    harness.wait_until(lambda: daemon.launcher() is not None, 20, "a new launcher")
    body = {"image": {"uri": "host"}, "entrypoint": ["sleep", "infinity"], "resourceLimits": {}, "timeout": 600,
            "volumes": [named("d", "shared-by-several", "/d", "way/new")]}
    made = harness.wait_until(lambda: (answer := daemon.request("POST", "/v1/sandboxes", body)).status == 202 and answer, 20, "a create works")
    three = made.json()["id"]
    daemon.output(three, "echo three > /d/shared")
    assert daemon.output(one, "cat /mnt/pvc-data/datasets/new/shared") == "three" and not Path("/datasets").exists()
    rows = [row for row in daemon.call("GET", "/v1/volumes").json()["items"] if row["name"] == "shared-by-several"]
    assert [(row["name"], row["sizeBytes"], row["sandboxes"]) for row in rows] == [("shared-by-several", 32 << 20, 3)]
    assert daemon.request("DELETE", "/v1/volumes/shared-by-several").json()["code"] == "VOLUME::IN_USE"
    for sandbox in (one, two, three):
        daemon.delete(sandbox)
    again = daemon.create(volumes=[named("data", "shared-by-several", "/data", createIfNotExists=False)])
    assert daemon.output(again, "cat /data/note") == "from-two"
    daemon.delete(again)
    images = len(list((daemon.state / "volumes").iterdir()))
    daemon.call("DELETE", "/v1/volumes/shared-by-several", expect=(204,))
    harness.wait_until(lambda: len(list((daemon.state / "volumes").iterdir())) < images, 10, "the image is gone")


def test_a_volume_made_for_a_sandbox_goes_with_the_last_that_uses_it(shared):
    daemon, _ = shared
    volumes = [named("data", "scratch", "/data", deleteOnSandboxTermination=True, storage="16Mi")]
    one, two = daemon.create(volumes=volumes), daemon.create(volumes=volumes)
    names = lambda: [row["name"] for row in daemon.call("GET", "/v1/volumes").json()["items"] if row["name"] in ("scratch", "kept", "brief")]
    daemon.delete(one)
    assert names() == ["scratch"]
    daemon.delete(two)
    assert names() == []
    made = daemon.call("POST", "/v1/volumes", {"name": "kept", "size": "16Mi"}, expect=(201,)).json()
    assert made["sizeBytes"] == 16 << 20
    assert daemon.request("POST", "/v1/volumes", {"name": "kept"}).status == 409
    sandbox = daemon.create(volumes=[named("data", "kept", "/data", deleteOnSandboxTermination=True)])
    daemon.output(sandbox, "touch /data/x")
    # A sandbox that ends by itself lets go of its volumes as well.
    ending = daemon.create(volumes=[named("data", "brief", "/data", deleteOnSandboxTermination=True)], entrypoint=["sleep", "0.2"])
    harness.wait_until(lambda: daemon.get(ending)["status"]["state"] == "Terminated", 10, "its program ends")
    daemon.delete(sandbox)
    assert names() == ["kept"], "only what was made for a sandbox goes with it"
    daemon.call("DELETE", "/v1/volumes/kept", expect=(204,))


def test_the_command_line_knows_snapshots_and_volumes(shared):
    daemon, top = shared
    run = lambda *words: daemon.cli(*words).stdout.decode().strip()
    assert run("volume", "create", "--size", "16Mi", "tools") == "tools"
    sandbox = run("create", "-v", "tools:/tools", "-v", f"{top}:/share:ro", "--name", "cli")
    run("exec", sandbox, "sh", "-c", "echo hi > /tools/x; echo home > /home/user/y")
    assert "tools" in run("volume", "ls")
    snapshot = run("snapshot", "create", "--name", "kept", "cli")
    assert snapshot in run("snapshot", "ls", "-q") and json.loads(run("snapshot", "inspect", snapshot))["status"]["state"] == "Ready"
    copy = run("create", "--snapshot", snapshot)
    assert run("exec", copy, "cat", "/home/user/y") == "home"
    assert daemon.cli("exec", copy, "test", "-e", "/tools/x").returncode == 1, "volumes are not part of a snapshot"
    run("kill", sandbox, copy)
    assert run("snapshot", "rm", snapshot) == snapshot
    assert run("volume", "rm", "tools") == "tools"
    assert daemon.cli("create", "-v", "nonsense").returncode == 2
