"""Watch: who judges the child. Alone it is an engine in this very process; else a hub (see `assembly`).

The supervisor tells it what it sees and gets effects back: facts to say, orders to carry out. The outcome of an
order is told like everything else.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol

from lifesigns.agent.supervise.life import Life
from lifesigns.agent.supervise.status_messages import StatusMessage
from lifesigns.core.effects import Effect
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import Signal

NOBODY_ANSWERS: Final = 1e12
"""Alone there is nobody who could answer an escalation; its silence must not become a termination."""


class Watch(Protocol):
    """Hears what is seen of the child, and says what is to be done."""

    @property
    def beat_every(self) -> float: ...

    @property
    def remote(self) -> bool:
        """Whether somebody elsewhere hears it: then a child that speaks for itself is left to do so."""

    @property
    def answers(self) -> bool:
        """Whether somebody elsewhere takes what we tell, as far as we know."""

    def attend(self, life: Life) -> None:
        """This is the child from now on."""

    def tell(self, signal: Signal, now: float) -> Sequence[Effect | StatusMessage]: ...

    def look(self, now: float) -> Sequence[Effect | StatusMessage]:
        """What fell due, or came in."""

    def wake_at(self) -> float:
        """When to look next. Who hears from elsewhere wakes us up by itself."""

    def close(self) -> None: ...


class LocalWatch:
    """An engine of our own. It judges and nudges; it ends nobody, for nobody is there to be asked first."""

    remote = False
    answers = False

    def __init__(self, policy: Policy, *, beat_every: float | None = None) -> None:
        policy = policy.but({"ladder": {"escalation_timeout": NOBODY_ANSWERS}, "respawn": {"enabled": False}})
        self.beat_every = beat_every or policy.silence.interval
        fleet = FleetPolicy(canary_every=0, tick_every=self.beat_every)
        self._engine = Engine(PolicyBook(policy, roles={}), fleet)

    def attend(self, life: Life) -> None:
        """One child is as good as another."""

    def tell(self, signal: Signal, now: float) -> Sequence[Effect]:
        return self._engine.hear(signal, now)

    def look(self, now: float) -> Sequence[Effect]:
        return self._engine.advance(now)

    def wake_at(self) -> float:
        return self._engine.wake_at()

    def close(self) -> None:
        """Nothing of it outlives us."""
