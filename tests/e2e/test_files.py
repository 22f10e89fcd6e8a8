"""The file API under attack (catalog FA-01 to FA-12) and the command line over it, each denial with its positive control.

FA-09 (archives) has no test: the API unpacks nothing.
"""
import contextlib
import json
import os
import secrets
import socket
import threading
import time
from pathlib import Path
from urllib.parse import quote

import pytest
from harness import EXECD_PORT

CANARY = "CANARY-" + secrets.token_hex(8)


class Files:
    """The file API of one sandbox, spoken by hand."""

    def __init__(self, daemon, sandbox):
        self.daemon, self.sandbox, self.token = daemon, sandbox, daemon.token(sandbox)

    def ask(self, method, path, body=None, headers=None, timeout=60):
        return self.daemon.request(method, f"/sandboxes/{self.sandbox}/proxy/{EXECD_PORT}{path}", body, headers={**self.token, **(headers or {})}, key=False,
                                   timeout=timeout)

    def get(self, path, **headers):
        return self.ask("GET", f"/files/download?path={quote(path)}", headers={name.replace("_", "-"): value for name, value in headers.items()})

    def put(self, path, content, **more):
        return self.form(pair({"path": path, **more}, content))

    def form(self, body, boundary="B", **headers):
        return self.ask("POST", "/files/upload", body + f"--{boundary}--\r\n".encode(), {"Content-Type": f"multipart/form-data; boundary={boundary}", **headers})

    def run(self, command, **options):
        return self.daemon.output(self.sandbox, command, token=self.token, **options)


def part(name, content, boundary="B"):
    return f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"; filename="{name}"\r\n\r\n'.encode() + content + b"\r\n"


def pair(metadata, content, boundary="B"):
    return part("metadata", json.dumps(metadata).encode(), boundary) + part("file", content, boundary)


@pytest.fixture
def files(daemon, sandbox):
    return Files(daemon, sandbox)


@pytest.fixture
def canary():
    """A secret of the host that no path in a sandbox may lead to."""
    path = Path("/etc/sbx-canary")
    path.write_text(CANARY)
    yield path
    assert path.read_text() == CANARY, "the host's file is as it was"
    path.unlink()


def test_fa01_paths_mean_what_they_mean_inside(files, canary):
    for path in ("/tmp/../../etc/sbx-canary", "/proc/1/root/etc/sbx-canary", "/proc/self/cwd/etc/sbx-canary", "//etc//sbx-canary", "../" * 40 + "etc/sbx-canary",
                 "~root/sbx-canary", "$HOME/../../../etc/sbx-canary", "C:\\etc\\sbx-canary", "/proc/self/fd/0"):
        answer = files.get(path)
        assert answer.status in (400, 404) and CANARY.encode() not in answer.body, path
    raw = [files.ask("GET", f"/files/download?path={path}") for path in ("/%2e%2e/etc/sbx-canary", "/..%c0%af/etc/sbx-canary", "/tmp/%00/etc/sbx-canary", "%zz")]
    assert all(answer.status in (400, 404) and CANARY.encode() not in answer.body for answer in raw)
    assert files.put("/tmp/../../tmp/inside", b"in").status == 200
    assert files.get("/tmp/inside").body == b"in", "control: '..' stays below the sandbox's root"
    assert files.put("~/here", b"home").status == 200 and files.run("cat ~/here") == "home", "control: ~ is the sandbox's home"
    assert files.get("$NOT_SET_ANYWHERE/x").status == 400


def test_fa02_a_link_that_changes_under_us_never_leads_out(files, canary, rounds):
    files.run("mkdir -p /tmp/race/d && echo inside > /tmp/race/d/sbx-canary && ln -s /etc /tmp/race/l && ln -s d /tmp/race/x")
    swapper = ("import ctypes\nc=ctypes.CDLL(None)\nwhile True:\n  c.renameat2(-100,b'/tmp/race/d',-100,b'/tmp/race/l',2)")
    files.run(f"python3 -c \"{swapper}\" >/dev/null 2>&1 & echo started")
    seen = set()
    for _ in range(rounds(300, 60)):
        answer = files.get("/tmp/race/x/sbx-canary")
        assert CANARY.encode() not in answer.body
        seen.add(answer.status)
        assert files.put("/tmp/race/x/sbx-canary", b"inside\n").status in (200, 400, 404, 500)
    assert 200 in seen, "control: the race is also won the other way"


