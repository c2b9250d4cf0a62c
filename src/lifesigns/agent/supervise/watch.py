"""Watch: judges the child. Without a hub it is an engine in this very process; otherwise a hub (see `assembly`).

The supervisor reports what it sees and gets effects back: facts to print, orders to carry out. It reports the outcome
of an order like everything else.
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
"""Without a hub nobody can answer an escalation; the lack of an answer must not become a termination."""


class Watch(Protocol):
    """Gets reports about the child, and returns effects."""

    @property
    def beat_every(self) -> float: ...

    @property
    def remote(self) -> bool:
        """Whether a hub listens: then we leave a child's sender to report by itself."""

    @property
    def answers(self) -> bool:
        """Whether a hub takes our reports, as far as we know."""

    def attend(self, life: Life) -> None:
        """This is the child from now on."""

    def tell(self, signal: Signal, now: float) -> Sequence[Effect | StatusMessage]: ...

    def look(self, now: float) -> Sequence[Effect | StatusMessage]:
        """Effects that fell due, or came in."""

    def wake_at(self) -> float:
        """When to look next. A watch with a hub wakes us by itself."""

    def close(self) -> None: ...


class LocalWatch:
    """An engine of our own. It judges and nudges, but ends no child, because there is nobody to ask first."""

    remote = False
    answers = False

    def __init__(self, policy: Policy, *, beat_every: float | None = None) -> None:
        policy = policy.with_changes(
            {"ladder": {"escalation_timeout": NOBODY_ANSWERS}, "respawn": {"enabled": False}}
        )
        self.beat_every = beat_every or policy.silence.interval
        fleet = FleetPolicy(canary_every=0, tick_every=self.beat_every)
        self._engine = Engine(PolicyBook(policy, roles={}), fleet)

    def attend(self, life: Life) -> None:
        """The engine treats every child alike."""

    def tell(self, signal: Signal, now: float) -> Sequence[Effect]:
        return self._engine.hear(signal, now)

    def look(self, now: float) -> Sequence[Effect]:
        return self._engine.advance(now)

    def wake_at(self) -> float:
        return self._engine.wake_at()

    def close(self) -> None:
        """Nothing of it outlives us."""
