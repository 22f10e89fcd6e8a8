"""OpenSandbox: run untrusted code in a sandbox.

    from opensandbox_client import SandboxClient

    with SandboxClient() as client, client.create_sandbox() as sandbox:
        print(sandbox.run("echo hello").stdout)
"""
from ._aio.client import AsyncSandboxClient
from ._aio.connection import AsyncExecStream
from ._aio.sandbox import AsyncSandbox
from ._errors import (
    CommandDenied,
    CommandNotApproved,
    Conflict,
    ConnectionLost,
    DiskFull,
    ImageNotFound,
    InvalidRequest,
    LanguageMissing,
    NetworkPolicyUnsupported,
    NotAuthorized,
    NotFound,
    NotReachable,
    RemoteFileNotFound,
    SandboxEnded,
    SandboxError,
    SandboxNotFound,
    SandboxTimeout,
    ServerUnavailable,
    TooLarge,
    TooMany,
    TooManySandboxes,
    UnexpectedAnswer,
)
from ._events import Event
from ._models import (
    Approval,
    Cause,
    CodeError,
    CodeResult,
    CommandPolicy,
    CommandRule,
    ExecEnd,
    ExecResult,
    FileInfo,
    Health,
    Resources,
    Security,
    Session,
    Usage,
)
from ._sync.client import SandboxClient
from ._sync.connection import ExecStream
from ._sync.sandbox import Sandbox

__version__ = "0.1.0"

__all__ = [
    "Approval",
    "AsyncExecStream",
    "AsyncSandbox",
    "AsyncSandboxClient",
    "Cause",
    "CodeError",
    "CodeResult",
    "CommandDenied",
    "CommandNotApproved",
    "CommandPolicy",
    "CommandRule",
    "Conflict",
    "ConnectionLost",
    "DiskFull",
    "Event",
    "ExecEnd",
    "ExecResult",
    "ExecStream",
    "FileInfo",
    "Health",
    "ImageNotFound",
    "InvalidRequest",
    "LanguageMissing",
    "NetworkPolicyUnsupported",
    "NotAuthorized",
    "NotFound",
    "NotReachable",
    "RemoteFileNotFound",
    "Resources",
    "Sandbox",
    "SandboxClient",
    "SandboxEnded",
    "SandboxError",
    "SandboxNotFound",
    "SandboxTimeout",
    "Security",
    "ServerUnavailable",
    "Session",
    "TooLarge",
    "TooMany",
    "TooManySandboxes",
    "UnexpectedAnswer",
    "Usage",
]