def test_fa03_fa04_what_is_no_file_ends_at_once(files, rounds):
    files.run("cd /tmp && mkfifo fifo && ln -s /proc/self/mem mem && ln -s /dev/zero zero && ln -s /dev/tty tty && ln -s /tmp/real link && echo real > real"
              " && python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/tmp/sock')\"")
    for name in ("/tmp/fifo", "/tmp/mem", "/tmp/zero", "/tmp/tty", "/tmp/sock", "/tmp", "/dev/null", "/proc/1/environ", "/proc/kmsg", "/proc/1/root"):
        started = time.monotonic()
        down, up = files.get(name), files.put(name, b"x")
        assert 400 <= down.status < 500, (name, down.status, down.body)
        assert 400 <= up.status <= 500, (name, up.status)
        assert time.monotonic() - started < 5, name
    assert files.run("test -p /tmp/fifo && test -c /dev/null && test -L /tmp/mem && echo kept") == "kept"
    assert files.put("/tmp/link", b"through").status == 200 and files.run("cat /tmp/real; readlink /tmp/link") == "through/tmp/real", "control"
    many = [threading.Thread(target=files.get, args=("/tmp/fifo",)) for _ in range(rounds(100, 20))]
    for thread in many:
        thread.start()
    for thread in many:
        thread.join(20)
        assert not thread.is_alive(), "no worker is stuck"
    assert files.ask("GET", "/ping").status == 200


def test_fa04_a_growing_file_ends(files):
    files.run("(while :; do head -c 65536 /dev/zero; done > /tmp/grow) & sleep 0.1; kill -STOP $!; ls /tmp/grow; kill -CONT $!; (sleep 2; kill $!) >/dev/null 2>&1 &")
    answer = files.get("/tmp/grow")
    assert answer.status == 200 and len(answer.body) == int(answer.headers["Content-Length"])


def test_fa05_names_cannot_break_a_header(files):
    long = "n" * 255
    assert files.put(f"/tmp/{long}", b"1").status == 200 and files.get(f"/tmp/{long}").status == 200, "control"
    assert files.put(f"/tmp/{long}n", b"1").status == 400
    assert files.get("/tmp/" + "a/" * 2046).status in (400, 404) and files.get("/tmp/" + "a/" * 2050).status == 400
    for name in ('q"uote', "semi;colon", "new\r\nSet-Cookie: a=b", "ünïcode", "back\\slash"):
        assert files.put(f"/tmp/{name}", name.encode()).status == 200
        answer = files.get(f"/tmp/{name}")
        assert answer.body == name.encode()
        assert "Set-Cookie" not in answer.headers and "\n" not in answer.headers["Content-Disposition"]


def test_fa06_uploads_that_go_wrong_leave_nothing(daemon, files):
    small = Files(daemon, daemon.create(resourceLimits={"cpu": "1", "memory": "256Mi", "disk": "64Mi"}))
    assert small.put("/workspace/ok", b"x" * 1_000_000).status == 200, "control"
    too_much = small.put("/workspace/big", b"x" * (128 << 20))
    assert too_much.status in (413, 507) and b"space" in too_much.body, too_much.body
    assert small.run("ls -A /workspace") == "ok"
    daemon.delete(small.sandbox)

    assert files.put("/tmp/u/empty", b"").status == 200 and files.run("wc -c < /tmp/u/empty").strip() == "0"
    assert files.form(pair({"path": "/tmp/u/a"}, b"1") * 1100).status == 413
    assert files.form(b"--B\r\n\r\nno name\r\n").status == 400
    long = "b" * 71
    assert files.form(pair({"path": "/tmp/u/a"}, b"1", long), long).status == 400
    assert files.form(pair({"path": "/tmp/u/a"}, b"1", "b" * 70), "b" * 70).status == 200, "control"
    nested = b"--C\r\n\r\nx\r\n--C--\r\n"
    assert files.put("/tmp/u/nested", nested).status == 200 and files.get("/tmp/u/nested").body == nested, "a form in a form is content"

    def aborted(length, sent):
        """The head promises more than comes, then the client is gone."""
        with socket.create_connection(("127.0.0.1", daemon.port)) as raw:
            head = "".join(f"{name}: {value}\r\n" for name, value in files.token.items())
            raw.sendall(f"POST /sandboxes/{files.sandbox}/proxy/{EXECD_PORT}/files/upload HTTP/1.1\r\nHost: x\r\n{head}"
                        f"Content-Type: multipart/form-data; boundary=B\r\nContent-Length: {length}\r\n\r\n".encode() + sent)
            raw.shutdown(socket.SHUT_WR)
            raw.settimeout(10)
            with contextlib.suppress(OSError):
                while raw.recv(65536):
                    pass

    files.put("/tmp/u/old", b"old")
    aborted(1_000_000, pair({"path": "/tmp/u/old"}, b"n" * 500_000)[:-2])
    aborted(1_000_000, pair({"path": "/tmp/u/fresh/new"}, b"n" * 500_000)[:-2])
    deadline = time.monotonic() + 5
    while files.run("ls -A /tmp/u | tr '\\n' ' '").split() != ["a", "empty", "nested", "old"]:
        assert time.monotonic() < deadline, files.run("ls -AR /tmp/u")
        time.sleep(0.05)
    assert files.get("/tmp/u/old").body == b"old"


