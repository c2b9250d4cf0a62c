"""Beats: the message that comes by the hundred thousand, in the four dialects it is spoken in.

    dialect         its id      differs from ours by
    native          agent_id
    agentkit        agent_id    five fields; tokens are strings in `metadata`
    Task Sentinel   worker_id   health_status, current_tasks, metrics.cpu_usage/memory_usage/uptime
    IMPL-REQ-003    agentId     taskId, lastToolCall, tokenCount, errorCount, progressIndicator

The name of the id decides the dialect. The fast way reads the first two, as well-behaved senders write
them; what it stumbles over, foreign or wrong, is read once more the careful way, which knows all
dialects, moments that are numbers and metadata that is no text, and says what is wrong with the rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Annotated, Any, Final, cast

import msgspec
from msgspec import Meta, Struct

from lifesigns.core.health import Doing
from lifesigns.core.signals import BeatReceived
from lifesigns.errors import WireError
from lifesigns.wire import batches, codec
from lifesigns.wire.batches import Batch
from lifesigns.wire.codec import Codec, on_our_clock, seconds, written
from lifesigns.wire.limits import (
    BATCH_MAX,
    BEAT_MAX,
    METADATA_MAX,
    TEXT_MAX,
    Amount,
    Calendar,
    Count,
    Finite,
    Integer,
    Moment,
    Tasks,
    Text,
    check_bytes,
    check_id,
    check_size,
    may_hide_bytes,
)


class _Metrics(Struct, gc=False):
    cpu_percent: Amount | None = None
    memory_mb: Amount | None = None
    tasks_completed: Count | None = None
    tasks_failed: Count | None = None
    uptime_s: Amount | None = None


class _Beat(Struct, gc=False):
    """A native beat. The fields stand in the contract's order: in that order they are read fastest."""

    agent_id: str
    timestamp: Calendar | None = None
    seq: Count | None = None
    incarnation: Text | None = None
    status: Text | None = None
    doing: Doing | None = None
    until: Calendar | None = None
    load: Finite | None = None
    task_id: Text | None = None
    tasks: Tasks | None = None
    phase: Text | None = None
    progress: Text | None = None
    last_tool_call: Calendar | None = None
    last_checkpoint: Calendar | None = None
    token_count: Count | None = None
    cost_usd: Amount | None = None
    error_count: Count | None = None
    capacity_available: Count | None = None
    loop_lag_ms: Amount | None = None
    metrics: _Metrics | None = None
    host: Text | None = None
    pid: Count | None = None
    role: Text | None = None
    metadata: Annotated[dict[Text, Text], Meta(max_length=METADATA_MAX)] | None = None


_BEAT: Final = Codec(_Beat)
_BEATS: Final = Codec(list[_Beat])

_DOING_BY_STATUS: Final[Mapping[str | None, Doing]] = {
    "idle": Doing.IDLE,
    "busy": Doing.WORKING,
    "working": Doing.WORKING,
    "waiting": Doing.WAITING_FOR_HUMAN,
    "waiting_for_human": Doing.WAITING_FOR_HUMAN,
    "draining": Doing.DRAINING,
    "rate_limited": Doing.RATE_LIMITED,
}


# --- reading -----------------------------------------------------------------------------------------


def decode_beat(raw: bytes, *, source: str = "", now: float | None = None) -> BeatReceived:
    """One beat of any dialect, JSON or MessagePack. `source` says which door it came through.

    With `now`, an `until` of the agent's clock is translated to ours. Raises `WireError` and nothing else.
    """
    if not raw or len(raw) > BEAT_MAX:
        check_size(raw, BEAT_MAX)
    try:
        beat = _from_json(raw) if raw[0] < 0x80 else _from_msgpack(raw)
    except codec.FAULTS:
        beat = _read_carefully(raw)
    if len(raw) > TEXT_MAX and may_hide_bytes(raw):
        check_bytes(beat)
    return _received(beat, source, now)


def decode_beats(raw: bytes, *, source: str = "", now: float | None = None) -> Batch[BeatReceived]:
    """One beat, an array of beats or one beat a line. A bad one is rejected, the others are accepted.

    Raises `WireError` where beats cannot be told apart: too many bytes or items, or a broken array.
    """
    check_size(raw, BATCH_MAX)
    if (beats := _read_at_once(raw)) is not None:
        try:
            return Batch([_received(beat, source, now) for beat in beats])
        except WireError:
            pass  # one of them is bad: the careful way finds out which
    return batches.decode_each(raw, partial(decode_beat, source=source, now=now))


