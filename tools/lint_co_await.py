#!/usr/bin/env python3
"""`co_await` stands alone: name the operand, await it, then use the value.

Compilers have destroyed the temporaries of a larger awaiting expression twice, or at the wrong time; a reader has to
guess the order. So an await may be a statement, the right side of `=` or `co_return`, or the value of a TRY macro or
of a plain call. It is flagged in the forms below.
"""
import re
import sys
from pathlib import Path

STRINGS = re.compile(r'R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'|//[^\n]*|/\*.*?\*/', re.S)
AWAIT = re.compile(r"\bco_await\b")


def blank(text):
    """Comments and literals become spaces, so that offsets and lines stay true."""
    return STRINGS.sub(lambda m: re.sub(r"[^\n]", " ", m.group()), text)


def statement_start(text, at):
    """Where the innermost statement or bracket around `at` begins, and that opening character (';' = statement)."""
    depth = 0
    for index in range(at - 1, -1, -1):
        char = text[index]
        if char in ")]}":
            if depth == 0 and char == "}":
                return index + 1, ";"
            depth += 1
        elif char in "([{":
            if depth == 0:
                return index + 1, char
            depth -= 1
        elif char == ";" and depth == 0:
            return index + 1, ";"
    return 0, ";"


def operand(text, at):
    """The awaited expression: from `at` to the end of its statement or enclosing bracket."""
    depth = 0
    for index in range(at, len(text)):
        char = text[index]
        if char in "([{":
            depth += 1
        elif char in ")]}":
            if depth == 0:
                return text[at:index]
            depth -= 1
        elif char in ";," and depth == 0:
            return text[at:index]
    return text[at:]


def outer(text):
    """The text without what stands in round brackets, and without `::`."""
    text, count = text.replace("::", "  "), 1
    while count:
        text, count = re.subn(r"\([^()]*\)", " ", text)
    return text


def before_problem(text, start):
    """What surrounds the await."""
    begin, opener = statement_start(text, start)
    prefix = text[begin:start]
    if opener == "(":
        keyword = re.search(r"\b(if|while|switch|for)(?:\s+constexpr)?\s*$", text[: begin - 1])
        if keyword and not (keyword.group(1) == "if" and ";" in prefix):
            declares = re.match(r"\s*(?:const\s+)?auto[&*\s]+\w+\s*=\s*$", prefix)
            if not declares:
                return f"in the condition of `{keyword.group(1)}`"
    if opener == "{":
        head = text[: begin - 1].rstrip()
        # A block follows `)`, `;`, `{`, `}`, `:`, or a keyword; anything else before `{` is a braced initialiser.
        is_block = not head or head[-1] in ");{}:" or re.search(r"\b(else|do|try|const|noexcept|mutable|override|final)$", head) or re.search(
            r"->\s*[\w:<>,\s*&]+$", head)
        if not is_block:
            return "in a braced initialiser"
    if "?" in outer(prefix):
        return "in a conditional expression"
    if re.search(r"&&|\|\|", outer(prefix)):
        return "after `&&` or `||`"
    return None


def after_problem(text, end):
    """What the await takes."""
    expression = operand(text, end)
    if re.search(r"\[[^\]\[]*\]\s*(?:\([^()]*\))?\s*(?:mutable\s*)?(?:->[^{]*)?\{", expression):
        return "with a lambda among its arguments"
    if re.search(r"[(,]\s*(?:[A-Za-z_][\w:<>]*\s*)?\{(?!\s*\})", expression):
        return "with a braced temporary among its arguments"
    if "?" in outer(expression) or re.match(r"\s*\([^;]*\?[^;]*\)\s*$", expression):
        return "with a conditional expression as its operand"
    return None


def check_text(name, text):
    clean = blank(text)
    for match in AWAIT.finditer(clean):
        why = before_problem(clean, match.start()) or after_problem(clean, match.end())
        if why:
            yield f"{name}:{clean.count(chr(10), 0, match.start()) + 1}: co_await {why}; name the value first"


def sources(root):
    return sorted(path.relative_to(root).as_posix() for folder in ("src", "tests") for path in (root / folder).rglob("*") if path.suffix in (".h", ".cc"))


def self_test():
    good = ["co_await f(name);", "auto x = co_await f(std::move(name));", "co_return co_await f(*std::move(r));",
            "CO_TRY(auto x, co_await f(name));", "void g() { co_await f(a::b(c)); }", "v.push_back(co_await a());",
            "if (ready) { co_await f(x); }", "auto x = co_await ns::f<A>(g(y), z);", "Task<void> C::m() const { co_await f(); }",
            'log("co_await f({})");', "// co_await f({1})\n", "for (auto& x : xs) co_await f(x);", "else { co_await f(); }",
            "auto r = [](X x) -> Task<void> { co_await f(x); };", "switch (k) { case K::a: co_await f(); }",
            "if (auto r = co_await f(x); !r) co_return;", "if (a && !b) co_await f();", "Task<int> g() override { co_await f(); }",
            "co_await f(x, c ? a() : b());", "co_await f(200, Headers{});", "if (a ? b : c) co_return co_await f(x);", "if (a || (b && c)) x = co_await f();"]
    bad = ["if (co_await f()) g();", "while (!co_await f()) {}", "auto x = c ? co_await a() : co_await b();", "Spec x{co_await s(), 1};",
           "co_await f([s] { return s; });", "co_await f(Spec{1, 2});", "co_await f({1});", "auto x = ok && co_await f();",
           "auto y = co_await (c ? f() : g());", "co_await f(a, Spec{.x = 1});", "return_value({co_await f()});"]
    for text in good:
        assert not list(check_text("good", text)), (text, list(check_text("good", text)))
    for text in bad:
        assert list(check_text("bad", text)), text
    assert next(check_text("f.cc", "\n\nif (co_await f()) g();")).startswith("f.cc:3:")
    print("lint_co_await: self-test passed")


def main():
    if "--self-test" in sys.argv[1:]:
        self_test()
        return 0
    root = Path(__file__).resolve().parent.parent
    files = sources(root)
    problems = [line for name in files for line in check_text(name, (root / name).read_text(encoding="utf-8"))]
    print("\n".join(problems) if problems else f"lint_co_await: {len(files)} files, every co_await stands alone")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
