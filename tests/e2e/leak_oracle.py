"""What one instance holds on this host, read from the kernel and not from our own books.

`take(daemon)` looks; `assert_gone(before, daemon)` waits until nothing is held that was not held before. Everything is
attributed to the instance (its cgroups, its processes, the descriptors and mounts of its serve and launcher, its
directories), so that other daemons on the machine do not disturb the judgement.
"""
import contextlib
import http.client
import os
import re
import time
from collections import Counter
from pathlib import Path

FIRST_ID = 0x40000000  # sandboxes' host ids begin here
RANGE_STRIDE = 65537  # one id lies idle between two ranges
IDS_PER_BLOCK = 64 * RANGE_STRIDE
CACHE = re.compile(r"/shapes/")  # what the launcher keeps of limits it has seen, bounded in number
MOST_RESERVE = 96
KEPT = ("lock", "serve.pid", "launch.log")  # of an instance that may be started again
CHURN = re.compile(r"\.db(-wal|-shm|-journal)?$|/audit/|\.log$")  # files that live as long as the daemon and change


def cgroup_dirs(instance):
    """Every directory below a cgroup of this instance, in every hierarchy, wherever it is mounted."""
    found = set()
    for line in Path("/proc/self/mountinfo").read_text().splitlines():
        fields, kind = line.split(" - ", 1)
        if not kind.startswith("cgroup"):
            continue
        for folder, names, _ in os.walk(fields.split()[4]):
            depth = folder.count("/") - fields.split()[4].count("/")
            if depth == 0:
                names[:] = [name for name in names if name == f"opensandbox-{instance}"]
            else:
                found.add(folder)
    return found


def kept_by(launch):
    """How many berths this launcher holds in reserve when it is idle."""
    with contextlib.suppress(OSError):
        words = Path(f"/proc/{launch}/cmdline").read_bytes().split(b"\0")
        return int(words[words.index(b"--pool") + 1]) if b"--pool" in words else 8
    return 0


def sprouts(instance):
    """First processes made ahead of time: alone in a berth, children of a living launcher, and not yet anybody's (still the host's root).
    While creates are under way, those that are about to become a sandbox look the same."""
    found = set()
    for folder in cgroup_dirs(instance):
        inside = processes_in(folder) if re.fullmatch(r"berth-\d+", os.path.basename(folder)) else []
        status = status_of(inside[0]) if len(inside) == 1 else None
        if status and set(status["Uid"].split()) == {"0"} and b"opensandbox-launch" in command_of(status["PPid"].strip()):
            found.add(inside[0])
    return found


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def groups_in_use(instance):
    """Without the berths that a living launcher holds in reserve. There are few of them once it is idle."""
    empty = reserve(instance)
    assert len(empty) <= MOST_RESERVE, "the reserve of berths is bounded"
    return {folder for folder in cgroup_dirs(instance) if os.path.basename(folder) not in empty}


def reserve(instance):
    """Names of berths with no process in any of their groups but one that waits for its sandbox."""
    waiting = sprouts(instance)
    berths = {}
    for folder in cgroup_dirs(instance):
        if re.fullmatch(r"berth-\d+", os.path.basename(folder)):
            berths.setdefault(os.path.basename(folder), []).extend(pid for pid in processes_in(folder) if pid not in waiting)
    return {name for name, inside in berths.items() if not inside}


def processes_in(folder):
    with contextlib.suppress(OSError):
        return Path(folder, "cgroup.procs").read_text().split()
    return []


def status_of(pid):
    with contextlib.suppress(OSError):
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
        return dict(line.split(":", 1) for line in lines if ":" in line)
    return None


def owner_of(pid):
    """The instance in one of whose sandboxes' cgroups a process is, or None. (The launcher is in the group above them.)"""
    with contextlib.suppress(OSError):
        match = re.search(r"/opensandbox-([^/\n]+)/berth-\d+", Path(f"/proc/{pid}/cgroup").read_text())
        return match.group(1) if match else None
    return None


def range_blocks(instance):
    """Numbers of the blocks of host ids this instance has claimed. It keeps them while it lives."""
    found = set()
    for path in Path("/run/opensandbox/ranges").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            if path.read_text().strip() == instance:
                found.add(int(path.name))
    return found


