"""Calls: a batch of records as what agents did, each with its moment by the clock of who recorded it.

A span arrives when it has ended, so it is a call with its arguments, its result, its tokens and its error. Arguments and
results are digested here and not kept, as those of signals are.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from operator import attrgetter
from typing import Any, Final

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from lifesigns.core.detectors.call_history import NO_ARGS
from lifesigns.core.signals import TOKENS_ONLY, ActivitySeen, ModelFinished, ToolFinished
from lifesigns.wire.evidence import digest_of, unwrapped
from lifesigns.wire.limits import PROSE_MAX, TEXT_MAX
from lifesigns.wire.otlp import conventions as c
from lifesigns.wire.otlp.conventions import Meaning
from lifesigns.wire.otlp.identity import Identities, Identity
from lifesigns.wire.otlp.protobuf import Wanted
from lifesigns.wire.otlp.records import Batch, Kind, Record

NAME_MAX: Final = TEXT_MAX // 4
"""Signs of a name: in UTF-8 they are within the limit of a text."""

Told = ToolFinished | ModelFinished | ActivitySeen

_DIGESTS_MAX: Final = 4096
_DIGESTED_MAX: Final = 512
_digests: dict[str, str] = {}
"""Of short results: many are the same few words."""


class OtlpCall(Struct, gc=False):
    """What one record says of its agent."""

    who: Identity
    ended: float
    """By the clock of who recorded it."""
    key: str
    """The same for the same record: an exporter that got no answer sends it again."""
    signal: Told
    """As the engine hears it, with a time by the same clock."""
    tool: str = ""
    inside: str = ""
    """The key of the same call, if the span round this one is told too: two instrumentations see one call."""

    @property
    def own_key(self) -> str:
        """What `inside` of a call says, if this is the span round it."""
        return f"{self.key} {self.tool}"

    def signal_at(self, ended_at: float) -> Told:
        """Its signal, if it ended at this moment of the engine's clock."""
        signal = self.signal
        return signal if isinstance(signal, ActivitySeen) else replace(signal, ended_at=ended_at)

    def without_evidence(self) -> OtlpCall:
        """The same call, as nobody could compare it with others."""
        signal = self.signal
        if isinstance(signal, ToolFinished):
            signal = replace(signal, args_digest="", result_digest="")
        return replace(self, signal=signal)


@dataclass(slots=True)
class Calls:
    """What a batch says: what agents did, and how many records say nothing because they name no agent or no end."""

    found: list[OtlpCall]
    nameless: int = 0
    endless: int = 0


def wanted_by(identities: Identities) -> Wanted:
    """What has to be read of spans for `calls_of`."""
    return Wanted(c.MARKS, c.NAMES | identities.names)


def calls_of(batch: Batch, kind: Kind, identities: Identities) -> Calls:
    """The calls in a batch, by the moment they ended."""
    calls = Calls([])
    meaning_of = c.meaning_of_span if kind is Kind.TRACES else c.meaning_of_event
    for record in batch.records:
        meaning = meaning_of(record)
        if meaning is Meaning.NOTHING:
            continue
        who = identities.of(record.attributes, record.resource)
        if who is None:
            calls.nameless += 1
        elif record.ended <= 0.0:
            calls.endless += 1
        else:
            calls.found.append(_call(record, meaning, who, kind))
    calls.found.sort(key=in_order)
    return calls


in_order: Final = attrgetter("ended", "key")
"""Sorts calls by the moment they ended."""


def _call(record: Record, meaning: Meaning, who: Identity, kind: Kind) -> OtlpCall:
    words = c.words_of(record.attributes)
    call_id = c.first(record.attributes, words.call_id)
    call_id = record.span_id if not isinstance(call_id, str) or not call_id else call_id[:NAME_MAX]
    key = f"{who.agent_id} {record.span_id}" if kind is Kind.TRACES else _event_key(record, who, call_id)
    if meaning is Meaning.TOOL:
        return _tool(record, words, who, key, call_id or key)
    if meaning is Meaning.MODEL or meaning is Meaning.TOKENS:
        return _model(record, words, who, key, call_id or key if meaning is Meaning.MODEL else TOKENS_ONLY)
    activity = "message" if meaning is Meaning.TURN else "telemetry"
    return OtlpCall(who, record.ended, key, ActivitySeen(agent_id=who.agent_id, kind=activity))


