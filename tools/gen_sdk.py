#!/usr/bin/env python3
"""Writes what the SDKs need not have by hand.

    gen_sdk.py            writes sdks/python/src/opensandbox_client/{_models.py,_sync/} and sdks/typescript/src/models.ts
    gen_sdk.py --check    writes nothing; fails and names the files that differ from what it would write

Models come from the schemas of spec/sessions.yaml. A schema that a request carries can be written as JSON, one that an answer carries
can be read from it; members an answer has beyond the schema are ignored, so that an old client works with a newer server.
The synchronous Python client (_sync/) is the asynchronous one (_aio/) with its words replaced, so that both have the same surface.
"""
import keyword
import re
import sys
import textwrap
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parent.parent
SPEC = ROOT / "spec" / "sessions.yaml"
PYTHON = ROOT / "sdks" / "python" / "src" / "opensandbox_client"
TYPESCRIPT = ROOT / "sdks" / "typescript" / "src"
WIDTH = 120


class SpecError(Exception):
    pass


def ref_name(schema):
    return schema["$ref"].rsplit("/", 1)[1] if "$ref" in schema else None


def camel(name):
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


# ---- the specification ----------------------------------------------------------------------------------------------


class Spec:
    def __init__(self, document):
        self.schemas = document["components"]["schemas"]
        self.written = self._closure(self._bodies(document, request=True))
        self.read = self._closure(self._bodies(document, request=False))

    @staticmethod
    def _bodies(document, request):
        """Names of the schemas that requests (or answers) carry."""
        answers = list(document["components"]["responses"].values())
        operations = [operation for path in document["paths"].values() for word, operation in path.items() if word != "parameters"]
        bodies = []
        for operation in operations:
            bodies += [operation.get("requestBody", {})] if request else operation["responses"].values()
        for body in bodies + ([] if request else answers):
            for media in body.get("content", {}).values():
                if name := ref_name(media["schema"]):
                    yield name

    def _closure(self, names):
        seen, left = set(), list(names)
        while left:
            name = left.pop()
            if name not in seen:
                seen.add(name)
                left += self._mentioned(self.schemas[name])
        return seen

    def _mentioned(self, schema):
        if name := ref_name(schema):
            return [name]
        inner = list(schema.get("properties", {}).values()) + schema.get("oneOf", [])
        inner += [schema[key] for key in ("items", "additionalProperties") if isinstance(schema.get(key), dict)]
        return [name for part in inner for name in self._mentioned(part)]

    def is_object(self, name):
        return "properties" in self.schemas[name]

    def members(self, name):
        """(name, schema, required) of each member, the required ones first."""
        schema = self.schemas[name]
        required = schema.get("required", [])
        unknown = set(required) - set(schema["properties"])
        if unknown:
            raise SpecError(f"{name} requires members it does not have: {sorted(unknown)}")
        return sorted(((member, part, member in required) for member, part in schema["properties"].items()), key=lambda entry: not entry[2])


def sentence(text):
    text = " ".join(text.split())
    return text if text.endswith((".", "?", "!")) else text + "."


# ---- Python ---------------------------------------------------------------------------------------------------------

PYTHON_HEAD = '''"""Values of the session API. Written by tools/gen_sdk.py from spec/sessions.yaml; change that, not this."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

_T = TypeVar("_T")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _maybe(read: Callable[[Any], _T], value: Any) -> _T | None:
    return None if value is None else read(value)


def _said(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}
'''


