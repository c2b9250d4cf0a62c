"""The story of the demo: events in sentences; empty for those that nobody needs to read. Pure."""

from __future__ import annotations

from typing import Final

from lifesigns.core.effects import (
    Brake,
    Ending,
    FindingOpened,
    Flip,
    HubVisibility,
    Intervention,
    NeedsHuman,
    Recovered,
    Recovery,
    Rung,
    Severity,
    Stage,
)
from lifesigns.core.health import UNWELL, Cause, Health
from lifesigns.events import fact_told
from lifesigns.events.hub_facts import HubPart, HubTroubleBegan, HubTroubleOver
from lifesigns.views import EventView

_CAUSES: Final = {Cause.CRASH: "has crashed", Cause.FREEZE: "is frozen", Cause.PARTITION: "is cut off"}
_UNTOLD: Final = frozenset(
    {"waiting_for_human", "stopped", "broken chain", "review", "quarantined", "cannot stop"}
)
"""Reasons for `NeedsHuman` that no other sentence tells."""


def sentence_of(event: EventView) -> str:
    """An event as a sentence."""
    match fact_told(event.type, 0.0, event.agent_id, event.data):
        case Flip() as flip:
            return _flip(flip)
        # A more severe finding changes the health, which has its own sentence.
        case FindingOpened(agent_id=agent, finding=finding) if finding.severity is Severity.NOTICE:
            return f"{agent} is noticed: {finding.text}"
        case Ending(agent_id=agent):
            return f"{agent} has ended."
        case Intervention() as step:
            return _step(step)
        case Recovery() as recovery:
            return _recovery(recovery)
        case NeedsHuman(reason=reason, text=text) if reason in _UNTOLD:
            return f"A person is told: {text}"
        case Brake(on=True) as brake:
            unwell = f"{brake.unwell} of {brake.members} in {brake.group} are unwell at once"
            return f"{unwell}: lifesigns does nothing more there and asks people."
        case HubTroubleBegan(part=HubPart.HUBS, reason=reason):
            return f"A person is told that a hub is lost: {reason}"
        case HubTroubleOver(part=HubPart.HUBS):
            return "A person is told that no hub is lost any more."
        case HubVisibility(blind=blind):
            return "The hub cannot see, and judges nobody." if blind else "The hub sees again."
    return ""


def _flip(flip: Flip) -> str:
    agent, was, now = flip.agent_id, flip.was, flip.now
    if now is Health.HEALTHY:
        return f"{agent} is there and works." if was is Health.STARTING else f"{agent} is well again."
    if now in UNWELL:
        what = _CAUSES.get(flip.cause, f"is {now}") if flip.cause else f"is {now}"
        return f"{agent} {what}: {flip.reason}"
    if now is Health.DEGRADED and was not in UNWELL:
        return f"{agent} is {now}: {flip.reason}"
    return ""


def _step(step: Intervention) -> str:
    agent, text = step.agent_id, step.text
    match step.rung, step.stage:
        case Rung.NUDGE, Stage.ORDERED if step.by:
            return f"You answer {agent} (the demo does it for you): {text}"
        case Rung.NUDGE, Stage.ORDERED:
            return f"lifesigns nudges {agent}: {text}"
        case Rung.NUDGE, Stage.ANSWERED:
            return f"{agent} answers: {text}"
        case Rung.ESCALATE, Stage.ORDERED:
            return f"lifesigns asks people to decide about {agent}. Nobody answers in this demo."
        case Rung.TERMINATE, Stage.ORDERED:
            return f"lifesigns asks {agent} to save and end, and will make it: {text}"
        case _, Stage.HELD:
            return f"lifesigns waits before it does more about {agent}: {text}"
        case ((Rung.TERMINATE | Rung.RESPAWN), Stage.FAILED):
            return f"That did not work for {agent}: {text}"
    return ""


def _recovery(recovery: Recovery) -> str:
    agent, place = recovery.agent_id, recovery.checkpoint_id
    match recovery.stage:
        case Recovered.INITIATED:
            return f"lifesigns starts {agent} anew, from {f'checkpoint {place}' if place else 'nothing'}."
        case Recovered.COMPLETED:
            return f"{agent} lives again, and is watched closely for a while."
        case Recovered.FAILED:
            return f"{agent} is not started anew: {recovery.reason}"