def test_fa07_permissions_stay_within_the_sandbox(files):
    files.put("/tmp/p", b"x", mode=644)
    change = lambda what: files.ask("POST", "/files/permissions", json.dumps({"/tmp/p": what})).status
    for wrong in ({"mode": 4777}, {"mode": 7777}, {"mode": -1}, {"mode": 99999}, {"mode": 789}, {"owner": "-1"}, {"owner": "65536"}, {"owner": "4294967296"},
                  {"owner": "65533"}, {"group": "4294967295"}):
        assert change(wrong) == 400, wrong
    assert files.ask("POST", "/files/permissions", '{"/tmp/p":{"mode":07777}}').status == 400
    assert files.run("stat -c '%a %U' /tmp/p") == "644 " + files.run("id -un")
    assert change({"owner": "root", "mode": 755}) == 200, "control: names and numbers of the sandbox work"
    assert files.run("stat -c '%a %u' /tmp/p") == "755 0"
    assert change({"owner": "1234", "group": "nogroup"}) == 200 and files.run("stat -c '%u %G' /tmp/p") == "1234 nogroup"
    assert change({"owner": "nobody-has-this-name"}) == 200 and files.run("stat -c %u /tmp/p") == "1234"


def test_fa08_moves_are_all_or_nothing(files):
    move = lambda *pairs: files.ask("POST", "/files/mv", json.dumps([{"src": src, "dest": dest} for src, dest in pairs]))
    files.run("mkdir -p /tmp/m/d /workspace/m && echo 1 > /tmp/m/a && echo 2 > /tmp/m/b && mkdir -p /tmp/m/t/u && echo 3 > /tmp/m/t/u/v && chmod 600 /tmp/m/t/u/v")
    assert move(("/tmp/m/a", "/tmp/m/b")).status == 500 and move(("/tmp/m/a", "/tmp/m/a")).status == 500
    assert move(("/tmp/m/d", "/tmp/m/d/e")).status == 400 and move(("/tmp/m/none", "/tmp/m/x")).status == 404
    assert move(*[("/tmp/m/a", "/tmp/m/x")] * 10_000).status == 413
    assert files.run("cat /tmp/m/a /tmp/m/b") == "1\n2"
    assert move(("/tmp/m/a", "/tmp/m/new/a"), ("/tmp/m/t", "/workspace/m/t")).status == 200, "control: also to another mount"
    assert files.run("cat /tmp/m/new/a /workspace/m/t/u/v; stat -c %a /workspace/m/t/u/v; ls -A /tmp/m /workspace/m | grep -c osb || true") == "1\n3\n600\n0"
    files.run("mkfifo /tmp/m/d/f && echo x > /tmp/m/d/g")
    assert move(("/tmp/m/d", "/workspace/m/d")).status == 400
    assert files.run("ls -A /workspace/m /tmp/m/d | tr '\\n' ' '").split() == ["/tmp/m/d:", "f", "g", "/workspace/m:", "t"], "a move that failed left nothing"


def test_fa10_listing_and_search_are_bounded(files):
    files.run("mkdir -p /tmp/many && cd /tmp/many && seq 20000 | xargs touch && mkdir -p " + "/".join("d" * 100) + " && touch " + "/".join("d" * 100) + "/deep.txt")
    started = time.monotonic()
    assert len(files.ask("GET", "/directories/list?path=/tmp/many&depth=1000000000").json()) == 20_101
    found = files.ask("GET", "/files/search?path=/tmp/many&pattern=" + quote("{deep,shallow}.t?t"))
    assert [entry["path"].endswith("deep.txt") for entry in found.json()] == [True], "control"
    for pattern in ("{a,b}" * 20, "*a" * 100 + "b", "!(" + "|".join("ab") * 50 + ")"):
        assert files.ask("GET", "/files/search?path=/tmp/many&pattern=" + quote(pattern)).status in (200, 413)
    assert files.ask("GET", "/files/search?path=/tmp/many&pattern=" + quote("{" * 50 + "}" * 50)).status == 400
    assert files.ask("GET", "/files/search?path=/&pattern=*").status in (200, 413)
    assert time.monotonic() - started < 40
    assert files.ask("GET", "/ping").status == 200


