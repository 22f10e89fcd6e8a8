"""Values of the session API. Written by tools/gen_sdk.py from spec/sessions.yaml; change that, not this."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, TypeVar

_T = TypeVar("_T")


def _time(text: str) -> datetime:
    return datetime.fromisoformat(text.replace("Z", "+00:00"))


def _maybe(read: Callable[[Any], _T], value: Any) -> _T | None:
    return None if value is None else read(value)


def _said(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


@dataclass(frozen=True, kw_only=True)
class Resources:
    """What the session gets. There is no "unlimited"; what is not said is the configuration's."""

    memory_mb: int | None = None
    cpu_cores: float | None = None
    disk_mb: int | None = None
    pids: int | None = None
    timeout_seconds: int | None = None
    """Lifetime of the session; then it is killed."""

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Resources:
        return cls(
            memory_mb=value.get("memory_mb"),
            cpu_cores=value.get("cpu_cores"),
            disk_mb=value.get("disk_mb"),
            pids=value.get("pids"),
            timeout_seconds=value.get("timeout_seconds"),
        )

    def to_json(self) -> dict[str, Any]:
        return _said({
            "memory_mb": self.memory_mb,
            "cpu_cores": self.cpu_cores,
            "disk_mb": self.disk_mb,
            "pids": self.pids,
            "timeout_seconds": self.timeout_seconds,
        })


@dataclass(frozen=True, kw_only=True)
class Security:
    syscall_allowlist: Literal["minimal", "default", "permissive"] | None = None
    network_policy: Literal["deny_all"] | None = None
    """Any other is refused: SECURITY::NETWORK_POLICY_UNSUPPORTED."""
    read_only_root: bool | None = None
    command_policy: CommandPolicy | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Security:
        return cls(
            syscall_allowlist=value.get("syscall_allowlist"),
            network_policy=value.get("network_policy"),
            read_only_root=value.get("read_only_root"),
            command_policy=_maybe(CommandPolicy.from_json, value.get("command_policy")),
        )

    def to_json(self) -> dict[str, Any]:
        return _said({
            "syscall_allowlist": self.syscall_allowlist,
            "network_policy": self.network_policy,
            "read_only_root": self.read_only_root,
            "command_policy": self.command_policy.to_json() if self.command_policy is not None else None,
        })


@dataclass(frozen=True, kw_only=True)
class CommandRule:
    action: Literal["allow", "deny", "ask"]
    name: str | None = None
    program: str | None = None
    """Pattern with * and ?, on the base name, or on the whole path when it has a slash."""
    args_start: Sequence[str] = ()
    """Patterns of the first arguments."""
    args_any: Sequence[str] = ()
    """Patterns; one must match some argument."""
    args_all: Sequence[str] = ()
    """Patterns; each must match some argument."""
    reason: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CommandRule:
        return cls(
            action=value["action"],
            name=value.get("name"),
            program=value.get("program"),
            args_start=list(value.get("args_start", ())),
            args_any=list(value.get("args_any", ())),
            args_all=list(value.get("args_all", ())),
            reason=value.get("reason"),
        )

    def to_json(self) -> dict[str, Any]:
        return _said({
            "action": self.action,
            "name": self.name,
            "program": self.program,
            "args_start": list(self.args_start) if self.args_start else None,
            "args_any": list(self.args_any) if self.args_any else None,
            "args_all": list(self.args_all) if self.args_all else None,
            "reason": self.reason,
        })


