"""One sandbox: commands, code and files."""
from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Literal, overload
from urllib.parse import quote

import httpx

from .. import _models as models
from .. import _wire as wire
from .._errors import NotFound, SandboxError
from .._wire import Again
from .connection import AsyncConnection, AsyncExecStream

_PIECE = 256 * 1024  # bytes of a file that are held at a time


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    while piece := await asyncio.to_thread(file.read, _PIECE):
        yield piece


class AsyncSandbox:
    """One sandbox. Made by the client; ends with destroy(), or at the end of a `with` block."""

    def __init__(self, connection: AsyncConnection, session: models.Session) -> None:
        self._connection = connection
        self._path = f"/sessions/{quote(session.session_id, safe='')}"
        self.id = session.session_id
        self.session = session
        """As it was when last asked about."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.id} {self.session.state}>"

    async def info(self) -> models.Session:
        """Its state now, and what it uses."""
        self.session = await self._connection.json(models.Session.from_json, "GET", self._path, again=Again.ALWAYS)
        return self.session

    async def destroy(self) -> None:
        """Ends it. One that is gone already is as good."""
        try:
            await self._connection.send("DELETE", self._path, again=Again.ALWAYS)
        except NotFound:
            pass

    async def __aenter__(self) -> AsyncSandbox:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        try:
            await self.destroy()
        except SandboxError:
            if error is None:
                raise

    # ---- commands and code

    @overload
    async def run(
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
    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stream: Literal[True],
        max_output_bytes: int | None = None,
    ) -> AsyncExecStream: ...

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout: float | None = None,
        stdin: str | None = None,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stream: bool = False,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult | AsyncExecStream:
        """Runs a line of shell, or a program and its arguments. After `timeout` seconds it is killed and the result says timed_out."""
        body = wire.exec_body(command, timeout=timeout, stdin=stdin, cwd=cwd, env=env, stream=stream, max_output_bytes=max_output_bytes)
        return await self._start("exec", body, timeout, stream)

    @overload
    async def execute(
        self,
        code: str,
        language: str = "python",
        *,
        stream: Literal[False] = False,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult: ...

    @overload
    async def execute(
        self,
        code: str,
        language: str = "python",
        *,
        stream: Literal[True],
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> AsyncExecStream: ...

    async def execute(
        self,
        code: str,
        language: str = "python",
        *,
        stream: bool = False,
        timeout: float | None = None,
        max_output_bytes: int | None = None,
    ) -> models.ExecResult | AsyncExecStream:
        """Runs code. Variables live as long as the sandbox, apart for each language."""
        body = models.CodeRequest(code=code, language=language, timeout_seconds=timeout, stream=stream or None, max_output_bytes=max_output_bytes)
        return await self._start("code", body.to_json(), timeout, stream)

    async def _start(self, kind: str, body: dict[str, Any], timeout: float | None, stream: bool) -> models.ExecResult | AsyncExecStream:
        path = f"{self._path}/{kind}"
        if stream:
            return await self._connection.stream(path, session_path=self._path, again=Again.NEVER, json=body)
        wait = wire.wait_for_command(timeout, self.session.expires_at)
        return await self._connection.json(models.ExecResult.from_json, "POST", path, again=Again.NEVER, wait=wait, json=body)

    async def interrupt(self, exec_id: str) -> None:
        """Stops a command that runs."""
        await self._connection.send("DELETE", f"{self._path}/execs/{quote(exec_id, safe='')}", again=Again.ALWAYS)

    # ---- files; a relative path begins at /workspace

    async def upload_file(self, source: str | os.PathLike[str] | bytes, remote: str, *, mode: str | None = None) -> models.FileInfo:
        """Writes a file of the sandbox: from a local path, or from bytes. `mode` is octal, such as "755"."""
        params = {"path": remote} | ({"mode": mode} if mode else {})
        if isinstance(source, (bytes, bytearray, memoryview)):
            content = bytes(source)
            return await self._put(params, len(content), lambda: content)
        with open(source, "rb") as file:
            size = os.fstat(file.fileno()).st_size

            def from_start() -> AsyncIterator[bytes]:
                file.seek(0)
                return _pieces(file)

            return await self._put(params, size, from_start)

    async def _put(self, params: dict[str, str], size: int, content: Callable[[], bytes | AsyncIterator[bytes]]) -> models.FileInfo:
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size)}
        path = f"{self._path}/files"
        return await self._connection.json(
            models.FileInfo.from_json, "PUT", path, again=Again.ALWAYS, params=params, headers=headers, content=content
        )

    @overload
    async def download_file(self, remote: str) -> bytes: ...

    @overload
    async def download_file(self, remote: str, local: str | os.PathLike[str]) -> Path: ...

    async def download_file(self, remote: str, local: str | os.PathLike[str] | None = None) -> bytes | Path:
        """The bytes of a file, or, with `local`, where they were written. A broken download leaves no half file."""
        path, params = f"{self._path}/files", {"path": remote}
        if local is None:
            response = await self._connection.send("GET", path, again=Again.ALWAYS, params=params)
            return response.content
        target = Path(local)
        half = target.with_name(f".{target.name}.{wire.new_key()[:8]}.part")
        response = await self._connection.send("GET", path, again=Again.ALWAYS, stream=True, params=params)
        try:
            with open(half, "wb") as file:
                async for piece in response.aiter_bytes(_PIECE):
                    await asyncio.to_thread(file.write, piece)
            os.replace(half, target)
        except httpx.HTTPError as error:
            raise wire.transport_error(error, self._connection.url) from error
        finally:
            await response.aclose()
            half.unlink(missing_ok=True)
        return target

    async def read_text(self, remote: str) -> str:
        content = await self.download_file(remote)
        return content.decode()

    async def write_text(self, remote: str, text: str, *, mode: str | None = None) -> models.FileInfo:
        return await self.upload_file(text.encode(), remote, mode=mode)

    async def list_files(self, remote: str = "/workspace") -> list[models.FileInfo]:
        params = {"path": remote}
        listing = await self._connection.json(
            models.DirectoryListing.from_json, "GET", f"{self._path}/directories", again=Again.ALWAYS, params=params
        )
        return list(listing.entries)

    async def delete_file(self, remote: str) -> None:
        await self._connection.send("DELETE", f"{self._path}/files", again=Again.ALWAYS, params={"path": remote})

    async def make_directory(self, remote: str) -> None:
        """Makes a folder and those above it."""
        await self._connection.send("PUT", f"{self._path}/directories", again=Again.ALWAYS, params={"path": remote})
