"""Beats: the most frequent message by far, in five dialects.

    dialect         its id      differs from ours by
    native          agent_id
    agentkit        agent_id    five fields; tokens are strings in `metadata`
    Task Sentinel   worker_id   health_status, current_tasks, metrics.cpu_usage/memory_usage/uptime
    IMPL-REQ-003    agentId     taskId, lastToolCall, tokenCount, errorCount, progressIndicator
    its FR-002      agent_id    current_phase, last_tool_call_timestamp, progress_indicator

The name of the id decides the dialect. The fast path reads well-formed beats of the first two and returns the decoder's
struct. Where it fails, the careful path reads the beat again: it knows all dialects, out-of-range loads and metadata
that is not text, and explains what is wrong with the rest.

Most senders put one beat in a message. We read the messages of one round of the loop together, which takes a third of
the time. Their bytes stay in memory as long as one of them is the last beat of its agent: `TOGETHER_MAX` keeps that
small.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, cast

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import astuple

from lifesigns.core.health import Doing
from lifesigns.core.signals import BeatReceived, Metrics
from lifesigns.errors import WireError
from lifesigns.wire import batches, codec
from lifesigns.wire.batches import Batch, Decoding
from lifesigns.wire.codec import Codec, on_our_clock, seconds, written
from lifesigns.wire.limits import (
    BATCH_MAX,
    BEAT_MAX,
    ID_MAX,
    ID_SIGNS,
    METADATA_MAX,
    TEXT_MAX,
    Amount,
    Count,
    Finite,
    Integer,
    Moment,
    Name,
    Share,
    Tasks,
    Text,
    check_bytes,
    check_id,
    check_size,
    may_hide_bytes,
)

if TYPE_CHECKING:
    _OurMoment = float
else:
    _OurMoment = Moment  # The decoder accepts any moment; `decode_beat` turns it into a number on our clock.


TOGETHER_MAX: Final = 32
ALONE_MAX: Final = 2048
"""Bytes of a message that is read with others: `TOGETHER_MAX` of them stay within `BEAT_MAX`."""


class WireMetrics(Struct, gc=False):
    """The `metrics` of a beat."""

    cpu_percent: Amount | None = None
    memory_mb: Amount | None = None
    tasks_completed: Count | None = None
    tasks_failed: Count | None = None
    uptime_s: Amount | None = None


class WireBeat(Struct, gc=False):
    """A native beat as the decoder makes it. The engine takes it like a `BeatReceived`, which takes much longer to
    make.

    The fields are in the contract's order: msgspec reads them fastest in that order.
    """

    agent_id: Annotated[str, Meta(min_length=1, max_length=ID_MAX)]
    timestamp: Moment | None = None
    seq: Count | None = None
    incarnation: Text | None = None
    status: Text | None = None
    doing: Doing | None = None
    until: _OurMoment | None = None
    load: Share | None = None
    task_id: Name | None = None
    tasks: Tasks = ()
    phase: Text | None = None
    progress: Text | None = None
    last_tool_call: Text | None = None
    last_checkpoint: Text | None = None
    token_count: Count | None = None
    cost_usd: Amount | None = None
    error_count: Count | None = None
    capacity_available: Count | None = None
    loop_lag_ms: Amount | None = None
    metrics: WireMetrics | None = None
    host: Text | None = None
    pid: Count | None = None
    role: Text | None = None
    metadata: Annotated[dict[str, Text], Meta(max_length=METADATA_MAX)] | None = None
    """`_has_long_key` limits the keys: msgspec caches short keys only if their type has no limit."""
    current_phase: None = None
    last_tool_call_timestamp: None = None
    progress_indicator: None = None
    """FR-002's names for `phase`, `last_tool_call` and `progress`. The fast path fails on them on purpose, so that they
    cost other beats nothing; the careful path moves them to our fields."""
    source: str = ""
    """Set by us, and the last field: we overwrite what a peer wrote here."""

    @property
    def sent_at(self) -> float | None:
        """The agent's `timestamp` in seconds, computed only when needed."""
        return None if self.timestamp is None else seconds(self.timestamp)


