#!/usr/bin/env python3
"""gen_messages.py: what it knows becomes structs and tables, what it does not know stops the build."""
from gen_messages import Proto, header, json_name, tables

GOOD = """
syntax = "proto3";
package a.v1;
service S {
  rpc One(Inner) returns (stream Outer);  // a comment
}
message Outer {
  repeated Inner inner = 1;
  oneof what {
    bytes data = 2;
    string text = 3;
  }
  map<string, string> env = 4;
}
message Inner {}
"""


def refused(line):
    try:
        text = f"message M {{\n  {line}\n}}\n"
        header(Proto(text), "x")
    except SystemExit as stop:
        return str(stop)
    raise AssertionError(f"taken: {line}")


def main():
    proto = Proto(GOOD)
    assert proto.methods == [("One", None, "Inner", "stream ", "Outer")]
    structs, rows = header(proto, "x"), tables(proto, "x")
    assert structs.index("struct Inner") < structs.index("struct Outer"), "what is held comes first"
    assert "std::vector<Inner> inner;" in structs and "std::optional<std::string> data;" in structs and "StringMap env;" in structs
    assert 'Kind::bytes, 1, nullptr)' in rows and '{"One", false, true},' in rows and '"a.v1.S"' in rows
    assert json_name("max_output_bytes") == "maxOutputBytes"
    for line in ("enum E {", "repeated int32 n = 1;", "map<string, int32> m = 1;", "string name = 1 [deprecated = true];"):
        refused(line)
    assert "holds itself" in refused("M inner = 1;")
    print("gen_messages: tests passed")


if __name__ == "__main__":
    main()
