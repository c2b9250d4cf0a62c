"""What stands right now and should not: the alerts that end by themselves when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

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
from lifesigns.core.health import Doing
from lifesigns.events import row_of, subject
from lifesigns.events.hub_facts import HubTroubleBegan
from lifesigns.views.alerts import Alert, Level
from lifesigns.views.moments import moment_or_none

STANDING_MAX: Final = 1000


def standing(beliefs: Beliefs, troubles: Iterable[HubTroubleBegan]) -> list[Alert]:
    """Everything that is wrong now: the hub itself first, then groups, then agents."""
    found = [*_hub(beliefs, troubles), *_groups(beliefs)]
    for alert in _agents(beliefs):
        if len(found) >= STANDING_MAX:
            break
        found.append(alert)
    return found


def _hub(beliefs: Beliefs, troubles: Iterable[HubTroubleBegan]) -> Iterator[Alert]:
    for trouble in troubles:
        yield _alert(f"standing:{trouble.part.lower()}", trouble.at, trouble)
    aware = beliefs.awareness
    if aware.blind:
        blind = HubVisibility(aware.blind_since or 0.0, True, "")
        yield _alert("standing:blind", aware.blind_since, blind, _blindness(aware))


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
            yield _alert(f"standing:braked:{name}", None, braked)


def _agents(beliefs: Beliefs) -> Iterator[Alert]:
    for agent_id, lineage in beliefs.lineages.items():
        if lineage.waits_for_a_person:
            since = lineage.waited_from or None
            failed = Recovery(lineage.waited_from, agent_id, lineage.task_id, Recovered.FAILED, 0)
            text = f"{agent_id} is not started anew any more ({lineage.phase}): {lineage.why}"
            yield _alert(f"standing:{lineage.phase}:{agent_id}", since, failed, text)
    agents = beliefs.agents.values()  # Two short looks at everybody are faster than one long.
    for agent in [agent for agent in agents if agent.case is not None]:
        yield from _escalation(agent)
    for agent in [agent for agent in agents if agent.doing is Doing.WAITING_FOR_HUMAN]:
        yield _waiting(agent)


def _escalation(agent: Agent) -> Iterator[Alert]:
    case = agent.case
    if case is not None and case.rung is Rung.ESCALATE and case.escalated:
        since = case.waited_from
        asked = Intervention(
            since, agent.id, case.order_id, case.rung, Stage.ORDERED, case.attempt, case.reason
        )
        yield _alert(f"standing:escalation:{agent.id}", since, asked)


def _waiting(agent: Agent) -> Alert:
    asks = f": {agent.doing_note}" if agent.doing_note else ""
    text, since = f"{agent.id} waits for a human{asks}", agent.doing_from
    return _alert(f"standing:waiting:{agent.id}", since, NeedsHuman(since, agent.id, agent.doing, text))


def _alert(alert_id: str, since: float | None, fact: Fact, text: str = "") -> Alert:
    """What stands as the event that told of it would say it, unless there is a better text."""
    row = row_of(fact)
    level, sentence = row.alerting(fact) or (Level.INFO, "")
    return Alert(
        alert_id,
        moment_or_none(since),
        Level(level),
        row.name,
        subject(fact),
        text or sentence,
        standing=True,
        key=row.key(fact),
    )
