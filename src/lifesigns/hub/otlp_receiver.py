"""OTLP receiver: what exporters send, checked, put in order, and heard.

Exporters send in batches, collectors send several batches at once, and whoever got no answer sends again. So what an agent did
waits here for a moment (`reorder_for`) and is heard in the order in which it happened, once. A record that comes later than
that still counts, but is no evidence of a loop: what was done between two equal calls may be what came too late.

What waits here is acknowledged and not stored: a hub that is killed loses these seconds of evidence, and nobody is judged by
what is missing.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections import deque
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from contextvars import Context
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from lifesigns.core.health import Health
from lifesigns.core.signals import ActivitySeen, AgentRegistered, Signal
from lifesigns.hub.clock import Clock
from lifesigns.hub.http_receiver import HttpReceiver, InboxFull
from lifesigns.hub.hub import Hub
from lifesigns.hub.principals import Principal, Role
from lifesigns.wire import otlp
from lifesigns.wire.otlp import Calls, Form, Identity, Kind, OtlpCall

AGENT_ID: Final = (
    "lifesigns.agent.id",
    "resource.gen_ai.agent.id",
    "resource.gen_ai.agent.name",
    "service.name/session.id",
    "service.name/conversation.id",
    "service.name",
)
TASK_ID: Final = ("lifesigns.task.id",)
ROLE: Final = ("lifesigns.role",)

REORDER_FOR: Final = 5.0
"""As long as exporters gather a batch: two batches that overtake each other are seldom further apart."""

WAITING_MAX: Final = 200_000
"""Calls that wait to be heard; more are turned away, and come again. One token of an agent gets half of it."""
REMEMBERED_MIN: Final = 100_000
"""Calls of which a second telling is known, at least; twice as many at most. An exporter repeats within a minute or so."""
LINES_MAX: Final = 100_000
AWAY_MAX: Final = 86_400.0
"""How far a call's end may be from now: further away it is somebody's archive, or no time at all."""

LOOK_EVERY: Final = 0.05
"""Seconds between two looks at what is due: what came out of order is sorted once for all that came meanwhile."""

TURN: Final = 250
"""Calls that are taken or heard before others get their turn: some milliseconds."""

AGAIN_AFTER: Final = 1.0
"""Seconds after which the hub is asked again whether it has room."""

GONE: Final = (Health.DISCONNECTED, Health.TERMINATED)


@dataclass(slots=True)
class OtlpResult:
    """What became of a delivery."""

    records: int
    rejected: int = 0
    reason: str = ""
    taken: int = 0
    """Records that say something about an agent."""
    forbidden: int = 0
    """Of those rejected: agents for which their sender may not speak."""

    def reject(self, count: int, reason: str) -> None:
        if count:
            self.rejected += count
            self.reason = self.reason or reason


@dataclass(slots=True)
class _Line:
    """One agent's calls that wait."""

    source: str
    waiting: list[OtlpCall] = field(default_factory=list)
    in_order: bool = True
    """Whether those that wait are in the order in which they ended, as they nearly always come."""
    heard_to: float = 0.0
    """The end of the last call that was heard, by its own clock."""
    ahead: float = 0.0
    """How far that clock is ahead of ours at least."""


class _Recent:
    """The last keys, in two halves: when the newer one is full, the older one is dropped. (To drop the oldest key of one large dict
    takes the longer the more were dropped before.)"""

    __slots__ = ("_newer", "_older")

    def __init__(self) -> None:
        self._newer: set[str] = set()
        self._older: set[str] = set()

    def __contains__(self, key: str) -> bool:
        return key in self._newer or key in self._older

    def __len__(self) -> int:
        return len(self._newer) + len(self._older)

    def has_any(self, keys: AbstractSet[str]) -> bool:
        return not (keys.isdisjoint(self._newer) and keys.isdisjoint(self._older))

    def add(self, keys: AbstractSet[str]) -> None:
        """Add some, at most as many as are remembered."""
        if len(self._newer) + len(keys) > REMEMBERED_MIN:
            self._older, self._newer = self._newer, set(keys)
        else:
            self._newer |= keys


