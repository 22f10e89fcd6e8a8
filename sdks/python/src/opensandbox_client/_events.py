"""Events of a running command: server-sent events in, typed events out. Pure: no I/O, shared by both clients."""
from __future__ import annotations

import base64
import codecs
import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal

from . import _models as models
from ._errors import SandboxError, UnexpectedAnswer, from_model

_MOST_LINE_BYTES = 96 * 1024 * 1024  # the largest output of one command in base64, and room


@dataclass(frozen=True, kw_only=True)
class Event:
    """Something that happened to a command. `text` is what it printed, and empty for every other type of event."""

    type: Literal["started", "held", "stdout", "stderr", "result", "lost", "exit"]
    seq: int
    """Counts up within the command; 0 for events that are not of the command itself."""
    text: str = ""
    data: bytes = b""
    """stdout, stderr: the very bytes."""
    exec_id: str | None = None
    session_id: str | None = None
    approval: models.Approval | None = None
    """held: the question a person has to answer before the command runs."""
    result: models.CodeResult | None = None
    """result: a value, a picture or a table of a code run."""
    lost: int = 0
    """lost: how many events the server no longer kept."""
    exit: models.ExecEnd | None = None
    """exit: how it ended. The last event."""


class Reader:
    """Takes the bytes of one connection and gives the events, in order and each once, also over several connections."""

    def __init__(self) -> None:
        self.exec_id: str | None = None
        self.session_id: str | None = None
        self.last_seq = 0
        self.ended = False
        self._rest = b""
        self._data: list[bytes] = []
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("stdout", "stderr")}

    def new_connection(self) -> None:
        """What the last connection left half is told again by the next one."""
        self._rest, self._data = b"", []

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """The events that are whole now. Raises the error that an event of type error carries."""
        lines = (self._rest + chunk).split(b"\n")
        self._rest = lines.pop()
        if len(self._rest) > _MOST_LINE_BYTES:
            raise UnexpectedAnswer("the server sent an endless line", code="CLIENT::UNEXPECTED_ANSWER")
        for line in lines:
            if event := self._line(line.rstrip(b"\r")):
                yield event

    def _line(self, line: bytes) -> Event | None:
        if line.startswith(b"data:"):
            self._data.append(line[5:].removeprefix(b" "))
            return None
        if line or not self._data:
            return None  # event and id repeat what the data says; a line that begins with a colon keeps the connection awake
        data, self._data = b"\n".join(self._data), []
        return self._event(data)

    def _event(self, data: bytes) -> Event | None:
        try:
            value: dict[str, Any] = json.loads(data)
            wire = models.ExecEvent.from_json(value)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise UnexpectedAnswer("the server sent an event that is none", code="CLIENT::UNEXPECTED_ANSWER", cause=repr(error)) from error
        if wire.type == "error":
            raise from_model(wire.error) if wire.error else SandboxError("the command failed without a reason")
        if wire.seq:
            if wire.seq <= self.last_seq:
                return None  # told before the connection was lost
            self.last_seq = wire.seq
        self.exec_id = wire.exec_id or self.exec_id
        self.session_id = wire.session_id or self.session_id
        self.ended = self.ended or wire.type == "exit"
        return self._typed(wire)

    def _typed(self, wire: models.ExecEvent) -> Event:
        raw = base64.b64decode(wire.data_base64) if wire.data_base64 is not None else (wire.data or "").encode()
        text = ""
        if wire.type == "stdout" or wire.type == "stderr":
            text = self._decoders[wire.type].decode(raw)  # a character may be split between two events
        elif wire.type == "exit":
            text = "".join(decoder.decode(b"", True) for decoder in self._decoders.values())
        return Event(
            type=wire.type,  # type: ignore[arg-type]  # error was raised above
            seq=wire.seq,
            text=text,
            data=raw,
            exec_id=self.exec_id,
            session_id=self.session_id,
            approval=wire.approval,
            result=wire.result,
            lost=wire.lost or 0,
            exit=wire.exit,
        )
