"""One sandbox: commands, code and files.

Written by tools/gen_sdk.py from _aio/sandbox.py; change that, not this.
"""
from __future__ import annotations

import os
from collections.abc import Iterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, overload
from urllib.parse import quote

import httpx

from .. import _models as models
from .. import _wire as wire
from .._errors import NotFound, SandboxError
from .._wire import Again
from .connection import Connection, ExecStream

_PIECE = 256 * 1024  # bytes of a file that are held at a time


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    while piece := file.read(_PIECE):
        yield piece


class Sandbox:
    """One sandbox. Made by the client; ends with destroy(), or at the end of a `with` block."""

    def __init__(self, connection: Connection, session: models.Session) -> None:
        self._connection = connection
        self._path = f"/sessions/{quote(session.session_id, safe='')}"
        self.id = session.session_id
        self.session = session
        """As it was when last asked about."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.session.state}>"

    def info(self) -> models.Session:
        """Its state now, and what it uses."""
        self.session = self._connection.json(models.Session.from_json, "GET", self._path, again=Again.ALWAYS)
        return self.session

    def destroy(self) -> None:
        """Ends it. One that is gone already is as good."""
        try:
            self._connection.send("DELETE", self._path, again=Again.ALWAYS)
        except NotFound:
            pass

    def __enter__(self) -> Sandbox:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            self.destroy()
        except SandboxError:
            if error is None:
                raise

    # ---- commands and code

    @overload
    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stream: Literal[False] = False,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult: ...

    @overload
    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stream: Literal[True],
        max_output_bytes: int | None = None,
    ) -> ExecStream: ...

    def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stream: bool = False,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult | ExecStream:
        """Runs a line of shell, or a program and its arguments. After `timeout` seconds it is killed and the result says timed_out."""
        body = wire.exec_body(command, timeout=timeout, stdin=stdin, cwd=cwd, env=env, stream=stream, max_output_bytes=max_output_bytes)
        return self._start("exec", body, timeout, stream)

    @overload
    def execute(
        self,
        code: str,
        language: str = "python",
        *,
        stream: Literal[False] = False,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult: ...

    @overload
    def execute(
        self,
        code: str,
        language: str = "python",
        *,
        stream: Literal[True],
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> ExecStream: ...

    def execute(
        self,
        code: str,
        language: str = "python",
        *,
        stream: bool = False,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult | ExecStream:
        """Runs code. Variables live as long as the sandbox, apart for each language."""
        body = models.CodeRequest(code=code, language=language, timeout_seconds=timeout, stream=stream or None, max_output_bytes=max_output_bytes)
        return self._start("code", body.to_json(), timeout, stream)

    def _start(self, kind: str, body: dict[str, Any], timeout: float | None, stream: bool) -> models.ExecResult | ExecStream:
        path = f"{self._path}/{kind}"
        if stream:
            return self._connection.stream(path, session_path=self._path, again=Again.NEVER, json=body)
        wait = wire.wait_for_command(timeout, self.session.expires_at)
        return self._connection.json(models.ExecResult.from_json, "POST", path, again=Again.NEVER, wait=wait, json=body)

    def interrupt(self, exec_id: str) -> None:
        """Stops a command that runs."""
        self._connection.send("DELETE", f"{self._path}/execs/{quote(exec_id, safe='')}", again=Again.ALWAYS)

    # ---- files; a relative path begins at /workspace

    def upload_file(self, source: str | os.PathLike[str] | bytes, remote: str, *, mode: str | None = None) -> models.FileInfo:
        """Writes a file of the sandbox: from a local path, or from bytes. `mode` is octal, such as "755"."""
        params = {"path": remote} | ({"mode": mode} if mode else {})
        if isinstance(source, (bytes, bytearray, memoryview)):
            content = bytes(source)
            return self._put(params, len(content), lambda: content)
        with open(source, "rb") as file:
            size = os.fstat(file.fileno()).st_size

            def from_start() -> Iterator[bytes]:
                file.seek(0)
                return _pieces(file)

            return self._put(params, size, from_start)

    def _put(self, params: dict[str, str], size: int, content: Callable[[], bytes | Iterator[bytes]]) -> models.FileInfo:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        path = f"{self._path}/files"
        return self._connection.json(
            models.FileInfo.from_json, "PUT", path, again=Again.ALWAYS, params=params, headers=headers, content=content
        )

    @overload
    def download_file(self, remote: str) -> bytes: ...

    @overload
    def download_file(self, remote: str, local: str | os.PathLike[str]) -> Path: ...

    def download_file(self, remote: str, local: str | os.PathLike[str] | None = None) -> bytes | Path:
        """The bytes of a file, or, with `local`, where they were written. A broken download leaves no half file."""
        path, params = f"{self._path}/files", {"path": remote}
        if local is None:
            response = self._connection.send("GET", path, again=Again.ALWAYS, params=params)
            return response.content
        target = Path(local)
        half = target.with_name(f".{target.name}.{wire.new_key()[:8]}.part")
        response = self._connection.send("GET", path, again=Again.ALWAYS, stream=True, params=params)
        try:
            with open(half, "wb") as file:
                for piece in response.iter_bytes(_PIECE):
                    file.write(piece)
            os.replace(half, target)
        except httpx.HTTPError as error:
            raise wire.transport_error(error, self._connection.url) from error
        finally:
            response.close()
            half.unlink(missing_ok=True)
        return target

    def read_text(self, remote: str) -> str:
        content = self.download_file(remote)
        return content.decode()

    def write_text(self, remote: str, text: str, *, mode: str | None = None) -> models.FileInfo:
        return self.upload_file(text.encode(), remote, mode=mode)

    def list_files(self, remote: str = "/workspace") -> list[models.FileInfo]:
        params = {"path": remote}
        listing = self._connection.json(
            models.DirectoryListing.from_json, "GET", f"{self._path}/directories", again=Again.ALWAYS, params=params
        )
        return list(listing.entries)

    def delete_file(self, remote: str) -> None:
        self._connection.send("DELETE", f"{self._path}/files", again=Again.ALWAYS, params={"path": remote})

    def make_directory(self, remote: str) -> None:
        """Makes a folder and those above it."""
        self._connection.send("PUT", f"{self._path}/directories", again=Again.ALWAYS, params={"path": remote})
