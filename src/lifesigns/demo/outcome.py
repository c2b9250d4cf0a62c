"""Outcome: what was found about each agent of the demo, what was done, and whether that was right. Pure.

Right means: its trouble was found and named, exactly that was done about it that should be, and it is as it should be
in the end. An agent that was called unwell for any other reason was wronged, however it ended.
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
    """What its last respawn went on from."""
    wronged: list[str] = field(default_factory=list)
    """What was said or done about it that should not have been."""

    # --- what happens ---------------------------------------------------------------------------------

    def printed(self, line: str, at: float) -> bool:
        """It printed a line. Whether this is where its trouble begins."""
        begins = self.began_at is None and bool(self.member.begins) and line.startswith(self.member.begins)
        if begins:
            self.began_at = at
        return begins

    def looked(self, health: AgentHealth, at: float) -> None:
        """This is how it is."""
        self.state, self.doing = health.state, health.doing
        if health.doing is self.member.found:
            self._found(at)

    def happened(self, event: EventView) -> None:
        """Something happened to it."""
        at = datetime.fromisoformat(event.at).timestamp()
        match fact_told(event.type, at, event.agent_id, event.data):
            case FindingOpened(finding=found) if found.kind == self.member.found:
                self._found(at)
            case Flip() as flip:
                self._flipped(flip)
            case NeedsHuman(reason=Doing.WAITING_FOR_HUMAN):
                self._found(at)
                self._did(Action.TOLD)
            case Intervention(rung=Rung.NUDGE, stage=Stage.ORDERED) as nudge:
                self._did(Action.ANSWERED if nudge.by else Action.NUDGED)
            case Intervention(rung=Rung.ESCALATE, stage=Stage.ORDERED):
                self._did(Action.ESCALATED)
            case Intervention(rung=Rung.TERMINATE, stage=Stage.ORDERED):
                self._allow(Action.STOPPED)  # To want it is wrong already; to have done it is another thing.
            case Ending():
                self._did(Action.STOPPED)
            case Recovery(stage=Recovered.INITIATED) as recovery:
                self.checkpoint = recovery.checkpoint_id
            case Recovery(stage=Recovered.COMPLETED):
                self._did(Action.RESPAWNED)

    def _found(self, at: float) -> None:
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
        if self.actions[-1:] != [action]:  # A nudge that is repeated is still a nudge.
            self.actions.append(action)
        self._allow(action)

    def _allow(self, action: Action) -> None:
        if action not in self.member.actions:
            self._wrong(str(action))

    def _wrong(self, what: str) -> None:
        if what not in self.wronged:
            self.wronged.append(what)

    # --- what came of it ------------------------------------------------------------------------------

    @property
    def found_after(self) -> float | None:
        """Seconds from the beginning of its trouble until it was found."""
        if self.began_at is None or self.found_at is None:
            return None
        return max(0.0, self.found_at - self.began_at)

    @property
    def missing(self) -> list[str]:
        """What should be so and is not, in words; empty if all is as it should be."""
        member = self.member
        said = [f"wrongly {what}" for what in self.wronged]
        if member.found is not None and self.found_at is None:
            said.append(f"not found: {member.found}")
        said += [f"not {action}" for action in member.actions if action not in self.actions]
        if not said and tuple(self.actions) != member.actions:
            said.append(f"not in this order: {', '.join(member.actions)}")
        if Action.RESPAWNED in self.actions and self.checkpoint is None:
            said.append("not respawned from its checkpoint")
        if self.state is not member.ends:
            said.append(f"is {self.state or 'unknown'} and should be {member.ends}")
        elif self.state is Health.HEALTHY and self.doing in PARKED:
            said.append(f"is still {self.doing}")
        return said


def is_right(outcomes: Sequence[Outcome]) -> bool:
    """Whether everybody was found, named and helped, and nobody wronged."""
    return not any(outcome.missing for outcome in outcomes)
