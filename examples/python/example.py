"""A sandbox from Python: a command, a program that streams, files in and out, limits that hold."""
from opensandbox_client import CommandDenied, SandboxClient

POLICY = {"rules": [{"name": "no-curl", "program": "curl", "action": "deny", "reason": "there is no network in here"}]}

PROGRAM = b"""
import collections, pathlib
words = pathlib.Path("text.txt").read_text().lower().split()
for word, count in collections.Counter(words).most_common(3):
    print(count, word, flush=True)
"""

with SandboxClient() as client, client.create_sandbox(timeout=120, memory_mb=128, pids=32, command_policy=POLICY) as sandbox:
    print("made", sandbox.session.image, "with", sandbox.session.resources.memory_mb, "MB")

    sandbox.upload_file(PROGRAM, "count.py")
    sandbox.upload_file(b"the cat saw the dog and the dog saw the cat", "text.txt")
    with sandbox.run("python3 count.py | tee counts.txt", stream=True) as stream:
        for event in stream:
            print(event.text, end="")
    print("exit", stream.exit.exit_code)
    print("downloaded", len(sandbox.download_file("counts.txt")), "bytes")

    late = sandbox.run("sleep 60", timeout=0.5)
    print("a command that hangs:", late.cause)
    greedy = sandbox.run(["python3", "-c", "bytearray(1 << 30)"])
    print("a command that wants a gigabyte:", greedy.cause, greedy.exit_code)
    try:
        sandbox.run("curl https://example.com/")
    except CommandDenied as refused:
        print("a command that is not allowed:", refused.rule)
