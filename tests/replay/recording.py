"""A hub in virtual time over a real store: the real engine, its journal and its pages, and agents that live as told."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Self

from lifesigns.config.load import load
from lifesigns.config.values import Config
from lifesigns.core.effects import Effect, Fact, SendCanary, SendPing
from lifesigns.core.engine import Engine
from lifesigns.core.signals import BeatReceived, CanaryReturned, PongReceived, Signal
from lifesigns.events import event_of
from lifesigns.hub import memory
from lifesigns.hub.journal import BUDGET, Journal
from lifesigns.ports import Commit, Event, Store

T0 = 1_790_000_000.0
KEEP_EVERY = 10.0
WAY = 1 / 256
"""Seconds for an answer to come."""


def config(**flags: object) -> Config:
    """The policy of somebody with these flags and nothing else."""
    return load(environ={}, flags={key.replace("__", "."): value for key, value in flags.items()})


class Recording:
    """Hears, judges, writes down. `answers` says who answers a ping at a moment."""

    def __init__(
        self,
        store: Callable[[], Store],
        *,
        policy: Config | None = None,
        answers: Callable[[str, float], bool] = lambda _, __: False,
        budget: float = BUDGET,
    ) -> None:
        self._another_store = store
        self._policy = policy or config()
        self._answering = answers
        self._budget = budget
        self.now = T0
        self.blind = False
        self.heard = 0
        self.flips: list[Event] = []
        """What was kept of its judgement."""

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._store.close()

    async def start(self) -> None:
        self._store = self._another_store()
        found = await self._store.open()
        policies, fleet = self._policy.policies, self._policy.fleet
        beliefs = memory.recalled(found.beliefs)
        if beliefs.agents:
            self._engine = Engine.restore(beliefs, self.now, policies, fleet, epoch=found.epoch)
        else:
            self._engine = Engine(policies, fleet, epoch=found.epoch)
        self._page, self._event = found.commit, found.event
        self._journal = Journal(found.epoch, self.now, budget=self._budget)
        self._events: list[Event] = []
        self._answers: list[tuple[float, Signal]] = []
        self._keep_at = self.now + KEEP_EVERY
        self._take(self._engine.advance(self.now))

    async def stop(self) -> None:
        """Cleanly."""
        await self._keep()
        await self._store.close()

    async def crash(self) -> None:
        """In the middle of everything: what was not kept is gone."""
        await self._store.close()

    async def hear(self, at: float, *signals: Signal) -> None:
        """Signals came at this moment after the beginning."""
        await self.wait(at)
        self._journal.note(self.now, signals)
        self.heard += len(signals)
        for signal in signals:
            self._take(self._engine.hear(signal, self.now))

    async def wait(self, at: float) -> None:
        """Nothing is heard until then."""
        until = T0 + at
        while (
            due_at := min(self._engine.wake_at(), self._keep_at, *(at for at, _ in self._answers))
        ) < until:
            if self._answers and self._answers[0][0] == due_at:
                self.now, answer = self._answers.pop(0)
                self._journal.note(self.now, [answer])
                self._take(self._engine.hear(answer, self.now))
            elif self._keep_at == due_at:
                self.now = self._keep_at
                await self._keep()
            else:
                self.now = max(self.now, self._engine.wake_at())
                self._take(self._engine.advance(self.now))
        self.now = max(self.now, until)

    async def sleep(self, at: float) -> None:
        """The hub itself stands still until then, and notices it."""
        since, self.now = self.now, T0 + at
        self._take(self._engine.advance(self.now))
        self._journal.lapsed(since, self.now)
        self._keep_at = self.now + KEEP_EVERY

    def _take(self, effects: Sequence[Effect]) -> None:
        answers: list[Signal] = []
        for effect in effects:
            if isinstance(effect, Fact):
                self._event += 1
                self._events.append(event_of(self._event, effect))
            elif isinstance(effect, SendCanary) and not self.blind:
                answers.append(CanaryReturned(seq=effect.seq))
            elif isinstance(effect, SendPing) and self._answering(effect.agent_id, self.now - T0):
                answers.append(PongReceived(agent_id=effect.agent_id, incarnation=effect.incarnation))
        self._answers += [(self.now + WAY, answer) for answer in answers]

    async def _keep(self) -> None:
        self._page += 1
        events, self._events = self._events, []
        beliefs = list(memory.everything(self._engine.snapshot()))
        chunks = self._journal.take(self.now)
        await self._store.commit(Commit(self._page, beliefs, events, journal=chunks))
        self.flips += [event for event in events if event.type == "HEALTH_STATE_CHANGED"]
        self._keep_at = self.now + KEEP_EVERY


async def beats(
    recording: Recording,
    since: float,
    until: float,
    lives: dict[str, str],
    *,
    every: float = 5.0,
    silent: Mapping[str, Sequence[tuple[float, float]]] | None = None,
) -> None:
    """These agents beat for a while, each in this life of it, but for the times in which they are silent."""
    step = round(since / every)
    while step * every < until:
        at = step * every
        said = [
            BeatReceived(agent_id, step, life)
            for agent_id, life in lives.items()
            if not any(begin <= at < end for begin, end in (silent or {}).get(agent_id, ()))
        ]
        await recording.hear(at, *said)
        step += 1
    await recording.wait(until)
