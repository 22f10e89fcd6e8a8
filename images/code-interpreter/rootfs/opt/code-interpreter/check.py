#!/usr/bin/env python3
"""Starts every kernel of this image in turn and runs a few cells in it: the proof that it works where it stands.

    opensandbox run --image opensandbox/code-interpreter -m 2Gi -- python3 /opt/code-interpreter/check.py [LANGUAGE...]

One line a language; the exit status is the number of those that failed.
"""
import sys
import time

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_client.manager import start_new_kernel

START = 90  # seconds until a kernel answers; they take one or two
CELL = 120

# What to run, and what must be in the answer: text in `stdout` or `result`, or the name in `error`.
CASES = {
    "python": [
        ("result = 2 + 2\nresult", "result", "4"),
        ("print('state', result + 1)", "stdout", "state 5"),
        ("undefined_name", "error", "NameError"),
        ("import numpy, pandas; print(pandas.DataFrame({'a': numpy.arange(3)})['a'].sum())", "stdout", "3"),
        ("import matplotlib.pyplot as plt\nplt.plot([1, 4, 9]); plt.show()", "png", "iVBOR"),
    ],
    "javascript": [
        ("console.log(3 + 4)", "stdout", "7"),
        ("let kept = 40", None, None),
        ("console.log('state', kept + 2)", "stdout", "state 42"),
        ("throw new Error('js-runtime-error')", "error or stderr", "js-runtime-error"),
    ],
    "typescript": [
        ("interface Point { x: number; y: number }\nconst p: Point = {x: 3, y: 4};\nconsole.log(`dist ${Math.hypot(p.x, p.y)}`)", "stdout", "dist 5"),
        ("const q: Point = {...p, x: 6};\nconsole.log('state', q.x + q.y)", "stdout", "state 10"),
        ("throw new Error('ts-runtime-error')", "error or stderr", "ts-runtime-error"),
    ],
    "java": [
        ('System.out.println("java-ok");\nint result = 2 + 2;\nresult', "result", "4"),
        ('System.out.println("state " + (result + 1));', "stdout", "state 5"),
        ("int x = 10 / 0;", "error", "EvalException"),
        ("import java.util.*;\nimport java.util.stream.*;\nList.of(1, 2, 3).stream().map(n -> n * n).collect(Collectors.toList())", "result", "[1, 4, 9]"),
        ('for (int i = 0; i < 3; i++) { Thread.sleep(10); System.out.println("tick " + i); }', "stdout", "tick 2"),
    ],
    "go": [
        ('package main\nimport "fmt"\nfunc main() {\n\tresult := 2 + 2\n\tfmt.Println("go-ok", result)\n}', "stdout", "go-ok 4"),
        ('package main\nimport (\n\t"fmt"\n\t"sort"\n\t"strings"\n)\nfunc main() {\n\tw := strings.Fields("b a")\n\tsort.Strings(w)\n\tfmt.Println(w)\n}', "stdout", "[a b]"),
        ('package main\nfunc main() {\n\tundefinedVariable++\n}', "error or stderr", "undefinedVariable"),
    ],
    "bash": [
        ("echo $((8+9))", "stdout", "17"),
        ("kept=state", None, None),
        ("echo $kept-ok", "stdout", "state-ok"),
        ("no_such_program_here", "error or stdout", "not found"),
    ],
}


def specs():
    """language -> name of its kernel."""
    found = KernelSpecManager().get_all_specs()
    return {spec["spec"]["language"]: name for name, spec in sorted(found.items())}


def run(client, code):
    answer = {"stdout": "", "stderr": "", "result": "", "error": "", "png": ""}

    def note(message):
        kind, content = message["msg_type"], message["content"]
        if kind == "stream":
            answer[content["name"]] += content["text"]
        elif kind in ("execute_result", "display_data"):
            answer["result"] += content["data"].get("text/plain", "")
            answer["png"] += content["data"].get("image/png", "")
        elif kind == "error":
            answer["error"] += f'{content["ename"]}: {content["evalue"]}'

    client.execute_interactive(code, timeout=CELL, output_hook=note, allow_stdin=False)
    return answer


def right(answer, where, wanted):
    if where is None:
        return not answer["error"]
    if where == "result":
        return answer["result"].strip() == wanted
    if where == "error":
        return answer["error"].split(":")[0] == wanted
    if where == "png":
        return answer["png"].startswith(wanted)
    return any(wanted in answer[place] for place in where.split(" or "))


def check(language, kernel):
    begun = time.monotonic()
    manager, client = start_new_kernel(kernel_name=kernel, startup_timeout=START)
    try:
        ready = first = time.monotonic() - begun
        for number, (code, where, wanted) in enumerate(CASES[language]):
            answer = run(client, code)
            if number == 0:
                first = time.monotonic() - begun
            if not right(answer, where, wanted):
                return f"FAILED: {code!r}: no {wanted!r} in {where}: { {k: v[-1500:] for k, v in answer.items() if v} }"
        return f"ok: ready after {ready:.2f} s, first result after {first:.2f} s, all after {time.monotonic() - begun:.2f} s"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def main(languages):
    there, failures = specs(), 0
    for language in languages or [name for name in CASES if name in there]:
        try:
            told = check(language, there[language]) if language in there else "FAILED: no kernel"
        except Exception as error:  # one language's failure must not hide another's
            told = f"FAILED: {type(error).__name__}: {error}"
        failures += told.startswith("FAILED")
        print(f"{language:12} {told}", flush=True)
    return failures


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