class OtlpReceiver:
    """Takes in spans, logs and metrics."""

    def __init__(
        self,
        hub: Hub,
        clock: Clock,
        receiver: HttpReceiver,
        identities: otlp.Identities | None = None,
        reorder_for: float = REORDER_FOR,
    ) -> None:
        self._hub = hub
        self._clock = clock
        self._receiver = receiver
        self._identities = identities or otlp.Identities(AGENT_ID, TASK_ID, ROLE)
        self._wanted = otlp.wanted_by(self._identities)
        self._reorder_for = reorder_for
        self._lines: dict[str, _Line] = {}
        self._due: deque[tuple[float, str, float]] = deque()
        """When something falls due, whose it is, and up to which end of theirs everything is to be heard."""
        self._timer: asyncio.TimerHandle | None = None
        self._told = _Recent()
        self._inner = _Recent()
        self.waiting = 0

    async def take(self, raw: bytes, form: Form, kind: Kind, who: Principal) -> OtlpResult:
        """A request of an exporter. Raises `WireError` if it cannot be read, `InboxFull` and the like if it has to come again."""
        self._receiver.check_open()

        def decode() -> tuple[otlp.Batch, Calls]:
            protobuf = form is Form.PROTOBUF
            batch = otlp.read_protobuf(raw, kind, self._wanted) if protobuf else otlp.read_json(raw, kind)
            return batch, otlp.calls_of(batch, kind, self._identities)

        batch, calls = await self._receiver.read_beside(raw, decode, who.token_id)
        now = self._clock()
        result = OtlpResult(batch.count)
        if kind is Kind.METRICS:
            self._hear_life(batch, who)
            return result
        if not self._has_room(len(calls.found), who):
            raise InboxFull
        result.reject(
            calls.nameless, "a record names no agent; set service.name, or otlp.agent_id at the hub"
        )
        result.reject(calls.endless, "a record does not say when it ended")
        for begin in range(0, len(calls.found), TURN):
            if begin:
                await self._receiver.next_turn(who, now)
            self._take_calls(calls.found[begin : begin + TURN], who, now, result)
        self._hub.counters.unreadable += result.rejected
        self._arm(now)
        return result

    def _has_room(self, count: int, who: Principal) -> bool:
        together = self.waiting + count
        if together <= WAITING_MAX // 2 or who.role is not Role.AGENT:
            return together <= WAITING_MAX
        own = sum(len(line.waiting) for line in self._lines.values() if line.source == who.token_id)
        return together <= WAITING_MAX and own + count <= WAITING_MAX // 2

    def hear_due(self) -> None:
        """Hear what has waited long enough, in turns, and come back for the rest."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        now = self._clock()
        if self._hub.inbox.waiting > WAITING_MAX // 2:
            self._timer = asyncio.get_running_loop().call_later(AGAIN_AFTER, self.hear_due, context=Context())
            return
        by_source: dict[str, list[Signal]] = {}  # Each token pays for its own.
        room = TURN
        while self._due and self._due[0][0] <= now and room > 0:
            due = self._due.popleft()
            _, agent_id, ended = due
            before = self.waiting
            if signals := self._release(agent_id, ended, room):
                by_source.setdefault(self._lines[agent_id].source, []).extend(signals)
            if before - self.waiting == room:
                self._due.appendleft(due)  # There may be more of it.
            room -= before - self.waiting
        for source, signals in by_source.items():
            if not self._hub.hear(signals, source=source):
                self._hub.counters.unreadable += len(signals)
        if room > 0:
            self._arm(now)
        else:
            self._timer = asyncio.get_running_loop().call_later(0, self.hear_due, context=Context())

    def hear_all(self) -> None:
        """Hear what waits now: the hub is about to stop."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        signals = [
            signal for agent_id in list(self._lines) for signal in self._release(agent_id, float("inf"))
        ]
        if signals:
            self._hub.hear(signals)

    # --- taking ---------------------------------------------------------------------------------------

    def _take_calls(self, calls: Iterable[OtlpCall], who: Principal, now: float, result: OtlpResult) -> None:
        by_agent: dict[str, list[OtlpCall]] = {}
        for call in calls:
            by_agent.setdefault(call.who.agent_id, []).append(call)
        for agent_id, own in by_agent.items():
            if (why := self._receiver.why_not(agent_id, who)) is not None:
                result.forbidden += len(own)
                result.reject(len(own), why)
                continue
            if (
                abs(own[0].ended - now) > AWAY_MAX or abs(own[-1].ended - now) > AWAY_MAX
            ):  # They come in order.
                near = [call for call in own if abs(call.ended - now) <= AWAY_MAX]
                result.reject(
                    len(own) - len(near), "a record ended more than a day away from the hub's clock"
                )
                own = near
            result.taken += len(own)
            if news := self._not_told(own):
                self._wait(agent_id, news, who, now)

    def _not_told(self, calls: Sequence[OtlpCall]) -> Sequence[OtlpCall]:
        """Without those that were told before; from now on all are. Nearly always none was, and all are looked up at once."""
        keys = {call.key for call in calls}
        if len(keys) == len(calls) <= REMEMBERED_MIN and not self._told.has_any(keys):
            self._told.add(keys)
            return calls
        news = []
        for call in calls:
            if call.key not in self._told:
                self._told.add({call.key})
                news.append(call)
        return news

    def _wait(self, agent_id: str, calls: Sequence[OtlpCall], who: Principal, now: float) -> None:
        line = self._lines.get(agent_id)
        if line is None:
            if len(self._lines) >= LINES_MAX:
                self._forget_idle()
            line = self._lines[agent_id] = _Line(who.token_id)
        ended = calls[-1].ended
        line.ahead = max(line.ahead, ended - now)
        if line.waiting and otlp.in_order(calls[0]) < otlp.in_order(line.waiting[-1]):
            line.in_order = False
        line.waiting.extend(calls)
        self.waiting += len(calls)
        self._due.append((now + self._reorder_for, agent_id, ended))

    def _forget_idle(self) -> None:
        """Of agents of whom nothing waits. What comes of them later is taken as it comes."""
        self._lines = {agent_id: line for agent_id, line in self._lines.items() if line.waiting}

    def _hear_life(self, batch: otlp.Batch, who: Principal) -> None:
        """Metrics are totals of what spans and events tell one by one; so they count for nothing but a sign of life."""
        known = {self._identities.of({}, resource) for resource in batch.resources}
        signals = [
            ActivitySeen(agent_id=one.agent_id, kind="telemetry")
            for one in known
            if one is not None
            and self._is_beatless(one)
            and self._receiver.why_not(one.agent_id, who) is None
        ]
        if signals and not self._hub.hear(signals, source=who.token_id):
            raise InboxFull

    def _is_beatless(self, who: Identity) -> bool:
        agent = self._hub.engine.agent(who.agent_id)
        return agent is not None and agent.beatless

    # --- hearing --------------------------------------------------------------------------------------

    def _arm(self, now: float) -> None:
        if self._due and self._timer is None:
            wait = max(LOOK_EVERY, self._due[0][0] - now)
            self._timer = asyncio.get_running_loop().call_later(wait, self.hear_due, context=Context())

    def _release(self, agent_id: str, to: float, most: int | None = None) -> list[Signal]:
        """What an agent did up to there, in order; first who it is, if that is news. Of so many calls at most."""
        line = self._lines.get(agent_id)
        signals: list[Signal] = []
        if line is None:
            return signals
        agent = self._hub.engine.agent(agent_id)
        # An agent that says by itself when it lives is not brought back by what is told after its end.
        unheard = agent is not None and not agent.beatless and agent.health in GONE
        role, task_id = (None, None) if agent is None else (agent.role, agent.task_id)
        introduced = agent is not None
        calls, said = self._waited(line, to, most), None
        for call in () if unheard else self._seen_once(calls):
            if call.who is not said:  # Mostly it is the very same.
                said = call.who
                if not introduced or (said.role or role) != role or (said.task_id or task_id) != task_id:
                    introduced, role, task_id = True, said.role or role, said.task_id or task_id
                    signals.append(_introduction(said, line.source))
            if call.ended < line.heard_to:
                signals.append(call.without_evidence().signal_at(line.heard_to - line.ahead))
            else:
                line.heard_to = call.ended
                signals.append(call.signal_at(call.ended - line.ahead) if line.ahead else call.signal)
        return signals

    def _seen_once(self, calls: Sequence[OtlpCall]) -> Sequence[OtlpCall]:
        """Without those that were heard from inside of their span: two instrumentations see one call."""
        keys, inside = {call.own_key for call in calls}, {call.inside for call in calls}
        if keys.isdisjoint(inside) and not self._inner.has_any(keys):
            self._inner.add(inside)
            return calls
        once = []
        for call in calls:
            if call.own_key not in self._inner:
                self._inner.add({call.inside})
                once.append(call)
        return once

    def _waited(self, line: _Line, to: float, most: int | None) -> list[OtlpCall]:
        """The calls that ended up to there, in order; they wait no longer."""
        if not line.in_order:
            line.waiting.sort(key=otlp.in_order)
            line.in_order = True
        count = bisect_right(line.waiting, to, key=attrgetter("ended"))
        count = count if most is None else min(count, most)
        calls, line.waiting = line.waiting[:count], line.waiting[count:]
        self.waiting -= count
        return calls


def _introduction(who: Identity, source: str) -> AgentRegistered:
    return AgentRegistered(
        agent_id=who.agent_id,
        role=who.role,
        task_id=who.task_id,
        source=source,
        bounded=True,
        beats=False,
    )