FR_002: Final[Mapping[str, str]] = {
    "current_phase": "phase",
    "last_tool_call_timestamp": "last_tool_call",
    "progress_indicator": "progress",
}
"""FR-002's names for our fields. If a beat has both, ours counts."""

_BEAT: Final = Codec(WireBeat)
_BEATS: Final = Codec(list[WireBeat])

DOING_BY_STATUS: Final[Mapping[str | None, Doing]] = {
    "idle": Doing.IDLE,
    "busy": Doing.WORKING,
    "working": Doing.WORKING,
    "waiting": Doing.WAITING_FOR_HUMAN,
    "waiting_for_human": Doing.WAITING_FOR_HUMAN,
    "draining": Doing.DRAINING,
    "rate_limited": Doing.RATE_LIMITED,
}
_doing_by_status: Final = DOING_BY_STATUS.get


# --- reading -----------------------------------------------------------------------------------------


def decode_beat(raw: bytes, source: str = "", now: float | None = None) -> WireBeat:
    """One beat of any dialect, JSON or MessagePack. `source` says how it came in.

    With `now`, an `until` on the agent's clock becomes one on ours. Raises `WireError` and nothing else.
    """
    if len(raw) > TEXT_MAX:
        return _settled(_read_large(raw), source, now)
    try:
        beat = _from_json(raw) if raw < _MSGPACK else _from_msgpack(raw)
    except codec.FAULTS:
        beat = _read_carefully(raw)
    # From here on this is `_settled`, inlined: the call would take a tenth of the time of a small beat.
    beat.source = source
    if beat.agent_id not in _known_ids:
        _learn(beat.agent_id)
    if beat.doing is None:
        beat.doing = _doing_by_status(beat.status)
    if beat.until is not None:
        beat.until = on_our_clock(seconds(beat.until), beat.sent_at, now)
    if beat.tasks and beat.task_id is None:
        beat.task_id = beat.tasks[0]
    metadata = beat.metadata
    if (
        metadata is not None
        and beat.token_count is None
        and ("tokens_in" in metadata or "tokens_out" in metadata)
    ):
        beat.token_count = _tokens(metadata)
    return beat


def decode_single(raw: bytes, source: str = "", now: float | None = None) -> WireBeat | None:
    """The only beat of a small, well-formed message; None if `decode_beats` has to read it."""
    if len(raw) > TEXT_MAX or raw[:1] != b"{" or b"\n" in raw:
        return None
    try:
        return decode_beat(raw, source, now)
    except WireError:
        return None  # It may still be several beats without a newline between them.


def decode_beats(raw: bytes, source: str = "", now: float | None = None) -> Batch[WireBeat]:
    """One beat, an array of beats or one beat a line. Rejects the bad ones and accepts the others.

    Raises `WireError` where it cannot separate the beats: too many bytes or items, or a broken array.
    """
    return batches.without_pauses(decoding_beats(raw, source, now))


def decoding_beats(raw: bytes, source: str = "", now: float | None = None) -> Decoding[WireBeat]:
    """As `decode_beats`, with pauses where it takes long."""
    check_size(raw, BATCH_MAX)
    if (beat := decode_single(raw, source, now)) is not None:
        return Batch([beat])
    if (beats := _read_at_once(raw)) is not None and _settle_all(beats, source, now):
        return Batch(beats)
    return (yield from batches.decoding_each(raw, partial(decode_beat, source=source, now=now)))


class Together(NamedTuple):
    """Beats in their order, and the batch they were read from."""

    beats: list[WireBeat]
    raw: bytes


def fits_together(raw: bytes) -> bool:
    """Whether this message may be decoded in one batch with others. It must begin and end with a brace: the newline
    between two of them is no comma, so an unclosed bracket makes the whole batch unreadable and can swallow no other
    message."""
    return raw[:1] == b"{" and raw[-1:] == b"}" and len(raw) <= ALONE_MAX


