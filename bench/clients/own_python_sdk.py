"""create + run + destroy with our own Python SDK: one sample for each line on standard input, microseconds on standard output."""
import sys
import time

from opensandbox_client import SandboxClient

client = SandboxClient(*sys.argv[1:3])


def life():
    with client.create_sandbox(image="host", timeout=300, cpu_cores=1, memory_mb=256) as sandbox:
        done = sandbox.run("/bin/busybox echo hello")
    assert done.stdout == "hello\n", done


for _ in sys.stdin:
    start = time.perf_counter()
    try:
        life()
        answer = (time.perf_counter() - start) * 1e6
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".splitlines()[0]
    print(answer, flush=True)
