"""What can go wrong, one class for each thing a caller may want to tell apart.

Every error carries the server's stable code, the field at fault, what was behind it (cause), what to do about it (advice) and the
request's id, where there is one. A command that ends with another code than 0 is a result, not an error.
"""
from __future__ import annotations

from collections.abc import Mapping

from . import _models as models


class SandboxError(Exception):
    """The root of all errors of this package."""

    def __init__(
        self,
        message: str,
        *,
        code: str = "",
        status: int | None = None,
        field: str | None = None,
        cause: str | None = None,
        advice: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        rule: str | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        """Stable, such as SESSION::NOT_FOUND; CLIENT::... for what never reached a server."""
        self.status = status
        """The HTTP status; None where no answer came."""
        self.field = field
        self.cause = cause
        """What was behind it, in the words of the layer below."""
        self.advice = advice
        self.request_id = request_id
        self.retry_after = retry_after
        """Seconds after which it may work, where the server says so."""
        self.rule = rule

    def __str__(self) -> str:
        text = self.message
        if self.field and self.field not in text:
            text = f"{self.field}: {text}"
        if self.cause:
            text += f" ({self.cause})"
        if self.advice:
            text += f". {self.advice[:1].upper()}{self.advice[1:]}" if not text.endswith(".") else f" {self.advice}"
        marks = [mark for mark in (self.code, f"request {self.request_id}" if self.request_id else "") if mark]
        return f"{text} [{', '.join(marks)}]" if marks else text


class NotReachable(SandboxError):
    """No daemon answers at the address. Nothing was done."""


class ConnectionLost(SandboxError):
    """The connection broke after the request had left; it is not known what became of it."""


class SandboxTimeout(SandboxError):
    """No answer within the client's time limit. (A command that runs past its own is a result with timed_out.)"""


class UnexpectedAnswer(SandboxError):
    """The other side does not speak the session API."""


class InvalidRequest(SandboxError):
    """A value was refused; `field` names it."""


class NetworkPolicyUnsupported(InvalidRequest):
    """The server cannot open the network as asked."""


class LanguageMissing(InvalidRequest):
    """The image cannot run code of that language."""


class NotAuthorized(SandboxError):
    """The key is missing or wrong, or may not do this."""


class CommandDenied(SandboxError):
    """The command policy refused the command; `rule` says which rule. It did not run."""


class CommandNotApproved(CommandDenied):
    """A person was asked and said no, or did not answer in time. It did not run."""


class NotFound(SandboxError):
    """What was named is not there."""


class SandboxNotFound(NotFound):
    """No such sandbox, or it is another key's."""


class ImageNotFound(NotFound):
    """No such image."""


class RemoteFileNotFound(NotFound):
    """No such file or folder in the sandbox."""


class Conflict(SandboxError):
    """The sandbox is in a state in which this cannot be done."""


class SandboxEnded(SandboxError):
    """The sandbox ended before or during the request."""


class TooLarge(SandboxError):
    """More was sent than is taken."""


class DiskFull(SandboxError):
    """The sandbox's disk has no room for it."""


class TooMany(SandboxError):
    """Too much at once; nothing was done. `retry_after` says when to ask again."""


class TooManySandboxes(TooMany):
    """As many sandboxes run as may."""


class ServerUnavailable(SandboxError):
    """The server cannot do it now; `retry_after` says when to ask again."""


_BY_CODE: dict[str, type[SandboxError]] = {
    "SECURITY::NETWORK_POLICY_UNSUPPORTED": NetworkPolicyUnsupported,
    "CODE::LANGUAGE_MISSING": LanguageMissing,
    "COMMAND::DENIED": CommandDenied,
    "COMMAND::NOT_APPROVED": CommandNotApproved,
    "SESSION::NOT_FOUND": SandboxNotFound,
    "SESSION::ENDED": SandboxEnded,
    "DOCKER::SANDBOX_NOT_FOUND": SandboxNotFound,
    "SANDBOX::IMAGE_NOT_FOUND": ImageNotFound,
}

_BY_STATUS: dict[int, type[SandboxError]] = {
    400: InvalidRequest,
    401: NotAuthorized,
    403: NotAuthorized,
    404: NotFound,
    409: Conflict,
    410: SandboxEnded,
    413: TooLarge,
    422: InvalidRequest,
    429: TooMany,
    502: ServerUnavailable,
    503: ServerUnavailable,
    504: ServerUnavailable,
    507: DiskFull,
}


def from_model(error: models.Error, *, status: int | None = None, path: str = "", headers: Mapping[str, str] | None = None) -> SandboxError:
    """The error a server told of, in an answer or in an event."""
    kind = _BY_CODE.get(error.code) or _BY_STATUS.get(status or 0, SandboxError)
    if kind is NotFound and path.endswith(("/files", "/directories")):
        kind = RemoteFileNotFound
    if kind is TooMany and path in ("/sessions", "/run"):
        kind = TooManySandboxes
    return kind(
        error.message,
        code=error.code,
        status=status,
        field=error.field,
        advice=error.advice,
        rule=error.rule,
        request_id=error.request_id or (headers or {}).get("x-request-id"),
        retry_after=_seconds((headers or {}).get("retry-after")),
    )


def _seconds(text: str | None) -> float | None:
    try:
        return max(0.0, float(text)) if text else None
    except ValueError:
        return None
