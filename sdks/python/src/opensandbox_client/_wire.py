"""What both clients share and what needs no I/O: addresses, bodies of requests, and when a request may be made again."""
from __future__ import annotations

import enum
import os
import random
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

import httpx

from . import _models as models
from ._errors import ConnectionLost, NotReachable, SandboxError, SandboxTimeout, UnexpectedAnswer, from_model

DEFAULT_URL = "http://127.0.0.1:9111"
PREFIX = "/api/v1"
LONGEST_COMMAND = 86400.0
SLACK = 3630.0  # what an answer may take beyond the time a command has: a person may be asked first, for an hour at most
SILENCE = 60.0  # a stream of a running command says something every quarter of a minute; one that does not is dead
LONGEST_WAIT = 10.0  # a Retry-After beyond this is the caller's to wait for
START_ADVICE = "is the daemon running? opensandbox daemon start"


class Again(enum.Enum):
    """When a request may be made a second time."""

    ALWAYS = enum.auto()  # reading, deleting, replacing, and creating with an Idempotency-Key: twice is the same as once
    REFUSED = enum.auto()  # only when the server says that nothing was done
    NEVER = enum.auto()  # a command: only when the request cannot have left


def base_url(given: str | None) -> str:
    url = (given or os.environ.get("OPENSANDBOX_URL") or DEFAULT_URL).rstrip("/")
    if "://" not in url:
        url = f"http://{url}"
    return url if url.endswith(PREFIX) else url + PREFIX


def headers(api_key: str | None) -> dict[str, str]:
    key = api_key or os.environ.get("OPENSANDBOX_API_KEY")
    return {"User-Agent": "opensandbox-client-python/0.1.0"} | ({"OPEN-SANDBOX-API-KEY": key} if key else {})


def now() -> float:
    return time.monotonic()


def new_key() -> str:
    return uuid.uuid4().hex


def backoff(attempt: int, retry_after: float | None) -> float:
    """Seconds before the next attempt: twice as long each time, spread so that clients do not come back all at once."""
    if retry_after is not None:
        return retry_after + random.uniform(0, 0.1)
    return min(2.0, 0.1 * 2.0**attempt) * random.uniform(0.5, 1.0)


def may_repeat(error: SandboxError, again: Again) -> bool:
    if isinstance(error, NotReachable):
        return True  # no connection, so no request either
    if error.retry_after is not None and error.retry_after > LONGEST_WAIT:
        return False
    if error.status in (429, 503):
        return again is not Again.NEVER
    if error.code == "IDEMPOTENCY::IN_PROGRESS":
        return again is Again.ALWAYS
    lost = isinstance(error, (ConnectionLost, SandboxTimeout)) or error.status in (502, 504)
    return lost and again is Again.ALWAYS


def transport_error(error: httpx.HTTPError, url: str) -> SandboxError:
    cause = str(error) or type(error).__name__
    if isinstance(error, (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)):
        return NotReachable(f"nothing answers at {url}", code="CLIENT::NOT_REACHABLE", cause=cause, advice=START_ADVICE)
    if isinstance(error, httpx.TimeoutException):
        return SandboxTimeout("no answer in time", code="CLIENT::TIMEOUT", cause=cause, advice="give the client a longer timeout")
    return ConnectionLost(
        "the connection broke before the answer was there",
        code="CLIENT::CONNECTION_LOST",
        cause=cause,
        advice="what became of it is not known; a command with stream=True reads on by itself",
    )


def answer_error(status: int, path: str, body: bytes, answer_headers: Mapping[str, str], parsed: Any) -> SandboxError:
    try:
        told = models.Error.from_json(parsed)
    except (KeyError, TypeError, AttributeError):
        words = body[:200].decode(errors="replace").strip()
        told = models.Error(code=f"HTTP::{status}", message=f"the server answered {status}" + (f": {words}" if words else ""))
    return from_model(told, status=status, path=path, headers=answer_headers)


def unexpected(error: Exception) -> UnexpectedAnswer:
    return UnexpectedAnswer(
        "the answer is not one of the session API", code="CLIENT::UNEXPECTED_ANSWER", cause=repr(error), advice="check the address of the daemon"
    )


def wait_for_command(timeout: float | None, expires_at: datetime | None) -> float:
    """How long an answer about a command can take: its own time, or what is left of the sandbox's."""
    if timeout is None and expires_at is not None:
        timeout = (expires_at - datetime.now(timezone.utc)).total_seconds()
    return max(0.0, LONGEST_COMMAND if timeout is None else timeout) + SLACK


def command_policy(value: models.CommandPolicy | Mapping[str, Any] | None) -> models.CommandPolicy | None:
    if value is None or isinstance(value, models.CommandPolicy):
        return value
    rules = [rule if isinstance(rule, models.CommandRule) else models.CommandRule(**rule) for rule in value.get("rules", ())]
    return models.CommandPolicy(**{**value, "rules": rules})


def create_body(
    *,
    runtime: str | None,
    image: str | None,
    timeout: int | None,
    egress_enabled: bool,
    env: Mapping[str, str] | None,
    memory_mb: int | None,
    cpu_cores: float | None,
    disk_mb: int | None,
    pids: int | None,
    syscall_allowlist: str | None,
    read_only_root: bool | None,
    policy: models.CommandPolicy | Mapping[str, Any] | None,
    metadata: Mapping[str, str] | None,
) -> dict[str, Any]:
    """What a create and a one-shot run have in common."""
    resources = models.Resources(memory_mb=memory_mb, cpu_cores=cpu_cores, disk_mb=disk_mb, pids=pids, timeout_seconds=timeout)
    security = models.Security(
        syscall_allowlist=syscall_allowlist,  # type: ignore[arg-type]  # the server says what it knows
        network_policy="allow_all" if egress_enabled else None,  # type: ignore[arg-type]  # refused until egress control arrives
        read_only_root=read_only_root,
        command_policy=command_policy(policy),
    )
    body = {"runtime": runtime, "image": image, "resources": resources.to_json(), "security": security.to_json()}
    body |= {"env": dict(env or {}), "metadata": dict(metadata or {})}
    return {name: value for name, value in body.items() if value}


def exec_body(
    command: str | Sequence[str],
    *,
    timeout: float | None,
    stdin: str | None,
    cwd: str | None,
    env: Mapping[str, str] | None,
    stream: bool,
    max_output_bytes: int | None,
) -> dict[str, Any]:
    words = command if isinstance(command, str) else list(command)
    return models.ExecRequest(
        command=words, timeout_seconds=timeout, stdin=stdin, cwd=cwd, env=env or {}, stream=stream or None, max_output_bytes=max_output_bytes
    ).to_json()
