"""Shell lines made at random from the grammar of shells, with the program `mark` here and there: as a command, as data, quoted, nested."""
import random


class Lines:
    def __init__(self, seed):
        self.random = random.Random(seed)

    def pick(self, *choices):
        return self.random.choice(choices)

    def quoted(self, word):
        """The word as it is, or written in one of the ways a shell reads as the same word."""
        at = self.random.randrange(len(word) + 1)
        return self.pick(word, word, word, f"'{word}'", f'"{word}"', word[:at] + self.pick("''", '""', "\\\n") + word[at:], f'{word[:1]}"{word[1:]}"',
                         "".join(("\\" if self.random.random() < 0.4 else "") + c for c in word),
                         "$'" + "".join(f"\\x{ord(c):02x}" if self.random.random() < 0.5 else c for c in word) + "'")

    def single(self, text):
        return "'" + text.replace("'", "'\\''") + "'"

    def word(self, depth):
        kind = self.random.random()
        if kind < 0.3:
            return self.single(self.pick("mark", ";mark", "$(mark)", "`mark`", "\nmark\n", "a b", "# mark"))
        if kind < 0.65 or depth <= 0:
            return self.pick("x", "mark", "-n", "--", "1", "*", "x*", "~", "[x]", "{}", "a=b", "#x", "x#y", "\\;", "'#'", '"\\""', "$X", '"$X"', "$?",
                             "${Y:-x}", "$((1+2))", "$((1<<2))", '"a;mark"', "a\\;mark")
        if kind < 0.8:
            return "$(" + self.list(depth - 1) + self.pick("", " ", "\n") + ")"
        if kind < 0.88:
            return '"a $(' + self.list(depth - 1) + "\n" + ') b"'
        if kind < 0.94:
            return "`" + self.list(0).replace("\\", "\\\\").replace("`", "\\`") + "`"
        return "<(" + self.list(depth - 1) + "\n)"

    def program(self, depth):
        kind = self.random.random()
        if kind < 0.06:
            return self.quoted("mark")
        if kind < 0.12:
            return self.pick("command ", "exec ", "env A=1 ", "timeout 5 ", "nohup ", "A=b ", "! ", "time ", "nice -n 1 ") + self.program(depth)
        if kind < 0.16:
            return self.pick("sh -c ", "bash -c ", "bash -ec ", "eval ", "bash -o errexit -c ") + self.single(self.list(max(0, depth - 1))) + " #"
        if kind < 0.18:
            return "trap " + self.single(self.list(0)) + " EXIT;:"
        if kind < 0.2:
            return "echo x | xargs " + self.program(depth)
        return self.quoted(self.pick("echo", "true", "printf", ":"))

    def redirection(self):
        return self.pick("", "", "", " >f", " 2>&1", " >>f", " </dev/null", " <<<x", " &>f", " >|f", " {fd}>f")

    def simple(self, depth):
        words = [self.pick("", "", ">f ", "2>&1 ", "X=1 ", "Q=$(echo) ", 'X="a b" ') + self.program(depth)]
        words += [self.pick("", "\\\n") + self.word(depth) for _ in range(self.random.randint(0, 3))]
        return " ".join(words) + self.redirection()

    def here_document(self):
        mark = self.pick("E", "'E'", '"E"', "\\E", "-E")
        body = self.pick("mark", "x", "$(echo)", "`true`", "\tmark", "'", '"', ")", "esac")
        return f"cat <<{mark}{self.pick('', ' >f', ' && echo', ' | cat')}\n{body}\nE\n"

    def command(self, depth):
        if depth <= 0 or self.random.random() < 0.45:
            return self.simple(depth)
        inner = self.list(depth - 1)
        return self.pick(
            f"({inner}\n){self.redirection()}", f"{{ {inner}\n}}{self.redirection()}",
            f"if {self.simple(depth - 1)}\nthen {inner}\nfi", f"if true; then :; else {inner}\nfi", f"for i in {self.word(depth - 1)} x; do {inner}\ndone",
            f"case x in {self.pick('', '(')}{self.pick('x', '*', 'y|x')}) {inner}\n;; esac", f"f() {{ {inner}\n}}\nf", f"function f {{ {inner}\n}}",
            f"while {self.simple(depth - 1)} && false; do {inner}\ndone", f"[[ {self.pick('-n x', 'x == y', '! -f y')} ]] || {self.simple(depth - 1)}",
            f"(( {self.pick('1', 'X=1', 'i++', '1<2')} )) && {self.simple(depth - 1)}", self.here_document())

    def list(self, depth):
        out = self.command(depth)
        for _ in range(self.random.randint(0, 2)):
            out += "" if out.endswith("\n") else self.pick("; ", " && ", " || ", " | ", "\n", " & ", " # mark\n", " # it's\n")
            out += self.command(depth)
        return out

    def line(self):
        return self.list(self.random.randint(0, 3))
