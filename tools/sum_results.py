#!/usr/bin/env python3
"""Adds up the results of one `./dev test`: JUnit files and checks.txt in a folder. Prints one line; fails on a failure.

A suite that left no results counts as one failure: silence is not success.
"""
import sys
import xml.etree.ElementTree as xml
from pathlib import Path


def junit(path):
    """(passed, failed, skipped, names of the failed) of one JUnit file, counted case by case."""
    passed, failed, skipped, names = 0, 0, 0, []
    for case in xml.parse(path).getroot().iter("testcase"):
        if case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail":
            failed += 1
            names.append(f"{case.get('classname') or ''} {case.get('name')}".strip())
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
        else:
            passed += 1
    return passed, failed, skipped, names


def checks(path):
    lines = [line.split(" ", 1) for line in path.read_text().splitlines()]
    names = [name for word, name in lines if word == "failed"]
    return len(lines) - len(names), len(names), 0, names


def main(folder):
    folder = Path(folder)
    parts = []
    for name, reader in (("checks.txt", checks), ("ctest.xml", junit), ("pytest.xml", junit)):
        path = folder / name
        if path.exists():
            try:
                parts.append(reader(path))
            except xml.ParseError as error:
                parts.append((0, 1, 0, [f"{name}: unreadable ({error})"]))
        elif name != "checks.txt":
            parts.append((0, 1, 0, [f"{name}: the suite left no results"]))
    for name in [name for part in parts for name in part[3]]:
        print(f"failed: {name}")
    passed, failed, skipped = (sum(part[index] for part in parts) for index in range(3))
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
