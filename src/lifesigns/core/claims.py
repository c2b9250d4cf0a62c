"""Claims: an agent's hold on a task.

A claim is a lease that the agent's beats renew, with a fencing token that only ever grows. Before the engine releases
a stale claim it pings the agent and looks again. A claim whose agent has never beaten has a grace. The lease is lazy:
no beat touches a claim.
"""

from __future__ import annotations

from dataclasses import dataclass

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.effects import ClaimChanged, ClaimStage, ReleaseClaim, SendPing
from lifesigns.core.health import Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import ClaimPolicy
from lifesigns.core.words import duration


@dataclass(slots=True)
class Claim:
    """Which agent holds a task, since when, with which token."""

    task_id: str
    agent_id: str
    incarnation: str | None
    token: int
    claimed_at: float
    order: int
    armed_at: float = NEVER
    asked_at: float | None = None
    """When we pinged the stale holder; None while the claim looks fresh."""
    source: str = ""
    """Whose quota it is of."""
    asked_back_at: float | None = None
    """When its unwell holder was last asked to give it back."""


class Claims:
    """Grants, refuses and releases claims."""

    def __init__(self, outbox: Outbox, awareness: Awareness) -> None:
        self._outbox = outbox
        self._awareness = awareness

    def stale_at(self, claim: Claim, agent: Agent, policy: ClaimPolicy) -> float:
        """When the lease expires without another beat."""
        if agent.beats == 0 and agent.heard_at <= claim.claimed_at:
            return self._awareness.due(claim.claimed_at, policy.grace + policy.lease)
        heard_at = max(agent.heard_at, claim.claimed_at, self._awareness.silence_from)
        return self._awareness.due(heard_at, policy.lease)

    def due_at(self, claim: Claim, agent: Agent, policy: ClaimPolicy) -> float:
        """When to look at this claim again."""
        stale_at = self.stale_at(claim, agent, policy)
        if claim.asked_at is None:
            return stale_at
        return max(stale_at, self._awareness.due(claim.asked_at, policy.check_wait))

    def granted(self, claim: Claim, at: float) -> None:
        self._outbox.fact(ClaimChanged(at, claim.task_id, claim.agent_id, ClaimStage.GRANTED, claim.token))

    def refused(self, claim: Claim, agent_id: str, at: float) -> None:
        """Another agent holds it."""
        reason = f"held by {claim.agent_id} since {duration(at - claim.claimed_at)}"
        self._outbox.fact(ClaimChanged(at, claim.task_id, agent_id, ClaimStage.REFUSED, claim.token, reason))

    def look(self, claim: Claim, agent: Agent, policy: ClaimPolicy, now: float) -> bool:
        """A claim fell due: still held (False), or stale, double-checked and released (True)."""
        if self.stale_at(claim, agent, policy) > now:
            claim.asked_at = None
            return False
        if claim.asked_at is None and agent.health is not Health.TERMINATED:
            claim.asked_at = now
            why = f"its claim on {claim.task_id} is stale"
            self._outbox.order(SendPing, agent, now, seq=0, suspicion=why)
            return False
        if self.due_at(claim, agent, policy) > now and agent.health is not Health.TERMINATED:
            return False  # It may still answer: nobody listened for a while.
        silent_for = now - max(agent.heard_at, claim.claimed_at)
        self.release(claim, agent, now, f"{claim.agent_id} was last heard {duration(silent_for)} ago")
        return True

    def release(self, claim: Claim, agent: Agent, now: float, reason: str) -> None:
        """Give the task of a lost agent back to the queue, on record."""
        silent_for = max(0.0, now - max(agent.heard_at, claim.claimed_at))
        self.ended(claim, now, reason, round(silent_for, 3))
        comment = (
            f"Released from `{claim.agent_id}`: {reason}. "
            "The task is back in the queue and free to be claimed."
        )
        self._outbox.order(
            ReleaseClaim, agent, now, task_id=claim.task_id, token=claim.token, comment=comment
        )

    def ended(self, claim: Claim, now: float, reason: str, silent_for: float | None = None) -> None:
        """The claim is over: done, given back, or released from a lost agent that was silent for so long."""
        stage = ClaimStage.RELEASED
        self._outbox.fact(
            ClaimChanged(now, claim.task_id, claim.agent_id, stage, claim.token, reason, silent_for)
        )
