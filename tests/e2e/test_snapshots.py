"""Snapshots: what a sandbox has written comes back in another one, exactly, and the two never touch again."""
import os
import signal

import harness

# Every kind of thing a file system holds, in every place a sandbox may write; one line a thing, sorted.
MAKE = r"""
set -e
for place in /workspace /home/user /tmp /var/tmp; do
  mkdir -p $place/deep/er; cd $place
  printf hello > plain; chmod 640 plain
  printf '#!/bin/sh\necho ran\n' > tool; chmod 4755 tool
  ln plain deep/hard; ln -s plain soft; ln -s /no/where dangling; ln -s ../../../../etc/passwd deep/up
  mkfifo pipe; chmod 600 pipe
  truncate -s 8M holes; printf end >> holes
  mkdir -m 1770 sticky; touch -d 2001-02-03T04:05:06Z old
  mkdir shut; touch shut/inside; chmod 000 shut
done
"""
LIST = r"""
for place in /workspace /home/user /tmp /var/tmp; do
  find $place -mindepth 1 ! -path '*/many/*' -printf '%p %y %m %U:%G %n %s %l %T+\n' 2>/dev/null | grep -v ' d ' | grep -v '/sock ' ;
  find $place -mindepth 1 -type d ! -path '*/many/*' -printf '%p d %m %U:%G\n' 2>/dev/null;
  cat $place/plain $place/deep/hard; stat -c '%i' $place/plain $place/deep/hard | uniq | wc -l; tail -c 3 $place/holes
  [ $(stat -c '%b' $place/holes) -lt 1000 ] && echo sparse
done | sort
"""


def snapshot(daemon, sandbox, **body):
    answer = daemon.call("POST", f"/v1/sandboxes/{sandbox}/snapshots", body or None, expect=(202,))
    made = answer.json()
    assert answer.headers["Location"] == f"/v1/snapshots/{made['id']}"
    assert made["status"]["state"] == "Creating" and made["status"]["reason"] == "snapshot_accepted"
    assert made["status"]["message"] == "Snapshot creation accepted."
    return made["id"]


def settled(daemon, snapshot_id):
    def ended():
        row = daemon.call("GET", f"/v1/snapshots/{snapshot_id}").json()
        return row if row["status"]["state"] != "Creating" else None

    return harness.wait_until(ended, 60, "the snapshot is taken")


def ready(daemon, sandbox, **body):
    row = settled(daemon, snapshot(daemon, sandbox, **body))
    assert row["status"]["state"] == "Ready", row
    return row["id"]


def restore(daemon, snapshot_id, **spec):
    body = {"snapshotId": snapshot_id, "timeout": 600, "resourceLimits": {"cpu": "1", "memory": "256Mi"}, **spec}
    return daemon.call("POST", "/v1/sandboxes", body, expect=(202,)).json()["id"]


def leftovers(daemon):
    images = daemon.state / "images"
    return sorted(p.name for p in (images / "tmp").iterdir()) + sorted(p.name for p in (images / "snapshots").iterdir())


def test_everything_a_sandbox_wrote_comes_back_in_another(daemon):
    source = daemon.create(env={"WHERE": "source"})
    daemon.output(source, MAKE)
    daemon.output(source, "mkdir /workspace/many; cd /workspace/many; for i in $(seq 20); do mkdir $i; (cd $i; seq 100 | split -l 1 -a 3 -d); done")
    daemon.output(source, "python3 -c 'import socket; s = socket.socket(socket.AF_UNIX); s.bind(\"/tmp/sock\")'")
    before = daemon.output(source, LIST)
    count = "find /workspace/many -type f | wc -l; find /workspace/many -type f | sort | xargs cat | md5sum"
    counted = daemon.output(source, count)
    row = settled(daemon, snapshot(daemon, source, name="all kinds"))
    assert row["status"]["state"] == "Ready" and row["name"] == "all kinds" and row["sandboxId"] == source, row
    assert row["status"]["reason"] == "snapshot_runtime_ready" and row["entries"] > 2_000 and "1 sockets" in row["status"]["message"]
    copy = restore(daemon, row["id"])
    info = daemon.get(copy)
    assert info["snapshotId"] == row["id"] and "image" not in info and info["entrypoint"] == ["tail", "-f", "/dev/null"]
    assert daemon.output(copy, LIST) == before
    assert daemon.output(copy, count) == counted
    assert daemon.exec(copy, "test -e /tmp/sock").exit_code == 1, "sockets stay behind"
    assert daemon.output(copy, "echo \"[$WHERE]\"") == "[]", "the environment is the new request's"

    # Neither sees what the other does from now on; the copy changes, removes and replaces what it was given.
    daemon.output(source, "echo changed > /workspace/plain; rm /home/user/tool; touch /tmp/new")
    daemon.output(copy, "cd /workspace; echo mine > plain; rm -r deep; mkdir deep; touch deep/new; rm old; rm -r many/1")
    assert daemon.output(copy, "cat /workspace/plain /home/user/plain; ls /home/user/tool; test ! -e /tmp/new && ls /workspace/deep") == (
        "mine\nhello/home/user/tool\nnew")
    assert daemon.output(source, "cat /workspace/plain; ls /workspace/deep /workspace/many/1 | wc -l; test -e /workspace/old && echo old") == (
        "changed\n106\nold")

    # A snapshot of the copy stands on the first one: what was removed stays removed, what was replaced shows nothing of before.
    second = ready(daemon, copy)
    third = restore(daemon, second)
    assert daemon.output(third, "cd /workspace; cat plain; ls deep many/1 2>/dev/null; test ! -e old && ls many | wc -l") == "mine\ndeep:\nnew\n19"
    assert daemon.request("DELETE", f"/v1/snapshots/{second}").json()["code"] == "SNAPSHOT::DELETE_CONFLICT"
    for sandbox in (source, copy, third):
        daemon.delete(sandbox)
    # The lower one may go first: the layers belong to whoever needs them.
    daemon.call("DELETE", f"/v1/snapshots/{row['id']}", expect=(204,))
    harness.wait_until(lambda: daemon.request("GET", f"/v1/snapshots/{row['id']}").status == 404, 60, "the snapshot is gone")
    again = restore(daemon, second)
    assert daemon.output(again, "cat /workspace/plain") == "mine"
    daemon.delete(again)
    daemon.call("DELETE", f"/v1/snapshots/{second}", expect=(204,))
    harness.wait_until(lambda: daemon.request("GET", f"/v1/snapshots/{second}").status == 404, 60, "the snapshot is gone")
    assert [name for name in leftovers(daemon) if row["id"] in name or second in name] == []


