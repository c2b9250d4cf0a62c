"""Calls: a batch of records as what agents did, each with its moment by the clock of who recorded it.

A span arrives when it has ended, so it is a call with its arguments, its result, its tokens and its error. Arguments and
results are digested here and not kept, as those of signals are.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, Final

import msgspec
from msgspec import Struct

from lifesigns.core.detectors.call_history import NO_ARGS
from lifesigns.core.signals import TOKENS_ONLY, ActivitySeen, ModelFinished, Signal, ToolFinished
from lifesigns.wire.evidence import digest_of, unwrapped
from lifesigns.wire.limits import PROSE_MAX, TEXT_MAX
from lifesigns.wire.otlp import conventions as c
from lifesigns.wire.otlp.conventions import Meaning
from lifesigns.wire.otlp.identity import Identities, Identity
from lifesigns.wire.otlp.records import Batch, Kind, Record

NAME_MAX: Final = TEXT_MAX // 4
"""Signs of a name: in UTF-8 they are within the limit of a text."""

_DIGESTS_MAX: Final = 4096
_DIGESTED_MAX: Final = 512
_digests: dict[str, str] = {}
"""Of short results: many are the same few words."""


class OtlpCall(Struct, gc=False):
    """What one record says of its agent."""

    who: Identity
    meaning: Meaning
    ended: float
    """By the clock of who recorded it."""
    key: str
    """The same for the same record: an exporter that got no answer sends it again."""
    call_id: str = ""
    tool: str = ""
    args_digest: str = ""
    result_digest: str = ""
    duration_s: float | None = None
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    ok: bool = True
    error: str | None = None
    error_kind: str | None = None
    inside: str = ""
    """The key of the same call, if the span round this one is told too: two instrumentations see one call."""

    def signal(self, ended_at: float) -> Signal:
        """As the engine hears it; `ended_at` is on its clock."""
        agent_id = self.who.agent_id
        if self.meaning is Meaning.TOOL:
            return ToolFinished(
                agent_id=agent_id,
                call_id=self.call_id,
                tool=self.tool,
                args_digest=self.args_digest,
                result_digest=self.result_digest,
                ok=self.ok,
                error=self.error,
                error_kind=self.error_kind,
                duration_s=self.duration_s,
                ended_at=ended_at,
            )
        if self.meaning in (Meaning.MODEL, Meaning.TOKENS):
            return ModelFinished(
                agent_id=agent_id,
                call_id=TOKENS_ONLY if self.meaning is Meaning.TOKENS else self.call_id,
                tokens_in=self.tokens_in,
                tokens_out=self.tokens_out,
                cost_usd=self.cost_usd,
                ok=self.ok,
                error_kind=self.error_kind,
                duration_s=self.duration_s,
                ended_at=ended_at,
            )
        return ActivitySeen(
            agent_id=agent_id, kind="message" if self.meaning is Meaning.TURN else "telemetry"
        )


@dataclass(slots=True)
class Calls:
    """What a batch says: what agents did, and how many records say nothing because they name no agent or no end."""

    found: list[OtlpCall]
    nameless: int = 0
    endless: int = 0


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


def in_order(call: OtlpCall) -> tuple[float, str]:
    """Sorts calls by the moment they ended."""
    return call.ended, call.key


def _call(record: Record, meaning: Meaning, who: Identity, kind: Kind) -> OtlpCall:
    attributes = record.attributes
    call_id = c.first(attributes, c.CALL_ID)
    call_id = record.span_id if not isinstance(call_id, str) or not call_id else call_id[:NAME_MAX]
    if kind is Kind.TRACES:
        key = f"{who.agent_id} {record.span_id}"
    else:
        sequence = attributes.get("event.sequence", attributes.get("request_id", ""))
        key = f"{who.agent_id} {c.event_name(record)} {record.ended} {call_id} {sequence}"
    call = OtlpCall(who, meaning, record.ended, key, call_id or key)
    if meaning is Meaning.TOOL:
        _tool(call, record)
    elif meaning in (Meaning.MODEL, Meaning.TOKENS):
        _model(call, record)
    else:
        return call
    call.duration_s = _duration(record)
    if c.failed(record):
        _error(call, record)
    return call


def _tool(call: OtlpCall, record: Record) -> None:
    attributes = record.attributes
    name = c.first(attributes, c.TOOL_NAME)
    call.tool = (str(name) if name else record.name.removeprefix("execute_tool "))[:NAME_MAX] or "a tool"
    run = _run(record) if call.who.shared else ""
    call.args_digest = _args_digest(c.first(attributes, c.ARGUMENTS), run)
    result = c.first(attributes, c.RESULT)
    if (printed := c.codex_output(record)) is not None:
        result, status = printed
        if status:
            call.ok, call.error = False, result[:PROSE_MAX] or f"exit status {status}"
    if result is not None:
        call.result_digest = _result_digest(result)
    if record.parent_id:
        call.inside = f"{call.who.agent_id} {record.parent_id} {call.tool}"


def _run(record: Record) -> str:
    """The run of a service that a call is part of. One that is a trace by itself may be of any run of its process."""
    trace = record.trace_id if record.parent_id else ""
    return f"{record.resource.get('service.instance.id', '')} {trace}".strip()


def _model(call: OtlpCall, record: Record) -> None:
    attributes = record.attributes
    call.tokens_in = c.whole(attributes, c.TOKENS_IN) or 0
    call.tokens_out = c.whole(attributes, c.TOKENS_OUT) or 0
    if not call.tokens_in and not call.tokens_out:
        call.tokens_in = c.whole(attributes, ("llm.token_count.total",)) or 0
    # What is read from a cache is the conversation so far, again with every call, at a tenth of the price.
    call.tokens_in += c.whole(attributes, ("cache_creation_tokens",)) or 0
    call.cost_usd = c.number(attributes, c.COST) or 0.0
    if record.parent_id:
        call.inside = f"{call.who.agent_id} {record.parent_id} "


def _error(call: OtlpCall, record: Record) -> None:
    attributes = record.attributes
    kind = c.first(attributes, c.ERROR_KIND) or record.error_type
    text = c.first(attributes, c.ERROR_TEXT)
    call.ok = False
    if c.hides_its_error(record):
        return  # It failed, and nobody knows with what: no evidence that it failed alike.
    call.error_kind = str(kind).rpartition(".")[2][:NAME_MAX] or None
    call.error = (record.message if record.span_id else "") or (str(text) if text else "")
    call.error = call.error[:PROSE_MAX] or None


def _duration(record: Record) -> float | None:
    milliseconds = c.number(record.attributes, ("duration_ms",))
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
