"""The examples of a README."""
import re


class Example:
    """A block of code in a README, and the output that stands below it."""

    def __init__(self, heading, code, expected):
        self.heading = heading
        self.code = code
        self.expected = expected

    def at(self, daemon):
        """The code for another daemon than the one it names."""
        code = self.code.replace("http://127.0.0.1:9111", daemon.sessions_url).replace("127.0.0.1:8080", f"127.0.0.1:{daemon.port}")
        return code.replace("/var/lib/opensandbox/api-key", str(daemon.state / "api-key"))


def examples(readme, language):
    """All blocks of that language, in order."""
    text = readme.read_text()
    found = []
    for block in re.finditer(rf"^```{language}\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", text, re.M | re.S):
        heading = re.findall(r"^## (.*)$", text[:block.start()], re.M)[-1]
        found.append(Example(heading, block[1], block[2]))
    return found
