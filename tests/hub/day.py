"""A fleet's day in virtual time: agents come and go under new ids, work, talk, err, hang and die; and how much of it the
hub still holds.

Everything the hub holds is counted, without a list that somebody would have to keep up to date: `held` walks through
all objects of ours that can be reached from the service, and adds up the sizes of their containers by class and field.
"""

from __future__ import annotations

import asyncio
import itertools
import random
from collections import Counter, deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import apsw

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.core import signals as s
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.hub.feed import Listener
from lifesigns.hub.housekeeping import Retention
from lifesigns.hub.service import Service

STEP = 2
"""Seconds between two looks: with more the hub would think that it slept."""
BEAT_EVERY = 10
HOSTS = 20
LIMITS = {
    "Beliefs.complaints": 4_096,
    "Beliefs.letters": 3_000,
    "Changes._gone": 30_000,
    "Journal._sample": 20_000,
    "Track.lively": 80_000,
    "Track.steady": 120_000,
}
"""What is let go only when there are so many: it grows for days, and is bounded all the same. A letter waits for an hour
at most, so there are as many as were sent in one and not acknowledged."""


KEPT_FOR_A_YEAR = {"deeds", "seals", "Tiles._roots"}
"""The audit log: it grows by what was done; in memory by 32 bytes for 256 deeds."""


@dataclass(frozen=True)
class Plan:
    """How many, for how long, and how soon things are forgotten."""

    agents: int
    periods: int
    period: int
    """Seconds after which old things are forgotten, and what is left is counted."""
    life: float
    """Seconds an agent lives on average."""
    forget_after: float
    history_for: float
    seed: int = 1

    def policy(self) -> Policy:
        silence = {"interval": float(BEAT_EVERY), "timeout": 30.0, "forget_after": self.forget_after}
        return profile("swarm").with_changes({"silence": silence, "ladder": {"escalation_timeout": 300.0}})


@dataclass
class Count:
    """What there is at the end of a period."""

    held: Mapping[str, int]
    tables: Mapping[str, int]
    """Bytes of each table and index."""
    disk: int
    agents: int
    heard: int
    events: int


@dataclass(slots=True)
class Being:
    """One agent."""

    id: str
    ends_at: float
    end: str
    """How: `left`, `killed`, `frozen` or `erring`."""
    slot: int
    seq: int = 0
    calls: int = 0


