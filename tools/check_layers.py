#!/usr/bin/env python3
"""Rooms include only rooms below them, and only the rooms they name here.

Reads every `#include "room/..."` under src/ and compares it with the table; fails on an edge that is not in the
table, on a room that is not in the table, on a cycle in the table itself, and on Asio or Beast seen from a room
that has no business with sockets. Tests beside the code may look at what their room may look at, and at nothing more.
"""
import re
import sys
from pathlib import Path

# Lowest first. A room may include itself and the rooms named after it.
ROOMS = {
    "base": "",
    "sys": "base",
    "model": "base",
    "async": "base",
    "http": "base async",
    "store": "base model",
    "audit": "base model",
    "image": "base sys model async http",
    "runtime": "base sys model async http image",
    "lifecycle": "base model async store audit image runtime",
    "proxy": "base model async http audit runtime lifecycle",
    "session": "base model async http audit runtime lifecycle proxy",
    "api": "base model async http lifecycle proxy session image",
    "grpc_door": "base sys async http",
    "enter": "base sys model",
    "launch": "base sys model enter",
    "confine": "base sys model enter launch",
    "execd": "base sys model async http enter",
    "daemon": "base sys model async http store audit image runtime lifecycle proxy session api",
    "cli": "base sys model async http image daemon",
}

# Who may name Asio, and who may name Beast: everyone else speaks through async/ and http/.
ASIO = {"async", "http", "runtime", "lifecycle", "proxy", "session", "api", "grpc_door", "execd", "daemon", "cli"}
BEAST = {"http"}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+(?:"([^"]+)"|<(boost/(?:asio|beast)[^>]*)>)', re.M)


def table_problems(rooms):
    """The table must be a list from low to high: then it has no cycle."""
    order = {name: index for index, name in enumerate(rooms)}
    for room, allowed in rooms.items():
        for other in allowed.split():
            if other not in order:
                yield f"table: {room} names the unknown room {other}"
            elif order[other] >= order[room]:
                yield f"table: {room} looks up to {other}"


def boost_problem(room, header):
    if header.startswith("boost/beast") and room not in BEAST:
        return f"includes <{header}>; only {', '.join(sorted(BEAST))} may"
    if header.startswith("boost/asio") and room not in ASIO:
        return f"includes <{header}>; {room} has no business with sockets"
    return None


def room_problem(room, header, rooms):
    target = header.split("/")[0]
    if "/" not in header:
        return f'includes "{header}" without its room'
    if target not in rooms or target == room or target in rooms[room].split():
        return None  # not a room: a generated or third-party header
    return f'includes "{header}"; {room} may look at: {rooms[room] or "nothing"}'


def check_file(name, text, rooms):
    """Yields 'file:line: why' for each include of one file. `name` is relative to src/."""
    room = name.split("/")[0]
    if room not in rooms:
        yield f"src/{name}: the room {room} is not in the table of tools/check_layers.py"
        return
    for match in INCLUDE.finditer(text):
        ours, boost = match.groups()
        why = boost_problem(room, boost) if boost else room_problem(room, ours, rooms)
        if why:
            yield f"src/{name}:{text.count(chr(10), 0, match.start()) + 1}: {why}"


def check_tree(src):
    problems = list(table_problems(ROOMS))
    files = sorted(path for path in src.rglob("*") if path.suffix in (".h", ".cc"))
    for path in files:
        problems += check_file(path.relative_to(src).as_posix(), path.read_text(encoding="utf-8"), ROOMS)
    return problems, len(files)


def self_test():
    def problems(name, text):
        return list(check_file(name, text, ROOMS))

    assert not list(table_problems(ROOMS))
    assert list(table_problems({"a": "b", "b": ""})), "an upward edge in the table is found"
    assert not problems("api/routes.cc", '#include "lifecycle/service.h"\n'), "downhill is fine"
    assert problems("lifecycle/service.cc", '#include "api/routes.h"\n'), "uphill is found"
    assert problems("launch/create.cc", '#include "http/http.h"\n'), "launch sees base, sys, model, enter only"
    assert problems("cli/run.cc", '#include "store/store.h"\n'), "the CLI does not touch the store"
    assert problems("model/limits.cc", "#include <boost/asio.hpp>\n"), "no sockets in model"
    assert problems("api/routes.cc", "#include <boost/beast/http.hpp>\n"), "Beast stays in http"
    assert not problems("http/server.cc", "#include <boost/beast/http.hpp>\n")
    assert problems("cellar/x.cc", ""), "an unknown room is found"
    assert problems("api/a.cc", '\n\n#include "daemon/config.h"\n')[0].startswith("src/api/a.cc:3:"), "with its line"
    print("check_layers: self-test passed")


def main():
    if "--self-test" in sys.argv[1:]:
        self_test()
        return 0
    problems, files = check_tree(Path(__file__).resolve().parent.parent / "src")
    print("\n".join(problems) if problems else f"check_layers: {files} files, {len(ROOMS)} rooms, every include goes downhill")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