@dataclass(frozen=True, kw_only=True)
class CommandPolicy:
    """
    Judged before a command runs, besides the operator's own; the stricter of the two holds. docs/command-policy.md.
    """

    default: Literal["allow", "deny", "ask"] | None = None
    unclear: Literal["allow", "deny", "ask"] | None = None
    ask_timeout_seconds: int | None = None
    rules: Sequence[CommandRule] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CommandPolicy:
        return cls(
            default=value.get("default"),
            unclear=value.get("unclear"),
            ask_timeout_seconds=value.get("ask_timeout_seconds"),
            rules=[CommandRule.from_json(item) for item in value.get("rules", ())],
        )

    def to_json(self) -> dict[str, Any]:
        return _said({
            "default": self.default,
            "unclear": self.unclear,
            "ask_timeout_seconds": self.ask_timeout_seconds,
            "rules": [item.to_json() for item in self.rules] if self.rules else None,
        })


@dataclass(frozen=True, kw_only=True)
class CreateSession:
    runtime: str | None = None
    """native or process; it must be the one this daemon runs. Absent: that one."""
    image: str | None = None
    """Absent: host, the programs of this machine, read-only."""
    resources: Resources | None = None
    security: Security | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)
    ephemeral: bool | None = None
    """
    true: it also ends by itself when nothing has been asked of it for sessions.idle_seconds. false: it stays until it
    is deleted or its time is over. Nothing of a session outlives it either way.
    """

    def to_json(self) -> dict[str, Any]:
        return _said({
            "runtime": self.runtime,
            "image": self.image,
            "resources": self.resources.to_json() if self.resources is not None else None,
            "security": self.security.to_json() if self.security is not None else None,
            "env": dict(self.env) if self.env else None,
            "metadata": dict(self.metadata) if self.metadata else None,
            "ephemeral": self.ephemeral,
        })


@dataclass(frozen=True, kw_only=True)
class Usage:
    cpu_seconds: float | None = None
    memory_bytes: int | None = None
    memory_peak_bytes: int | None = None
    disk_bytes: int | None = None
    pids: int | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Usage:
        return cls(
            cpu_seconds=value.get("cpu_seconds"),
            memory_bytes=value.get("memory_bytes"),
            memory_peak_bytes=value.get("memory_peak_bytes"),
            disk_bytes=value.get("disk_bytes"),
            pids=value.get("pids"),
        )


@dataclass(frozen=True, kw_only=True)
class Session:
    session_id: str
    state: Literal["pending", "running", "paused", "ending", "ended", "failed"]
    runtime: str
    image: str
    ephemeral: bool
    created_at: datetime
    resources: Resources
    security: Security
    reason: str | None = None
    """Why it is in this state where that is not plain."""
    message: str | None = None
    expires_at: datetime | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    usage: Usage | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Session:
        return cls(
            session_id=value["session_id"],
            state=value["state"],
            runtime=value["runtime"],
            image=value["image"],
            ephemeral=value["ephemeral"],
            created_at=_time(value["created_at"]),
            resources=Resources.from_json(value["resources"]),
            security=Security.from_json(value["security"]),
            reason=value.get("reason"),
            message=value.get("message"),
            expires_at=_maybe(_time, value.get("expires_at")),
            metadata=dict(value.get("metadata", {})),
            usage=_maybe(Usage.from_json, value.get("usage")),
        )


@dataclass(frozen=True, kw_only=True)
class SessionList:
    sessions: Sequence[Session]
    total: int

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> SessionList:
        return cls(
            sessions=[Session.from_json(item) for item in value.get("sessions", ())],
            total=value["total"],
        )


@dataclass(frozen=True, kw_only=True)
class ExecRequest:
    command: str | Sequence[str]
    """A line for the shell, or a program and its arguments."""
    timeout_seconds: float | None = None
    """Then the command and its children are killed."""
    stdin: str | None = None
    """Given to the command as its standard input."""
    stream: bool | None = None
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    max_output_bytes: int | None = None
    """Of each of stdout and stderr."""

    def to_json(self) -> dict[str, Any]:
        return _said({
            "command": self.command,
            "timeout_seconds": self.timeout_seconds,
            "stdin": self.stdin,
            "stream": self.stream,
            "cwd": self.cwd,
            "env": dict(self.env) if self.env else None,
            "max_output_bytes": self.max_output_bytes,
        })