@dataclass
class Day:
    """Runs a plan, period by period."""

    plan: Plan
    folder: Path
    now: float = 1_700_000_000.0
    counts: list[Count] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.plan.seed)
        self._names = itertools.count(1)
        self._path = self.folder / "day.db"
        keeping = Retention(history_for=self.plan.history_for, raw_for=self.plan.history_for)
        self.service = Service(
            SqliteStore(self._path),
            policies=PolicyBook(self.plan.policy()),
            retention=keeping,
            clock=lambda: self.now,
        )
        self._beings = [self._newcomer(slot) for slot in range(self.plan.agents)]
        self._listener: Listener | None = None

    async def live(self) -> list[Count]:
        await self.service.start()
        try:
            self._listener = self.service.feed.listen()
            for _ in range(self.plan.periods):
                for second in range(0, self.plan.period, STEP):
                    await self._step(second)
                await self.service.housekeeping.every_hour(self.now)
                await self.service.hub.committer.wait_until_stored()
                self.counts.append(self._look())
        finally:
            await self.service.stop()
        return self.counts

    async def _step(self, second: int) -> None:
        self.now += STEP
        turns = BEAT_EVERY // STEP
        group = self._beings[second // STEP % turns :: turns]
        signals = [signal for being in group for signal in self._speak(being)]
        assert self.service.hub.hear(signals)
        await asyncio.sleep(0)
        self.service.hub.run_due()
        await asyncio.sleep(0)
        self.service.housekeeping.every_second(self.now)
        if second % 60 == 0:
            await self.service.hub.committer.wait_until_stored()
            assert self._listener is not None
            await self._listener.next(0)
            self._obey()

    def _obey(self) -> None:
        """Half of those who are ordered something acknowledge it."""
        names = [being.id for being in self._beings]
        ledger = self.service.hub.ledger
        for agent_id, orders in ledger.waiting_for(names).items():
            for order in orders[::2]:
                ledger.acknowledge(agent_id, order.order_id)

    # --- the agents -----------------------------------------------------------------------------------

    def _newcomer(self, slot: int) -> Being:
        ends_at = self.now + self._chance.expovariate(1 / self.plan.life)
        end = self._chance.choice(("left", "killed", "killed", "frozen", "erring"))
        return Being(f"agent-{next(self._names)}", ends_at, end, slot)

    def _speak(self, being: Being) -> Iterator[s.Signal]:
        being.seq += 1
        ended = self.now >= being.ends_at
        if ended and being.end == "left":
            yield s.AgentLeft(agent_id=being.id, reason="done")
        if ended and (being.end in ("left", "killed") or self.now >= being.ends_at + 600):
            self._beings[being.slot] = self._newcomer(being.slot)
            return
        yield s.BeatReceived(
            being.id,
            being.seq,
            being.id,
            load=0.5,
            token_count=being.seq * 100,
            host=f"ws-{being.slot % HOSTS}",
            loop_lag_ms=30_000.0 if ended and being.end == "frozen" else 1.0,
        )
        if ended and being.end == "erring":
            yield s.ErrorReported(agent_id=being.id, message="no such file")
        elif being.seq % 6 == 0:
            yield from self._work(being)

    def _work(self, being: Being) -> Iterator[s.Signal]:
        """What it does once a minute."""
        me, chance = being.id, self._chance
        being.calls += 1
        call, task, letter = f"c-{being.calls}", f"t-{me}-{being.calls // 10}", f"m-{me}-{being.calls}"
        match being.calls % 10:
            case 0:
                yield s.TaskAssigned(agent_id=me, task_id=task, expected_for=900.0)
                yield s.TaskClaimed(agent_id=me, task_id=task)
            case 9:
                yield s.TaskDone(agent_id=me, task_id=task)
            case 3 | 6:
                to = chance.choice(self._beings).id
                yield s.MessageSent(
                    agent_id=me, message_id=letter, to=to, priority=chance.choice(list(s.Priority))
                )
                if chance.random() < 0.8:
                    yield s.MessageAcked(agent_id=to, message_id=letter)
            case 5:
                yield s.CheckpointSaved(agent_id=me, checkpoint_id=f"cp-{being.calls}", task_id=task)
                yield s.BreakerReported(agent_id=me, name=f"api-{being.calls % 7}", state=s.BreakerState.OPEN)
            case _:
                yield s.ToolStarted(agent_id=me, call_id=call, tool="grep", args_digest=call)
                if chance.random() < 0.95:
                    yield s.ToolFinished(
                        agent_id=me, call_id=call, tool="grep", args_digest=call, result_digest=call
                    )
        if chance.random() < 0.02:
            yield s.CheckpointSaved(agent_id=f"once-{chance.random()}", checkpoint_id="lost")
        if chance.random() < 0.5:
            yield s.NudgeDelivered(agent_id=f"nobody-{chance.random()}", order_id="none")

    # --- what there is --------------------------------------------------------------------------------

    def _look(self) -> Count:
        counters, pages = self.service.hub.counters, self.service.hub.committer
        disk = sum(file.stat().st_size for file in self.folder.glob("day.db*"))
        agents = len(self.service.engine.beliefs.agents)
        heard = counters.beats + counters.reports
        return Count(held(self.service), tables(self._path), disk, agents, heard, pages.events)


def tables(path: Path) -> dict[str, int]:
    """The bytes of each table and index in a database."""
    connection = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return dict(connection.execute("SELECT name, sum(pgsize) FROM dbstat GROUP BY name"))
    finally:
        connection.close()


def held(root: object) -> Counter[str]:
    """The sizes of all containers in objects of ours that can be reached from here, by class and field."""
    sizes: Counter[str] = Counter()
    seen: set[int] = set()
    waiting: deque[tuple[str, Any]] = deque([("", root)])
    while waiting:
        name, value = waiting.pop()
        if isinstance(value, (str, bytes, int, float, Enum, type)) or value is None or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, Mapping):
            sizes[name] += len(value)
            waiting.extend((name, part) for pair in value.items() for part in pair)
        elif isinstance(value, (list, tuple, set, frozenset, deque)):
            sizes[name] += len(value)
            waiting.extend((name, part) for part in value)
        elif type(value).__module__.startswith("lifesigns."):
            waiting.extend((f"{type(value).__name__}.{field}", part) for field, part in _fields(value))
    return sizes


def _fields(value: object) -> Iterator[tuple[str, object]]:
    yield from getattr(value, "__dict__", {}).items()
    for kind in type(value).__mro__:
        slots = getattr(kind, "__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if hasattr(value, name):
                yield name, getattr(value, name)


def grown(counts: list[Count], *, warm: int) -> list[str]:
    """What was larger in the second half of the time after the warm-up than ever in the first: it grows and grows."""
    half = (len(counts) - warm) // 2
    before, after = counts[warm : warm + half], counts[warm + half :]
    complaints = []
    for name in sorted({name for count in counts for name in count.held} - KEPT_FOR_A_YEAR):
        was, now = (max(count.held.get(name, 0) for count in part) for part in (before, after))
        if now > LIMITS.get(name, was * 1.3 + 100):
            complaints.append(f"{name} grew from {was} to {now}")
    for name in sorted({name for count in counts for name in count.tables} - KEPT_FOR_A_YEAR):
        was, now = (max(count.tables.get(name, 0) for count in part) for part in (before, after))
        if now > was * 1.15 + 200_000:
            complaints.append(f"the table {name} grew from {was} to {now} bytes")
    return complaints
