"""Conventions: the words of those who instrument agents, old and new, and of coding agents that log what they do.

GenAI           gen_ai.operation.name and what goes with it; spans of before had gen_ai.system and no operation
OpenInference   openinference.span.kind, input.value, output.value, llm.token_count.*
Claude Code     log events tool_result, api_request, api_error, user_prompt
Codex           log events codex.tool_result, codex.sse_event, codex.api_request, codex.user_prompt
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum, auto
from typing import Any, Final, NamedTuple

from lifesigns.wire.otlp.records import Attributes, Record


class Meaning(Enum):
    """What a record says."""

    TOOL = auto()
    MODEL = auto()
    TOKENS = auto()
    """Tokens that were used, but not to think: embeddings."""
    TURN = auto()
    """A person said something."""
    OTHER = auto()
    """Something that only an agent does."""
    NOTHING = auto()
    """A request to a database, or whatever else is traced."""


_CODEX_HEAD: Final = re.compile(
    r"Chunk ID: \w{1,40}\nWall time: [^\n]{1,60}\n(?:Process exited with code (\d{1,5})\n)?"
    r"(?:Original token count: \d{1,12}\n)?Output:\n"
)

OPERATION: Final = "gen_ai.operation.name"
SPAN_KIND: Final = "openinference.span.kind"

_OPERATIONS: Final[Mapping[Any, Meaning]] = {
    "execute_tool": Meaning.TOOL,
    "chat": Meaning.MODEL,
    "text_completion": Meaning.MODEL,
    "completion": Meaning.MODEL,
    "generate_content": Meaning.MODEL,
    "embeddings": Meaning.TOKENS,
}
_SPAN_KINDS: Final[Mapping[Any, Meaning]] = {
    "TOOL": Meaning.TOOL,
    "LLM": Meaning.MODEL,
    "EMBEDDING": Meaning.TOKENS,
}
_EVENTS: Final[Mapping[str, Meaning]] = {
    "claude_code.tool_result": Meaning.TOOL,
    "claude_code.api_request": Meaning.MODEL,
    "claude_code.api_error": Meaning.MODEL,
    "claude_code.user_prompt": Meaning.TURN,
    "codex.tool_result": Meaning.TOOL,
    "codex.sse_event": Meaning.MODEL,
    "codex.api_request": Meaning.MODEL,
    "codex.user_prompt": Meaning.TURN,
}


class Words(NamedTuple):
    """The attributes that say something of a call, in the words of all conventions; the first that is there counts."""

    tool_name: tuple[str, ...] = ("gen_ai.tool.name", "tool.name", "tool_name", "function_name")
    call_id: tuple[str, ...] = ("gen_ai.tool.call.id", "tool_call.id", "tool_use_id", "call_id")
    arguments: tuple[str, ...] = (
        "gen_ai.tool.call.arguments",
        "tool_arguments",
        "input.value",
        "tool_input",
        "tool_parameters",
        "arguments",
    )
    result: tuple[str, ...] = ("gen_ai.tool.call.result", "tool_response", "output.value", "output")
    tokens_in: tuple[str, ...] = (
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.prompt_tokens",
        "llm.token_count.prompt",
        "input_tokens",
        "input_token_count",
    )
    tokens_out: tuple[str, ...] = (
        "gen_ai.usage.output_tokens",
        "gen_ai.usage.completion_tokens",
        "llm.token_count.completion",
        "output_tokens",
        "output_token_count",
    )
    tokens: tuple[str, ...] = ("llm.token_count.total",)
    cached_tokens: tuple[str, ...] = ("cache_creation_tokens",)
    cost: tuple[str, ...] = ("cost_usd", "gen_ai.usage.cost", "llm.cost.total", "operation.cost")
    milliseconds: tuple[str, ...] = ("duration_ms",)
    success: tuple[str, ...] = ("success",)
    status: tuple[str, ...] = ("status_code", "http.response.status_code")
    error_kind: tuple[str, ...] = ("error.type", "error_type", "status_code", "http.response.status_code")
    error_text: tuple[str, ...] = ("error", "error.message")


_ALL: Final = Words()
_CURRENT_NAMES: Final = frozenset(
    {
        "gen_ai.tool.name",
        "gen_ai.tool.call.id",
        "gen_ai.tool.call.arguments",
        "gen_ai.tool.call.result",
        "gen_ai.usage.input_tokens",
        "gen_ai.usage.output_tokens",
    }
)
_OTHER_NAMES: Final = frozenset(name for names in _ALL for name in names) - _CURRENT_NAMES
_CURRENT: Final = Words(*(tuple(name for name in names if name in _CURRENT_NAMES) for names in _ALL))
"""The few of the GenAI conventions of today: of a span that has none of the others, nothing else need be looked for."""


def words_of(attributes: Attributes) -> Words:
    """Those that may be among these attributes."""
    return _CURRENT if _OTHER_NAMES.isdisjoint(attributes) else _ALL


MARKS: Final = ("gen_ai.", SPAN_KIND, "claude_code.")
"""Every span that says something has one of these in it."""
NAMES: Final = _CURRENT_NAMES | _OTHER_NAMES | {OPERATION, SPAN_KIND, "gen_ai.request.model", "gen_ai.system"}
"""The attributes of spans that are read, beside those that name their agent."""


def meaning_of_span(record: Record) -> Meaning:
    """What a span says."""
    attributes = record.attributes
    operation = attributes.get(OPERATION)
    if operation is not None:
        return _OPERATIONS.get(operation, Meaning.OTHER)
    kind = attributes.get(SPAN_KIND)
    if kind is not None:
        return _SPAN_KINDS.get(kind, Meaning.OTHER)
    if "gen_ai.tool.name" in attributes:
        return Meaning.TOOL
    if "gen_ai.request.model" in attributes or "gen_ai.system" in attributes:
        return Meaning.MODEL
    return Meaning.OTHER if record.name.startswith("claude_code.") else Meaning.NOTHING


def meaning_of_event(record: Record) -> Meaning:
    """What a log record says."""
    name = event_name(record)
    meaning = _EVENTS.get(name)
    if meaning is None:
        return Meaning.OTHER if name.startswith(("claude_code.", "codex.")) else Meaning.NOTHING
    if name == "codex.sse_event" and record.attributes.get("event.kind") != "response.completed":
        return Meaning.OTHER
    if name == "codex.api_request" and not failed(record):
        return Meaning.OTHER  # Its tokens come with the end of its stream.
    return meaning


def event_name(record: Record) -> str:
    """The whole name of an event. Claude Code says the short one beside the whole."""
    for name in (record.name, record.attributes.get("event.name"), record.message):
        if isinstance(name, str) and name in _EVENTS:
            return name
    name = record.attributes.get("event.name") or record.name or record.message
    if not isinstance(name, str):
        return ""
    return f"claude_code.{name}" if record.resource.get("service.name") == "claude-code" else name


def failed(record: Record, words: Words = _ALL) -> bool:
    """Whether a call ended badly."""
    if record.failed:
        return True
    success = first(record.attributes, words.success)
    if success is not None:
        return success is False or success == "false"
    status = number(record.attributes, words.status)
    if status is not None and status >= 400:
        return True
    return not record.span_id and event_name(record) == "claude_code.api_error"


def hides_its_error(record: Record) -> bool:
    """Whether all errors look alike: what a shell command of Claude Code printed is not in its event."""
    return record.attributes.get("error_type") == "ShellError"


def codex_output(record: Record) -> tuple[str, int] | None:
    """What a command of Codex printed, and its exit status: its event calls every command a success, and begins its output with a
    chunk id that is another one each time."""
    output = record.attributes.get("output")
    if not isinstance(output, str) or event_name(record) != "codex.tool_result":
        return None
    head = _CODEX_HEAD.match(output)
    return None if head is None else (output[head.end() :], int(head[1] or 0))


def first(attributes: Attributes, names: tuple[str, ...]) -> Any:
    """The first of these attributes that is there."""
    for name in names:
        if (value := attributes.get(name)) is not None:
            return value
    return None


def whole(attributes: Attributes, names: tuple[str, ...]) -> int | None:
    """The first of these attributes as a number of things. Coding agents log numbers as texts."""
    value = number(attributes, names)
    return None if value is None else int(value)


def number(attributes: Attributes, names: tuple[str, ...]) -> float | None:
    """The first of these attributes as a number from 0 to what anybody could mean."""
    for name in names:
        if (value := attributes.get(name)) is not None:
            break
    else:
        return None
    if isinstance(value, str):
        try:
            value = float(value)
        except ValueError:
            return None
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return value if 0 <= value < AMOUNT_MAX else None


AMOUNT_MAX: Final = 2**53
"""Of tokens, dollars, milliseconds: beyond that a number is nonsense, and would be a part of sums for ever."""
