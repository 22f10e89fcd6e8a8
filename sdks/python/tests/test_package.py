"""What a user gets: the wheel, installed where nothing else is, works and is typed."""
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

SDK = Path(__file__).resolve().parent.parent
SNIPPET = """
from opensandbox_client import SandboxClient
with SandboxClient() as client, client.create_sandbox() as sandbox:
    print(sandbox.run("echo from the wheel").stdout, end="")
"""
TYPED = """
from opensandbox_client import AsyncExecStream, AsyncSandboxClient, Event, ExecResult, ExecStream, SandboxClient
def plain(client: SandboxClient) -> None:
    with client.create_sandbox() as sandbox:
        result: ExecResult = sandbox.run("x")
        stream: ExecStream = sandbox.run("x", stream=True)
        code: ExecStream = sandbox.execute("x", stream=True)
        events: list[Event] = list(stream)
        content: bytes = sandbox.download_file("x")
async def awaited(client: AsyncSandboxClient) -> None:
    async with await client.create_sandbox() as sandbox:
        result: ExecResult = await sandbox.run("x")
        stream: AsyncExecStream = await sandbox.run("x", stream=True)
        events: list[Event] = [event async for event in stream]
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, SDK],
                   check=True, timeout=100)
    return next(folder.glob("opensandbox_client-*.whl"))


def test_the_wheel_carries_types_licence_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert {"opensandbox_client/py.typed", "opensandbox_client/_models.py"} <= set(names)
    assert any(name.endswith("/licenses/LICENSE") for name in names)
    assert all(name.startswith("opensandbox_client") for name in names) and not any("test" in name for name in names)


def test_it_works_in_an_empty_environment(sessions, wheel, tmp_path):
    venv.create(tmp_path / "venv")
    python = tmp_path / "venv" / "bin" / "python"
    subprocess.run([sys.executable, "-m", "pip", "-q", "--disable-pip-version-check", "--python", python, "install", wheel], check=True, timeout=110)
    bare = {"PATH": os.environ["PATH"], "OPENSANDBOX_URL": sessions.sessions_url}
    done = subprocess.run([python, "-c", SNIPPET], cwd=tmp_path, env=bare, capture_output=True, text=True, timeout=60)
    assert done.stdout == "from the wheel\n", done.stderr


def test_a_users_types_are_checked_strictly(tmp_path):
    """The overloads say what a stream gives; a wrong use is found."""
    def mypy(name, text):
        (tmp_path / name).write_text(text)
        words = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(SDK.parent.parent / "build" / "mypy"), name]
        return subprocess.run(words, cwd=tmp_path, env={**os.environ, "MYPYPATH": str(SDK / "src")}, capture_output=True, text=True, timeout=100)

    right = mypy("right.py", TYPED)
    assert right.returncode == 0, right.stdout
    wrong = mypy("wrong.py", TYPED.replace("result: ExecResult = sandbox.run(\"x\")", "result: ExecStream = sandbox.run(\"x\")"))
    assert wrong.returncode == 1 and "Incompatible types in assignment" in wrong.stdout
