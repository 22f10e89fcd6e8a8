"""Requests and streams: every failure becomes one of our errors, and what may be repeated is repeated."""
from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

import httpx

from .. import _models as models
from .. import _wire as wire
from .._errors import ConnectionLost, SandboxError
from .._events import Event, Reader
from .._wire import Again

_T = TypeVar("_T")
_RESUME_ATTEMPTS = 8  # several seconds: a daemon that restarts is back by then
_LONG_CONNECTION = 10.0  # seconds; one that lasted this long was no failure, only idle


class AsyncConnection:
    """Sends requests, turns every failure into one of our errors, and repeats what may be repeated."""

    def __init__(self, url: str | None, api_key: str | None, timeout: float, max_retries: int, transport: httpx.AsyncBaseTransport | None) -> None:
        self.url = wire.base_url(url)
        self.timeout = timeout
        self.max_retries = max_retries
        # A proxy of the environment is for the world outside, not for the daemon on this machine.
        loopback = httpx.URL(self.url).host in ("127.0.0.1", "localhost", "::1")
        self._client = httpx.AsyncClient(base_url=self.url, headers=wire.headers(api_key), trust_env=not loopback, transport=transport)

    async def close(self) -> None:
        await self._client.aclose()

    async def send(
        self,
        method: str,
        path: str,
        *,
        again: Again,
        stream: bool = False,
        wait: float | None = None,
        attempts: int | None = None,
        content: Callable[[], bytes | AsyncIterator[bytes]] | None = None,
        **parts: Any,
    ) -> httpx.Response:
        """`wait` bounds the time to the answer, `attempts` how often it is tried; `content` makes the body anew for each."""
        most = self.max_retries if attempts is None else attempts
        attempt = 0
        while True:
            try:
                return await self._once(method, path, stream, wait, content() if content else None, parts)
            except SandboxError as error:
                if attempt >= most or not wire.may_repeat(error, again):
                    raise
                await asyncio.sleep(wire.backoff(attempt, error.retry_after))
                attempt += 1

    async def _once(
        self, method: str, path: str, stream: bool, wait: float | None, content: bytes | AsyncIterator[bytes] | None, parts: dict[str, Any]
    ) -> httpx.Response:
        limits = httpx.Timeout(self.timeout, read=self.timeout if wait is None else wait)
        try:
            request = self._client.build_request(method, path, timeout=limits, content=content, **parts)
            response = await self._client.send(request, stream=stream)
            if response.is_success:
                return response
            body = await response.aread()
        except httpx.HTTPError as error:
            raise wire.transport_error(error, self.url) from error
        raise wire.answer_error(response.status_code, path, body, response.headers, _json_or_none(response))

    async def json(self, read: Callable[[Mapping[str, Any]], _T], method: str, path: str, **options: Any) -> _T:
        response = await self.send(method, path, **options)
        try:
            return read(response.json())
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise wire.unexpected(error) from error

    async def stream(self, path: str, *, session_path: str | None, again: Again, json: Any, headers: Mapping[str, str] | None = None) -> AsyncExecStream:
        """Starts a command whose events are read as they come. `session_path` is None for a one-shot run."""
        sent = {"Accept": "text/event-stream", **(headers or {})}
        response = await self.send("POST", path, again=again, stream=True, wait=wire.SLACK, json=json, headers=sent)
        return AsyncExecStream(self, response, session_path)


def _json_or_none(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        return None


class AsyncExecStream:
    """The events of a running command. When the connection breaks it reads on by itself; no event is lost or told twice.

    Leaving the stream early does not stop the command: interrupt() does.
    """

    def __init__(self, connection: AsyncConnection, response: httpx.Response, session_path: str | None) -> None:
        self._connection = connection
        self._session_path = session_path  # None: a one-shot run, which is gone with its connection
        self._reader = Reader()
        self._ready: deque[Event] = deque()
        self._failure: SandboxError | None = None
        self._breaks = 0
        self._opened_at = wire.now()
        self._response = response
        self._chunks = response.aiter_bytes()
        self.exit: models.ExecEnd | None = None
        """How the command ended, once it has."""

    @property
    def exec_id(self) -> str | None:
        return self._reader.exec_id

    def __aiter__(self) -> AsyncExecStream:
        return self

    async def __anext__(self) -> Event:
        while not self._ready:
            if self._failure or self._reader.ended:
                await self.close()
                if self._failure:
                    failure, self._failure = self._failure, None
                    self._reader.ended = True
                    raise failure
                raise StopAsyncIteration
            await self._fill()
        return self._ready.popleft()

    async def _fill(self) -> None:
        """Reads once. Events that came before a failure are told before it."""
        try:
            chunk = await self._chunks.__anext__()
        except StopAsyncIteration:
            await self._read_on(ConnectionLost("the stream ended before the command did", code="CLIENT::CONNECTION_LOST"))
            return
        except httpx.HTTPError as error:
            await self._read_on(wire.transport_error(error, self._connection.url))
            return
        try:
            for event in self._reader.feed(chunk):
                self._breaks = 0
                self.exit = event.exit or self.exit
                self._ready.append(event)
        except SandboxError as error:
            self._failure = error

    async def _read_on(self, error: SandboxError) -> None:
        await self._response.aclose()
        if wire.now() - self._opened_at > _LONG_CONNECTION:
            self._breaks = 0
        if self._session_path is None or self.exec_id is None or self._breaks >= _RESUME_ATTEMPTS:
            self._failure = error
            return
        if self._breaks:
            await asyncio.sleep(wire.backoff(self._breaks, None))
        self._breaks += 1
        self._reader.new_connection()
        try:
            self._response = await self._connection.send(
                "GET",
                f"{self._session_path}/execs/{quote(self.exec_id, safe='')}/events",
                again=Again.ALWAYS,
                stream=True,
                wait=wire.SILENCE,
                attempts=_RESUME_ATTEMPTS,
                params={"after": self._reader.last_seq},
                headers={"Accept": "text/event-stream"},
            )
        except SandboxError as failed:
            self._failure = failed
            return
        self._chunks = self._response.aiter_bytes()
        self._opened_at = wire.now()

    async def interrupt(self) -> None:
        """Stops the command. Its exit event still comes."""
        if self._session_path is None or self.exec_id is None:
            raise SandboxError("there is nothing to interrupt: the command has not started, or it is a one-shot run", code="CLIENT::NOT_STARTED")
        await self._connection.send("DELETE", f"{self._session_path}/execs/{quote(self.exec_id, safe='')}", again=Again.ALWAYS)

    async def close(self) -> None:
        """Stops reading. The command goes on, except for a one-shot run, which ends with its connection."""
        await self._response.aclose()

    async def __aenter__(self) -> AsyncExecStream:
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        await self.close()
