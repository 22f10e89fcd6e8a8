#!/usr/bin/env python3
"""Counts the instructions serve needs for create, exec and delete, and compares them with tests/guard/baseline.json.

guard_serve_path (tests/guard/serve_path.cc) sends a fixed input through the real code on one thread; callgrind counts the user-mode
instructions inside its measure_* functions, once with no other sandbox there and once with a thousand. Instructions do not depend
on how busy the machine is, so a change of a few per cent means something, and time is never asserted.

    ./dev guard              count and compare; fails when a count grew by more than the tolerance
    ./dev guard --update     count and write the baseline: commit it with the change that explains it
"""
import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BASELINE = ROOT / "tests" / "guard" / "baseline.json"
PROGRAM = "guard_serve_path"
OPERATIONS = ("create", "exec_first", "exec_next", "delete")
LIVE = (0, 1000)
TOLERANCE = 5  # per cent; runs differ by up to two, because ids are random and trees grow by them
UPDATE_RUNS = 3  # whose mean is the baseline
ELSEWHERE = 25  # per cent, where the compiler is not the one of the baseline
SECONDS = 240


def toolchain(build):
    """What decides the count besides the source: machine and compiler."""
    version = "unknown"
    for found in build.glob("CMakeFiles/*/CMakeCXXCompiler.cmake"):
        match = re.search(r'CMAKE_CXX_COMPILER_VERSION "([^"]+)"', found.read_text())
        version = match.group(1) if match else version
    return f"{platform.machine()}, clang {version}"


def name_of(operation, live):
    return operation if live == 0 else f"{operation} among {live}"


def start(build, live, folder):
    """callgrind on the program; one dump in `folder` for every measure_* function that returns."""
    words = ["valgrind", "--tool=callgrind", "--collect-atstart=no", "--toggle-collect=measure_*", f"--callgrind-out-file={folder}/out"]
    words += [f"--dump-after=measure_{operation}" for operation in OPERATIONS]
    return subprocess.Popen([*words, str(build / PROGRAM), str(live)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, "TMPDIR": str(folder.parent)})


def read_dumps(folder):
    """{operation: instructions} of all dumps of one run."""
    counts = {}
    for path in sorted(Path(folder).iterdir()):
        text = path.read_text(errors="replace")
        trigger = re.search(r"^desc: Trigger: --dump-after=measure_(\w+)", text, re.M)
        total = re.search(r"^(?:totals|summary): (\d+)", text, re.M)
        if trigger and total:
            counts[trigger.group(1)] = int(total.group(1))
    return counts


def count(build):
    """{name: instructions for one operation}, both populations side by side."""
    out = {}
    with tempfile.TemporaryDirectory(prefix="osb-guard-") as top:
        runs = []
        for live in LIVE:
            folder = Path(top) / str(live)
            folder.mkdir()
            runs.append((live, folder, start(build, live, folder)))
        for live, folder, process in runs:
            printed, complaints = process.communicate(timeout=SECONDS)
            counts = read_dumps(folder)
            if process.returncode != 0 or set(counts) != set(OPERATIONS) or not all(counts.values()):
                sys.exit(f"guard: {PROGRAM} {live} failed under valgrind (status {process.returncode})\n{complaints[-2000:]}")
            for operation in OPERATIONS:
                out[name_of(operation, live)] = round(counts[operation] / int(printed))
    return out


def compare(counts, baseline, tolerance):
    """(lines to print, names that grew too much)."""
    lines, worse = [], []
    for name, now in counts.items():
        before = baseline.get(name)
        if not before:
            lines.append(f"  {name:24} {now:>10,}   no baseline")
            worse.append(name)
            continue
        change = 100 * (now - before) / before
        verdict = "ok"
        if change > tolerance:
            verdict = f"MORE THAN +{tolerance} %"
            worse.append(name)
        elif change < -tolerance:
            verdict = "better: ./dev guard --update keeps it"
        lines.append(f"  {name:24} {now:>10,}   {before:>10,}   {change:+6.1f} %   {verdict}")
    return lines, worse


def self_test():
    baseline = {"create": 1000, "delete": 1000}
    _, worse = compare({"create": 1040, "delete": 500}, baseline, 5)
    assert worse == [], worse
    _, worse = compare({"create": 1060, "delete": 1000}, baseline, 5)
    assert worse == ["create"], worse
    _, worse = compare({"create": 1000, "exec": 1}, baseline, 5)
    assert worse == ["exec"], "what has no baseline is not guarded, and that is said"
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "out.1").write_text("desc: Trigger: --dump-after=measure_exec_first\nevents: Ir\nsummary: 7\n\ntotals: 7\n")
        Path(folder, "out").write_text("desc: Trigger: Program termination\ntotals: 9\n")
        assert read_dumps(folder) == {"exec_first": 7}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "release")
    parser.add_argument("--update", action="store_true", help="write the baseline")
    parser.add_argument("--self-test", action="store_true")
    options = parser.parse_args()
    if options.self_test:
        return self_test()
    tools = toolchain(options.build)
    if options.update:
        runs = [count(options.build) for _ in range(UPDATE_RUNS)]
        counts = {name: round(sum(run[name] for run in runs) / len(runs)) for name in runs[0]}
        BASELINE.write_text(json.dumps({"toolchain": tools, "instructions": counts}, indent=2) + "\n")
        print(f"guard: {BASELINE.relative_to(ROOT)} written for {tools}")
        return None
    counts = count(options.build)
    baseline = json.loads(BASELINE.read_text())
    tolerance = TOLERANCE if baseline["toolchain"] == tools else ELSEWHERE
    if tolerance != TOLERANCE:
        print(f"guard: the baseline is for {baseline['toolchain']}, this is {tools}: {tolerance} % are let pass")
    lines, worse = compare(counts, baseline["instructions"], tolerance)
    print("guard: instructions of serve for one operation, now and in the baseline\n" + "\n".join(lines))
    if worse:
        sys.exit(f"guard: {', '.join(worse)}: serve does more for the same request than it did.\n"
                 "  Find it:    valgrind --tool=callgrind build/release/guard_serve_path; callgrind_annotate --inclusive=yes callgrind.out.*\n"
                 "  Wanted it:  ./dev guard --update, and commit tests/guard/baseline.json with the reason")
    return None


if __name__ == "__main__":
    main()