_from_json: Final = _BEAT.from_json
_from_msgpack: Final = _BEAT.from_msgpack


def _read_at_once(raw: bytes) -> list[_Beat] | None:
    """All beats in one call, if they are well written and none of them can be over a limit unseen.

    MessagePack goes the careful way: it is so quickly taken apart that there is little to gain.
    """
    if len(raw) > BEAT_MAX or may_hide_bytes(raw) or codec.is_msgpack(raw):
        return None
    read = _BEATS.from_json if codec.is_array(raw) else _BEAT.from_lines
    try:
        return cast("list[_Beat]", read(raw))
    except codec.FAULTS:
        return None


def _received(beat: _Beat, source: str, now: float | None) -> BeatReceived:
    """The signal. Its slots are filled one by one because calling the class takes 0.2 to 0.4 µs more, and
    nothing is done as often as this; a test says that none was forgotten."""
    if beat.agent_id not in _known_ids:
        _learn(beat.agent_id)
    heard = BeatReceived.__new__(BeatReceived)
    heard.agent_id = beat.agent_id
    heard.source = source
    heard.seq = beat.seq
    heard.incarnation = beat.incarnation
    heard.host = beat.host
    heard.pid = beat.pid
    heard.role = beat.role

    sent_at, until = beat.timestamp, beat.until
    heard.sent_at = None if sent_at is None else sent_at.timestamp()
    heard.until = None if until is None else on_our_clock(until.timestamp(), heard.sent_at, now)
    tool_at, saved_at = beat.last_tool_call, beat.last_checkpoint
    heard.last_tool_call_at = None if tool_at is None else tool_at.timestamp()
    heard.last_checkpoint_at = None if saved_at is None else saved_at.timestamp()

    tasks, load = beat.tasks, beat.load
    heard.status = beat.status
    heard.doing = beat.doing or _DOING_BY_STATUS.get(beat.status)
    heard.load = load if load is None or 0.0 <= load <= 1.0 else min(max(load, 0.0), 1.0)
    heard.task_id = beat.task_id or (tasks[0] if tasks else None)
    heard.tasks = tasks or ()
    heard.phase = beat.phase
    heard.progress = beat.progress
    heard.capacity_available = beat.capacity_available
    heard.error_count = beat.error_count
    heard.cost_usd = beat.cost_usd
    heard.loop_lag_ms = beat.loop_lag_ms

    heard.metadata = metadata = beat.metadata
    heard.token_count = beat.token_count
    if metadata is not None and heard.token_count is None:
        heard.token_count = _tokens(metadata)

    metrics = beat.metrics or _NO_METRICS
    heard.cpu_percent = metrics.cpu_percent
    heard.memory_mb = metrics.memory_mb
    heard.tasks_completed = metrics.tasks_completed
    heard.tasks_failed = metrics.tasks_failed
    heard.uptime_s = metrics.uptime_s
    return heard


_NO_METRICS: Final = _Metrics()

_KNOWN_IDS_MAX: Final = 20_000
_known_ids: set[str] = set()
"""Ids that were found to be well formed: looking one up takes a fifth of matching it. A cache and
nothing more; it is emptied when full, so that inventing ids gains a peer nothing."""


def _learn(agent_id: str) -> None:
    check_id(agent_id, "agent_id")
    if len(_known_ids) >= _KNOWN_IDS_MAX:
        _known_ids.clear()
    _known_ids.add(agent_id)


def _tokens(metadata: Mapping[str, str]) -> int | None:
    """What agentkit's collector counts, in and out. What is no number there is ignored."""
    total: int | None = None
    for key in ("tokens_in", "tokens_out"):
        text = metadata.get(key)
        if text is not None and text.isdecimal() and len(text) <= _DIGITS_MAX:
            total = int(text) + (total or 0)
    return total


_DIGITS_MAX: Final = 18
"""Two numbers of so many digits still add up to less than 64 bits."""


# --- the careful way ---------------------------------------------------------------------------------


