"""create + run + kill with the published Python SDK: one sample for each line on standard input, microseconds on standard output."""
import logging
import sys
import time
from datetime import timedelta

from opensandbox import SandboxSync
from opensandbox.config import ConnectionConfigSync

logging.getLogger("opensandbox").setLevel(logging.CRITICAL)
domain, key = sys.argv[1:3]
config = ConnectionConfigSync(domain=domain, api_key=key, request_timeout=timedelta(seconds=30))


def life():
    box = SandboxSync.create("host", timeout=timedelta(minutes=5), resource={"cpu": "1", "memory": "256Mi"}, connection_config=config)
    try:
        done = box.commands.run("/bin/busybox echo hello")
        assert [message.text for message in done.logs.stdout] == ["hello"], done
    finally:
        box.kill()
        box.close()


for _ in sys.stdin:
    start = time.perf_counter()
    try:
        life()
        answer = (time.perf_counter() - start) * 1e6
    except Exception as error:
        answer = f"{type(error).__name__}: {error}".splitlines()[0]
    print(answer, flush=True)
