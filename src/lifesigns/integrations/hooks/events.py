"""Events: what a hook says, read within bounds. Prompts, tool arguments and results are read to be compared, never kept.

An event may be megabytes large, and everybody else waits while it is read. So of its arguments and results only so much is read as
values; the rest is compared byte by byte, so that two that differ in anything are two.
"""

from __future__ import annotations

import re
from hashlib import blake2b
from typing import TYPE_CHECKING, Annotated, Any, Final

import msgspec
from msgspec import Meta, Raw

from lifesigns.core.printable import clean
from lifesigns.errors import WireError

Name = Annotated[str, Meta(max_length=256)]
SessionId = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._-]{8,64}$")]
Path = Annotated[str, Meta(max_length=4096)]

CALLS_MAX: Final = 64
"""Calls of one batch that are looked at."""
TEXT_MAX: Final = 500
VALUES_MAX: Final = 128 * 1024
"""Bytes of all arguments and results of an event that are read as values: to read and to digest them takes 50 ms at worst."""

if TYPE_CHECKING:
    Value = Any
    ToolCalls = list["ToolCall"]
else:
    Value = Raw
    ToolCalls = Raw


class ToolCall(msgspec.Struct):
    """One call of a batch."""

    tool_use_id: Name = ""
    tool_name: Name = ""
    tool_input: Value = None
    tool_response: Value = None


class TokenUsage(msgspec.Struct):
    """What one model call used."""

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0


class HookEvent(msgspec.Struct):
    """One event of a coding agent. Fields that an event does not have are empty; those that nobody reads are skipped."""

    session_id: SessionId
    hook_event_name: Name
    cwd: Path = ""
    transcript_path: Path | None = None
    agent_id: Name | None = None
    """Inside a subagent: which."""
    agent_type: Name | None = None
    tool_name: Name = ""
    tool_input: Value = None
    tool_response: Value = None
    tool_result: Value = None
    """What Copilot calls `tool_response`."""
    tool_use_id: Name = ""
    tool_call_id: Name = ""
    """The id by which Qwen's model knows the call; its `tool_use_id` is made up."""
    tool_calls: ToolCalls = []
    duration_ms: float | None = None
    error: Value = None
    error_context: Name = ""
    is_interrupt: bool = False
    prompt: str | None = None
    """Only whether it is empty counts."""
    message: str = ""
    notification_type: Name = ""
    details: Value = None
    """What Gemini asks its user for."""
    reason: Name = ""
    source: Name = ""
    stop_hook_active: bool = False
    last_assistant_message: str | None = None
    status: Value = None
    token_usage: TokenUsage | None = None

    def __post_init__(self) -> None:
        left = VALUES_MAX
        calls: Any = self.tool_calls
        if isinstance(calls, Raw):
            self.tool_calls = [one for one in _calls_of(calls) if one is not None]
        for holder, names in ((self, _VALUES), *((call, _VALUES[:2]) for call in self.tool_calls)):
            for name in names:
                value = getattr(holder, name)
                if isinstance(value, Raw):
                    left -= len(value)
                    setattr(holder, name, _decode_value(value) if left >= 0 else _compared(value))


class Origin(msgspec.Struct):
    """What the client knows and the event does not say."""

    pid: Annotated[int, Meta(gt=0, lt=2**31)] | None = None
    """The program's process."""
    started: Annotated[str, Meta(max_length=64)] = ""
    """When that process started, in ticks since boot: a pid alone may be somebody else's tomorrow."""
    project: Annotated[str, Meta(max_length=256)] = ""
    """The name of the folder the session was started in."""


_VALUES: Final = ("tool_input", "tool_response", "tool_result", "error", "details", "status")
_FIRST_CALLS: Final = msgspec.json.Decoder(
    msgspec.defstruct(
        "FirstCalls", [(f"call_{n}", ToolCall | None, None) for n in range(CALLS_MAX)], array_like=True
    )
)
"""A list is read to its end before it is counted, and two million calls take half a second; this skips what is too much."""
_decode_value: Final = msgspec.json.Decoder().decode
_decode: Final = msgspec.json.Decoder(HookEvent).decode
_NOT_IN_A_NAME: Final = re.compile(r"[^A-Za-z0-9._-]+")


def _calls_of(raw: Raw) -> tuple[ToolCall | None, ...]:
    return msgspec.structs.astuple(_FIRST_CALLS.decode(raw))


def _compared(raw: Raw) -> str:
    return f"{len(raw)} bytes: {blake2b(raw, digest_size=16).hexdigest()}"


def read(raw: bytes) -> HookEvent:
    """An event; raises `WireError` that names the field."""
    try:
        return _decode(raw)
    except msgspec.ValidationError as error:
        detail, _, place = str(error).partition(" - at `$")
        raise WireError(place.strip("`."), detail[:300]) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise WireError("", f"the event cannot be read: {error}") from None


def name_of(text: str, most: int, otherwise: str = "session") -> str:
    """A text as a part of an agent's id."""
    return _NOT_IN_A_NAME.sub("-", text).strip("-.")[:most] or otherwise


def line(text: object) -> str:
    """The first line of a text, printable and short."""
    words = text if isinstance(text, str) else "" if text is None else str(text)[:TEXT_MAX]
    return clean(words.strip().partition("\n")[0][:TEXT_MAX])
