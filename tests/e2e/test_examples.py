"""The short examples do what their pages say, against a real daemon. Each cleans up after itself."""
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from harness import ROOT

EXAMPLES = ROOT / "examples"
NODE = os.environ.get("OSB_NODE", str(ROOT / "build" / "venv" / "bin" / "node"))

LIMITS = ["a command that hangs: timed_out", "a command that wants a gigabyte: out_of_memory 137", "a command that is not allowed: no-curl"]
COUNTS = ["made host with 128 MB", "4 the", "2 cat", "2 saw", "exit 0", "downloaded 18 bytes"]


@pytest.fixture
def run(daemon, tmp_path):
    """run(words): an example against the daemon; its lines. Nothing of it may be left in the daemon."""
    def run_one(*words, folder=tmp_path, **environment):
        before = {item["id"] for item in daemon.list()}
        paths = {"OPENSANDBOX_URL": daemon.sessions_url, "OPENSANDBOX_API_KEY": daemon.key, "PYTHONPATH": str(ROOT / "sdks" / "python" / "src")}
        done = subprocess.run([str(word) for word in words], cwd=folder, env={**os.environ, **paths, **environment}, capture_output=True, text=True,
                              timeout=60, stdin=subprocess.DEVNULL)
        assert done.returncode == 0, done.stdout + done.stderr
        assert {item["id"] for item in daemon.list()} <= before, "an example left a sandbox"
        return done.stdout.splitlines()

    return run_one


def test_python(run):
    assert run(sys.executable, EXAMPLES / "python" / "example.py") == COUNTS + LIMITS


def test_typescript(run, tmp_path):
    shutil.copy(EXAMPLES / "typescript" / "example.ts", tmp_path)
    modules = tmp_path / "node_modules"
    modules.mkdir()
    (modules / "opensandbox-client").symlink_to(ROOT / "sdks" / "typescript")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    assert run(NODE, "--disable-warning=ExperimentalWarning", "example.ts") == COUNTS + LIMITS


def test_typescript_types():
    """The example is what a careful reader's compiler accepts."""
    tools = ROOT / "build" / "typescript" / "node_modules"
    sdk = ROOT / "sdks" / "typescript" / "dist" / "index.d.ts"
    settings = {"compilerOptions": {"target": "ES2022", "module": "NodeNext", "strict": True, "noEmit": True, "types": ["node"], "typeRoots": [str(tools / "@types")],
                                    "lib": ["ES2023", "DOM", "DOM.AsyncIterable", "ESNext.Disposable"], "paths": {"opensandbox-client": [str(sdk)]}},
                "files": [str(EXAMPLES / "typescript" / "example.ts")]}
    project = ROOT / "build" / "example-tsconfig.json"
    project.write_text(json.dumps(settings))
    done = subprocess.run([NODE, tools / "typescript" / "bin" / "tsc", "-p", project], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stdout


def test_curl(run, daemon):
    # Without a key: root's own programs on the loopback need none.
    lines = run("sh", EXAMPLES / "curl" / "example.sh", OPENSANDBOX_API_KEY="")
    answers = [json.loads(line) for line in lines if line.startswith("{")]
    assert answers[0]["stdout"] == "hello from Linux\n" and answers[0]["exit_code"] == 0
    assert answers[1]["stdout"] == "3 sorted.txt\n"
    assert answers[2]["rule"] == "no-curl" and answers[2]["code"] == "COMMAND::DENIED"
    at = lines.index("1")
    assert lines[at:at + 3] == ["1", "2", "3"]
    events = [json.loads(line.removeprefix("data: ")) for line in lines if line.startswith("data: ")]
    assert [event["type"] for event in events][0] == "started" and events[-1]["exit"]["exit_code"] == 0
    assert "".join(event.get("data", "") for event in events if event["type"] == "stdout") == "tick 1\ntick 2\ntick 3\n"


def test_a_tool_for_agents_with_and_without_langchain(run, tmp_path):
    example = EXAMPLES / "langchain-tool" / "example.py"
    plain = ["described to a model as: run_in_sandbox", "exit code 0", "42", "", "exit code 1", "6 7", "cat: missing: No such file or directory", "",
             "refused by rule no-network: do not try to get around it"]
    lines = run(sys.executable, example)
    assert lines == plain + ["as a LangChain tool: run_in_sandbox ['command']", "exit code 0", "6 7", ""]
    # An installed package is as good as absent behind one of its name that is none.
    (tmp_path / "langchain_core.py").write_text("raise ImportError('not here')")
    paths = os.pathsep.join([str(ROOT / "sdks" / "python" / "src"), str(tmp_path)])
    assert run(sys.executable, example, PYTHONPATH=paths) == plain + ["langchain-core is not installed; everything above works without it"]


def test_a_code_interpreter_brings_a_chart(run, tmp_path):
    lines = run(sys.executable, EXAMPLES / "code-interpreter" / "chart.py")
    chart = Path(tmp_path / lines[-1].removeprefix("wrote "))
    content = chart.read_bytes()
    if chart.suffix == ".png":
        assert content.startswith(b"\x89PNG")
    else:
        assert lines[0] == "wettest: Jul"
        assert content.startswith(b"<svg") and content.count(b"<rect") == 13
