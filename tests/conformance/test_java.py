"""The published Java SDK: java runs Suite.java once, each of its cases is reported as one test here."""
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import ROOT
from conformance.uuid_door import UuidDoor

HERE = Path(__file__).with_name("java")
NAMES = re.findall(r'^    test\("((?:[^"\\]|\\.)+)"', (HERE / "Suite.java").read_text(), re.M)
MISSING = [tool for tool in ("java", "javac", "mvn") if shutil.which(tool) is None]

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"), pytest.mark.timeout(240)]


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, **options)
    assert done.returncode == 0, f"{words[0]}: {(done.stdout + done.stderr)[-3000:]}"


@pytest.fixture(scope="module")
def classes():
    """The suite compiled; the SDK comes from Maven once and is kept with its pins under build/."""
    made = ROOT / "build" / "java"
    made.mkdir(parents=True, exist_ok=True)
    pins, path = made / "pins", made / "classpath"
    if not pins.exists() or pins.read_text() != (HERE / "pom.xml").read_text():
        run("mvn", "-q", "-B", "-f", str(HERE / "pom.xml"), "dependency:build-classpath", f"-Dmdep.outputFile={path}", timeout=200)
        pins.write_text((HERE / "pom.xml").read_text())
    run("javac", "-d", str(made / "classes"), "-cp", path.read_text(), str(HERE / "Suite.java"), timeout=100)
    return f"{made / 'classes'}:{path.read_text()}"


@pytest.fixture(scope="module")
def verdicts(daemon, classes):
    environment = {**os.environ, "OSB_API_KEY": daemon.key}
    with UuidDoor(daemon.port) as door:
        environment["OSB_DOMAIN"] = f"127.0.0.1:{door.server_port}"
        done = subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-cp", classes, "Suite"], env=environment, capture_output=True, text=True, timeout=110)
    return done.stdout + done.stderr


@pytest.mark.parametrize("name", NAMES)
def test_java(verdicts, name):
    lines = verdicts.splitlines()
    if f"ok - {name}" in lines:
        return
    assert f"not ok - {name}" in lines, f"java did not report this case:\n{verdicts[-3000:]}"
    at = lines.index(f"not ok - {name}")
    pytest.fail("\n".join(lines[at:at + 25]))
