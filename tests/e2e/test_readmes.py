"""Every fenced block of every page is run by a test: here, or by the test that is named here. A block nobody answers for fails.

What a block is, is said by its fence: none, sh, bash and console are commands; python, ts, js and the like are programs; json and yaml
are parsed; text, ini and other words are only shown, but for lines that begin with a program people would type.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from harness import PROGRAM, ROOT

COMMANDS = {"", "sh", "bash", "shell", "console"}
PROGRAMS = {"python", "py", "ts", "typescript", "js", "javascript", "c++", "cpp", "c", "java", "go"}
SHOWN = {"text", "ini", "proto", "diff", "http", "log"}  # what is only read
TYPED = re.compile(r"^(\$ )?(sudo )?(\./dev|opensandbox|curl|pip|npm|node|python3|docker|systemctl|journalctl|apt-get|install|cp) ")

# Pages whose blocks are all run by a test of their own, which has to name the page.
PAGES_OF_OTHERS = ["sdks/python/README.md", "sdks/typescript/README.md", "docs/sessions.md", "docs/grpc.md", "docs/command-policy.md", "docs/runtimes.md"]

# Commands, without remarks and spaces at the end, and who runs them. RUN: this file does, as written.
RUN = "run"
DAEMON, CHAT, EXAMPLES = "tests/e2e/test_daemon.py", "tests/e2e/test_agent_chat.py", "tests/e2e/test_examples.py"
SYSTEMD = "needs systemd as the first process; test_daemon.py has systemd read the unit and reloads without it"
TARBALL = "sdks/typescript/tests/test_package.py::test_it_works_in_an_empty_folder"
WHEEL = "sdks/python/tests/test_package.py::test_it_works_in_an_empty_environment"
SDK_OF_PYTHON = {"./dev sdks": WHEEL, "pip install build/sdks/opensandbox_client-0.1.0-py3-none-any.whl": WHEEL}
COMMAND_TESTS = {
    "README.md": {
        "./dev run -- python3 -c 'print(\"hello\")'": RUN,
        "./dev test": "this is it",
        "./dev serve &": f"{CHAT}::test_one_command_starts_everything_and_leaves_nothing",
        "./dev example agent-chat": f"{CHAT}::test_one_command_starts_everything_and_leaves_nothing",
    },
    "CONTRIBUTING.md": {
        "./dev build": "this suite begins with it",
        "./dev test": "this is it",
        "./dev lint && ./dev fmt": "run before a change is sent; layers and co_await are checks of ./dev test too",
    },
    "examples/agent-chat/README.md": {
        "./dev example agent-chat": f"{CHAT}::test_one_command_starts_everything_and_leaves_nothing",
        "LLM_BASE_URL=http://127.0.0.1:11434/v1 LLM_MODEL=qwen3 ./dev example agent-chat": f"{CHAT}::test_any_endpoint_that_speaks_chat_completions_can_answer",
        "./dev test --filter agent_chat": "this is it",
        "cp build/agent-chat/refused.png build/agent-chat/question.png build/agent-chat/fork-bomb.png examples/agent-chat/pictures/":
            f"{CHAT}::test_the_pictures_of_the_pages_can_be_made_anew",
    },
    "examples/python/README.md": {**SDK_OF_PYTHON, "python3 examples/python/example.py": f"{EXAMPLES}::test_python"},
    "examples/typescript/README.md": {
        "./dev sdks": TARBALL,
        "cd examples/typescript": "a change of folder",
        "npm install --no-save ../../build/sdks/opensandbox-client-0.1.0.tgz": TARBALL,
        "node example.ts": f"{EXAMPLES}::test_typescript",
    },
    "examples/curl/README.md": {"sh examples/curl/example.sh": f"{EXAMPLES}::test_curl"},
    "examples/langchain-tool/README.md": {
        **SDK_OF_PYTHON, "python3 examples/langchain-tool/example.py": f"{EXAMPLES}::test_a_tool_for_agents_with_and_without_langchain"},
    "examples/code-interpreter/README.md": {
        **SDK_OF_PYTHON,
        "python3 examples/code-interpreter/chart.py": f"{EXAMPLES}::test_a_code_interpreter_brings_a_chart",
        "./dev image build code-interpreter": "tests/e2e/test_recipes.py::test_the_image_is_imported_and_runs_in_a_sandbox",
        "OPENSANDBOX_IMAGE=opensandbox/code-interpreter:latest python3 examples/code-interpreter/chart.py": f"{EXAMPLES}::test_a_code_interpreter_brings_a_chart",
    },
    "docs/images.md": {
        "opensandbox image pull registry.example/tools/python:3.12": "tests/e2e/test_image_pull.py::test_two_images_of_a_real_registry_share_their_layers_and_run",
        "opensandbox image ls": "tests/e2e/test_image_pull.py::test_two_images_of_a_real_registry_share_their_layers_and_run",
        "opensandbox run --image registry.example/tools/python:3.12 -- python3 -V": "tests/e2e/test_image_pull.py::test_run_waits_for_its_image_and_leaves_nothing_when_there_is_none",
        "opensandbox image inspect registry.example/tools/python:3.12": "tests/e2e/test_image_pull.py::test_two_images_of_a_real_registry_share_their_layers_and_run",
        "opensandbox image rm registry.example/tools/python:3.12": "tests/e2e/test_image_pull.py::test_two_images_of_a_real_registry_share_their_layers_and_run",
        "opensandbox image prune": "tests/e2e/test_image_pull.py::test_prune_and_the_bound_remove_what_nothing_needs",
        "opensandbox image prune --all": "tests/e2e/test_image_pull.py::test_prune_and_the_bound_remove_what_nothing_needs",
    },
    "docs/code-interpreter.md": {
        "sudo apt-get install mmdebstrap": "a package of the system",
        "sudo opensandbox image build code-interpreter": "tests/e2e/test_recipes.py::test_the_image_is_imported_and_runs_in_a_sandbox",
    },
    "bench/README.md": {
        "bench/lifecycle/lifecycle.py -n 100": "tests/e2e/test_bench_lifecycle.py::test_both_tell_the_same_rows",
        "bench/lifecycle/lifecycle.mjs -n 100": "tests/e2e/test_bench_lifecycle.py::test_both_tell_the_same_rows",
    },
    "docs/operations.md": {
        "opensandbox daemon start --config ./sandbox-config.yaml": f"{DAEMON}::test_start_status_stop",
        "opensandbox daemon status [--json]": f"{DAEMON}::test_start_status_stop",
        "opensandbox daemon status": f"{DAEMON}::test_start_status_stop",
        "opensandbox daemon reload": f"{DAEMON}::test_reload_tells_what_changed_and_what_waits",
        "opensandbox daemon stop [--timeout 30s]": f"{DAEMON}::test_start_status_stop",
        "install -d -m 0755 /etc/opensandbox": SYSTEMD,
        "install -m 0644 deploy/sandbox-config.yaml /etc/opensandbox/sandbox-config.yaml": SYSTEMD,
        "install -m 0644 deploy/opensandbox.service /etc/systemd/system/opensandbox.service": SYSTEMD,
        "systemctl daemon-reload": SYSTEMD,
        "systemctl enable --now opensandbox": SYSTEMD,
        "systemctl reload opensandbox": SYSTEMD,
        "journalctl -u opensandbox": SYSTEMD,
    },
    "docs/performance.md": {
        "./dev bench --start-docker --sustain 60 --density 100,1000,10000 --write-docs": "tests/e2e/test_bench.py::test_every_row_has_numbers_or_a_reason",
    },
}

# Programs by the first line of their block, and who runs them.
PROGRAM_TESTS = {
    "README.md": {"from opensandbox import SandboxSync": RUN, "from opensandbox_client import SandboxClient": RUN},
    "docs/code-interpreter.md": {
        "from datetime import timedelta": "tests/conformance/test_code_languages.py::test_python_keeps_state_shows_results_names_errors_and_draws",
        "codes.run('List.of(1, 2, 3).stream().map(n -> n * n).toList()', language=\"java\").result[0].text      # [1, 4, 9]":
            "tests/conformance/test_code_languages.py::test_java_is_jshell_with_its_error_names",
    },
}

FENCE = re.compile(r"^(?P<indent> *)```(?P<language>[\w+-]*)[^\n]*\n(?P<text>.*?)^(?P=indent)```\s*$", re.MULTILINE | re.DOTALL)


def pages():
    """The pages of the repository: what git knows, where there is git; nothing that was built or downloaded."""
    listed = subprocess.run(["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"], cwd=ROOT, capture_output=True, text=True)
    names = listed.stdout.split() if listed.returncode == 0 else []
    skipped = {"build", "node_modules", ".git", "dist", "__pycache__"}
    return sorted(names or (str(path.relative_to(ROOT)) for path in ROOT.rglob("*.md") if not skipped & set(path.relative_to(ROOT).parts)))


def blocks(page):
    for found in FENCE.finditer((ROOT / page).read_text()):
        yield found["language"].lower(), re.sub(rf"^{found['indent']}", "", found["text"], flags=re.MULTILINE)


def commands(text):
    """The lines of a block, those that are continued as one, without prompts and remarks."""
    for line in text.replace("\\\n", " ").splitlines():
        line = re.sub(r"\s+#.*$", "", re.sub(r"^\$ ", "", line.strip())).strip()
        if line and not line.startswith("#"):
            yield re.sub(r"\s+", " ", line) if "'" not in line else line


def owned():
    """(page, kind, key, text) of each thing that has to be answered for."""
    for page in pages():
        if page in PAGES_OF_OTHERS:
            continue
        for language, text in blocks(page):
            if language in COMMANDS:
                yield from ((page, "command", line, line) for line in commands(text))
            elif language in PROGRAMS:
                yield page, "program", text.splitlines()[0], text
            elif language in ("json", "yaml", "yml"):
                yield page, "data", language, text
            else:
                # An explanation may stand behind the command, set off by spaces.
                yield from ((page, "command", key, key) for line in text.splitlines() if TYPED.match(line) for key in [re.split(r"\s{2,}", line)[0]])
                assert language in SHOWN, f"{page}: a block marked {language!r}: say in {Path(__file__).name} what becomes of such blocks"


OWNED = list(owned())


def answer_for(page, kind, key):
    return {"command": COMMAND_TESTS, "program": PROGRAM_TESTS}[kind].get(page, {}).get(key)


def must_exist(test, where):
    """`file::function` names a test that is there. Words without :: are a reason."""
    if "::" not in test:
        return
    file, function = test.split("::")
    path = ROOT / file
    assert path.exists(), f"{where}: {file} is not there"
    assert re.search(rf"^\s*(async )?def {re.escape(function)}\(", path.read_text(), re.MULTILINE), f"{where}: {file} has no {function}"


def test_every_block_has_somebody_who_runs_it():
    orphans = []
    for page, kind, key, _ in OWNED:
        if kind == "data":
            continue
        answer = answer_for(page, kind, key)
        if answer is None:
            orphans.append(f"{page}: {key}")
        elif answer != RUN:
            must_exist(answer, f"{page}: {key}")
    assert not orphans, f"run by no test; write one, and name it in {Path(__file__).name}:\n  " + "\n  ".join(orphans)


def test_nothing_is_listed_that_no_page_says():
    said = {(page, key) for page, _, key, _ in OWNED}
    listed = {(page, key) for table in (COMMAND_TESTS, PROGRAM_TESTS) for page, keys in table.items() for key in keys}
    assert not (gone := listed - said), f"no page says this any more: {sorted(gone)}"


def test_pages_with_a_test_of_their_own_are_named_by_it():
    tests = [path for folder in ("tests", "sdks") for path in (ROOT / folder).rglob("*test*") if path.suffix in (".py", ".mjs", ".ts") and
             "node_modules" not in path.parts and path != Path(__file__).resolve()]
    texts = {path: path.read_text(errors="replace") for path in tests}
    orphans = []
    for page in PAGES_OF_OTHERS:
        if not (ROOT / page).exists():
            continue
        home = str(Path(page).parent)
        named = [path for path, text in texts.items()
                 if page in text or Path(page).name in text and (home in text or str(path.relative_to(ROOT)).startswith(f"{home}/"))]
        if not named:
            orphans.append(page)
    assert not orphans, f"no test names these pages, so nobody runs their examples: {orphans}"


def test_data_in_pages_can_be_parsed():
    for page, kind, language, text in OWNED:
        if kind == "data":
            try:
                json.loads(text) if language == "json" else list(yaml.safe_load_all(text))
            except ValueError as error:
                raise AssertionError(f"{page}: {error}\n{text}") from error
            except yaml.YAMLError as error:
                raise AssertionError(f"{page}: {error}\n{text}") from error


@pytest.mark.parametrize("page, key, text", [pytest.param(page, key, text, id=f"{page}: {key[:50]}") for page, kind, key, text in OWNED
                                             if kind == "command" and answer_for(page, kind, key) == RUN])
def test_commands_of_a_page_run_as_written(page, key, text, daemon):
    if PROGRAM.parent.name != "release":  # ./dev would build what is not under test
        text = text.replace("./dev", str(PROGRAM))
    environment = {**os.environ, "OPENSANDBOX_HOST": f"unix://{daemon.run_dir}/api.sock", "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
    done = subprocess.run(["bash", "-euc", text], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, f"{page}: {key}\n{done.stdout}\n{done.stderr}"
    if "hello" in key:
        assert "hello" in done.stdout


@pytest.mark.parametrize("page, text", [pytest.param(page, text, id=f"{page}: {key}") for page, kind, key, text in OWNED
                                        if kind == "program" and answer_for(page, kind, key) == RUN])
def test_programs_of_a_page_run_as_written(page, text, daemon, tmp_path):
    """As written, but for the address and the key of the daemon: those of the one under test."""
    for usual, ours in {"127.0.0.1:8080": f"127.0.0.1:{daemon.port}", "/var/lib/opensandbox/api-key": str(daemon.state / "api-key")}.items():
        text = text.replace(usual, ours)
    environment = {**os.environ, "OPENSANDBOX_URL": daemon.sessions_url, "OPENSANDBOX_API_KEY": daemon.key, "PYTHONPATH": str(ROOT / "sdks" / "python" / "src")}
    done = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "hello" in done.stdout
