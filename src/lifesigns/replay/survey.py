"""Survey: facts that need the whole record, collected before judging."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from typing import Final

from lifesigns.core.effects import Flip, HubVisibility, Kind
from lifesigns.core.handlers.admission import OWN_REPORTS
from lifesigns.core.health import Health
from lifesigns.core.signals import PathLost, PathRestored, Report, Signal
from lifesigns.events import fact_of, types_of
from lifesigns.hub.journal import DecodedChunk, read
from lifesigns.ports import Event, Store

Interval = tuple[float, float]
Progress = Callable[[float], None]

EVENTS_AT_ONCE: Final = 1000


@dataclass(slots=True)
class Survey:
    """The facts of the whole record."""

    from_at: float = inf
    to_at: float = -inf
    signals: int = 0
    missed: int = 0
    """Signals that the hub received but did not record, because there were too many."""
    agents: set[str] = field(default_factory=set)
    away: list[Interval] = field(default_factory=list)
    """The hub was off, or its record is lost: every silence starts again."""
    slept: list[Interval] = field(default_factory=list)
    """The hub did not look."""
    blind: list[Interval] = field(default_factory=list)
    lost_paths: dict[str, list[Interval]] = field(default_factory=dict)
    """When a server between the hub and some agents did not answer, by the name of the path."""
    left_out_until: dict[str, float] = field(default_factory=dict)
    """Agents with gaps in their record: complete again after this moment."""
    heard_until: dict[tuple[str, str | None], float] = field(default_factory=dict)
    """The last signal of each life of an agent; None stands for any life."""
    lost: dict[str, list[Interval]] = field(default_factory=dict)
    """When the hub itself had lost an agent: from the beginning of the silence in which it did not answer."""
    flips: list[tuple[float, str, str]] = field(default_factory=list)
    """The hub's own verdicts."""

    def would_answer(self, agent_id: str, life: str | None, at: float) -> bool:
        """Whether we assume that an agent answers a ping at this moment: it was heard again, and was not lost."""
        return not self._was_lost(agent_id, at) and self.heard_until.get((agent_id, life), -inf) > at

    def doubt(self, agent_id: str, at: float) -> str:
        """What is uncertain about a disconnection at this moment, in words; empty if the hub saw it itself."""
        if self._was_lost(agent_id, at):
            return ""
        if self.heard_until.get((agent_id, None), -inf) > at:
            return "This life of it was not heard again."
        return "It was not heard again as far as the record goes."

    def _was_lost(self, agent_id: str, at: float) -> bool:
        return any(began_at <= at < ended_at for began_at, ended_at in self.lost.get(agent_id, ()))

    def noted(self, since: float, until: float, agents: set[str]) -> Counter[str]:
        """How often the hub itself judged so in this time."""
        return Counter(to for at, agent_id, to in self.flips if since <= at < until and agent_id in agents)


async def survey(store: Store, since: float, until: float, progress: Progress) -> Survey:
    """Read the journal once."""
    record = Survey()
    _note_events(record, await _events(store, since))
    reader = _RecordReader(record)
    async for chunk in store.journal(since, until):
        reader.through(read(chunk))
        progress((chunk.to_at - since) / (until - since))
        await asyncio.sleep(0)  # Lets a Ctrl-C in.
    reader.end()
    return record


async def _events(store: Store, since: float) -> list[Event]:
    events: list[Event] = []
    types = types_of(Flip, HubVisibility)
    while some := await store.events(
        after=events[-1].id if events else 0, since=since, types=types, limit=EVENTS_AT_ONCE
    ):
        events += some
    return events


def _note_events(record: Survey, events: Sequence[Event]) -> None:
    blind_from: float | None = -inf
    for event in events:
        match fact_of(event):
            case Flip() as flip:
                _note_flip(record, flip)
            case HubVisibility(blind=True):
                blind_from = event.at
            case HubVisibility() if blind_from is not None:
                record.blind.append((blind_from, event.at))
                blind_from = None
    if blind_from is not None and blind_from != -inf:
        record.blind.append((blind_from, inf))