def test_fa11_ranges_follow_the_standard(files):
    files.put("/tmp/r", b"0123456789")
    for wish, status, body in (("bytes=0-", 206, b"0123456789"), ("bytes=0-18446744073709551615", 206, b"0123456789"), ("bytes=-3", 206, b"789"),
                               ("bytes=2-3," + ",".join("4-5" for _ in range(1000)), 206, b"23"), ("bytes=-0", 416, None), ("bytes=5-1", 416, None),
                               ("bytes=10-", 416, None), ("bytes=x", 416, None), ("lines=1-2", 200, b"0123456789")):
        answer = files.get("/tmp/r", Range=wish)
        assert answer.status == status, wish[:40]
        assert body is None or answer.body == body
    assert files.get("/tmp/r", Range="bytes=10-").headers["Content-Range"] == "bytes */10"
    tag = files.get("/tmp/r").headers["ETag"]
    assert files.get("/tmp/r", Range="bytes=0-1", If_Range=tag).body == b"01"
    files.put("/tmp/r", b"changed")
    assert files.get("/tmp/r", Range="bytes=0-1", If_Range=tag).body == b"changed", "another file is sent whole"
    head = files.ask("HEAD", "/files/download?path=/tmp/r")
    assert head.status == 200 and head.headers["Content-Length"] == "7" and head.body == b""


def test_fa12_a_tree_that_grows_is_removed_or_named(files):
    files.run("mkdir -p /tmp/g && (i=0; while [ $i -lt 4000 ]; do mkdir -p /tmp/g/$i/a/b 2>/dev/null; touch /tmp/g/$i/a/f 2>/dev/null; i=$((i+1)); done; touch /tmp/written) >/dev/null 2>&1 &")
    started = time.monotonic()
    answer = files.ask("DELETE", "/directories?path=/tmp/g")
    assert answer.status in (200, 500) and time.monotonic() - started < 30, answer.body
    assert files.ask("GET", "/ping").status == 200
    files.run("while [ ! -e /tmp/written ]; do sleep 0.05; done")
    assert files.ask("DELETE", "/directories?path=/tmp/g").status == 200
    assert files.run("test ! -e /tmp/g && echo gone") == "gone"


def test_new_files_belong_to_the_payload(files):
    assert files.put("/tmp/own/dir/f", b"x").status == 200
    assert files.run("stat -c %U /tmp/own /tmp/own/dir /tmp/own/dir/f | sort -u") == files.run("id -un")
    assert files.run("ln -s /tmp/own/dir/f /tmp/l; echo y >> /tmp/own/dir/f; rm -r /tmp/own/dir && echo mine") == "mine"


def test_watch_tells_what_happens(files):
    files.run("mkdir -p /tmp/seen/sub && touch /tmp/seen/sub/old")
    connection = files.daemon.connection(timeout=20)
    connection.request("GET", f"/sandboxes/{files.sandbox}/proxy/{EXECD_PORT}/osb/v1/files/watch?path=/tmp/seen&recursive=true", headers=files.token)
    stream = connection.getresponse()
    assert stream.status == 200

    def events():
        while line := stream.readline():
            if line.strip():
                event = json.loads(line)
                if event["type"] != "ping":
                    yield event

    seen = events()
    assert json.loads(stream.readline())["type"] == "ping", "the watch stands when its first bytes come"
    told = []

    def until(kind, path):
        for event in seen:
            told.append(event)
            if (event["type"], event["path"]) == (kind, path):
                return

    files.run("echo x > /tmp/seen/sub/new; mv /tmp/seen/sub/new /tmp/seen/moved; chmod 600 /tmp/seen/moved; rm /tmp/seen/moved; mkdir /tmp/seen/fresh")
    until("created", "/tmp/seen/fresh")
    files.run("echo y > /tmp/seen/fresh/f")
    until("created", "/tmp/seen/fresh/f")
    files.run("rm -r /tmp/seen")
    until("nothing", "more")
    kinds = [(event["type"], event["path"]) for event in told]
    for expected in (("created", "/tmp/seen/sub/new"), ("modified", "/tmp/seen/sub/new"), ("moved", "/tmp/seen/moved"), ("attrib", "/tmp/seen/moved"), ("deleted", "/tmp/seen/moved"),
                     ("created", "/tmp/seen/fresh"), ("created", "/tmp/seen/fresh/f"), ("deleted", "/tmp/seen")):
        assert expected in kinds, (expected, kinds)
    assert [event["from"] for event in told if event["type"] == "moved"] == ["/tmp/seen/sub/new"]
    assert [event["seq"] for event in told] == list(range(1, len(told) + 1)), "numbered without a gap; the stream ends with what it watched"
    assert files.ask("GET", "/osb/v1/files/watch?path=/none").status == 404
    connection.close()


