"""Rebalancing: the tasks of an unwell worker go to the least loaded healthy one.

Off unless `fleet.moves_per_minute` is more than 0. The law: nothing is taken from a worker that lives. A task is offered
when its claim is over: its worker was lost, has ended, or gave the task back while it was unwell. An unwell worker that
holds several claims is asked to give back one that it does not work on, and decides itself. A worker that accepts an
offer claims the task like any other, with the next fencing token: of two that claim it one gets it.

Open offers are not stored: after a restart such a task is free, as it is without rebalancing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.claims import Claim
from lifesigns.core.deadlines import Deadlines
from lifesigns.core.effects import AskBack, MoveStage, OfferTask, Rung, TaskMove
from lifesigns.core.fleet import Fleet, least_loaded
from lifesigns.core.health import Health
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MINUTE
from lifesigns.core.respawn import ON_ITS_WAY, Lineage
from lifesigns.core.words import duration

ANSWER_WITHIN: Final = MINUTE
"""After this the task is offered to the next worker: a worker reads its orders with its beats, at the latest."""
LOOK_EVERY: Final = 15.0
"""How often we look for a worker with room while there is none."""
OFFERED_FOR: Final = 10 * MINUTE
"""Then people and workers find the task in the queue, like any other."""
OFFERS_MAX: Final = 256
UNWELL: Final = frozenset({Health.DEGRADED, Health.STUCK, Health.FAILING})


@dataclass(slots=True)
class Offer:
    """A free task that we offer to one worker after the other."""

    task_id: str
    agent_id: str
    """Whose task it was."""
    role: str | None
    why: str
    freed_at: float
    order: int
    armed_at: float = NEVER
    to: str = ""
    """Who has the offer now."""
    asked: tuple[str, ...] = ()
    """Who had it, the present one included."""


@dataclass(slots=True)
class Moves:
    """What rebalancing remembers."""

    offers: dict[str, Offer] = field(default_factory=dict)
    """By task."""
    moved_at: list[float] = field(default_factory=list)
    """The offers and questions of the last minute."""
    nobody_until: dict[str, float] = field(default_factory=dict)
    """By role: no worker had room when we last looked, so we do not look again before this."""


def taker(
    agents: Iterable[Agent], role: str | None, exclude: Collection[str], promised: Mapping[str, int]
) -> Agent | None:
    """The least loaded healthy worker of this role that says it has room for more than it was already offered."""
    fit = (
        agent
        for agent in agents
        if agent.capacity is not None
        and agent.capacity > promised.get(agent.id, 0)
        and agent.health is Health.HEALTHY
        and agent.suspicion is None
        and agent.role == role
        and agent.id not in exclude
    )
    return next(iter(least_loaded(fit)), None)


class Rebalancing:
    """Asks unwell workers for tasks, and offers free ones."""

    def __init__(
        self,
        outbox: Outbox,
        deadlines: Deadlines,
        fleet: Fleet,
        state: Moves,
        agents: Mapping[str, Agent],
        claims: Mapping[str, Claim],
        lineages: Mapping[str, Lineage],
        next_order: Callable[[], int],
    ) -> None:
        self._outbox = outbox
        self._deadlines = deadlines
        self._fleet = fleet
        self._state = state
        self._agents = agents
        self._claims = claims
        self._lineages = lineages
        self._next_order = next_order
        limits = fleet.policy
        self._per_minute = limits.moves_per_minute if limits.judging else 0

    # --- asking for a task ----------------------------------------------------------------------------

    def review(self, agent: Agent, now: float) -> None:
        """An unwell worker spoke. If it holds more than it works on, and somebody has room, ask for one task."""
        if not self._per_minute or len(agent.claims) < 2 or agent.health not in UNWELL:
            return
        claim = self._spare_claim(agent, now)
        if claim is None or agent.past.paused_until > now or self._full_until(now) > now:
            return
        # Like an escalation, a question is held by a brake, and by nothing else.
        if self._fleet.hold(agent, Rung.ESCALATE, now) is not None:
            return
        to = self._taker(agent.role, agent.id, now)
        if to is None:
            return
        text = (
            f"You are {agent.health} and hold {len(agent.claims)} tasks; {to.id} has room. "
            f"If you have not begun {claim.task_id}, you can give it back."
        )
        claim.asked_back_at = now
        self._outbox.changes.tasks[claim.task_id] = None
        self._state.moved_at.append(now)
        self._outbox.order(
            AskBack,
            agent,
            now,
            task_id=claim.task_id,
            token=claim.token,
            text=text,
            answer_by=now + ANSWER_WITHIN,
        )
        self._record(now, claim.task_id, agent.id, MoveStage.ASKED_BACK, agent.id, f"it is {agent.health}")

    def _spare_claim(self, agent: Agent, now: float) -> Claim | None:
        """Its newest claim on another task than it works on, that it was not asked for since it is in this state; none
        while it may still answer an earlier question, or a task of it still looks for a worker."""
        if any(offer.agent_id == agent.id for offer in self._state.offers.values()):
            return None
        claims = [self._claims[task_id] for task_id in agent.claims]
        asked = [claim.asked_back_at for claim in claims if claim.asked_back_at is not None]
        if asked and now < max(asked) + ANSWER_WITHIN:
            return None
        spare = (
            claim
            for claim in reversed(claims)
            if claim.task_id != agent.task_id
            and (claim.asked_back_at is None or claim.asked_back_at < agent.since)
        )
        return next(spare, None)

    # --- offering a task ------------------------------------------------------------------------------

    def freed(self, claim: Claim, agent: Agent, why: str, now: float, *, wait: float = 0.0) -> None:
        """Nobody holds this task any more: offer it, at the earliest when everything that happens now has happened."""
        offers = self._state.offers
        if self._per_minute and len(offers) < OFFERS_MAX:
            offer = Offer(claim.task_id, agent.id, agent.role, why, now, self._next_order())
            offers[claim.task_id] = offer
            self._deadlines.arm(offer, now + wait)

    def look(self, offer: Offer, now: float) -> None:
        """The task is still free: offer it to the next worker."""
        if self._state.offers.get(offer.task_id) is not offer or self._goes_on(offer):
            self.closed(offer.task_id)
        elif now >= offer.freed_at + OFFERED_FOR:
            self.closed(offer.task_id)
            tried = f"offered to {', '.join(offer.asked)}" if offer.asked else "nobody had room for it"
            self._record(now, offer.task_id, "", MoveStage.NOT_TAKEN, offer.agent_id, tried)
        else:
            self._deadlines.arm(offer, min(self._offer(offer, now), offer.freed_at + OFFERED_FOR))

    def _offer(self, offer: Offer, now: float) -> float:
        """Offer it, if we may and somebody has room. Returns when to look again."""
        lineage, free_at = self._lineages.get(offer.agent_id), self._full_until(now)
        if lineage is not None and lineage.phase in ON_ITS_WAY:
            return now + LOOK_EVERY  # Its next life may go on with it.
        if free_at > now:
            return free_at
        offer.to = ""
        to = self._taker(offer.role, offer.agent_id, now, offer.asked)
        if to is None:
            return now + LOOK_EVERY
        offer.to, offer.asked = to.id, (*offer.asked, to.id)
        self._state.moved_at.append(now)
        text = (
            f"Task {offer.task_id} of {offer.agent_id} is free since {duration(now - offer.freed_at)}: {offer.why}. "
            "If you claim it, it is yours."
        )
        answer_by = now + ANSWER_WITHIN
        self._outbox.order(
            OfferTask, to, now, task_id=offer.task_id, giver=offer.agent_id, text=text, answer_by=answer_by
        )
        self._record(now, offer.task_id, to.id, MoveStage.OFFERED, offer.agent_id, offer.why)
        return answer_by

    def claimed(self, task_id: str, agent: Agent, now: float) -> None:
        """Somebody holds the task: by our offer, or by itself."""
        offer = self._state.offers.get(task_id)
        if offer is not None:
            self.closed(task_id)
            if offer.asked:
                self._record(now, task_id, agent.id, MoveStage.TAKEN, offer.agent_id, offer.why)

    def closed(self, task_id: str) -> None:
        """Offer this task no more."""
        offer = self._state.offers.pop(task_id, None)
        if offer is not None:
            offer.armed_at = NEVER

    # --- parts ------------------------------------------------------------------------------------------

    def _goes_on(self, offer: Offer) -> bool:
        """Whether its worker was heard again and works on it, claim or not."""
        giver = self._agents.get(offer.agent_id)
        return giver is not None and giver.heard_at > offer.freed_at and giver.task_id == offer.task_id

    def _full_until(self, now: float) -> float:
        """When another move is allowed; `now` if one is."""
        moved_at = self._state.moved_at
        while moved_at and moved_at[0] <= now - MINUTE:
            del moved_at[0]
        return now if len(moved_at) < self._per_minute else moved_at[0] + MINUTE

    def _taker(self, role: str | None, giver: str, now: float, asked: tuple[str, ...] = ()) -> Agent | None:
        """Whom to ask next; we look through the fleet only if it may be of use."""
        nobody_until, key = self._state.nobody_until, role or ""
        if now < nobody_until.get(key, now):
            return None
        promised: dict[str, int] = {}
        for offer in self._state.offers.values():
            promised[offer.to] = promised.get(offer.to, 0) + 1
        to = taker(self._agents.values(), role, (giver, *asked), promised)
        if to is None and not asked:
            if len(nobody_until) >= OFFERS_MAX:
                nobody_until.clear()
            nobody_until[key] = now + LOOK_EVERY
        return to

    def _record(
        self, now: float, task_id: str, agent_id: str, stage: MoveStage, giver: str, reason: str
    ) -> None:
        self._outbox.fact(TaskMove(now, task_id, agent_id, stage, giver, reason))
