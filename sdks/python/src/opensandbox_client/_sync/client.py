"""The way to a daemon: makes and finds sandboxes, runs single commands, answers questions.

Written by tools/gen_sdk.py from _aio/client.py; change that, not this.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Literal, overload
from urllib.parse import quote

import httpx

from .. import _models as models
from .. import _wire as wire
from .._wire import Again
from .connection import Connection, ExecStream
from .sandbox import Sandbox


class SandboxClient:
    """The way to one daemon. Without arguments: OPENSANDBOX_URL and OPENSANDBOX_API_KEY, or the daemon of this machine."""

    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        runtime: str | None = None,
        timeout: float = 60.0,
        max_retries: int = 2,
        *,
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        """`timeout`: seconds a request may take that is not a command. `runtime`: of the sandboxes this client makes."""
        self._connection = Connection(base_url, api_key, timeout, max_retries, transport)
        self._runtime = runtime

    def close(self) -> None:
        """Closes the connections. Sandboxes stay."""
        self._connection.close()

    def __enter__(self) -> SandboxClient:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def health(self) -> models.Health:
        return self._connection.json(models.Health.from_json, "GET", "/health", again=Again.ALWAYS)

    # ---- sandboxes

    def create_sandbox(
        self,
        image: str | None = None,
        timeout: int | None = None,
        egress_enabled: bool = False,
        env: Mapping[str, str] | None = None,
        *,
        memory_mb: int | None = None,
        cpu_cores: float | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
        syscall_allowlist: Literal["minimal", "default", "permissive"] | None = None,
        read_only_root: bool | None = None,
        command_policy: models.CommandPolicy | Mapping[str, Any] | None = None,
        ephemeral: bool | None = None,
        metadata: Mapping[str, str] | None = None,
        runtime: str | None = None,
        idempotency_key: str | None = None,
    ) -> Sandbox:
        """A sandbox that runs. What is not said is the daemon's configuration.

        `timeout`: seconds it lives. `ephemeral`: it also ends when nothing has been asked of it for a while; the server's default.
        Asking twice with the same idempotency_key gives the same sandbox; each call has one of its own unless you give one.
        """
        body = wire.create_body(
            runtime=runtime or self._runtime,
            image=image,
            timeout=timeout,
            egress_enabled=egress_enabled,
            env=env,
            memory_mb=memory_mb,
            cpu_cores=cpu_cores,
            disk_mb=disk_mb,
            pids=pids,
            syscall_allowlist=syscall_allowlist,
            read_only_root=read_only_root,
            policy=command_policy,
            metadata=metadata,
        )
        if ephemeral is not None:
            body["ephemeral"] = ephemeral
        headers = {"Idempotency-Key": idempotency_key or wire.new_key()}
        session = self._connection.json(models.Session.from_json, "POST", "/sessions", again=Again.ALWAYS, json=body, headers=headers)
        return Sandbox(self._connection, session)

    def get_sandbox(self, sandbox_id: str) -> Sandbox:
        path = f"/sessions/{quote(sandbox_id, safe='')}"
        session = self._connection.json(models.Session.from_json, "GET", path, again=Again.ALWAYS)
        return Sandbox(self._connection, session)

    def list_sandboxes(self) -> list[Sandbox]:
        """All of the caller's, newest first."""
        found: dict[str, Sandbox] = {}
        page = 1
        while True:
            params = {"page": page, "page_size": 1000}
            listed = self._connection.json(models.SessionList.from_json, "GET", "/sessions", again=Again.ALWAYS, params=params)
            found |= {session.session_id: Sandbox(self._connection, session) for session in listed.sessions}
            if not listed.sessions or page * 1000 >= listed.total:
                return list(found.values())
            page += 1

    # ---- one command in a sandbox of its own

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
        image: str | None = None,
        memory_mb: int | None = None,
        cpu_cores: float | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
        syscall_allowlist: Literal["minimal", "default", "permissive"] | None = None,
        read_only_root: bool | None = None,
        command_policy: models.CommandPolicy | Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        runtime: str | None = None,
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
        image: str | None = None,
        memory_mb: int | None = None,
        cpu_cores: float | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
        syscall_allowlist: Literal["minimal", "default", "permissive"] | None = None,
        read_only_root: bool | None = None,
        command_policy: models.CommandPolicy | Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        runtime: str | None = None,
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
        image: str | None = None,
        memory_mb: int | None = None,
        cpu_cores: float | None = None,
        disk_mb: int | None = None,
        pids: int | None = None,
        syscall_allowlist: Literal["minimal", "default", "permissive"] | None = None,
        read_only_root: bool | None = None,
        command_policy: models.CommandPolicy | Mapping[str, Any] | None = None,
        metadata: Mapping[str, str] | None = None,
        runtime: str | None = None,
    ) -> models.ExecResult | ExecStream:
        """Makes a sandbox, runs one command in it and ends it, in one request. Nothing of it is left, whatever happens."""
        body = wire.create_body(
            runtime=runtime or self._runtime,
            image=image,
            timeout=None,
            egress_enabled=False,
            env=env,
            memory_mb=memory_mb,
            cpu_cores=cpu_cores,
            disk_mb=disk_mb,
            pids=pids,
            syscall_allowlist=syscall_allowlist,
            read_only_root=read_only_root,
            policy=command_policy,
            metadata=metadata,
        )
        body |= wire.exec_body(command, timeout=timeout, stdin=stdin, cwd=cwd, env=env, stream=stream, max_output_bytes=max_output_bytes)
        # With a key the server never runs it twice, whoever repeats the request.
        headers = {"Idempotency-Key": wire.new_key()}
        if stream:
            return self._connection.stream("/run", session_path=None, again=Again.REFUSED, json=body, headers=headers)
        wait = wire.wait_for_command(timeout, None)
        return self._connection.json(
            models.ExecResult.from_json, "POST", "/run", again=Again.REFUSED, wait=wait, json=body, headers=headers
        )

    # ---- commands that wait for a person

    def list_approvals(self) -> list[models.Approval]:
        listed = self._connection.json(models.ApprovalList.from_json, "GET", "/approvals", again=Again.ALWAYS)
        return list(listed.approvals)

    def get_approval(self, approval_id: str) -> models.Approval:
        path = f"/approvals/{quote(approval_id, safe='')}"
        return self._connection.json(models.Approval.from_json, "GET", path, again=Again.ALWAYS)

    def answer_approval(self, approval_id: str, answer: Literal["allow", "deny"], comment: str | None = None) -> models.Approval:
        """Lets the command run, or refuses it."""
        body = models.ApprovalAnswer(answer=answer, comment=comment).to_json()
        path = f"/approvals/{quote(approval_id, safe='')}"
        return self._connection.json(models.Approval.from_json, "POST", path, again=Again.NEVER, json=body)