def _note_flip(record: Survey, flip: Flip) -> None:
    record.flips.append((flip.at, flip.agent_id, flip.now))
    lost = record.lost.get(flip.agent_id)
    if lost and lost[-1][1] == inf:
        lost[-1] = (lost[-1][0], flip.at)
    silent = [one.since for one in flip.evidence if one.kind is Kind.SILENCE]
    if flip.now is Health.DISCONNECTED and silent:
        record.lost.setdefault(flip.agent_id, []).append((silent[0], inf))


class _RecordReader:
    """Reads the chunks in order. A stretch is a run of them without a restart or a loss in between."""

    def __init__(self, record: Survey) -> None:
        self._record = record
        self._incarnations: dict[str, str] = {}
        self._last: DecodedChunk | None = None
        self._stretch: set[str] = set()
        """The agents heard in this stretch."""
        self._before: dict[str, float] = {}
        """The agents heard in an earlier one, and when that ended."""
        self._complete = True

    def through(self, reading: DecodedChunk) -> None:
        record, last, chunk = self._record, self._last, reading.chunk
        if last is None:
            record.from_at = chunk.from_at
        elif (last.epoch, last.number + 1) != (reading.epoch, reading.number):
            record.away.append((last.chunk.to_at, max(chunk.from_at, last.chunk.to_at)))
            self._end_stretch(last.chunk.to_at)
        self._last = reading
        record.to_at = max(record.to_at, chunk.to_at)
        record.missed += reading.missed
        record.slept.extend((began, ended) for began, ended in reading.lapses)
        self._complete = self._complete and not reading.missed
        for at, signal in reading:
            self._hear(signal, at)
        for agent_id in reading.gone:
            record.left_out_until[agent_id] = chunk.to_at
            self._stretch.discard(agent_id)

    def end(self) -> None:
        """Finish; a blind hub was not asleep."""
        sighted = {ended_at for _, ended_at in self._record.blind}
        self._record.slept = [lapse for lapse in self._record.slept if lapse[1] not in sighted]
        if self._last is not None:
            self._end_stretch(self._last.chunk.to_at)

    def _hear(self, signal: Signal, at: float) -> None:
        record = self._record
        if isinstance(signal, PathLost | PathRestored):
            self._note_path(signal, at)
            return
        agent_id: str = signal.agent_id  # type: ignore[union-attr]
        record.signals += 1
        record.agents.add(agent_id)
        self._stretch.add(agent_id)
        if isinstance(signal, Report) and type(signal) not in OWN_REPORTS:
            return
        life = signal.incarnation or self._incarnations.get(agent_id)  # type: ignore[union-attr]
        if life is not None:
            self._incarnations[agent_id] = life
            record.heard_until[agent_id, life] = at
        record.heard_until[agent_id, None] = at

    def _note_path(self, signal: PathLost | PathRestored, at: float) -> None:
        lost = self._record.lost_paths.setdefault(signal.path, [])
        is_lost = bool(lost) and lost[-1][1] == inf
        if isinstance(signal, PathLost) and not is_lost:
            lost.append((at, inf))
        elif isinstance(signal, PathRestored) and is_lost:
            lost[-1] = (lost[-1][0], at)

    def _end_stretch(self, at: float) -> None:
        """After a restart the hub samples other agents: an agent outside the sample is not silent, but unknown."""
        for agent_id, heard_before in self._before.items():
            if not self._complete and agent_id not in self._stretch:
                known_until = self._record.left_out_until.get(agent_id, heard_before)
                self._record.left_out_until[agent_id] = max(known_until, heard_before)
        self._before = dict.fromkeys((*self._before, *self._stretch), at)
        self._stretch, self._complete = set(), True