def test_what_happens_to_files_is_on_record(daemon, files):
    files.put("/tmp/audited", b"12345")
    files.ask("POST", "/files/mv", '[{"src":"/tmp/audited","dest":"/tmp/audited2"}]')
    files.ask("DELETE", "/files?path=%2Ftmp%2Faudited2")
    lines = [json.loads(line) for path in daemon.state.glob("audit*") for line in (path.read_text().splitlines() if path.is_file() else
             [line for inner in path.iterdir() for line in inner.read_text().splitlines()])]
    mine = {line["action"]: line["detail"] for line in lines if line["sandbox"] == files.sandbox}
    assert mine["file.uploaded"] == {"paths": "/tmp/audited", "files": "1", "bytes": "5"}
    assert "/tmp/audited2" in mine["file.move"]["body"] and mine["file.delete"]["paths"] == "/tmp/audited2"


def test_the_command_line_copies_and_looks(daemon, sandbox, tmp_path):
    def cli(*words, **options):
        return daemon.cli(*words, **options)

    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a.txt").write_text("hello")
    (tree / "sub" / "run.sh").write_bytes(bytes(range(256)) * 5000)
    (tree / "sub" / "run.sh").chmod(0o750)
    (tree / "link").symlink_to("a.txt")
    done = cli("cp", str(tree), f"{sandbox}:/tmp/")
    assert done.returncode == 0 and b"skipped" in done.stderr, done.stderr
    assert daemon.output(sandbox, "stat -c '%a' /tmp/tree/sub/run.sh; cat /tmp/tree/a.txt") == "750\nhello"
    assert cli("cp", f"{sandbox}:/tmp/tree", str(tmp_path / "back")).returncode == 0
    assert (tmp_path / "back" / "sub" / "run.sh").read_bytes() == (tree / "sub" / "run.sh").read_bytes()
    assert (tmp_path / "back" / "sub" / "run.sh").stat().st_mode & 0o777 == 0o750
    assert cli("cp", "-", f"{sandbox}:/tmp/piped", input=b"from stdin").returncode == 0
    assert cli("cp", f"{sandbox}:/tmp/piped", "-").stdout == b"from stdin"
    assert cli("cp", f"{sandbox}:/tmp/piped", str(tmp_path)).returncode == 0 and (tmp_path / "piped").read_text() == "from stdin"

    missing = cli("cp", f"{sandbox}:/none", str(tmp_path / "x"))
    assert missing.returncode == 1 and b"No such file" in missing.stderr and not (tmp_path / "x").exists()
    assert cli("cp", "a", "b").returncode == 2 and cli("cp", f"{sandbox}:/a", f"{sandbox}:/b").returncode == 2

    assert cli("files", "mkdir", "-m", "700", f"{sandbox}:/tmp/made/deep").returncode == 0
    assert cli("files", "mv", f"{sandbox}:/tmp/piped", "/tmp/made/deep").returncode == 0
    assert cli("files", "cat", f"{sandbox}:/tmp/made/deep/piped").stdout == b"from stdin"
    assert b"piped" in cli("files", "ls", f"{sandbox}:/tmp/made/deep").stdout
    told = json.loads(cli("files", "stat", "-o", "json", f"{sandbox}:/tmp/made/deep").stdout)
    assert (told[0]["mode"], told[0]["type"]) == (700, "directory")
    assert cli("files", "rm", f"{sandbox}:/tmp/made").returncode == 1
    assert cli("files", "rm", "-r", f"{sandbox}:/tmp/made").returncode == 0
    assert daemon.output(sandbox, "test ! -e /tmp/made && echo gone") == "gone"