def sandbox_processes(instance, blocks=None):
    """Processes that are in this instance's groups or have an id of its blocks. Those that wait for a sandbox are no sandbox's."""
    blocks = range_blocks(instance) if blocks is None else blocks
    waiting = sprouts(instance)
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        status = status_of(entry)
        if not status or (status["State"].strip().startswith("Z") and status["PPid"].strip() == "1"):
            continue  # an orphan of a launcher we killed is dead, and to be buried by init
        uids = [int(uid) for uid in status["Uid"].split()]
        in_block = any(uid >= FIRST_ID and (uid - FIRST_ID) // IDS_PER_BLOCK in blocks for uid in uids)
        if entry not in waiting and (in_block or owner_of(entry) == instance):
            # Running or asleep is the same process; only death makes a difference.
            dead = " (dead)" if status["State"].strip().startswith("Z") else ""
            found.add(f"{entry} {status['Name'].strip()}{dead}")
    return found


def zombies(parents):
    """Dead children nobody waited for."""
    found = set()
    for entry in filter(str.isdigit, os.listdir("/proc")):
        status = status_of(entry)
        if status and status["State"].strip().startswith("Z") and int(status["PPid"]) in parents:
            found.add(f"{entry} {status['Name'].strip()}")
    return found


def descriptors(pid):
    """What the open descriptors of a process are, by kind."""
    kinds = Counter()
    with contextlib.suppress(OSError):
        for entry in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                kinds[re.sub(r"\[\d+\]|[a-z0-9]{26}|(?<=berth-)\d+|\d{3,}", "*", os.readlink(f"/proc/{pid}/fd/{entry}").removesuffix(" (deleted)"))] += 1
    return kinds


def network_namespaces(pids):
    """Network namespaces that these processes are in or hold open."""
    found = set()
    for pid in pids:
        with contextlib.suppress(OSError):
            found.add(os.readlink(f"/proc/{pid}/ns/net"))
            for entry in os.listdir(f"/proc/{pid}/fd"):
                with contextlib.suppress(OSError):
                    target = os.readlink(f"/proc/{pid}/fd/{entry}")
                    if target.startswith("net:"):
                        found.add(target)
    return found


def mounts(pid):
    """Mount points of a process's mount namespace, with how often each occurs."""
    with contextlib.suppress(OSError):
        return Counter(line.split()[4] + " " + line.split(" - ")[1].split()[0] for line in Path(f"/proc/{pid}/mountinfo").read_text().splitlines())
    return Counter()


def files(*folders):
    found = set()
    for folder in folders:
        for base, names, plain in os.walk(folder):
            found.update(path for name in names + plain if not CHURN.search(path := os.path.join(base, name)))
    return found


def spares(daemon):
    """Ids of sandboxes that the launcher made ahead of time and nobody claimed, as it wrote them down."""
    with contextlib.suppress(OSError):
        return set(re.findall(r"([0-9a-z]{26}) range [^\n]* spare 1", (daemon.run_dir / "ledger").read_bytes().decode(errors="replace")))
    return set()


def drain_spares(daemon, seconds=10):
    """What is made by demand belongs to serve as long as it lives and is no leak; taken away it must be gone like the rest."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        daemon.request("POST", "/osb/v1/pools/drain")
    deadline = time.monotonic() + seconds
    while spares(daemon):
        assert time.monotonic() < deadline, f"spares that do not go: {spares(daemon)}"
        time.sleep(0.01)


def settle(daemon, seconds=10):
    """No spare is left, and the launcher's reserve of berths is what it keeps when it is idle."""
    if daemon.process and daemon.process.poll() is None and daemon.key:
        drain_spares(daemon)
    launch = daemon.launcher()
    if not launch:
        return
    kept = kept_by(launch)
    deadline = time.monotonic() + seconds
    while len(reserve(daemon.instance)) != kept and time.monotonic() < deadline:
        time.sleep(0.02)


def take(daemon):
    """Everything the instance holds now, but for spares."""
    serve = daemon.process.pid if daemon.process and daemon.process.poll() is None else None
    launch = daemon.launcher()
    settle(daemon)
    ours = [pid for pid in (serve, launch) if pid]
    waiting = sprouts(daemon.instance)
    assert len(waiting) <= kept_by(launch), "one for each berth that is kept"
    boxes = sandbox_processes(daemon.instance)
    held_for_waiting = Counter({"socket:*": len(waiting), "anon_inode:[pidfd]": len(waiting)})
    return {
        "cgroups": Counter(groups_in_use(daemon.instance)),
        "processes": Counter(boxes),
        "zombies": Counter(zombies(ours)),
        "serve descriptors": descriptors(serve) if serve else Counter(),
        "launcher descriptors": descriptors(launch) - held_for_waiting if launch else Counter(),
        "network namespaces": Counter({"count": len(network_namespaces(ours + [entry.split()[0] for entry in boxes]))}),
        "host mounts": Counter({point: count for point, count in mounts("self").items() if "opensandbox" in point or daemon.instance in point}),
        "launcher mounts": Counter({point: count for point, count in mounts(launch).items() if not CACHE.search(point)}) if launch else Counter(),
        "files": Counter(files(daemon.run_dir, daemon.state)),
    }


def surplus(before, after):
    """What is there now and was not there before, by category."""
    return {name: dict(extra) for name in after if (extra := after[name] - before[name])}


def assert_gone(before, daemon, seconds=10):
    """Deletion may finish behind its answer; after `seconds` nothing more than before may be held."""
    deadline = time.monotonic() + seconds
    while extra := surplus(before, take(daemon)):
        assert time.monotonic() < deadline, f"left behind after {seconds} s: {extra}"
        time.sleep(0.05)


def assert_nothing_of(daemon, blocks, seconds=10):
    """After the daemon itself is gone: no cgroup, process, mount, file or claim of the instance, which had these blocks."""
    empty = {name: Counter() for name in ("cgroups", "processes", "host mounts", "id ranges", "run files")}
    deadline = time.monotonic() + seconds
    while True:
        held = {
            "cgroups": Counter(cgroup_dirs(daemon.instance)),
            "processes": Counter(sandbox_processes(daemon.instance, blocks)),
            "host mounts": Counter(point for point in mounts("self") if daemon.instance in point),
            "id ranges": Counter(range_blocks(daemon.instance)),
            "run files": Counter(path for path in files(daemon.run_dir) if os.path.basename(path) not in KEPT),
        }
        if not (extra := surplus(empty, held)):
            return
        assert time.monotonic() < deadline, f"left behind {seconds} s after the daemon ended: {extra}"
        time.sleep(0.05)
