"""Outcome: what was found about each agent of the demo, what was done, and whether that was right. Pure.

Right means: its trouble was found and named, exactly the right things were done about it, and it ends in the right
state. An agent that was judged unwell for any other reason was wronged, however it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from lifesigns.core.effects import (
    Ending,
    FindingOpened,
    Flip,
    Intervention,
    NeedsHuman,
    Recovered,
    Recovery,
    Rung,
    Stage,
)
from lifesigns.core.health import UNWELL, Doing, Health
from lifesigns.demo.fleet import Action, DemoAgent
from lifesigns.events import fact_told
from lifesigns.views import AgentHealth, EventView

PARKED: Final = (Doing.WAITING_FOR_HUMAN, Doing.RATE_LIMITED)


@dataclass(slots=True)
class Outcome:
    """What is known about one agent so far."""

    member: DemoAgent
    state: Health | None = None
    doing: Doing = Doing.UNKNOWN
    began_at: float | None = None
    found_at: float | None = None
    actions: list[Action] = field(default_factory=list)
    checkpoint: str | None = None
    """The checkpoint of its last respawn."""
    wronged: list[str] = field(default_factory=list)
    """Wrong verdicts and acts."""

    # --- events ---------------------------------------------------------------------------------------

    def printed(self, line: str, at: float) -> bool:
        """Take a printed line; whether its trouble begins there."""
        begins = self.began_at is None and bool(self.member.begins) and line.startswith(self.member.begins)
        if begins:
            self.began_at = at
        return begins

    def looked(self, health: AgentHealth, at: float) -> None:
        """Take its current health."""
        self.state, self.doing = health.state, health.doing
        if health.doing is self.member.found:
            self._note_found(at)

    def happened(self, event: EventView) -> None:
        """Take an event about it."""
        at = datetime.fromisoformat(event.at).timestamp()
        match fact_told(event.type, at, event.agent_id, event.data):
            case FindingOpened(finding=finding) if finding.kind == self.member.found:
                self._note_found(at)
            case Flip() as flip:
                self._flipped(flip)
            case NeedsHuman(reason=Doing.WAITING_FOR_HUMAN):
                self._note_found(at)
                self._did(Action.TOLD)
            case Intervention(rung=Rung.NUDGE, stage=Stage.ORDERED) as nudge:
                self._did(Action.ANSWERED if nudge.by else Action.NUDGED)
            case Intervention(rung=Rung.ESCALATE, stage=Stage.ORDERED):
                self._did(Action.ESCALATED)
            case Intervention(rung=Rung.TERMINATE, stage=Stage.ORDERED):
                self._allow(Action.STOPPED)  # Ordering it is wrong already; doing it is another thing.
            case Ending():
                self._did(Action.STOPPED)
            case Recovery(stage=Recovered.INITIATED) as recovery:
                self.checkpoint = recovery.checkpoint_id
            case Recovery(stage=Recovered.COMPLETED):
                self._did(Action.RESPAWNED)

    def _note_found(self, at: float) -> None:
        if self.found_at is None:
            self.found_at = at

    def _flipped(self, flip: Flip) -> None:
        self.state = flip.now
        if self.state not in UNWELL:
            return
        kinds = {finding.kind for finding in flip.evidence}
        if self.member.found not in kinds or (self.member.cause and flip.cause != self.member.cause):
            cause = f" ({flip.cause})" if flip.cause else ""
            self._wrong(f"called {self.state}{cause}: {flip.reason}")

    def _did(self, action: Action) -> None:
        if self.actions[-1:] != [action]:  # A repeated nudge is still a nudge.
            self.actions.append(action)
        self._allow(action)

    def _allow(self, action: Action) -> None:
        if action not in self.member.actions:
            self._wrong(str(action))

    def _wrong(self, what: str) -> None:
        if what not in self.wronged:
            self.wronged.append(what)

    # --- results --------------------------------------------------------------------------------------

    @property
    def found_after(self) -> float | None:
        """Seconds from the beginning of its trouble until it was found."""
        if self.began_at is None or self.found_at is None:
            return None
        return max(0.0, self.found_at - self.began_at)

    @property
    def missing(self) -> list[str]:
        """What is not right, in words; empty if all is."""
        member = self.member
        missing = [f"wrongly {what}" for what in self.wronged]
        if member.found is not None and self.found_at is None:
            missing.append(f"not found: {member.found}")
        missing += [f"not {action}" for action in member.actions if action not in self.actions]
        if not missing and tuple(self.actions) != member.actions:
            missing.append(f"not in this order: {', '.join(member.actions)}")
        if Action.RESPAWNED in self.actions and self.checkpoint is None:
            missing.append("not respawned from its checkpoint")
        if self.state is not member.ends:
            missing.append(f"is {self.state or 'unknown'} and should be {member.ends}")
        elif self.state is Health.HEALTHY and self.doing in PARKED:
            missing.append(f"is still {self.doing}")
        return missing


def is_right(outcomes: Sequence[Outcome]) -> bool:
    """Whether every trouble was found, named and helped, and no agent wronged."""
    return not any(outcome.missing for outcome in outcomes)
