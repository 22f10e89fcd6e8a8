#!/usr/bin/env python3
"""spec/*.proto -> plain C++ structs and the tables that the codecs of src/api/rpc walk.

usage: gen_messages.py FILE.proto OUT_DIR      writes OUT_DIR/session_messages.h (structs) and session_messages.inc (tables)

Knows the part of proto3 that the contract uses: messages, scalar and message fields, optional, repeated (not of numbers),
map<string, string>, oneof, unary and streaming methods. Anything else stops the build with its line.
"""
import re
import sys
from pathlib import Path

SCALARS = {
    "string": ("std::string", "text"), "bytes": ("std::string", "bytes"), "bool": ("bool", "boolean"),
    "int32": ("std::int32_t", "int32"), "uint32": ("std::uint32_t", "uint32"), "int64": ("std::int64_t", "int64"),
    "uint64": ("std::uint64_t", "uint64"), "double": ("double", "number"),
}
KNOWN = {"google.protobuf.Timestamp": "Timestamp"}
FIELD = re.compile(r"^(?:(optional|repeated)\s+)?([\w.]+|map<string,\s*string>)\s+(\w+)\s*=\s*(\d+);$")
METHOD = re.compile(r"^rpc (\w+)\((stream )?(\w+)\) returns \((stream )?(\w+)\);$")
KEYWORDS = {"signal": "signal", "exit": "exit", "stdin": "input", "stdout": "out", "stderr": "err"}


def json_name(name):
    return re.sub(r"_([a-z0-9])", lambda m: m.group(1).upper(), name)


class Proto:
    def __init__(self, text):
        self.package, self.messages, self.methods, self.service = "", {}, [], ""
        self.parse(text)

    def parse(self, text):
        where, oneof = None, 0
        for number, raw in enumerate(text.splitlines(), 1):
            line = raw.split("//")[0].strip()
            if not line or re.match(r"^(syntax|import)\b", line):
                continue
            if match := re.match(r"^package ([\w.]+);$", line):
                self.package = match.group(1)
            elif match := re.match(r"^service (\w+) \{$", line):
                self.service, where = match.group(1), "service"
            elif match := re.match(r"^message (\w+) \{(\})?$", line):
                self.messages[match.group(1)] = []
                where, oneof = (None, 0) if match.group(2) else (match.group(1), 0)
            elif where in self.messages and re.match(r"^oneof \w+ \{$", line):
                oneof += 1
                where = (where, oneof)
            elif line == "}":
                where = where[0] if isinstance(where, tuple) else None
            elif where == "service" and (match := METHOD.match(line)):
                self.methods.append(match.groups())
            elif where and where != "service" and (match := FIELD.match(line)):
                message, group = where if isinstance(where, tuple) else (where, 0)
                self.messages[message].append((*match.groups(), group))
            else:
                raise SystemExit(f"{number}: this is not of the proto that gen_messages.py knows: {raw}")


def cpp_field(label, kind, group):
    if kind.startswith("map"):
        return "StringMap", "map"
    base, code = SCALARS.get(kind, (KNOWN.get(kind, kind), "message"))
    if label == "repeated":
        if code not in ("text", "message"):
            raise SystemExit(f"repeated {kind} is not known here")
        return f"std::vector<{base}>", code
    if label == "optional" or group or code == "message":
        return f"std::optional<{base}>", code
    return base, code


def in_order(messages):
    """A struct comes after those it holds; a message that holds itself has no struct."""
    done, under_way = [], set()

    def visit(name):
        if name in done:
            return
        if name in under_way:
            raise SystemExit(f"{name} holds itself")
        under_way.add(name)
        for _, kind, _, _, _ in messages[name]:
            if kind in messages:
                visit(kind)
        done.append(name)

    for name in messages:
        visit(name)
    return done


def header(proto, source):
    out = [f"// Made from {source} by tools/gen_messages.py.", "#pragma once", "#include <cstdint>", "#include <optional>",
           "#include <string>", "#include <vector>", "", '#include "api/rpc/schema.h"', "", "namespace osb::api::rpc {", ""]
    for name in in_order(proto.messages):
        out.append(f"struct {name} {{")
        for label, kind, field, _, group in proto.messages[name]:
            cpp, _ = cpp_field(label, kind, group)
            zero = " = 0" if cpp in ("double", "std::int32_t", "std::uint32_t", "std::int64_t", "std::uint64_t") else ""
            zero = " = false" if cpp == "bool" else zero
            out.append(f"  {cpp} {KEYWORDS.get(field, field)}{zero};")
        out += ["};", f"template <>", f"const Schema& schema_of<{name}>();", ""]
    out += ["}  // namespace osb::api::rpc", ""]
    return "\n".join(out)


def tables(proto, source):
    out = [f"// Made from {source} by tools/gen_messages.py."]
    for name in in_order(proto.messages):
        out += ["template <>", f"const Schema& schema_of<{name}>() {{"]
        fields = proto.messages[name]
        if fields:
            out.append("  static constexpr Field kFields[] = {")
            for label, kind, field, number, group in fields:
                _, code = cpp_field(label, kind, group)
                inner = f"schema_of<{KNOWN.get(kind, kind)}>" if code == "message" else "nullptr"
                out.append(f'      field<&{name}::{KEYWORDS.get(field, field)}>({number}, "{field}", "{json_name(field)}", '
                           f"Kind::{code}, {group}, {inner}),")
            out += ["  };", f'  static constexpr Schema kSchema{{"{name}", kFields}};']
        else:
            out.append(f'  static constexpr Schema kSchema{{"{name}", {{}}}};')
        out += ["  return kSchema;", "}"]
    out.append(f'constexpr std::string_view kServiceName = "{proto.package}.{proto.service}";')
    out.append("constexpr MethodShape kMethodShapes[] = {")
    for name, client, _, server, _ in proto.methods:
        out.append(f'    {{"{name}", {"true" if client else "false"}, {"true" if server else "false"}}},')
    out += ["};", ""]
    return "\n".join(out)


def write(path, text):
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


def main():
    source, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    proto = Proto(source.read_text(encoding="utf-8"))
    write(folder / "session_messages.h", header(proto, source.name))
    write(folder / "session_messages.inc", tables(proto, source.name))


if __name__ == "__main__":
    main()
