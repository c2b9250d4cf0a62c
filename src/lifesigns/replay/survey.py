"""Survey: what can be known only from the whole record, before anything is judged by it."""

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
from lifesigns.core.signals import Report, Signal
from lifesigns.events import fact_of, types_of
from lifesigns.hub.journal import Reading, read
from lifesigns.ports import Event, Store

Interval = tuple[float, float]
Progress = Callable[[float], None]

EVENTS_AT_ONCE: Final = 1000


@dataclass(slots=True)
class Survey:
    """What the record says as a whole."""

    from_at: float = inf
    to_at: float = -inf
    signals: int = 0
    missed: int = 0
    """Heard by the hub, and not written down because there were too many."""
    agents: set[str] = field(default_factory=set)
    away: list[Interval] = field(default_factory=list)
    """The hub was off, or what it wrote is lost: every silence starts anew."""
    slept: list[Interval] = field(default_factory=list)
    """The hub did not look."""
    blind: list[Interval] = field(default_factory=list)
    left_out_until: dict[str, float] = field(default_factory=dict)
    """Agents who were not written down all the time: known again after this moment."""
    heard_until: dict[tuple[str, str | None], float] = field(default_factory=dict)
    """When each life of an agent was last heard; without a life: any of them."""
    lost: dict[str, list[Interval]] = field(default_factory=dict)
    """When the hub itself had lost an agent: from the beginning of the silence in which it did not answer."""
    flips: list[tuple[float, str, str]] = field(default_factory=list)
    """What the hub itself judged then."""

    def would_answer(self, agent_id: str, life: str | None, at: float) -> bool:
        """Whether an agent that is asked at this moment is taken to answer: it spoke again, and was not lost."""
        return not self._was_lost(agent_id, at) and self.heard_until.get((agent_id, life), -inf) > at

    def doubt(self, agent_id: str, at: float) -> str:
        """What is not certain about a disconnection at this moment, in words; empty if the hub saw it itself."""
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
    """Go through the journal once."""
    found = Survey()
    _note_events(found, await _events(store, since))
    going = _Going(found)
    async for chunk in store.journal(since, until):
        going.through(read(chunk))
        progress((chunk.to_at - since) / (until - since))
        await asyncio.sleep(0)  # Here a Ctrl-C gets in.
    going.end()
    return found


async def _events(store: Store, since: float) -> list[Event]:
    found: list[Event] = []
    types = types_of(Flip, HubVisibility)
    while some := await store.events(
        after=found[-1].id if found else 0, since=since, types=types, limit=EVENTS_AT_ONCE
    ):
        found += some
    return found


def _note_events(found: Survey, events: Sequence[Event]) -> None:
    blind_from: float | None = -inf
    for event in events:
        match fact_of(event):
            case Flip() as flip:
                _note_flip(found, flip)
            case HubVisibility(blind=True):
                blind_from = event.at
            case HubVisibility() if blind_from is not None:
                found.blind.append((blind_from, event.at))
                blind_from = None
    if blind_from is not None and blind_from != -inf:
        found.blind.append((blind_from, inf))


def _note_flip(found: Survey, flip: Flip) -> None:
    found.flips.append((flip.at, flip.agent_id, flip.now))
    lost = found.lost.get(flip.agent_id)
    if lost and lost[-1][1] == inf:
        lost[-1] = (lost[-1][0], flip.at)
    silent = [one.since for one in flip.evidence if one.kind is Kind.SILENCE]
    if flip.now is Health.DISCONNECTED and silent:
        found.lost.setdefault(flip.agent_id, []).append((silent[0], inf))


class _Going:
    """Goes through the chunks in order. A stretch is a run of them without a restart or a loss in between."""

    def __init__(self, found: Survey) -> None:
        self._found = found
        self._incarnations: dict[str, str] = {}
        self._last: Reading | None = None
        self._stretch: set[str] = set()
        """Who was heard in this stretch."""
        self._before: dict[str, float] = {}
        """Who was heard in one before it, and when that ended."""
        self._complete = True

    def through(self, reading: Reading) -> None:
        found, last, chunk = self._found, self._last, reading.chunk
        if last is None:
            found.from_at = chunk.from_at
        elif (last.epoch, last.number + 1) != (reading.epoch, reading.number):
            found.away.append((last.chunk.to_at, max(chunk.from_at, last.chunk.to_at)))
            self._end_stretch(last.chunk.to_at)
        self._last = reading
        found.to_at = max(found.to_at, chunk.to_at)
        found.missed += reading.missed
        found.slept.extend((began, ended) for began, ended in reading.lapses)
        self._complete = self._complete and not reading.missed
        for at, signal in reading:
            self._hear(signal, at)
        for agent_id in reading.gone:
            found.left_out_until[agent_id] = chunk.to_at
            self._stretch.discard(agent_id)

    def end(self) -> None:
        """That was all; and who was blind did not sleep."""
        sighted = {ended_at for _, ended_at in self._found.blind}
        self._found.slept = [lapse for lapse in self._found.slept if lapse[1] not in sighted]
        if self._last is not None:
            self._end_stretch(self._last.chunk.to_at)

    def _hear(self, signal: Signal, at: float) -> None:
        found, agent_id = self._found, signal.agent_id  # type: ignore[union-attr]
        found.signals += 1
        found.agents.add(agent_id)
        self._stretch.add(agent_id)
        if isinstance(signal, Report) and type(signal) not in OWN_REPORTS:
            return
        life = signal.incarnation or self._incarnations.get(agent_id)  # type: ignore[union-attr]
        if life is not None:
            self._incarnations[agent_id] = life
            found.heard_until[agent_id, life] = at
        found.heard_until[agent_id, None] = at

    def _end_stretch(self, at: float) -> None:
        """After a restart the sample is another one: who is not in it is not silent, but not known."""
        for agent_id, heard_before in self._before.items():
            if not self._complete and agent_id not in self._stretch:
                known_until = self._found.left_out_until.get(agent_id, heard_before)
                self._found.left_out_until[agent_id] = max(known_until, heard_before)
        self._before = dict.fromkeys((*self._before, *self._stretch), at)
        self._stretch, self._complete = set(), True
