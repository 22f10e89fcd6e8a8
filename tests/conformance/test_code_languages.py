"""The six languages of the code-interpreter image, through the published SDK, in a sandbox of the real image.

The image takes minutes to build, so this runs only where somebody has built it:

    ./dev image build code-interpreter --to build/images/code-interpreter
"""
import base64
import json
import os
import threading
from datetime import timedelta
from pathlib import Path

import pytest
from harness import ROOT, Daemon

CodeInterpreterSync = pytest.importorskip("code_interpreter").CodeInterpreterSync
from opensandbox import SandboxSync  # noqa: E402
from opensandbox.config import ConnectionConfigSync  # noqa: E402
from opensandbox.models.execd_sync import ExecutionHandlersSync  # noqa: E402

LAYOUT = Path(os.environ.get("OSB_CODE_INTERPRETER", ROOT / "build" / "images" / "code-interpreter"))
BUILD = "./dev image build code-interpreter --to build/images/code-interpreter"
IMAGE = "opensandbox/code-interpreter:latest"
ENTRY = ["/opt/code-interpreter/code-interpreter.sh"]

pytestmark = [pytest.mark.skipif(not (LAYOUT / "index.json").exists(), reason=f"the image is not built: {BUILD}"), pytest.mark.timeout(600)]


class RealImages(Daemon):
    """The name of the published image means the image itself here, not the host."""

    def write_config(self):
        super().write_config()
        self.config.write_text(self.config.read_text().split("images:\n")[0])


@pytest.fixture(scope="module")
def with_image():
    with RealImages("languages") as daemon:
        done = daemon.cli("image", "import", str(LAYOUT), timeout=600)
        assert done.returncode == 0 and done.stdout.decode().strip() == IMAGE, done.stderr
        yield daemon


@pytest.fixture(scope="module")
def interpreter(with_image):
    config = ConnectionConfigSync(domain=f"127.0.0.1:{with_image.port}", api_key=with_image.key, request_timeout=timedelta(seconds=120))
    sandbox = SandboxSync.create(IMAGE, connection_config=config, timeout=timedelta(minutes=15), entrypoint=ENTRY,
                                 resource={"cpu": "2", "memory": "2Gi"},
                                 env={"PYTHON_VERSION": "3.12", "JAVA_VERSION": "21", "NODE_VERSION": "22", "GO_VERSION": "1.25"})
    try:
        made = CodeInterpreterSync.create(sandbox)
        yield made
        made.close()
    finally:
        sandbox.kill()
        sandbox.close()


def out(execution):
    return "".join(message.text for message in execution.logs.stdout)


def trouble(execution):
    """What a failed run says, wherever the kernel says it."""
    return (f"{execution.error.name} {execution.error.value}" if execution.error else "") + "".join(line.text for line in execution.logs.stderr)


def test_python_keeps_state_shows_results_names_errors_and_draws(interpreter):
    codes = interpreter.codes
    context = codes.create_context("python")
    done = codes.run("print('hello')\nresult = 2 + 2\nresult", context=context)
    assert done.result[0].text == "4" and "hello" in out(done) and done.error is None
    assert "state 5" in out(codes.run("print('state', result + 1)", context=context))
    assert codes.run("undefined_name", context=context).error.name == "NameError"
    other = codes.create_context("python")
    assert codes.run("result", context=other).error.name == "NameError"
    frame = codes.run("import numpy, pandas\npandas.DataFrame({'a': numpy.arange(4)})['a'].sum()", context=context)
    assert frame.error is None and "6" in frame.result[0].text
    drawn = codes.run("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.savefig('chart.png')", context=context)
    assert drawn.error is None
    assert codes.run("open('/workspace/chart.png', 'rb').read(4)", context=context).result[0].text == "b'\\x89PNG'"
    codes.delete_context(context.id)
    assert context.id not in [known.id for known in codes.list_contexts("python")]


def test_a_chart_that_is_shown_comes_back_as_a_picture(with_image, interpreter):
    """This SDK keeps only the text of a result, so the wire is asked."""
    body = {"code": "import matplotlib.pyplot as plt\nplt.plot([1, 4, 9])\nplt.show()", "context": {"language": "python"}}
    answer = with_image.execd(interpreter.id, "POST", "/code", body, timeout=120)
    events = [json.loads(line) for line in answer.body.decode().split("\n\n") if line.strip()]
    pictures = [event["results"]["image/png"] for event in events if "image/png" in event.get("results", {})]
    assert len(pictures) == 1 and base64.b64decode(pictures[0]).startswith(b"\x89PNG")