@dataclass(frozen=True, kw_only=True)
class CodeRequest:
    code: str
    language: str
    """python, javascript, typescript, bash, and what else the image has."""
    timeout_seconds: float | None = None
    stream: bool | None = None
    max_output_bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        return _said({
            "code": self.code,
            "language": self.language,
            "timeout_seconds": self.timeout_seconds,
            "stream": self.stream,
            "max_output_bytes": self.max_output_bytes,
        })


@dataclass(frozen=True, kw_only=True)
class RunRequest:
    """CreateSession and ExecRequest in one."""

    command: str | Sequence[str]
    timeout_seconds: float | None = None
    stdin: str | None = None
    stream: bool | None = None
    cwd: str | None = None
    max_output_bytes: int | None = None
    runtime: str | None = None
    image: str | None = None
    resources: Resources | None = None
    security: Security | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return _said({
            "command": self.command,
            "timeout_seconds": self.timeout_seconds,
            "stdin": self.stdin,
            "stream": self.stream,
            "cwd": self.cwd,
            "max_output_bytes": self.max_output_bytes,
            "runtime": self.runtime,
            "image": self.image,
            "resources": self.resources.to_json() if self.resources is not None else None,
            "security": self.security.to_json() if self.security is not None else None,
            "env": dict(self.env) if self.env else None,
            "metadata": dict(self.metadata) if self.metadata else None,
        })


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    session_id: str
    exec_id: str
    stdout: str
    """UTF-8; bytes that are not are U+FFFD here, and whole in the event stream."""
    stderr: str
    exit_code: int
    """As a shell tells it: 128 + signal for a killed one, 124 when the time was over."""
    cause: Cause
    timed_out: bool
    duration_ms: float
    stdout_truncated: bool = False
    stderr_truncated: bool = False
    advice: str | None = None
    """One sentence on an end that was not the program's own."""
    results: Sequence[CodeResult] = ()
    error: CodeError | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ExecResult:
        return cls(
            session_id=value["session_id"],
            exec_id=value["exec_id"],
            stdout=value["stdout"],
            stderr=value["stderr"],
            exit_code=value["exit_code"],
            cause=value["cause"],
            timed_out=value["timed_out"],
            duration_ms=value["duration_ms"],
            stdout_truncated=value.get("stdout_truncated", False),
            stderr_truncated=value.get("stderr_truncated", False),
            advice=value.get("advice"),
            results=[CodeResult.from_json(item) for item in value.get("results", ())],
            error=_maybe(CodeError.from_json, value.get("error")),
        )


Cause = Literal["exited", "signalled", "timed_out", "out_of_memory", "interrupted", "session_ended"]


@dataclass(frozen=True, kw_only=True)
class CodeResult:
    """One result in several forms, by media type; text/plain is text, image/png is base64."""

    data: Mapping[str, str]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CodeResult:
        return cls(
            data=dict(value["data"]),
        )


@dataclass(frozen=True, kw_only=True)
class CodeError:
    name: str
    value: str
    traceback: Sequence[str] = ()

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> CodeError:
        return cls(
            name=value["name"],
            value=value["value"],
            traceback=list(value.get("traceback", ())),
        )


@dataclass(frozen=True, kw_only=True)
class ExecEvent:
    type: Literal["started", "held", "stdout", "stderr", "result", "lost", "exit", "error"]
    seq: int
    """Counts up within the command; 0 for events that are not of the command itself (held, error)."""
    session_id: str | None = None
    """started."""
    exec_id: str | None = None
    """started."""
    approval: Approval | None = None
    data: str | None = None
    """stdout, stderr: text."""
    data_base64: str | None = None
    """stdout, stderr: instead of data, where the bytes are not UTF-8."""
    result: CodeResult | None = None
    lost: int | None = None
    """lost: how many events are no longer kept."""
    exit: ExecEnd | None = None
    error: Error | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ExecEvent:
        return cls(
            type=value["type"],
            seq=value["seq"],
            session_id=value.get("session_id"),
            exec_id=value.get("exec_id"),
            approval=_maybe(Approval.from_json, value.get("approval")),
            data=value.get("data"),
            data_base64=value.get("data_base64"),
            result=_maybe(CodeResult.from_json, value.get("result")),
            lost=value.get("lost"),
            exit=_maybe(ExecEnd.from_json, value.get("exit")),
            error=_maybe(Error.from_json, value.get("error")),
        )


