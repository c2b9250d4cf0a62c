"""Watch: one engine that hears the record at the recorded times, as if it were live."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Final

from lifesigns.core.effects import (
    Effect,
    FindingClosed,
    FindingOpened,
    Flip,
    Kind,
    Poisoned,
    SendCanary,
    SendPing,
)
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import AgentLeft, CanaryReturned, PongReceived, Signal, TerminationDone
from lifesigns.replay.episodes import Episodes
from lifesigns.replay.survey import Survey

EPOCH: Final = 0
"""No hub has it: the engine ignores the outcomes of the recorded hub's orders."""

ANSWER_AFTER: Final = 0.005
"""Seconds until a ping or a canary returns. Not zero: an engine needs a signal *after* its question."""


class Watch:
    """An engine under one policy."""

    def __init__(self, policies: PolicyBook, fleet: FleetPolicy, survey: Survey) -> None:
        self.episodes = Episodes()
        self.asked = 0
        self.answered = 0
        """Pings, and those that count as answered."""
        self.poisoned: list[Poisoned] = []
        self._policies = policies
        self._fleet = fleet
        self._survey = survey
        self._engine = Engine(policies, fleet, epoch=EPOCH)
        self._answers: deque[tuple[float, Signal]] = deque()
        """Pending answers, and when they arrive."""
        self._slept = iter(sorted(survey.slept))
        self._sleep = next(self._slept, None)

    def begin(self, at: float) -> None:
        self._take(self._engine.advance(at), at)

    def wait(self, until: float) -> None:
        """Let time pass, and look whenever something is due; but not while the hub did not look."""
        engine, answers = self._engine, self._answers
        while True:
            due_at = engine.wake_at()
            if answers and answers[0][0] < until and answers[0][0] <= due_at:
                at, answer = answers.popleft()
                self._take(engine.hear(answer, at), at)
            elif due_at < until:
                due_at = self._awake_at(due_at)
                self._take(engine.advance(due_at), due_at)
            else:
                return

    def _awake_at(self, at: float) -> float:
        while self._sleep is not None and self._sleep[1] <= at:
            self._sleep = next(self._slept, None)
        return self._sleep[1] if self._sleep is not None and self._sleep[0] < at else at

    def hear(self, signal: Signal, at: float) -> None:
        if isinstance(signal, TerminationDone):
            # The order was the recorded hub's, but its effect on the agent is true here, too.
            signal = AgentLeft(agent_id=signal.agent_id, incarnation=signal.incarnation, reason="was stopped")
        effects = self._engine.hear(signal, at)
        if effects:
            self._take(effects, at)

    def come_back(self, at: float) -> None:
        """The hub was away until now."""
        self._answers.clear()
        beliefs = self._engine.snapshot()
        self._engine = Engine.restore(beliefs, at, self._policies, self._fleet, epoch=EPOCH)

    def _take(self, effects: Sequence[Effect], at: float) -> None:
        for effect in effects:
            match effect:
                case Flip() | FindingOpened() | FindingClosed():
                    self.episodes.see(effect, self._doubt(effect))
                case SendPing():
                    self.asked += 1
                    if self._would_answer(effect, at):
                        self.answered += 1
                        self._answer(
                            PongReceived(agent_id=effect.agent_id, incarnation=effect.incarnation), at
                        )
                case SendCanary(seq=seq) if not self._was_blind(effect.at):
                    self._answer(CanaryReturned(seq=seq), at)
                case Poisoned():
                    self.poisoned.append(effect)

    def _answer(self, signal: Signal, at: float) -> None:
        self._answers.append((at + ANSWER_AFTER, signal))

    def _would_answer(self, ping: SendPing, at: float) -> bool:
        if self._was_blind(at):
            return False  # Its answer would not have reached us; and a blind hub convicts no agent.
        return self._survey.would_answer(ping.agent_id, ping.incarnation, at)

    def _doubt(self, fact: Flip | FindingOpened | FindingClosed) -> str:
        match fact:
            case Flip(now=Health.DISCONNECTED, evidence=evidence):
                silent = any(finding.kind is Kind.SILENCE for finding in evidence)
            case FindingOpened(finding=finding):
                silent = finding.kind is Kind.SILENCE and finding.conclusive
            case _:
                silent = False
        return self._survey.doubt(fact.agent_id, fact.at) if silent else ""

    def _was_blind(self, at: float) -> bool:
        """Whether the hub's messages did not come back then: the hub knew it only when a canary was late."""
        late = self._fleet.canary_late_after + self._fleet.canary_every
        return any(began_at - late <= at < ended_at for began_at, ended_at in self._survey.blind)