def test_python_is_interrupted_and_goes_on(interpreter):
    codes = interpreter.codes
    context = codes.create_context("python")
    begun, seen = threading.Event(), []
    handlers = ExecutionHandlersSync(on_stdout=lambda _: begun.set())
    loop = "import time\nprint('begun', flush=True)\nwhile True: time.sleep(0.1)"
    run = threading.Thread(target=lambda: seen.append(codes.run(loop, context=context, handlers=handlers)))
    run.start()
    assert begun.wait(120)
    codes.interrupt(context.id)
    run.join(60)
    assert seen[0].error.name == "KeyboardInterrupt"
    assert codes.run("40 + 2", context=context).result[0].text == "42"


def test_java_is_jshell_with_its_error_names(interpreter):
    codes = interpreter.codes
    context = codes.create_context("java")
    done = codes.run('System.out.println("java-ok");\nint result = 2 + 2;\nresult', context=context)
    assert done.result[0].text == "4" and "java-ok" in out(done)
    assert "state 5" in out(codes.run('System.out.println("state " + (result + 1));', context=context))
    assert codes.run("int x = 10 / 0;", context=context).error.name == "EvalException"
    stream = "import java.util.*;\nimport java.util.stream.*;\nList.of(1, 2, 3).stream().map(n -> n * n).collect(Collectors.toList())"
    assert codes.run(stream, context=context).result[0].text == "[1, 4, 9]"
    assert "tick 2" in out(codes.run('for (int i = 0; i < 3; i++) { Thread.sleep(20); System.out.println("tick " + i); }', context=context))


def test_go_compiles_whole_programs_without_a_network(interpreter):
    codes = interpreter.codes
    context = codes.create_context("go")
    program = 'package main\n\nimport (\n\t"fmt"\n\t"strings"\n)\n\nfunc main() {\n\tfmt.Println(strings.ToLower("GO-OK"), 2+2)\n}\n'
    done = codes.run(program, context=context)
    assert "go-ok 4" in out(done) and done.error is None
    assert "again" in out(codes.run('package main\nimport "fmt"\nfunc main() { fmt.Println("again") }', context=context))
    assert "undefinedVariable" in trouble(codes.run("package main\nfunc main() { undefinedVariable++ }", context=context))


def test_typescript_has_types_and_keeps_state(interpreter):
    codes = interpreter.codes
    context = codes.create_context("typescript")
    point = "interface Point { x: number; y: number }\nconst p: Point = {x: 3, y: 4};\nconsole.log(`dist ${Math.hypot(p.x, p.y)}`)"
    done = codes.run(point, context=context)
    assert "dist 5" in out(done) and done.error is None
    assert "state 10" in out(codes.run("const q: Point = {...p, x: 6};\nconsole.log('state', q.x + q.y)", context=context))
    assert "ts-runtime-error" in trouble(codes.run("throw new Error('ts-runtime-error')", context=context))
    assert trouble(codes.run("const wrong: number = 'text'", context=context))


def test_javascript_runs_and_keeps_state(interpreter):
    codes = interpreter.codes
    context = codes.create_context("javascript")
    assert "7" in out(codes.run("console.log(3 + 4)", context=context))
    codes.run("let kept = 40", context=context)
    assert "state 42" in out(codes.run("console.log('state', kept + 2)", context=context))


def test_bash_is_one_shell_and_its_contexts_are_listed_and_deleted(interpreter):
    codes = interpreter.codes
    context = codes.create_context("bash")
    assert "17" in out(codes.run("echo $((8+9))", context=context))
    codes.run("kept=state", context=context)
    assert "state-ok" in out(codes.run("echo $kept-ok", context=context))
    assert [known.language for known in codes.list_contexts("bash")] == ["bash"]
    codes.delete_contexts("bash")
    assert codes.list_contexts("bash") == []


def test_the_default_context_of_a_language_is_shared(interpreter):
    codes = interpreter.codes
    codes.run("shared = 7", language="python")
    assert codes.run("shared", language="python").result[0].text == "7"


def test_the_image_is_the_generic_one_of_the_published_suites(interpreter):
    done = interpreter.sandbox.commands.run("id -u nobody && id -gn nobody && curl --version | head -n 1 && bash -c 'echo bash' && python3 -c 'print(1)'")
    words = "".join(line.text for line in done.logs.stdout)
    assert done.error is None and "nogroup" in words and "curl" in words and "bash" in words
