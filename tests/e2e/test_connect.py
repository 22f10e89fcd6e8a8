"""Connect and gRPC-Web on the session listener: node runs connect.test.mjs once, each of its cases is reported as one test here."""
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from grpc_tools import protoc

import harness
from grpc_setup import INCLUDE, SERVICE, SPEC, GrpcDaemon, generate_into

SUITE = Path(__file__).with_name("connect.test.mjs")
NAMES = re.findall(r"^test\('((?:[^'\\]|\\.)+)'", SUITE.read_text(), re.M)
MODULES = harness.ROOT / "build" / "node" / "node_modules"


@pytest.fixture(scope="module")
def door():
    with GrpcDaemon("connect") as daemon:
        yield daemon


@pytest.fixture(scope="module")
def workshop(tmp_path_factory):
    """A folder with the modules, the generated client and the suite."""
    folder = tmp_path_factory.mktemp("connect")
    (folder / "node_modules").symlink_to(MODULES)
    (folder / "package.json").write_text('{"type": "module"}')
    os.environ["PATH"] = f"{Path(os.environ['OSB_NODE']).parent}:{os.environ['PATH']}"
    code = protoc.main(["protoc", f"-I{SPEC}", f"-I{INCLUDE}", f"--plugin=protoc-gen-es={MODULES}/.bin/protoc-gen-es", f"--es_out={folder}",
                        "--es_opt=target=js", str(SPEC / "opensandbox/session/v1/session.proto")])
    assert code == 0
    shutil.copy(SUITE, folder)
    return folder


@pytest.fixture(scope="module")
def tap(door, workshop):
    environment = {**os.environ, "OSB_SESSIONS": f"http://127.0.0.1:{door.session_port}", "OSB_GRPC": f"http://127.0.0.1:{door.grpc_port}",
                   "OSB_API_KEY": door.key}
    done = subprocess.run([os.environ.get("OSB_NODE", "node"), "--test", "--test-reporter=tap", SUITE.name], cwd=workshop, env=environment,
                          capture_output=True, text=True, timeout=110)
    return done.stdout + done.stderr


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", NAMES)
def test_connect(tap, name):
    lines = tap.splitlines()
    verdicts = [index for index, line in enumerate(lines) if re.fullmatch(rf"\s*(not )?ok \d+ - {re.escape(name)}", line)]
    assert verdicts, f"node did not report this case:\n{tap[-3000:]}"
    assert "not ok" not in lines[verdicts[0]], "\n".join(lines[verdicts[0]:verdicts[0] + 40])


def post(door, method, body, headers=None, key=True):
    import http.client
    connection = http.client.HTTPConnection("127.0.0.1", door.session_port, timeout=30)
    sent = {"Content-Type": "application/json", **({"OPEN-SANDBOX-API-KEY": door.key} if key else {}), **(headers or {})}
    connection.request("POST", f"/{SERVICE}/{method}", body, sent)
    return harness.Answer(connection.getresponse())


def test_plain_json_is_enough(door):
    answer = post(door, "Run", '{"exec":{"command":"echo hello"}}')
    assert answer.status == 200 and answer.json()["stdout"] == "aGVsbG8K"
    wrong = post(door, "Run", '{"exec":{"comand":"echo"}}')
    assert wrong.status == 400 and wrong.json()["details"][0]["debug"]["metadata"]["field"] == "exec.comand"


def test_strangers_are_kept_out_as_from_rest(door):
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        answer = post(door, "ListSessions", "{}", headers)
        assert answer.status == 403 and answer.json()["code"] == "permission_denied", answer.body
    assert post(door, "ListSessions", "{}", {"OPEN-SANDBOX-API-KEY": "wrong"}).status == 401
    assert post(door, "ListSessions", "{}").status == 200


# ---- docs/grpc.md: every example runs as it is written, but for the ports

def example(door, language):
    text = (harness.ROOT / "docs" / "grpc.md").read_text()
    blocks = re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)
    assert len(blocks) == 1
    return blocks[0].replace("127.0.0.1:9111", f"127.0.0.1:{door.session_port}").replace("127.0.0.1:9112", f"127.0.0.1:{door.grpc_port}")


def run_example(words, folder, door):
    environment = {**os.environ, "OPENSANDBOX_API_KEY": door.key}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_example_for_curl(door, tmp_path):
    assert '"stdout":"aGVsbG8K"' in run_example(["sh", "-c", example(door, "sh")], tmp_path, door)


def test_the_example_for_python(door, tmp_path):
    generate_into(tmp_path)
    (tmp_path / "example.py").write_text(example(door, "python"))
    assert run_example([sys.executable, "example.py"], tmp_path, door) == "1\n2\n3\n"


def test_the_example_for_typescript(door, workshop):
    (workshop / "example.mjs").write_text(example(door, "js"))
    assert run_example([os.environ.get("OSB_NODE", "node"), "example.mjs"], workshop, door) == "hello\n"
