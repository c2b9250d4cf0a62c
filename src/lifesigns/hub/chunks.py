"""Chunks: how the journal encodes signals, and decodes them.

Column by column, because like values compress well side by side: the agent, the changed fields, and each field of a
beat by itself. Of a beat a chunk has only the fields that the engine judges by, and of these only what changed since
the agent's last beat in the same chunk; reports are written whole. Each chunk can be read by itself.

Moments are whole quarters of a microsecond (2^-22 s), the precision of a float for the present day: decoding restores
every bit.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from operator import attrgetter
from typing import Any, Final

import msgspec

from lifesigns.core import signals as core
from lifesigns.core.health import Doing
from lifesigns.core.signals import Beat, BeatReceived, Metrics, Report, Signal
from lifesigns.errors import AdapterError
from lifesigns.ports import Chunk

VERSION: Final = 1

TICK: Final = 2.0**22
"""Ticks a second."""

LONG_TEXT: Final = 256
"""Characters that weigh as much as a signal."""

LAPSES_MAX: Final = 64
"""Lapses in one chunk. Further ones are merged into the last."""

_STEADY: Final = (
    "incarnation",
    "doing",
    "until",
    "task_id",
    "error_count",
    "host",
    "role",
    "source",
    "tasks",
)
_LIVELY: Final = ("token_count", "cost_usd", "loop_lag_ms", "sent_at", "metrics", "metadata")
_FIELDS: Final = (*_STEADY, *_LIVELY)
"""What the engine reads of a beat, beside its agent and its number (`core/handlers/beats.py`); load, room and other
fields for people are left out. Those of `_STEADY` seldom change and are compared all at once."""
_steady_of: Final = attrgetter(*_STEADY)

_SEQ: Final = 1 << len(_FIELDS)
"""In `what`, beside a bit for each field: the number is not the last one plus one."""
_REPORT: Final = -1
"""In `what`: a report, not a beat."""

_REPORT_TYPES: Final[Mapping[str, type[Report]]] = {
    kind.__name__: kind for kind in vars(core).values() if isinstance(kind, type) and issubclass(kind, Report)
}
_encode: Final = msgspec.msgpack.Encoder().encode


class _Body(msgspec.Struct, array_like=True):
    """A chunk before it is compressed."""

    version: int
    epoch: int
    number: int
    missed: int = 0
    gone: list[str] = []
    lapses: list[tuple[float, float]] = []
    ids: list[str] = []
    waits: list[int] = []
    """Ticks between deliveries; the first from the beginning of the chunk."""
    sizes: list[int] = []
    """Signals in each delivery."""
    who: list[int] = []
    """For each beat the index of its agent in `ids`."""
    what: list[int] = []
    """For each signal the fields that changed."""
    seqs: list[int | None] = []
    values: list[list[Any]] = []
    """For each field its new values, in order."""
    reports: list[msgspec.Raw] = []


_decode: Final = msgspec.msgpack.Decoder(_Body).decode
_decode_version: Final = msgspec.msgpack.Decoder(list[msgspec.Raw]).decode
_decode_report: Final = msgspec.msgpack.Decoder(tuple[str, msgspec.Raw]).decode


# --- writing -----------------------------------------------------------------------------------------


class Track:
    """The last values that the current chunk has of one agent."""

    __slots__ = ("chunk", "heard_at", "lively", "place", "seq", "steady", "weight", "window")

    def __init__(self) -> None:
        self.chunk = 0
        self.place = 0
        self.seq: int | None = None
        self.steady: tuple[Any, ...] = ()
        self.lively: tuple[Any, ...] = ()
        self.heard_at = 0.0
        self.window = 0
        self.weight = 0
        """How much of the budget it used in that window."""


class Writer:
    """Builds one chunk."""

    def __init__(self, epoch: int, number: int, from_at: float) -> None:
        self.number = number
        self.from_at = from_at
        self.signals = 0
        self.body = _Body(VERSION, epoch, number, values=[[] for _ in _FIELDS])
        self._tick = round(from_at * TICK)

    def deliver(self, at: float, size: int) -> None:
        """Begin a delivery of so many signals: its beats and reports follow."""
        tick = round(at * TICK)
        self.body.waits.append(tick - self._tick)
        self.body.sizes.append(size)
        self._tick = tick
        self.signals += size

    def beat(self, track: Track, beat: Beat) -> int:
        """Write a beat; returns its weight."""
        body, seq, steady, lively = self.body, beat.seq, _steady_of(beat), _lively_of(beat)
        if track.chunk != self.number:
            track.chunk, track.place, track.seq = self.number, len(body.ids), None
            track.steady, track.lively = _SILENT_STEADY, _SILENT_LIVELY
            body.ids.append(beat.agent_id)
        what = size = 0
        if steady != track.steady:
            what, size = self._changes(0, track.steady, steady)
            track.steady = steady
        if lively != track.lively:
            what |= self._changes(len(_STEADY), track.lively, lively)[0]
            track.lively = lively
        if seq is None or track.seq is None or seq != track.seq + 1:
            what |= _SEQ
            body.seqs.append(seq)
        track.seq = seq
        body.who.append(track.place)
        body.what.append(what)
        return 1 + size // LONG_TEXT

    def _changes(self, first: int, before: tuple[Any, ...], now: tuple[Any, ...]) -> tuple[int, int]:
        """Write the changed fields from this index on; returns which they are, and the length of their texts."""
        what = size = 0
        for place, value in enumerate(now, first):
            if value != before[place - first]:
                what |= 1 << place
                self.body.values[place].append(value)
                if isinstance(value, str | tuple):
                    size += len(value)
        return what, size

    def report(self, report: Report) -> int:
        """Write a report; returns its weight."""
        raw = _encode((type(report).__name__, report))
        self.body.reports.append(msgspec.Raw(raw))
        self.body.what.append(_REPORT)
        return 1 + len(raw) // LONG_TEXT

    def lapse(self, began_at: float, ended_at: float) -> None:
        lapses = self.body.lapses
        if len(lapses) >= LAPSES_MAX:
            began_at = lapses.pop()[0]
        lapses.append((began_at, ended_at))

    def seal(self, to_at: float) -> Chunk:
        return Chunk(self.from_at, to_at, self.signals, zlib.compress(_encode(self.body), 1))


def _lively_of(beat: Beat) -> tuple[Any, ...]:
    metrics, metadata = beat.metrics, beat.metadata
    return (
        beat.token_count,
        beat.cost_usd,
        beat.loop_lag_ms,
        beat.sent_at
        if beat.incarnation is None
        else None,  # The engine reads it only without an incarnation.
        None if metrics is None else (metrics.cpu_percent, metrics.memory_mb),
        # The engine treats a beat with metadata apart; of its entries it judges by one.
        None if metadata is None else metadata.get("provider", False),
    )


_SILENT: Final = BeatReceived("")
_SILENT_STEADY: Final = _steady_of(_SILENT)
_SILENT_LIVELY: Final = _lively_of(_SILENT)
"""The fields of an empty beat."""


# --- reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DecodedChunk:
    """A decoded chunk. Iterating gives every signal and the moment it came."""

    chunk: Chunk
    epoch: int
    """The epoch of the hub that wrote it; it changes with a restart."""
    number: int
    """Within that epoch; a gap shows a chunk lost on the way to the store."""
    missed: int
    """Signals received and not written, because there were too many."""
    gone: Sequence[str]
    """Agents that left the sample with this chunk."""
    lapses: Sequence[tuple[float, float]]
    """When the hub itself stood still."""
    _body: _Body = field(repr=False)

    def __iter__(self) -> Iterator[tuple[float, Signal]]:
        signals, tick = _signals(self._body), round(self.chunk.from_at * TICK)
        for wait, size in zip(self._body.waits, self._body.sizes, strict=True):
            tick += wait
            at = tick / TICK
            for _ in range(size):
                yield at, next(signals)


def read(chunk: Chunk) -> DecodedChunk:
    """Decode a chunk. Raises `AdapterError` if it is damaged, or from a newer lifesigns."""
    try:
        raw = zlib.decompress(chunk.data)
        version = msgspec.msgpack.decode(_decode_version(raw)[0])
        if version != VERSION:
            raise AdapterError(
                f"the journal was written by another lifesigns (its version is {version}, this one reads "
                f"{VERSION}); use that one, or update",
                transient=False,
            )
        body = _decode(raw)
    except (zlib.error, msgspec.MsgspecError, IndexError) as error:
        raise AdapterError(f"a chunk of the journal is damaged: {error}", transient=False) from error
    return DecodedChunk(chunk, body.epoch, body.number, body.missed, body.gone, body.lapses, body)


def _signals(body: _Body) -> Iterator[Signal]:
    who, seqs, reports = iter(body.who), iter(body.seqs), iter(body.reports)
    columns = [iter(values) for values in body.values]
    values: list[list[Any]] = [[*_SILENT_STEADY, *_SILENT_LIVELY] for _ in body.ids]
    last: list[int | None] = [None for _ in body.ids]
    for what in body.what:
        if what == _REPORT:
            yield _report(next(reports))
            continue
        place = next(who)
        now, seq = values[place], last[place]
        for bit in _bits(what & ~_SEQ):
            now[bit] = next(columns[bit])
        last[place] = next(seqs) if what & _SEQ or seq is None else seq + 1
        yield _beat(body.ids[place], last[place], now)


def _bits(what: int) -> Iterator[int]:
    while what:
        lowest = what & -what
        yield lowest.bit_length() - 1
        what ^= lowest


def _report(raw: msgspec.Raw) -> Any:
    name, fields = _decode_report(raw)
    return _decoder(name).decode(fields)


@cache
def _decoder(name: str) -> msgspec.msgpack.Decoder[Report]:
    """Made when it is needed: all of them take 8 ms, and a hub only writes."""
    return msgspec.msgpack.Decoder(_REPORT_TYPES[name])


def _beat(agent_id: str, seq: int | None, values: list[Any]) -> BeatReceived:
    beat = BeatReceived(agent_id, seq)
    for name, value in zip(_FIELDS, values, strict=True):
        if value is not None:
            setattr(beat, name, _READ[name](value) if name in _READ else value)
    return beat


_READ: Final[Mapping[str, Any]] = {
    "doing": Doing,
    "tasks": tuple,
    "metrics": lambda gauges: Metrics(*gauges),
    "metadata": lambda provider: {} if provider is False else {"provider": provider},
}