def agents_of(raw: bytes, messages: Sequence[bytes]) -> list[str | None]:
    """Whose each message of a batch is, beats of any dialect or signals, by a look at nothing else; None if that cannot be read."""
    if codec.is_array(raw) and not codec.is_msgpack(raw):
        with suppress(*codec.FAULTS):  # All of them in one call, if they are ours.
            return [named.agent_id for named in _ALL_NAMED.from_json(raw)]
    return [_agent_of(message) for message in messages]


def _agent_of(raw: bytes) -> str | None:
    try:
        ids = _IDS.read(raw)
    except WireError:
        return None
    found = next((value for value in astuple(ids) if value is not None), None)
    return found if isinstance(found, str) else None


def decode_together(raws: Sequence[bytes], source: str = "", now: float | None = None) -> Together | None:
    """Decode messages that fit together; None if one of them is not a single beat and they must be read one by one."""
    raw = b"\n".join(raws)
    try:
        batch = decode_beats(raw, source, now)
    except WireError:
        return None
    if batch.rejected or len(batch.accepted) != len(raws):
        return None
    return Together(batch.accepted, raw)


def plain(beat: WireBeat) -> BeatReceived:
    """The same beat as a plain value of the core."""
    values = {name: getattr(beat, name) for name in BeatReceived.__struct_fields__}
    if beat.metrics is not None:
        values["metrics"] = Metrics(**msgspec.structs.asdict(beat.metrics))
    return BeatReceived(**values)


_MSGPACK: Final = b"\x80"
"""No JSON begins with this byte or a higher one."""
_from_json: Final[Callable[[bytes], WireBeat]] = _BEAT.from_json
_from_msgpack: Final[Callable[[bytes], WireBeat]] = _BEAT.from_msgpack


def _read_large(raw: bytes) -> WireBeat:
    """Read a beat that is large enough to have a text over the limit."""
    check_size(raw, BEAT_MAX)
    try:
        beat = _from_json(raw) if raw < _MSGPACK else _from_msgpack(raw)
    except codec.FAULTS:
        beat = _read_carefully(raw)
    if may_hide_bytes(raw) or _has_long_key(beat.metadata or {}):
        check_bytes(beat)
    return beat


def _read_at_once(raw: bytes) -> list[WireBeat] | None:
    """All beats in one call, if they are well formed and no text can exceed its limit unseen.

    MessagePack goes the careful way: splitting it is so fast that there is little to gain.
    """
    if len(raw) > BEAT_MAX or may_hide_bytes(raw) or codec.is_msgpack(raw):
        return None
    read = _BEATS.from_json if codec.is_array(raw) else _BEAT.from_lines
    try:
        return cast("list[WireBeat]", read(raw))
    except codec.FAULTS:
        return None


def _has_long_key(metadata: Mapping[str, str]) -> bool:
    for key in metadata:  # noqa: SIM110 - any() takes three times as long for a key or two
        if len(key) > TEXT_MAX:
            return True
    return False


def _settled(beat: WireBeat, source: str, now: float | None) -> WireBeat:
    """Fill in what follows from the beat's other fields. This is the hottest code here, so each rare case costs one
    comparison. `decode_beat` and `_settle_all` repeat these lines; a test checks that all three agree."""
    beat.source = source
    if beat.agent_id not in _known_ids:
        _learn(beat.agent_id)
    if beat.doing is None:
        beat.doing = _doing_by_status(beat.status)
    if beat.until is not None:
        beat.until = on_our_clock(seconds(beat.until), beat.sent_at, now)
    if beat.tasks and beat.task_id is None:
        beat.task_id = beat.tasks[0]
    if beat.metadata is not None and beat.token_count is None:
        beat.token_count = _tokens(beat.metadata)
    return beat


