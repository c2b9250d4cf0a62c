"""What is wrong right now: the alerts that end by themselves when it is over.

This module decides which agents need a person and for what. The API serves it; the command line and the dashboard show
it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Final

from msgspec.structs import replace

from lifesigns.core.agent import Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import (
    Brake,
    Fact,
    HubVisibility,
    Intervention,
    NeedsHuman,
    Recovered,
    Recovery,
    Rung,
    Stage,
)
from lifesigns.core.health import Doing, Health, Phase
from lifesigns.events import row_of, subject
from lifesigns.events.hub_facts import HubTroubleBegan, TokenExpiring
from lifesigns.ports import NoticeSeverity
from lifesigns.views.alerts import Alert, Need, NeedKind
from lifesigns.views.moments import moment_or_none

STANDING: Final = "standing:"
STANDING_MAX: Final = 1000
EXPIRING_MAX: Final = 100
"""Tokens that are shown to expire soon: they must not take the place of agents."""


def standing_alerts(
    beliefs: Beliefs, troubles: Iterable[HubTroubleBegan], expiring: Iterable[TokenExpiring] = ()
) -> list[Alert]:
    """Everything that is wrong now: the hub itself first, then groups, then agents."""
    alerts = [*_hub(beliefs, troubles), *_groups(beliefs)]
    alerts += [_alert(fact.at, fact, None) for fact in islice(expiring, EXPIRING_MAX)]
    for alert in _agents(beliefs):
        if len(alerts) >= STANDING_MAX:
            break
        alerts.append(alert)
    return alerts


def needs(alerts: Iterable[Alert]) -> tuple[Alert, ...]:
    """The alerts that need a person, the most urgent first; among equals the longest first. An agent with a more
    specific alert is not listed again just to be looked at."""
    order = {kind: n for n, kind in enumerate(NeedKind)}
    ranked = [(order[one.need.kind], one.at or "9", one) for one in alerts if one.need is not None]
    settled = {one.agent_id for rank, _, one in ranked if rank < order[NeedKind.LOOK]}
    ranked.sort(key=lambda each: each[:2])
    return tuple(one for rank, _, one in ranked if rank < order[NeedKind.LOOK] or one.agent_id not in settled)


def _hub(beliefs: Beliefs, troubles: Iterable[HubTroubleBegan]) -> Iterator[Alert]:
    for trouble in troubles:
        _, title = _alerting(replace(trouble, reason=""))
        yield _alert(trouble.at, trouble, Need(NeedKind.HUB, title, trouble.reason))
    aware = beliefs.awareness
    if aware.blind:
        blind = HubVisibility(aware.blind_since or 0.0, True, "")
        text = _blindness(aware)
        yield _alert(aware.blind_since, blind, Need(NeedKind.HUB, "The hub is blind", text), text)


def _blindness(aware: Awareness) -> str:
    if aware.overloaded:
        return (
            "The hub is overloaded: more is sent than it gets to hear. Nobody is suspected until it keeps up."
        )
    whom = "Nobody on the bus" if aware.canary_by else "Nobody"
    return f"The hub cannot see: its own beat does not come back. {whom} is suspected until it does."


def _groups(beliefs: Beliefs) -> Iterator[Alert]:
    for name, group in beliefs.fleet.groups.items():
        if group.braked:
            braked = Brake(0.0, name, True, group.unwell, group.members)
            yield _alert(None, braked, Need(NeedKind.BRAKED, name, _alerting(braked)[1]))


def _agents(beliefs: Beliefs) -> Iterator[Alert]:
    for agent_id, lineage in beliefs.lineages.items():
        if lineage.waits_for_a_person:
            since = lineage.waited_from or None
            failed = Recovery(lineage.waited_from, agent_id, lineage.task_id, Recovered.FAILED, 0)
            what = (
                "is quarantined"
                if lineage.phase is Phase.QUARANTINED
                else "is not respawned by lifesigns again"
            )
            text = f"{agent_id} {what} until a person says so: {lineage.why}"
            yield _alert(since, failed, Need(NeedKind.QUARANTINED, agent_id, text), text)
    agents = beliefs.agents.values()  # Two short loops over all agents are faster than one long.
    for agent in [agent for agent in agents if agent.case is not None]:
        yield from _escalation(agent)
    for agent in [agent for agent in agents if agent.doing is Doing.WAITING_FOR_HUMAN]:
        if agent.health is not Health.TERMINATED:
            yield _waiting(agent)


def _escalation(agent: Agent) -> Iterator[Alert]:
    """The rung alone is not enough: an agent that got more time needs no decision until that is over."""
    case = agent.case
    if case is None or agent.health is Health.TERMINATED:
        return
    if case.rung is Rung.ESCALATE and case.escalated and case.order_id:
        since, until = case.waited_from, moment_or_none(case.waited_from + case.wait if case.wait else None)
        escalation = Intervention(
            since, agent.id, case.order_id, case.rung, Stage.ORDERED, case.attempt, case.reason
        )
        yield _alert(since, escalation, Need(NeedKind.ESCALATED, agent.id, case.reason, until, case.order_id))


def _waiting(agent: Agent) -> Alert:
    asks, since = agent.doing_note, agent.doing_from
    text = f"{agent.id} waits for a human{': ' + asks if asks else ''}"
    answered = agent.case is not None and agent.case.rung is Rung.NUDGE
    question = asks or "It waits for a human and does not say for what."
    need = Need(NeedKind.WAITING, agent.id, question, answered=answered)
    return _alert(since, NeedsHuman(since, agent.id, agent.doing, text), need)


def _alert(since: float | None, fact: Fact, need: Need | None, text: str = "") -> Alert:
    """The alert as its event would tell it, unless there is a better text."""
    row, (level, sentence) = row_of(fact), _alerting(fact)
    key = row.key(fact)
    return Alert(
        f"{STANDING}{key}",
        moment_or_none(since),
        level,
        row.name,
        subject(fact),
        text or sentence,
        standing=True,
        key=key,
        need=need,
    )


def _alerting(fact: Fact) -> tuple[NoticeSeverity, str]:
    return row_of(fact).alerting(fact) or (NoticeSeverity.INFO, "")