def test_a_writable_root_comes_back_with_what_was_removed_from_the_image(daemon):
    root = {"opensandbox.mode": "root", "opensandbox.root": "rw"}
    source = daemon.create(extensions=root)
    daemon.output(source, "mkdir /srv/site; echo new > /srv/site/page; rm /usr/bin/env; echo x > /usr/bin/added; mkdir -p /opt/a; "
                          "rm -r /etc/alternatives; mkdir /etc/alternatives; touch /etc/alternatives/mine; chown 7:8 /srv/site/page; "
                          "echo home > /root/note")
    look = ("cat /srv/site/page /usr/bin/added /root/note; stat -c %u:%g /srv/site/page; ls /etc/alternatives; test ! -e /usr/bin/env && echo gone; "
            "test -x /usr/bin/sort && echo rest")
    expected = "new\nx\nhome\n7:8\nmine\ngone\nrest"
    assert daemon.output(source, look) == expected
    daemon.call("POST", f"/v1/sandboxes/{source}/pause", expect=(202,))
    kept = ready(daemon, source)
    assert daemon.get(source)["status"]["state"] == "Paused", "a paused sandbox stays so"
    daemon.call("POST", f"/v1/sandboxes/{source}/resume", expect=(202,))
    assert daemon.output(source, look) == expected
    writable = restore(daemon, kept, extensions=root)
    assert daemon.output(writable, look) == expected
    daemon.output(writable, "rm /usr/bin/added; echo other > /srv/site/page")
    read_only = restore(daemon, ready(daemon, writable))
    assert daemon.output(read_only, "cat /srv/site/page; test ! -e /usr/bin/added && test ! -e /usr/bin/env && echo both") == "other\nboth"
    assert daemon.output(source, look) == expected
    for sandbox in (source, writable, read_only):
        daemon.delete(sandbox)


def test_bad_requests_are_told_what_is_wrong(daemon):
    sandbox = daemon.create()
    unknown = "a" * 26
    code = lambda answer: (answer.status, answer.json()["code"])
    assert code(daemon.request("POST", f"/v1/sandboxes/{unknown}/snapshots")) == (404, "DOCKER::SANDBOX_NOT_FOUND")
    assert code(daemon.request("POST", f"/v1/sandboxes/{sandbox}/snapshots", {"name": ""})) == (422, "SANDBOX::INVALID_PARAMETER")
    assert code(daemon.request("POST", f"/v1/sandboxes/{sandbox}/snapshots", {"name": 3})) == (422, "SANDBOX::INVALID_PARAMETER")
    for method in ("GET", "DELETE"):
        assert code(daemon.request(method, f"/v1/snapshots/{unknown}")) == (404, "SNAPSHOT::NOT_FOUND")
    for named in (unknown, "../../etc", "x"):
        body = {"snapshotId": named, "resourceLimits": {}}
        assert code(daemon.request("POST", "/v1/sandboxes", body)) == (404, "SNAPSHOT::NOT_FOUND")
    body = {"snapshotId": unknown, "image": {"uri": "host"}, "entrypoint": ["x"], "resourceLimits": {}}
    assert daemon.request("POST", "/v1/sandboxes", body).status == 422
    deep = "import os\nfor i in range(200):\n os.mkdir('d'); os.chdir('d')"
    daemon.output(sandbox, f"cd /workspace; python3 -c \"{deep}\"")
    row = settled(daemon, snapshot(daemon, sandbox))
    assert row["status"]["state"] == "Failed" and "nested deeper than 128" in row["status"]["message"], row
    assert code(daemon.request("POST", "/v1/sandboxes", {"snapshotId": row["id"], "resourceLimits": {}})) == (409, "SNAPSHOT::NOT_READY")
    assert daemon.output(sandbox, "echo thawed") == "thawed"
    daemon.call("DELETE", f"/v1/snapshots/{row['id']}", expect=(204,))
    daemon.delete(sandbox)