def _settle_all(beats: list[WireBeat], source: str, now: float | None) -> bool:
    """`_settled` for all of them. False if one is bad: the careful path finds out which."""
    for beat in beats:
        beat.source = source
        if beat.doing is None:
            beat.doing = _doing_by_status(beat.status)
        if beat.until is not None:
            beat.until = on_our_clock(seconds(beat.until), beat.sent_at, now)
        if beat.tasks and beat.task_id is None:
            beat.task_id = beat.tasks[0]
        metadata = beat.metadata
        if metadata is not None:
            if _has_long_key(metadata):
                return False
            if beat.token_count is None:
                beat.token_count = _tokens(metadata)
    # Checking a hundred new strings together is faster than one lookup in the ids of a large fleet.
    return not "".join([beat.agent_id for beat in beats]).translate(_ID_SIGNS)


_ID_SIGNS: Final = dict.fromkeys(map(ord, ID_SIGNS))
"""Removes all characters an id may have, so that nothing may be left. The decoder has checked the length of each."""

_KNOWN_IDS_MAX: Final = 250_000
_known_ids: set[str] = set()
"""Ids known to be well formed: a lookup takes a fifth of a match. Only a cache: we empty it when it is full, so a peer
that invents ids gains nothing but 40 MB. It must hold the whole fleet: a slightly smaller one would be emptied all the
time."""


def _learn(agent_id: str) -> None:
    check_id(agent_id, "agent_id")
    if len(_known_ids) >= _KNOWN_IDS_MAX:
        _known_ids.clear()
    _known_ids.add(agent_id)


def _tokens(metadata: Mapping[str, str]) -> int | None:
    """agentkit's counts, in and out; anything but a number is ignored."""
    total: int | None = None
    for key in ("tokens_in", "tokens_out"):
        text = metadata.get(key)
        if text is not None and text.isdecimal() and len(text) <= _DIGITS_MAX:
            total = int(text) + (total or 0)
    return total


_DIGITS_MAX: Final = 18
"""The sum of two such numbers still fits into 64 bits."""


# --- the careful path --------------------------------------------------------------------------------


class _Ids(Struct, gc=False):
    """The field that decides the dialect."""

    agent_id: Any = None
    worker_id: Any = None
    agentId: Any = None  # noqa: N815 - their name


class _Named(Struct, gc=False):
    """A message of ours."""

    agent_id: str


_Scalar = Text | Integer | Finite | bool | None
_CAREFUL_TYPES: Final[Mapping[str, Any]] = {
    "agent_id": str,
    "load": Finite | None,
    "task_id": Text | None,
    "tasks": Tasks | None,
    "last_tool_call": Any,
    "last_checkpoint": Any,
    "current_phase": Text | None,
    "last_tool_call_timestamp": Any,
    "progress_indicator": Text | None,
    "metadata": Annotated[dict[Text, _Scalar], Meta(max_length=METADATA_MAX)] | None,
}


def _spoken_as(their_names: dict[str, str], metrics_names: dict[str, str] | None = None) -> Codec:
    """A codec for beats with a dialect's names, field for field a `WireBeat` except `source`, which no peer sends."""
    metrics = _renamed(WireMetrics, metrics_names or {})
    return Codec(_renamed(WireBeat, their_names, {**_CAREFUL_TYPES, "metrics": metrics | None}))


def _renamed(
    shape: type[Struct], their_names: dict[str, str], types: Mapping[str, Any] | None = None
) -> type[Struct]:
    fields = [
        (field.name, (types or {}).get(field.name, field.type), msgspec.field(default=field.default))
        for field in msgspec.structs.fields(shape)
        if field.name != "source"
    ]
    return msgspec.defstruct(shape.__name__, fields, rename=their_names, gc=False)


