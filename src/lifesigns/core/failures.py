"""Failures: each one is transient, recoverable or terminal, and says why.

The law: the class follows from what is known and how long it lasts, and from nothing else. Transient failures are waited
for. Recoverable ones are mended by the ladder and a respawn. After a terminal one nothing is started anew without a
person's approval. A class changes only when something is learned, or when one of the two limits of time is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from msgspec.structs import replace

from lifesigns.core.agent import NEVER, Agent, Failure
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import FailureClassified, Kind
from lifesigns.core.health import UNWELL, Cause, FailureClass, Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import HOUR, MINUTE, RespawnPolicy
from lifesigns.core.respawn import Lineage, failures_max
from lifesigns.core.words import duration, times

TRANSIENT_FOR: Final = 5 * MINUTE
RECOVERABLE_FOR: Final = 2 * HOUR
OFTEN: Final = 3
"""So many failures within an hour are not isolated ones."""

SILENT: Final = frozenset({Cause.UNKNOWN, Cause.PARTITION})
"""All that is known is that it is silent."""

Classified = tuple[FailureClass, str]


def classify(
    cause: Cause | None,
    down_for: float,
    *,
    within_hour: int = 1,
    failed_recoveries: int = 0,
    recoveries_max: int = 3,
    gone: bool = False,
    not_restartable: str = "",
    conclusive: bool = False,
) -> Classified:
    """The class of a failure, and why.

    `gone`: the process is known to have ended; `not_restartable`: why nothing starts it anew unasked, if that is so."""
    if failed_recoveries >= recoveries_max:
        return FailureClass.TERMINAL, f"its recovery failed {times(failed_recoveries)}"
    if gone and not_restartable:
        return FailureClass.TERMINAL, f"its process is gone, and {not_restartable}"
    if gone or cause is Cause.CRASH:
        return FailureClass.RECOVERABLE, "its process is gone and can be started anew"
    if cause in SILENT and down_for >= RECOVERABLE_FOR:
        return FailureClass.TERMINAL, f"nothing was heard of it for {duration(RECOVERABLE_FOR)}"
    if cause is Cause.FREEZE or (conclusive and cause not in SILENT):
        return FailureClass.RECOVERABLE, "the evidence is conclusive that it does not pass by itself"
    if within_hour >= OFTEN:
        return FailureClass.RECOVERABLE, f"it failed {times(within_hour)} within an hour"
    if down_for >= TRANSIENT_FOR:
        return FailureClass.RECOVERABLE, f"it has lasted for {duration(TRANSIENT_FOR)}"
    return (
        FailureClass.TRANSIENT,
        f"it has lasted for less than {duration(TRANSIENT_FOR)} and may pass by itself",
    )


class Failures:
    """Keeps the class of each agent's failure."""

    def __init__(
        self,
        outbox: Outbox,
        awareness: Awareness,
        lineages: Mapping[str, Lineage],
        respawn_policy: Callable[[Agent], RespawnPolicy],
    ) -> None:
        self._outbox = outbox
        self._awareness = awareness
        self._lineages = lineages
        self._respawn_policy = respawn_policy

    def due_at(self, agent: Agent) -> float:
        """When the class changes if nothing is learned."""
        failure = agent.failure
        if failure is None or agent.health not in UNWELL:
            return NEVER
        if failure.failure_class is FailureClass.TRANSIENT:
            return self._awareness.due(self._down_from(agent, failure), TRANSIENT_FOR)
        if failure.failure_class is FailureClass.RECOVERABLE and _is_silent(agent):
            return self._awareness.due(agent.heard_at, RECOVERABLE_FOR)
        return NEVER

    def flipped(self, agent: Agent, at: float) -> Failure | None:
        """An agent's health changed: begin, classify or end its failure. A terminated agent keeps the failure for which
        it was ended."""
        if agent.health in UNWELL:
            if agent.failure is None:
                agent.past = replace(agent.past, failed_at=(*agent.past.failed_at, at)[-OFTEN:])
                agent.failure = Failure(FailureClass.TRANSIENT, "", at)
            failure_class, reason = self._classify(agent, agent.failure, at)
            agent.failure = Failure(failure_class, reason, agent.failure.since)
        elif agent.health is not Health.TERMINATED:
            agent.failure = None
        return agent.failure

    def review(self, agent: Agent, at: float) -> None:
        """Time has passed, or something was learned that is no change of health."""
        failure, lineage = agent.failure, self._lineages.get(agent.id)
        if failure is None:
            return
        if agent.health is Health.TERMINATED and (lineage is None or not lineage.is_active):
            agent.failure = None  # It left, or a person ended it: nothing is to be mended.
            return
        failure_class, reason = self._classify(agent, failure, at)
        if failure_class is not failure.failure_class:
            asked = lineage is not None and lineage.waits_for_a_person
            self._outbox.fact(
                FailureClassified(at, agent.id, failure.failure_class, failure_class, reason, asked)
            )
            agent.failure = Failure(failure_class, reason, failure.since)

    def _classify(self, agent: Agent, failure: Failure, at: float) -> Classified:
        lineage, policy = self._lineages.get(agent.id), self._respawn_policy(agent)
        not_restartable = "" if policy.enabled else "its policy starts nothing anew"
        if lineage is not None and lineage.waits_for_a_person:
            not_restartable = "a person has to decide whether it is started anew"
        return classify(
            agent.cause,
            self._down_for(self._down_from(agent, failure), at),
            within_hour=sum(began_at > at - HOUR for began_at in agent.past.failed_at),
            failed_recoveries=0 if lineage is None else lineage.failures,
            recoveries_max=failures_max(policy),
            gone=agent.health is Health.TERMINATED or agent.finding(Kind.EXIT) is not None,
            not_restartable=not_restartable,
            conclusive=any(finding.conclusive for finding in agent.findings),
        )

    def _down_from(self, agent: Agent, failure: Failure) -> float:
        return agent.heard_at if _is_silent(agent) else failure.since

    def _down_for(self, since: float, at: float) -> float:
        """The last limit that is over, without the time in which we did not look. Compared as deadlines are, so that no
        rounding lets a limit fall due and not be over."""
        limits = (TRANSIENT_FOR, RECOVERABLE_FOR)
        return max((limit for limit in limits if self._awareness.due(since, limit) <= at), default=0.0)


def _is_silent(agent: Agent) -> bool:
    return agent.cause in SILENT and agent.finding(Kind.EXIT) is None