class Python:
    def __init__(self, spec):
        self.spec = spec

    def type(self, schema):
        if name := ref_name(schema):
            return name
        if "enum" in schema:
            return "Literal[" + ", ".join(f'"{value}"' for value in schema["enum"]) + "]"
        if "oneOf" in schema:
            return " | ".join(self.type(part) for part in schema["oneOf"])
        if schema["type"] == "object":
            return f"Mapping[str, {self.type(schema['additionalProperties'])}]"
        if schema["type"] == "array":
            return f"Sequence[{self.type(schema['items'])}]"
        if schema.get("format") == "date-time":
            return "datetime"
        return {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[schema["type"]]

    def reader(self, schema):
        """The name of a function that reads a value, or None where it is taken as it is."""
        name = ref_name(schema)
        if name:
            return f"{name}.from_json" if self.spec.is_object(name) else None
        return "_time" if schema.get("format") == "date-time" else None

    def read(self, member, schema, required, default):
        if schema.get("type") == "array":
            inner = self.reader(schema["items"])
            return f"[{inner}(item) for item in value.get(\"{member}\", ())]" if inner else f"list(value.get(\"{member}\", ()))"
        if schema.get("type") == "object":
            return f"dict(value[\"{member}\"])" if required else f"dict(value.get(\"{member}\", {{}}))"
        inner = self.reader(schema)
        if required:
            return f"{inner}(value[\"{member}\"])" if inner else f"value[\"{member}\"]"
        if inner:
            return f"_maybe({inner}, value.get(\"{member}\"))"
        return f"value.get(\"{member}\", {default})" if default != "None" else f"value.get(\"{member}\")"

    def write(self, member, schema, required):
        name = ref_name(schema)
        value = f"self.{member}"
        if schema.get("type") == "array":
            inner = ref_name(schema["items"])
            listed = f"[item.to_json() for item in {value}]" if inner and self.spec.is_object(inner) else f"list({value})"
            return listed if required else f"{listed} if {value} else None"
        if schema.get("type") == "object":
            return f"dict({value}) if {value} else None"
        if name and self.spec.is_object(name):
            return f"{value}.to_json()" if required else f"{value}.to_json() if {value} is not None else None"
        return value

    def default(self, name, schema, required):
        if required:
            return None
        if schema.get("type") == "array":
            return "()"
        if schema.get("type") == "object":
            return "field(default_factory=dict)"
        if "default" in schema and name not in self.spec.written:
            return repr(schema["default"])
        return "None"

    def annotation(self, schema, default):
        return self.type(schema) + (" | None" if default == "None" else "")

    def object(self, name):
        schema = self.spec.schemas[name]
        lines = ["@dataclass(frozen=True, kw_only=True)", f"class {name}:"]
        if "description" in schema:
            lines += docstring(schema["description"], 4) + [""]
        members = self.spec.members(name)
        for member, part, required in members:
            if keyword.iskeyword(member):
                raise SpecError(f"{name}.{member} is a word of Python")
            default = self.default(name, part, required)
            lines.append(f"    {member}: {self.annotation(part, default)}" + ("" if default is None else f" = {default}"))
            if "description" in part:
                lines += docstring(part["description"], 4)
        if name in self.spec.read:
            lines += ["", "    @classmethod", f"    def from_json(cls, value: Mapping[str, Any]) -> {name}:", "        return cls("]
            lines += [f"            {member}={self.read(member, part, required, self.default(name, part, required))},"
                      for member, part, required in members]
            lines.append("        )")
        if name in self.spec.written:
            lines += ["", "    def to_json(self) -> dict[str, Any]:", "        return _said({"]
            lines += [f"            \"{member}\": {self.write(member, part, required)}," for member, part, required in members]
            lines.append("        })")
        return lines

    def text(self):
        parts = [PYTHON_HEAD]
        for name, schema in self.spec.schemas.items():
            if name not in self.spec.read | self.spec.written:
                continue
            parts.append("\n".join(self.object(name) if self.spec.is_object(name) else [f"{name} = {self.type(schema)}"]) + "\n")
        return "\n\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def docstring(text, indent):
    space = " " * indent
    text = sentence(text).replace("\\", "\\\\")
    if len(text) + indent + 6 <= WIDTH:
        return [f'{space}"""{text}"""']
    return [f'{space}"""', *textwrap.wrap(text, WIDTH, initial_indent=space, subsequent_indent=space), f'{space}"""']


# ---- TypeScript -----------------------------------------------------------------------------------------------------

TYPESCRIPT_HEAD = """// Values of the session API. Written by tools/gen_sdk.py from spec/sessions.yaml; change that, not this.

/** An object as it is on the wire. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any
export type Json = Record<string, any>;

function said<T extends object>(members: T): T {
  for (const name of Object.keys(members) as (keyof T)[]) if (members[name] === undefined) delete members[name];
  return members;
}

function maybe<T>(read: (value: Json) => T, value: Json | undefined): T | undefined {
  return value === undefined ? undefined : read(value);
}
"""


class TypeScript:
    def __init__(self, spec):
        self.spec = spec

    def type(self, schema):
        if name := ref_name(schema):
            return name
        if "enum" in schema:
            return " | ".join(f"'{value}'" for value in schema["enum"])
        if "oneOf" in schema:
            return " | ".join(self.type(part) for part in schema["oneOf"])
        if schema["type"] == "object":
            return f"Record<string, {self.type(schema['additionalProperties'])}>"
        if schema["type"] == "array":
            inner = self.type(schema["items"])
            return f"readonly {inner}[]" if re.fullmatch(r"\w+", inner) else f"readonly ({inner})[]"
        if schema.get("format") == "date-time":
            return "Date"
        return {"string": "string", "integer": "number", "number": "number", "boolean": "boolean"}[schema["type"]]

    def read(self, name, member, schema, required):
        value = f"value.{member}"
        inner = ref_name(schema)
        if schema.get("type") == "array":
            item = ref_name(schema["items"])
            return f"({value} ?? []).map(read{item})" if item and self.spec.is_object(item) else f"{value} ?? []"
        if schema.get("type") == "object":
            return f"{value} ?? {{}}"
        if schema.get("format") == "date-time":
            return f"new Date({value})" if required else f"{value} === undefined ? undefined : new Date({value})"
        if inner and self.spec.is_object(inner):
            return f"read{inner}({value})" if required else f"maybe(read{inner}, {value})"
        if self.has_default(name, schema, required):
            return f"{value} ?? {str(schema['default']).lower()}"
        return value

    def write(self, member, schema):
        value = f"value.{camel(member)}"
        inner = ref_name(schema)
        if schema.get("type") == "array" and (item := ref_name(schema["items"])) and self.spec.is_object(item):
            return f"{value}?.map(write{item})"
        if inner and self.spec.is_object(inner):
            return f"{value} && write{inner}({value})"
        return value

    def has_default(self, name, schema, required):
        return not required and "default" in schema and name not in self.spec.written

    def always(self, name, schema, required):
        """Whether a value that was read always has the member."""
        filled = schema.get("type") in ("array", "object") and name not in self.spec.written
        return required or filled or self.has_default(name, schema, required)

    def object(self, name):
        schema = self.spec.schemas[name]
        lines = jsdoc(schema.get("description"), 0) + [f"export interface {name} {{"]
        members = self.spec.members(name)
        for member, part, required in members:
            lines += jsdoc(part.get("description"), 2)
            mark, tail = ("", "") if self.always(name, part, required) else ("?", " | undefined")
            lines.append(f"  {camel(member)}{mark}: {self.type(part)}{tail};")
        lines.append("}")
        if name in self.spec.read:
            lines += ["", f"export function read{name}(value: Json): {name} {{", "  return said({"]
            lines += [f"    {camel(member)}: {self.read(name, member, part, required)}," for member, part, required in members]
            lines += ["  });", "}"]
        if name in self.spec.written:
            lines += ["", f"export function write{name}(value: {name}): Json {{", "  return said({"]
            lines += [f"    {member}: {self.write(member, part)}," for member, part, _ in members]
            lines += ["  });", "}"]
        return lines

    def text(self):
        parts = [TYPESCRIPT_HEAD]
        for name, schema in self.spec.schemas.items():
            if name not in self.spec.read | self.spec.written:
                continue
            parts.append("\n".join(self.object(name) if self.spec.is_object(name) else [f"export type {name} = {self.type(schema)};"]))
        return "\n\n".join(part.rstrip("\n") for part in parts) + "\n"


def jsdoc(text, indent):
    if not text:
        return []
    space = " " * indent
    text = sentence(text).replace("*/", "*\\/")
    if len(text) + indent + 8 <= WIDTH:
        return [f"{space}/** {text} */"]
    return [f"{space}/**", *textwrap.wrap(text, WIDTH, initial_indent=f"{space} * ", subsequent_indent=f"{space} * "), f"{space} */"]


# ---- the synchronous client -----------------------------------------------------------------------------------------

WORDS = [
    (r"async (def|with|for) ", r"\1 "),
    (r"\bawait asyncio\.sleep\b", "time.sleep"),
    (r"\bawait asyncio\.to_thread\((\w+(?:\.\w+)*), ", r"\1("),
    (r"\bawait asyncio\.to_thread\((\w+(?:\.\w+)*)\)", r"\1()"),
    (r"\bawait ", ""),
    (r"\bimport asyncio\n(import os\n)?", r"\1import time\n"),
    (r"\bStopAsyncIteration\b", "StopIteration"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\ba(close|iter_bytes|iter_raw|iter_lines|read)\b", r"\1"),
    (r"\bAsync(?=[A-Z])", ""),
]


def synchronous(name, source):
    promise, body = re.fullmatch(r'"""(.*?)"""\n(.*)', source, re.DOTALL).groups()
    for pattern, words in WORDS:
        body = re.sub(pattern, words, body)
    if "time." not in body:
        body = body.replace("import time\n", "")
    if left := re.search(r"\b(async|await|asyncio)\b|\bAsync", body):
        raise SpecError(f"_aio/{name}: {left[0]!r} is left near: {body[max(0, left.start() - 60):left.end() + 20]!r}")
    return f'"""{promise}\n\nWritten by tools/gen_sdk.py from _aio/{name}; change that, not this.\n"""\n{body}'


def outputs():
    spec = Spec(yaml.safe_load(SPEC.read_text()))
    written = {PYTHON / "_models.py": Python(spec).text(), TYPESCRIPT / "models.ts": TypeScript(spec).text()}
    for source in sorted((PYTHON / "_aio").glob("*.py")):
        written[PYTHON / "_sync" / source.name] = synchronous(source.name, source.read_text())
    return written


def main(words):
    if words not in ([], ["--check"]):
        print(__doc__, file=sys.stderr)
        return 2
    stale = [path for path, text in outputs().items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if words:
            print(f"{path.relative_to(ROOT)} is stale: run tools/gen_sdk.py", file=sys.stderr)
        else:
            path.write_text(outputs()[path])
            print(f"wrote {path.relative_to(ROOT)}", file=sys.stderr)
    return 1 if words and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