@dataclass(frozen=True, kw_only=True)
class ExecEnd:
    exit_code: int
    cause: Cause
    timed_out: bool
    duration_ms: float
    advice: str | None = None
    error: CodeError | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ExecEnd:
        return cls(
            exit_code=value["exit_code"],
            cause=value["cause"],
            timed_out=value["timed_out"],
            duration_ms=value["duration_ms"],
            advice=value.get("advice"),
            error=_maybe(CodeError.from_json, value.get("error")),
        )


@dataclass(frozen=True, kw_only=True)
class FileInfo:
    path: str
    type: Literal["file", "directory", "symlink", "other"]
    size: int
    mode: str
    """Octal."""
    modified_at: datetime

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> FileInfo:
        return cls(
            path=value["path"],
            type=value["type"],
            size=value["size"],
            mode=value["mode"],
            modified_at=_time(value["modified_at"]),
        )


@dataclass(frozen=True, kw_only=True)
class DirectoryListing:
    entries: Sequence[FileInfo]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> DirectoryListing:
        return cls(
            entries=[FileInfo.from_json(item) for item in value.get("entries", ())],
        )


@dataclass(frozen=True, kw_only=True)
class Approval:
    id: str
    session_id: str
    command: str
    rule: str
    state: Literal["waiting", "allowed", "denied", "expired", "withdrawn"]
    asked_at: datetime
    expires_at: datetime
    part: str | None = None
    """The simple command that the rule applies to."""
    reason: str | None = None
    asked_by: str | None = None
    answered_by: str | None = None
    answered_at: datetime | None = None
    comment: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Approval:
        return cls(
            id=value["id"],
            session_id=value["session_id"],
            command=value["command"],
            rule=value["rule"],
            state=value["state"],
            asked_at=_time(value["asked_at"]),
            expires_at=_time(value["expires_at"]),
            part=value.get("part"),
            reason=value.get("reason"),
            asked_by=value.get("asked_by"),
            answered_by=value.get("answered_by"),
            answered_at=_maybe(_time, value.get("answered_at")),
            comment=value.get("comment"),
        )


@dataclass(frozen=True, kw_only=True)
class ApprovalList:
    approvals: Sequence[Approval]

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> ApprovalList:
        return cls(
            approvals=[Approval.from_json(item) for item in value.get("approvals", ())],
        )


@dataclass(frozen=True, kw_only=True)
class ApprovalAnswer:
    answer: Literal["allow", "deny"]
    comment: str | None = None

    def to_json(self) -> dict[str, Any]:
        return _said({
            "answer": self.answer,
            "comment": self.comment,
        })


@dataclass(frozen=True, kw_only=True)
class Health:
    status: Literal["healthy"]
    version: str
    runtime: str

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Health:
        return cls(
            status=value["status"],
            version=value["version"],
            runtime=value["runtime"],
        )


@dataclass(frozen=True, kw_only=True)
class Error:
    code: str
    """Stable, such as SESSION::NOT_FOUND."""
    message: str
    field: str | None = None
    advice: str | None = None
    """What to do about it."""
    rule: str | None = None
    """COMMAND::DENIED: the rule that refused it."""
    request_id: str | None = None

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> Error:
        return cls(
            code=value["code"],
            message=value["message"],
            field=value.get("field"),
            advice=value.get("advice"),
            rule=value.get("rule"),
            request_id=value.get("request_id"),
        )