_IDS: Final = Codec(_Ids)
_ALL_NAMED: Final = Codec(list[_Named])
_DIALECTS: Final[Mapping[str, Codec]] = {
    "agent_id": _spoken_as({}),
    "worker_id": _spoken_as(
        {"agent_id": "worker_id", "status": "health_status", "tasks": "current_tasks"},
        {"cpu_percent": "cpu_usage", "memory_mb": "memory_usage", "uptime_s": "uptime"},
    ),
    "agentId": _spoken_as(
        {
            "agent_id": "agentId",
            "task_id": "taskId",
            "last_tool_call": "lastToolCall",
            "token_count": "tokenCount",
            "error_count": "errorCount",
            "progress": "progressIndicator",
        }
    ),
}
"""By the name of the id."""


def _read_carefully(raw: bytes) -> WireBeat:
    check_size(raw, BEAT_MAX)
    ids = _IDS.read(raw)
    id_name = next((name for name in _DIALECTS if getattr(ids, name) is not None), None)
    if id_name is None:
        raise WireError("agent_id", "is missing")
    theirs = _DIALECTS[id_name].read(raw)
    check_id(theirs.agent_id, id_name)
    their_names = dict(zip(theirs.__struct_fields__, theirs.__struct_encode_fields__, strict=True))
    beat = WireBeat(*astuple(theirs))
    beat.task_id = theirs.task_id or None
    beat.tasks = theirs.tasks or ()
    if theirs.load is not None:
        beat.load = min(max(theirs.load, 0.0), 1.0)
    if theirs.metrics is not None:
        beat.metrics = WireMetrics(*astuple(theirs.metrics))
    if theirs.metadata is not None:
        beat.metadata = _spelled_out(theirs.metadata)
    beat.last_tool_call = _in_words(theirs.last_tool_call, their_names["last_tool_call"])
    beat.last_checkpoint = _in_words(theirs.last_checkpoint, their_names["last_checkpoint"])
    _read_fr_002(beat, theirs)
    return beat


def _read_fr_002(beat: WireBeat, theirs: Any) -> None:
    beat.phase = beat.phase or theirs.current_phase
    beat.progress = beat.progress or theirs.progress_indicator
    called_at = _in_words(theirs.last_tool_call_timestamp, "last_tool_call_timestamp")
    beat.last_tool_call = beat.last_tool_call or called_at
    beat.current_phase = beat.last_tool_call_timestamp = beat.progress_indicator = None


def _in_words(moment: Any, field: str) -> str | None:
    """A moment for display only: a text unchanged, a number or a MessagePack timestamp as RFC 3339."""
    if moment is None:
        return None
    try:
        if isinstance(moment, str):
            return msgspec.convert(moment, Text)
        return str(written(seconds(msgspec.convert(moment, Moment))))
    except codec.FAULTS as error:
        raise WireError(field, codec.explain(error).detail) from error


def _spelled_out(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Numbers and booleans as in JSON, without nulls."""
    return {
        key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in metadata.items()
        if value is not None
    }


# --- writing -----------------------------------------------------------------------------------------

_WRITTEN: Final = tuple(
    name for name in WireBeat.__struct_fields__ if name != "source" and name not in FR_002
)
_MOMENTS: Final = ("timestamp", "until")


def encode_beat(beat: BeatReceived | WireBeat, *, msgpack: bool = False) -> bytes:
    """A native beat, without unknown values and with moments in whole milliseconds.

    Leaves `source` out: the receiver sets it.
    """
    parts = {name: getattr(beat, "sent_at" if name == "timestamp" else name) for name in _WRITTEN}
    for name in _MOMENTS:
        if parts[name] is not None:
            parts[name] = written(parts[name])
    if beat.metrics is not None:
        values = {name: getattr(beat.metrics, name) for name in WireMetrics.__struct_fields__}
        parts["metrics"] = _without_unknown(values)
    return codec.write(_without_unknown(parts), msgpack=msgpack)


def _without_unknown(parts: Mapping[str, Any]) -> dict[str, Any]:
    return {name: part for name, part in parts.items() if part is not None and part != ()}