class _Ids(Struct, gc=False):
    """Which dialect is this?"""

    agent_id: Any = None
    worker_id: Any = None
    agentId: Any = None  # noqa: N815 - their name


class _Number:
    """A moment given as a number, asked like a `datetime`."""

    __slots__ = ("number",)

    def __init__(self, number: float) -> None:
        self.number = number

    def timestamp(self) -> float:
        return seconds(self.number)


_Scalar = Text | Integer | Finite | bool | None
_CAREFUL_TYPES: Final[Mapping[str, Any]] = {
    "timestamp": Moment | None,
    "until": Moment | None,
    "last_tool_call": Moment | None,
    "last_checkpoint": Moment | None,
    "metadata": Annotated[dict[Text, _Scalar], Meta(max_length=METADATA_MAX)] | None,
}


def _renamed(shape: type[Struct], their_names: dict[str, str], **their_types: Any) -> type[Struct]:
    """The same struct under the names, and with the types, of another dialect."""
    types = {**_CAREFUL_TYPES, **their_types}
    fields = [
        (field.name, types.get(field.name, field.type), msgspec.field(default=field.default))
        for field in msgspec.structs.fields(shape)
    ]
    return msgspec.defstruct(shape.__name__, fields, rename=their_names, gc=False)


_SENTINEL_METRICS: Final = _renamed(
    _Metrics, {"cpu_percent": "cpu_usage", "memory_mb": "memory_usage", "uptime_s": "uptime"}
)
_IDS: Final = Codec(_Ids)
_DIALECTS: Final[Mapping[str, Codec]] = {
    "agent_id": Codec(_renamed(_Beat, {})),
    "worker_id": Codec(
        _renamed(
            _Beat,
            {"agent_id": "worker_id", "status": "health_status", "tasks": "current_tasks"},
            metrics=_SENTINEL_METRICS | None,
        )
    ),
    "agentId": Codec(
        _renamed(
            _Beat,
            {
                "agent_id": "agentId",
                "task_id": "taskId",
                "last_tool_call": "lastToolCall",
                "token_count": "tokenCount",
                "error_count": "errorCount",
                "progress": "progressIndicator",
            },
        )
    ),
}
"""By the name of the id."""


def _read_carefully(raw: bytes) -> _Beat:
    ids = _IDS.read(raw)
    id_name = next((name for name in _DIALECTS if getattr(ids, name) is not None), None)
    if id_name is None:
        raise WireError("agent_id", "is missing")
    beat = cast("_Beat", _DIALECTS[id_name].read(raw))
    check_id(beat.agent_id, id_name)
    for name in _CAREFUL_TYPES:
        value = getattr(beat, name)
        if isinstance(value, float):
            setattr(beat, name, _Number(value))
        elif isinstance(value, dict):
            beat.metadata = _spelled_out(value)
    return beat


def _spelled_out(metadata: Mapping[str, Any]) -> dict[str, str]:
    """Numbers and booleans as JSON spells them; null is as good as absent."""
    return {
        key: value if isinstance(value, str) else msgspec.json.encode(value).decode()
        for key, value in metadata.items()
        if value is not None
    }


# --- writing -----------------------------------------------------------------------------------------

_METRICS: Final = _Metrics.__struct_fields__
_MOMENTS: Final[Mapping[str, str]] = {
    "sent_at": "timestamp",
    "until": "until",
    "last_tool_call_at": "last_tool_call",
    "last_checkpoint_at": "last_checkpoint",
}
_AS_THEY_ARE: Final = tuple(
    name
    for name in BeatReceived.__slots__
    if name not in _METRICS and name not in _MOMENTS and name != "source"
)


def encode_beat(beat: BeatReceived, *, msgpack: bool = False) -> bytes:
    """A native beat. What is not known is left out; moments are written in whole milliseconds.

    `source` is not written: it is set by whoever receives the beat.
    """
    message: dict[str, Any] = {
        name: value for name in _AS_THEY_ARE if (value := getattr(beat, name)) is not None and value != ()
    }
    for name, their_name in _MOMENTS.items():
        if (moment := getattr(beat, name)) is not None:
            message[their_name] = written(moment)
    metrics = {name: value for name in _METRICS if (value := getattr(beat, name)) is not None}
    if metrics:
        message["metrics"] = metrics
    return codec.write(message, msgpack=msgpack)