def _event_key(record: Record, who: Identity, call_id: str) -> str:
    sequence = record.attributes.get("event.sequence", record.attributes.get("request_id", ""))
    return f"{who.agent_id} {c.event_name(record)} {record.ended} {call_id} {sequence}"


def _tool(record: Record, words: c.Words, who: Identity, key: str, call_id: str) -> OtlpCall:
    attributes = record.attributes
    name = c.first(attributes, words.tool_name)
    tool = (str(name) if name else record.name.removeprefix("execute_tool "))[:NAME_MAX] or "a tool"
    result = c.first(attributes, words.result)
    error, error_kind = None, None
    if (printed := c.codex_output(record)) is not None:
        result, status = printed
        if status:
            error = result[:PROSE_MAX] or f"exit status {status}"
    ok = error is None
    if c.failed(record, words):
        ok, error, error_kind = False, *_error(record, words, error)
    signal = ToolFinished(
        agent_id=who.agent_id,
        call_id=call_id,
        tool=tool,
        args_digest=_args_digest(c.first(attributes, words.arguments), _run(record) if who.shared else ""),
        result_digest="" if result is None else _result_digest(result),
        ok=ok,
        error=error,
        error_kind=error_kind,
        duration_s=_duration(record, words),
        ended_at=record.ended,
    )
    inside = f"{who.agent_id} {record.parent_id} {tool}" if record.parent_id else ""
    return OtlpCall(who, record.ended, key, signal, tool, inside)


def _run(record: Record) -> str:
    """The run of a service that a call is part of. One that is a trace by itself may be of any run of its process."""
    trace = record.trace_id if record.parent_id else ""
    return f"{record.resource.get('service.instance.id', '')} {trace}".strip()


def _model(record: Record, words: c.Words, who: Identity, key: str, call_id: str) -> OtlpCall:
    attributes = record.attributes
    tokens_in = c.whole(attributes, words.tokens_in) or 0
    tokens_out = c.whole(attributes, words.tokens_out) or 0
    if not tokens_in and not tokens_out:
        tokens_in = c.whole(attributes, words.tokens) or 0
    # What is read from a cache is the conversation so far, again with every call, at a tenth of the price.
    tokens_in += c.whole(attributes, words.cached_tokens) or 0
    ok = not c.failed(record, words)
    signal = ModelFinished(
        agent_id=who.agent_id,
        call_id=call_id,
        tokens_in=tokens_in,
        tokens_out=tokens_out,
        cost_usd=c.number(attributes, words.cost) or 0.0,
        ok=ok,
        error_kind=None if ok else _error(record, words)[1],
        duration_s=_duration(record, words),
        ended_at=record.ended,
    )
    inside = f"{who.agent_id} {record.parent_id} " if record.parent_id else ""
    return OtlpCall(who, record.ended, key, signal, inside=inside)


def _error(record: Record, words: c.Words, known: str | None = None) -> tuple[str | None, str | None]:
    """What a call failed with, and its kind."""
    if c.hides_its_error(record):
        return known, None  # It failed, and nobody knows with what: no evidence that it failed alike.
    kind = c.first(record.attributes, words.error_kind) or record.error_type
    text = c.first(record.attributes, words.error_text)
    error = (record.message if record.span_id else "") or (str(text) if text else "")
    return error[:PROSE_MAX] or None, str(kind).rpartition(".")[2][:NAME_MAX] or None


def _duration(record: Record, words: c.Words) -> float | None:
    milliseconds = c.number(record.attributes, words.milliseconds)
    if milliseconds is not None:
        return milliseconds / 1000
    return record.ended - record.started if 0.0 < record.started <= record.ended else None


def _args_digest(value: Any, run: str) -> str:
    """Exact, whatever the order of keys; another one in another run. An instrumentation that tells no arguments left them out: see
    `core/detectors/call_history.py` on what that is worth."""
    if value is None:
        return "" if run else NO_ARGS
    if isinstance(value, str):
        value = unwrapped(value)
    try:
        text = value.encode() if isinstance(value, str) else msgspec.json.encode(value, order="sorted")
    except (UnicodeEncodeError, TypeError, RecursionError):
        return ""
    return blake2b(run.encode() + text, digest_size=8).hexdigest()


def _result_digest(value: Any) -> str:
    if not isinstance(value, str) or len(value) > _DIGESTED_MAX:
        return digest_of(value)
    known = _digests.get(value)
    if known is None:
        known = digest_of(value)
        if len(_digests) >= _DIGESTS_MAX:
            _digests.clear()
        _digests[value] = known
    return known
