"""What stands right now and should not: the alerts that end by themselves when it is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from lifesigns.core.agent import Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import Rung
from lifesigns.core.health import Doing
from lifesigns.views.alerts import Alert, Level
from lifesigns.views.moments import moment, moment_or_none

STANDING_MAX: Final = 1000

HubTrouble = tuple[str, str, float | None, str]
"""What is wrong with the hub itself: its name, its event, since when, why."""

_TROUBLES: Final[Mapping[str, tuple[Level, str]]] = {
    "HUB_STORE_LOST": (Level.CRITICAL, "The store is away"),
    "HUB_BUS_LOST": (Level.CRITICAL, "The bus is away"),
    "HUB_TOKENS_REFUSED": (Level.ERROR, "Agents are refused"),
    "HUB_CONNECTIONS_FULL": (Level.ERROR, "Newcomers are turned away"),
    "HUB_ROWS_UNREADABLE": (Level.ERROR, "Something was forgotten"),
}


def standing(beliefs: Beliefs, troubles: Iterable[HubTrouble]) -> list[Alert]:
    """Everything that is wrong now: the hub itself first, then groups, then agents."""
    found = [*_hub(beliefs, troubles), *_groups(beliefs)]
    for alert in _agents(beliefs):
        if len(found) >= STANDING_MAX:
            break
        found.append(alert)
    return found


def _hub(beliefs: Beliefs, troubles: Iterable[HubTrouble]) -> Iterator[Alert]:
    for what, event, since, why in troubles:
        level, text = _TROUBLES[event]
        yield Alert(
            f"standing:{what.lower()}",
            moment_or_none(since),
            level,
            event,
            "",
            f"{text}: {why}",
            standing=True,
            key=event.lower(),
        )
    if beliefs.awareness.blind:
        text = _blindness(beliefs.awareness)
        blind_since = moment_or_none(beliefs.awareness.blind_since)
        yield Alert(
            "standing:blind",
            blind_since,
            Level.CRITICAL,
            "HUB_BLIND",
            "",
            text,
            standing=True,
            key="hub_blind",
        )


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
            text = (
                f"{name}: {group.unwell} of {group.members} are unwell at once; "
                "nothing is done there until a person decides"
            )
            yield Alert(
                f"standing:braked:{name}",
                None,
                Level.CRITICAL,
                "GROUP_BRAKED",
                "",
                text,
                standing=True,
                key=f"group_braked:{name}",
            )


def _agents(beliefs: Beliefs) -> Iterator[Alert]:
    for agent_id, lineage in beliefs.lineages.items():
        if lineage.waits_for_a_person:
            text = f"{agent_id} is not started anew any more ({lineage.phase}): {lineage.why}"
            yield Alert(
                f"standing:{lineage.phase}:{agent_id}",
                moment_or_none(lineage.waited_from or None),
                Level.CRITICAL,
                "RECOVERY_FAILED",
                agent_id,
                text,
                standing=True,
                key=f"recovery_failed:{agent_id}",
            )
    agents = beliefs.agents.values()  # Two short looks at everybody are faster than one long.
    for agent in [agent for agent in agents if agent.case is not None]:
        yield from _escalation(agent)
    for agent in [agent for agent in agents if agent.doing is Doing.WAITING_FOR_HUMAN]:
        yield _waiting(agent)


def _escalation(agent: Agent) -> Iterator[Alert]:
    case = agent.case
    if case is not None and case.rung is Rung.ESCALATE and case.escalated:
        yield Alert(
            f"standing:escalation:{agent.id}",
            moment(case.waited_from),
            Level.ERROR,
            "ESCALATION_TRIGGERED",
            agent.id,
            f"{agent.id}: somebody has to decide. {case.reason}",
            standing=True,
            key=f"escalation:{agent.id}",
        )


def _waiting(agent: Agent) -> Alert:
    asks = f": {agent.doing_note}" if agent.doing_note else ""
    text = f"{agent.id} waits for a human{asks}"
    return Alert(
        f"standing:waiting:{agent.id}",
        moment(agent.doing_from),
        Level.WARNING,
        "NEEDS_HUMAN",
        agent.id,
        text,
        standing=True,
        key=f"needs_human:{agent.id}:waiting_for_human",
    )