def test_lists_are_paged_and_filtered(daemon):
    one, two = daemon.create(), daemon.create()
    made = [ready(daemon, one, name="a"), ready(daemon, one), ready(daemon, two)]
    page = daemon.call("GET", f"/v1/snapshots?sandboxId={one}&pageSize=1").json()
    assert [row["id"] for row in page["items"]] == [made[1]]
    assert page["pagination"] == {"page": 1, "pageSize": 1, "totalItems": 2, "totalPages": 2, "hasNextPage": True}
    rows = daemon.call("GET", "/v1/snapshots?state=ready&state=Failed").json()["items"]
    assert [row["id"] for row in rows][:3] == made[::-1]
    assert rows[0] == daemon.call("GET", f"/v1/snapshots/{made[2]}").json()
    assert daemon.call("GET", "/v1/snapshots?state=Creating").json()["items"] == []
    assert daemon.request("GET", "/v1/snapshots?page=0").status == 422
    for sandbox in (one, two):
        daemon.delete(sandbox)
    for row in made:
        daemon.call("DELETE", f"/v1/snapshots/{row}", expect=(204,))


def slow_source(daemon):
    """A sandbox whose snapshot takes long enough to be interrupted."""
    sandbox = daemon.create(resourceLimits={"cpu": "1", "memory": "512Mi", "disk": "200Mi"})
    daemon.output(sandbox, "mkdir /workspace/m; cd /workspace/m; seq 4000 | split -l 1 -a 4")
    return sandbox


def interrupted(daemon, sandbox, act):
    """Starts a snapshot and calls `act` while the helper writes."""
    made = snapshot(daemon, sandbox)
    tmp = daemon.state / "images" / "tmp"
    harness.wait_until(lambda: any(tmp.glob("*/layer/workspace")), 20, "the copy has begun")
    act()
    return made


def test_the_launcher_killed_in_the_middle_leaves_nothing_and_the_sandbox_runs(fresh_daemon):
    daemon = fresh_daemon
    sandbox = slow_source(daemon)
    made = interrupted(daemon, sandbox, lambda: os.kill(daemon.launcher(), signal.SIGKILL))
    row = settled(daemon, made)
    assert row["status"]["state"] == "Failed" and row["status"]["reason"] == "snapshot_runtime_failed", row
    assert daemon.output(sandbox, "echo thawed") == "thawed"
    assert daemon.get(sandbox)["status"]["state"] == "Running"
    harness.wait_until(lambda: leftovers(daemon) == [], 60, lambda: leftovers(daemon))
    harness.wait_until(lambda: "restarted" not in settled(daemon, snapshot(daemon, sandbox))["status"]["message"], 20, "the launcher is back")
    assert restore(daemon, ready(daemon, sandbox))


def test_serve_killed_in_the_middle_leaves_nothing_and_says_so(fresh_daemon):
    daemon = fresh_daemon
    sandbox = slow_source(daemon)
    made = interrupted(daemon, sandbox, daemon.kill_serve)
    daemon.restart()
    row = daemon.call("GET", f"/v1/snapshots/{made}").json()
    assert row["status"]["state"] == "Failed" and "restarted" in row["status"]["message"], row
    assert daemon.output(sandbox, "echo thawed") == "thawed"
    kept = ready(daemon, sandbox)
    assert [name for name in leftovers(daemon) if kept not in name] == []
    daemon.kill_serve()
    daemon.restart()
    assert daemon.output(restore(daemon, kept), "ls /workspace/m | wc -l") == "4000"


def test_a_sandbox_deleted_in_the_middle_ends_its_snapshot(fresh_daemon):
    daemon = fresh_daemon
    sandbox = slow_source(daemon)
    row = settled(daemon, interrupted(daemon, sandbox, lambda: daemon.delete(sandbox)))
    assert row["status"]["state"] in ("Failed", "Ready"), row
    harness.wait_until(lambda: [n for n in leftovers(daemon) if row["id"] not in n] == [], 60, lambda: leftovers(daemon))
