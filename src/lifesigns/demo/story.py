"""The story of the demo: what happened, in sentences; empty for what nobody needs to hear. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from lifesigns.core.effects import Rung, Severity, Stage
from lifesigns.core.health import UNWELL, Cause, Health
from lifesigns.views import EventView

Data = Mapping[str, Any]

_CAUSES: Final = {Cause.CRASH: "has crashed", Cause.FREEZE: "is frozen", Cause.PARTITION: "is cut off"}
_UNTOLD: Final = frozenset(
    {"waiting_for_human", "stopped", "broken chain", "review", "quarantined", "cannot stop"}
)
"""Reasons why a person is needed that no other sentence tells."""


def told(event: EventView) -> str:
    """What happened, in a sentence."""
    sentence = _SENTENCES.get(event.type)
    return "" if sentence is None else sentence(event.agent_id, event.data)


# --- what is found ------------------------------------------------------------------------------------


def _flip(agent: str, data: Data) -> str:
    was, now, reason = data["from"], data["to"], data["reason"]
    if now == Health.HEALTHY:
        return f"{agent} is there and works." if was == Health.STARTING else f"{agent} is well again."
    if now in UNWELL:
        return f"{agent} {_CAUSES.get(data['cause'], f'is {now}')}: {reason}"
    if now == Health.DEGRADED and was not in UNWELL:
        return f"{agent} is {now}: {reason}"
    return ""


def _finding(agent: str, data: Data) -> str:
    """What is worse than a notice changes its health, and is told by that."""
    finding = data["finding"]
    return f"{agent} is noticed: {finding['text']}" if finding["severity"] == Severity.NOTICE else ""


# --- what is done -------------------------------------------------------------------------------------


def _nudge(agent: str, data: Data) -> str:
    if data["by"]:
        return f"You answer {agent} (the demo does it for you): {data['message']}"
    return f"lifesigns nudges {agent}: {data['message']}"


def _escalation(agent: str, data: Data) -> str:
    return f"lifesigns asks people to decide about {agent}. Nobody answers in this demo."


def _intervention(agent: str, data: Data) -> str:
    match data["rung"], data["stage"]:
        case Rung.NUDGE, Stage.ANSWERED:
            return f"{agent} answers: {data['text']}"
        case Rung.TERMINATE, Stage.ORDERED:
            return f"lifesigns asks {agent} to save and end, and will make it: {data['text']}"
        case _, Stage.HELD:
            return f"lifesigns waits before it does more about {agent}: {data['text']}"
        case ((Rung.TERMINATE | Rung.RESPAWN), Stage.FAILED):
            return f"That did not work for {agent}: {data['text']}"
    return ""


def _ended(agent: str, data: Data) -> str:
    return f"{agent} has ended."


def _respawn(agent: str, data: Data) -> str:
    place = data["from_checkpoint"]
    return f"lifesigns starts {agent} anew, " + (f"from checkpoint {place}." if place else "from nothing.")


def _respawned(agent: str, data: Data) -> str:
    return f"{agent} lives again, and is watched closely for a while."


def _not_respawned(agent: str, data: Data) -> str:
    return f"{agent} is not started anew: {data['reason']}"


def _needs_human(agent: str, data: Data) -> str:
    return f"A person is told: {data['text']}" if data["reason"] in _UNTOLD else ""


# --- the hub itself -----------------------------------------------------------------------------------


def _brake(agent: str, data: Data) -> str:
    if not data["on"]:
        return ""
    unwell = f"{data['unwell']} of {data['members']} in {data['group']} are unwell at once"
    return f"{unwell}: lifesigns does nothing more there and asks people."


def _blind(agent: str, data: Data) -> str:
    return "The hub cannot see, and judges nobody."


def _sighted(agent: str, data: Data) -> str:
    return "The hub sees again."


_SENTENCES: Final[Mapping[str, Callable[[str, Data], str]]] = {
    "HEALTH_STATE_CHANGED": _flip,
    "FINDING_OPENED": _finding,
    "NUDGE_SENT": _nudge,
    "ESCALATION_TRIGGERED": _escalation,
    "INTERVENTION": _intervention,
    "AGENT_TERMINATED": _ended,
    "RECOVERY_INITIATED": _respawn,
    "RECOVERY_COMPLETED": _respawned,
    "RECOVERY_FAILED": _not_respawned,
    "NEEDS_HUMAN": _needs_human,
    "GROUP_BRAKED": _brake,
    "HUB_BLIND": _blind,
    "HUB_SIGHTED": _sighted,
}
