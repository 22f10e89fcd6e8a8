#!/usr/bin/env python3
"""The benchmark people know: N whole lives of a sandbox, one after the other; each makes it, runs `echo hello` in it and deletes it.

Prints mean, p50 and p99 in milliseconds, and the ratio to the floor of the same run, which is a bare process that says hello. The floor and
ours take turns, so that a busy moment hits both; Docker, where there is one, comes after them. Needs a daemon that runs (`opensandbox
daemon start`) and httpx; the SDK is taken from this tree where it is not installed. lifecycle.mjs is the same from Node.
"""
import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

try:
    import opensandbox_client
except ModuleNotFoundError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "sdks" / "python" / "src"))
    import opensandbox_client

IMAGES = ("busybox", "alpine", "debian", "ubuntu", "python")  # what people have; none is downloaded
WARM_UP = 3


def milliseconds(work):
    start = time.perf_counter()
    work()
    return (time.perf_counter() - start) * 1e3


def hello(words):
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.stdout != "hello\n":
        raise RuntimeError(f"{words[0]} did not say hello: {(done.stderr or done.stdout).strip()[:300]}")


def floor_words():
    busybox = shutil.which("busybox")
    return [busybox, "echo", "hello"] if busybox else [shutil.which("echo") or "/bin/echo", "hello"]


def life(client, image, parts):
    start = time.perf_counter()
    sandbox = client.create_sandbox(image=image)
    created = time.perf_counter()
    try:
        done = sandbox.run("echo hello")
    finally:
        ran = time.perf_counter()
        sandbox.destroy()
    gone = time.perf_counter()
    if done.stdout != "hello\n":
        raise RuntimeError(f"the sandbox did not say hello: {done}")
    for name, seconds in (("create", created - start), ("exec", ran - created), ("delete", gone - ran)):
        parts[name].append(seconds * 1e3)
    return (gone - start) * 1e3


def docker_image(wanted):
    """(an image that is there, None) or (None, why not)."""
    if not shutil.which("docker"):
        return None, "there is no docker command"
    if subprocess.run(["docker", "version"], capture_output=True, check=False).returncode:
        return None, "no Docker daemon answers"
    for name in [wanted] if wanted else IMAGES:
        if subprocess.run(["docker", "image", "inspect", name], capture_output=True, check=False).returncode == 0:
            return name, None
    return None, f"none of these images is there: {wanted or ', '.join(IMAGES)} (docker pull one, or --docker-image)"


def row(name, samples, floor):
    ordered = sorted(samples)

    def rank(share):
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]

    mean = sum(ordered) / len(ordered)
    return {"name": name, "n": len(ordered), "mean_ms": mean, "p50_ms": rank(0.5), "p99_ms": rank(0.99), "ratio": rank(0.5) / floor}


def measure(options):
    floor, ours, parts, skipped = [], [], {"create": [], "exec": [], "delete": []}, []
    words = floor_words()
    with opensandbox_client.SandboxClient(options.url, options.key) as client:
        for turn in range(-WARM_UP, options.n):
            if turn == 0:
                floor.clear(), ours.clear(), [part.clear() for part in parts.values()]
            floor.append(milliseconds(lambda: hello(words)))
            ours.append(life(client, options.image, parts))
    unit = sorted(floor)[max(0, math.ceil(0.5 * len(floor)) - 1)]
    rows = [row(f"floor: {' '.join([Path(words[0]).name, *words[1:]])}, bare", floor, unit), row("opensandbox, Python SDK: create + exec + delete", ours, unit)]
    rows += [row(f"  {name}", samples, unit) for name, samples in parts.items()]
    image, why = (None, "left out (--no-docker)") if options.no_docker else docker_image(options.docker_image)
    if image:
        words = ["docker", "run", "--rm", "--network", "none", image, "echo", "hello"]
        hello(words)
        rows.append(row(f"docker run --rm {image}", [milliseconds(lambda: hello(words)) for _ in range(options.n)], unit))
    else:
        skipped.append({"name": "docker", "why": why})
    return {"n": options.n, "client": "python", "rows": rows, "skipped": skipped}


def show(report):
    width = max(len(entry["name"]) for entry in report["rows"]) + 2
    print(f"{report['n']} whole lives of a sandbox, one after the other; milliseconds\n")
    print(f"{'':{width}}{'mean':>9}{'p50':>9}{'p99':>9}{'x floor':>9}")
    for entry in report["rows"]:
        print(f"{entry['name']:{width}}{entry['mean_ms']:9.2f}{entry['p50_ms']:9.2f}{entry['p99_ms']:9.2f}{entry['ratio']:9.1f}")
    for entry in report["skipped"]:
        print(f"{entry['name']}: skipped, {entry['why']}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-n", type=int, default=100, help="how many lives (100)")
    parser.add_argument("--url", help="the daemon's session API (OPENSANDBOX_URL, else http://127.0.0.1:9111)")
    parser.add_argument("--key", default=os.environ.get("OPENSANDBOX_API_KEY"), help="an API key, where one is needed (OPENSANDBOX_API_KEY)")
    parser.add_argument("--image", default="host", help="of the sandboxes (host)")
    parser.add_argument("--docker-image", help=f"an image that is there (the first found of {', '.join(IMAGES)})")
    parser.add_argument("--no-docker", action="store_true", help="leave Docker out")
    parser.add_argument("--json", action="store_true", help="for programs")
    options = parser.parse_args()
    if options.n < 1:
        parser.error("-n must be at least 1")
    try:
        report = measure(options)
    except (opensandbox_client.SandboxError, RuntimeError) as error:
        print(f"lifecycle: {error}", file=sys.stderr)
        return 1
    if options.json:
        print(json.dumps(report, indent=2))
    else:
        show(report)
    return 0


if __name__ == "__main__":
    sys.exit(main())
