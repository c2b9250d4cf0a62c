"""Watch: an engine and a clock that only moves when told to.

watch = Watch(profile("balanced"))
watch.beat("a")                     # at watch.now
watch.run_until(watch.now + 60)     # wakes the engine exactly when it asks to be woken
watch.facts(Flip), watch.orders(SendPing)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, TypeVar

from lifesigns.core.agent import Agent
from lifesigns.core.effects import Effect, Fact, Order, Poisoned
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import BeatReceived, Signal

START: Final = 1000.0

AFact = TypeVar("AFact", bound=Fact)
AnOrder = TypeVar("AnOrder", bound=Order)


class Watch:
    """Drives an engine through virtual time and keeps everything it says."""

    def __init__(
        self,
        policy: Policy | None = None,
        *,
        fleet: FleetPolicy | None = None,
        book: PolicyBook | None = None,
        engine: Engine | None = None,
        at: float = START,
    ) -> None:
        self.engine = engine or Engine(book or PolicyBook(policy), fleet or FleetPolicy(canary_every=0))
        self.now = at
        self.effects: list[Effect] = []
        self.may_poison = False
        """Whether the test is about a bug of ours; else one fails it."""
        self.seqs: dict[str, int] = {}

    def hear(self, signal: Signal, at: float | None = None) -> None:
        """The engine hears a signal, now or at a later moment."""
        self.run_until(self.now if at is None else at)
        self.keep(self.engine.hear(signal, self.now))

    def beat(self, agent_id: str = "a", at: float | None = None, **fields: Any) -> None:
        """A beat; its sequence counts by itself unless given."""
        if "seq" not in fields:
            fields["seq"] = self.seqs.get(agent_id, 0) + 1
        if fields["seq"] is not None:
            self.seqs[agent_id] = fields["seq"]
        self.hear(BeatReceived(agent_id, **fields), at)

    def live(self, until: float, *agent_ids: str, every: float = 5.0, **fields: Any) -> None:
        """These agents beat regularly until then, the first time one interval from now."""
        at = self.now + every
        while at <= until:
            for agent_id in agent_ids or ("a",):
                self.beat(agent_id, at, **fields)
            at += every
        self.run_until(until)

    def run_until(self, until: float) -> None:
        """Wake the engine whenever it wants to be woken, up to then."""
        while (at := self.engine.wake_at()) <= until:
            self.now = max(self.now, at)
            self.keep(self.engine.advance(self.now))
            assert self.engine.wake_at() > self.now, "the engine wants to be woken in the past"
        self.jump_to(until)

    def jump_to(self, at: float) -> None:
        """Look only then, however long that is: the way to have slept."""
        self.now = max(self.now, at)
        self.keep(self.engine.advance(self.now))

    def keep(self, effects: Sequence[Effect]) -> None:
        self.effects += effects
        assert self.may_poison or not (bugs := [e for e in effects if isinstance(e, Poisoned)]), bugs

    def facts(self, kind: type[AFact], agent_id: str | None = None) -> list[AFact]:
        """The facts of this kind so far, of one agent if named."""
        return [
            effect
            for effect in self.effects
            if isinstance(effect, kind) and agent_id in (None, getattr(effect, "agent_id", None))
        ]

    def orders(self, kind: type[AnOrder], agent_id: str | None = None) -> list[AnOrder]:
        """The orders of this kind so far, of one agent if named."""
        return [
            effect
            for effect in self.effects
            if isinstance(effect, kind) and agent_id in (None, effect.agent_id)
        ]

    def forget(self) -> None:
        """Forget what was said so far; what follows is what the test is about."""
        self.effects.clear()

    def agent(self, agent_id: str = "a") -> Agent:
        agent = self.engine.agent(agent_id)
        assert agent is not None, f"{agent_id} is unknown"
        return agent

    def health(self, agent_id: str = "a") -> Health:
        return self.agent(agent_id).health
