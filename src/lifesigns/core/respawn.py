"""Respawn: start an agent anew from its newest valid checkpoint.

The law: one respawn per incarnation that ended, whatever crashes in between; limits and backoff bind every path; a
person decides about an agent that fails again on probation. A lineage is the succession of lives of one agent id: how
often it was respawned, from what, and how far the current respawn has come.

    idle -> waiting (backoff) -> verifying (chain walk) -> starting -> probation -> idle
                 ^________________________________|            |
    any of these -> review (limits, failed again) or quarantined (crash loop), left by a person's word
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b

from msgspec.structs import replace

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.awareness import Awareness
from lifesigns.core.commands import slug
from lifesigns.core.effects import (
    Intervention,
    NeedsHuman,
    Recovered,
    Recovery,
    Respawn,
    Rung,
    Stage,
    VerifyCheckpoint,
)
from lifesigns.core.fleet import Fleet
from lifesigns.core.health import UNWELL, FailureClass, Phase
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import HOUR, RespawnPolicy
from lifesigns.core.side_orders import SideOrders
from lifesigns.core.words import duration, sentence, times

STARTS_MAX = 8
"""How many starts may still come; we never start one agent more often without a person in between."""

CLEANED_UP_EVERY = 10.0


@dataclass(slots=True)
class Checkpoint:
    """One link of a task's chain."""

    id: str
    parent_id: str | None
    digest: str
    at: float
    size: int


ON_ITS_WAY = frozenset({Phase.WAITING, Phase.VERIFYING, Phase.STARTING})


@dataclass(slots=True)
class Lineage:
    """The succession of lives of one agent id."""

    agent_id: str
    order: int
    armed_at: float = NEVER
    phase: Phase = Phase.IDLE
    task_id: str | None = None
    chain: list[Checkpoint] = field(default_factory=list)
    attempts: int = 0
    """Respawns for the current task."""
    failures: int = 0
    respawned_at: list[float] = field(default_factory=list)
    ended: str | None = None
    """The incarnation that ended and is being replaced."""
    why: str = ""
    waited_from: float = 0.0
    wait: float = NEVER
    candidates: list[str] = field(default_factory=list)
    order_id: str = ""
    checkpoint_id: str | None = None
    read_back: bool = True
    """Whether an executor has read that checkpoint's content, or only the agent says that it is good."""
    new_incarnation: str = ""
    starts: dict[str, str] = field(default_factory=dict)
    """Lives we ordered that have not spoken: their incarnations and the orders. A slow start may still come after we
    stop waiting for it."""
    unheard: int = 0
    """How many starts no life has followed yet. A started agent may choose another name than the ordered one."""
    acknowledged: bool = False
    """Whether an executor reported that the last start began."""
    supervisor_gone: bool = False
    """No supervisor is left that could restart this agent."""
    latecomer: str = ""
    latecomer_at: float = 0.0
    """A start that spoke while another life lives, and when we first heard it."""
    requested: bool = False
    """A person wants this respawn: neither brake nor limits bind it."""
    doubted: bool = False
    """We asked people whether to replace it, because it may be well. Once we know its end, we need not ask."""
    cleaned_up: bool = False
    """The clean-up after the last life was ordered."""

    failure_class: FailureClass | None = None
    """That of the failure the current respawn is to mend."""

    @property
    def is_active(self) -> bool:
        return self.phase is not Phase.IDLE

    @property
    def waits_for_a_person(self) -> bool:
        return self.phase in (Phase.REVIEW, Phase.QUARANTINED)


def candidates(chain: list[Checkpoint]) -> list[str]:
    """Checkpoints to try, newest first: those whose parent link is valid.

    A root, or the oldest one we remember, needs no parent; every other must name an earlier one.
    """
    known: set[str] = set()
    holding: list[str] = []
    for position, checkpoint in enumerate(chain):
        if position == 0 or checkpoint.parent_id is None or checkpoint.parent_id in known:
            holding.append(checkpoint.id)
        known.add(checkpoint.id)
    return holding[::-1]


def backoff(policy: RespawnPolicy, attempt: int, key: str) -> float:
    """The wait before an attempt: none before the first, then it grows. The jitter is a hash, not chance."""
    if attempt <= 1:
        return 0.0
    wait = policy.backoff[min(attempt - 2, len(policy.backoff) - 1)]
    digest = blake2b(f"{key}#{attempt}".encode(), digest_size=4).digest()
    spread = int.from_bytes(digest) / 2**32 * 2 - 1
    return wait * (1 + policy.jitter * spread)


def failures_max(policy: RespawnPolicy) -> int:
    """After so many failed recoveries the failure is terminal: a person decides."""
    return max(1, policy.per_task_max)


class Respawns:
    """All lineages, and the way from an ended life to the next one."""

    def __init__(self, outbox: Outbox, fleet: Fleet, awareness: Awareness, side_orders: SideOrders) -> None:
        self._outbox = outbox
        self._fleet = fleet
        self._awareness = awareness
        self._side_orders = side_orders

    def due_at(self, lineage: Lineage) -> float:
        """When the current phase of a lineage is over."""
        if lineage.wait == NEVER:
            return NEVER
        return self._awareness.due(lineage.waited_from, lineage.wait)

    # --- what is heard ------------------------------------------------------------------------------

    def saved(self, lineage: Lineage, checkpoint: Checkpoint, policy: RespawnPolicy) -> None:
        """A checkpoint joins the chain."""
        if not any(known.id == checkpoint.id for known in lineage.chain[-policy.chain_max :]):
            lineage.chain.append(checkpoint)
            del lineage.chain[: -policy.chain_max]

    def new_task(self, lineage: Lineage, task_id: str | None) -> None:
        """A new task has a new chain and its own attempts."""
        if lineage.task_id != task_id:
            lineage.task_id = task_id
            lineage.chain.clear()
            lineage.attempts = lineage.failures = 0

    def begin(
        self,
        lineage: Lineage,
        agent: Agent,
        why: str,
        policy: RespawnPolicy,
        now: float,
        *,
        hesitate: bool = False,
        wanted: bool = False,
    ) -> None:
        """A life ended and another shall follow, if the limits allow; after a wait, if its process may go on.

        `wanted`: a person ended it to have it restarted. That is no failure."""
        ended = agent.incarnation or ""
        if not policy.enabled:
            return
        if lineage.waits_for_a_person and not wanted and not lineage.doubted:
            if lineage.ended != ended:  # People know of another life.
                lineage.ended = ended
                self._give_up(lineage, now, f"{why} A person was called before", lineage.phase)
            return
        if lineage.ended == ended:
            # This life's successor is already on its way; if we were waiting, the end is now certain.
            if lineage.phase is Phase.WAITING and not hesitate:
                lineage.wait = min(lineage.wait, backoff(policy, lineage.attempts, lineage.agent_id))
            return
        lineage.ended, lineage.why, lineage.failure_class = ended, why, agent.failure_class
        if lineage.phase is Phase.PROBATION and not wanted:
            lineage.failures += 1
            self._give_up(lineage, now, f"failed again under close watch: {why}")
        else:
            self._try(lineage, policy, now)
            if lineage.phase is Phase.WAITING and hesitate:
                lineage.wait = max(lineage.wait, policy.hesitate_for)

    def ask(self, lineage: Lineage, why: str, now: float, *, doubted: bool = False) -> None:
        """Replace it only after a person's approval (`request`): it was gone for long, or may be well (`doubted`)."""
        watched = lineage.phase is Phase.PROBATION  # If it did end, it failed again on probation.
        self._give_up(lineage, now, why)
        lineage.doubted = doubted and not watched

    def request(self, lineage: Lineage, agent: Agent, why: str, policy: RespawnPolicy, now: float) -> None:
        """A person wants it respawned: lift limits, review and quarantine. A respawn already on its way counts as
        this one."""
        if lineage.phase in ON_ITS_WAY and lineage.ended == (agent.incarnation or ""):
            lineage.requested = True
            if lineage.phase is Phase.WAITING or not lineage.order_id:
                self._wait(lineage, now, 0.0)
            return
        self.clear(lineage, now)
        lineage.requested = True
        lineage.ended, lineage.why = agent.incarnation or "", why
        lineage.failure_class = agent.failure_class
        self._attempt(lineage, policy, now)

    def forget_failures(
        self, lineage: Lineage, agent: Agent, why: str, policy: RespawnPolicy, now: float
    ) -> None:
        """A person resets the breaker of its recoveries: its limits begin anew, and one that waits is tried at once."""
        if not agent.alive and (lineage.waits_for_a_person or lineage.phase is Phase.WAITING):
            self.request(lineage, agent, why, policy, now)
        lineage.attempts, lineage.failures = min(lineage.attempts, 1), 0
        lineage.respawned_at.clear()

    def clear(self, lineage: Lineage, now: float) -> None:
        """A person resets it."""
        lineage.phase = Phase.IDLE
        lineage.attempts = lineage.failures = lineage.unheard = 0
        lineage.respawned_at.clear()
        lineage.ended = None
        self._wait(lineage, now, NEVER)

    def verified(self, lineage: Lineage, checkpoint_id: str, now: float, *, valid: bool) -> None:
        """An executor read a candidate back."""
        if lineage.phase is not Phase.VERIFYING or lineage.candidates[:1] != [checkpoint_id]:
            return
        if valid:
            lineage.checkpoint_id = checkpoint_id
            self._enter(lineage, Phase.STARTING, now)
        else:
            del lineage.candidates[0]
            lineage.order_id = ""
            self._wait(lineage, now, 0.0)

    def start_failed(
        self, lineage: Lineage, order_id: str, reason: str, policy: RespawnPolicy, now: float
    ) -> None:
        """The new life could not be started and will not come."""
        for life in [life for life, order in lineage.starts.items() if order == order_id]:
            del lineage.starts[life]
            lineage.unheard = max(0, lineage.unheard - 1)
        if lineage.phase is Phase.STARTING and lineage.order_id == order_id:
            self._failed(lineage, reason, policy, now)

    def start_acknowledged(self, lineage: Lineage, now: float) -> None:
        """An executor reported that the last start began."""
        lineage.acknowledged, lineage.supervisor_gone = True, False
        self._record(lineage, lineage.order_id, Stage.DELIVERED, now, "")

    def new_life_spoke(self, lineage: Lineage, life: str | None, policy: RespawnPolicy, now: float) -> bool:
        """A new life speaks. True if we started it, by any of our tries."""
        order_id = lineage.starts.pop(life or "", "")
        ours = bool(order_id) or lineage.unheard > 0
        lineage.unheard = max(0, lineage.unheard - 1)
        if not ours:
            self.returned(lineage, now)
        elif lineage.phase in ON_ITS_WAY or (lineage.phase is Phase.REVIEW and order_id):
            started = list(lineage.starts.values())
            order_id = order_id or (started[-1] if started else lineage.order_id)
            self._drop_start(lineage, now, "a start before it came after all", but=order_id)
            self._record(lineage, order_id, Stage.DONE, now, "")
            self._recovered(lineage, Recovered.COMPLETED, now, life=life or "")
            self._enter(lineage, Phase.PROBATION, now, policy.probation)
        lineage.ended, lineage.supervisor_gone = None, False
        return ours

    def returned(self, lineage: Lineage, now: float) -> None:
        """The agent came back by itself: nothing is left to do."""
        if lineage.phase in ON_ITS_WAY:
            if not self._drop_start(lineage, now, "the agent is back by itself"):
                lineage.attempts = max(
                    0, lineage.attempts - 1
                )  # A new task may have begun to count meanwhile.
            self._enter(lineage, Phase.IDLE, now, NEVER)
        elif lineage.phase is Phase.REVIEW:
            # There is no agent left to replace; the number of tries still counts.
            self._enter(lineage, Phase.IDLE, now, NEVER)
        lineage.ended, lineage.supervisor_gone = None, False

    def cleaned_up(self, lineage: Lineage, now: float) -> None:
        """The clean-up after the last life is over or given up: the next one need not wait for it."""
        if lineage.phase is Phase.STARTING and not lineage.order_id:
            self._wait(lineage, now, 0.0)

    def stop(self, lineage: Lineage, now: float) -> None:
        """The agent left or its task is done: no successor."""
        if not lineage.waits_for_a_person:
            self._enter(lineage, Phase.IDLE, now, NEVER)

    # --- what falls due -----------------------------------------------------------------------------

    def step(self, lineage: Lineage, agent: Agent, policy: RespawnPolicy, now: float) -> None:
        """The wait of the current phase is over."""
        match lineage.phase:
            case Phase.WAITING:
                lineage.candidates = candidates(lineage.chain)
                lineage.order_id = ""
                self._enter(lineage, Phase.VERIFYING, now)
            case Phase.VERIFYING:
                self._verify(lineage, agent, policy, now)
            case Phase.STARTING if not lineage.order_id:
                self._start(lineage, agent, policy, now)
            case Phase.STARTING:
                lineage.supervisor_gone = not lineage.acknowledged
                waited = duration(policy.start_timeout)
                self._failed(lineage, f"the new life did not speak within {waited}", policy, now)
            case Phase.PROBATION if agent.health in UNWELL:
                # It became unwell on probation, however long the verdict and the termination take.
                self._wait(lineage, now, policy.probation)
            case Phase.PROBATION:
                lineage.failures = lineage.unheard = 0
                if lineage.task_id is None:
                    lineage.attempts = 0  # Without a task there is no limit to count towards.
                self._enter(lineage, Phase.IDLE, now, NEVER)
            case Phase.IDLE | Phase.REVIEW | Phase.QUARANTINED:
                self._wait(lineage, now, NEVER)

    def _try(self, lineage: Lineage, policy: RespawnPolicy, now: float) -> None:
        recent = [at for at in lineage.respawned_at if at > now - HOUR]
        lineage.respawned_at = recent
        looping = sum(at > now - policy.crash_loop_window for at in recent)
        if looping >= policy.crash_loop_max:
            window = duration(policy.crash_loop_window)
            text = f"respawned {times(looping)} within {window}"
            self._give_up(lineage, now, text, Phase.QUARANTINED)
        elif lineage.attempts >= policy.per_task_max:
            self._give_up(lineage, now, f"respawned {times(lineage.attempts)} for this task")
        elif lineage.failures >= failures_max(policy):  # It came back by itself in between, each time.
            self._give_up(lineage, now, f"its recovery failed {times(lineage.failures)}")
        elif len(recent) >= policy.per_hour_max:
            self._give_up(lineage, now, f"respawned {times(len(recent))} within an hour")
        else:
            self._attempt(lineage, policy, now)

    def _attempt(self, lineage: Lineage, policy: RespawnPolicy, now: float) -> None:
        lineage.attempts += 1
        wait = backoff(policy, lineage.attempts, lineage.agent_id)
        self._enter(lineage, Phase.WAITING, now, wait)

    def _verify(self, lineage: Lineage, agent: Agent, policy: RespawnPolicy, now: float) -> None:
        if lineage.order_id and lineage.candidates:
            del lineage.candidates[0]  # No answer about this checkpoint: try the one before it.
        if not lineage.candidates:
            lineage.checkpoint_id = None
            if lineage.chain:
                text = "No checkpoint of this task holds; it starts again from its beginning."
                self._outbox.fact(NeedsHuman(now, lineage.agent_id, "broken chain", text))
            self._enter(lineage, Phase.STARTING, now)
            return
        newest = lineage.candidates[0]
        digest = next(c.digest for c in lineage.chain if c.id == newest)
        order = self._outbox.order(
            VerifyCheckpoint,
            agent,
            now,
            task_id=lineage.task_id or "",
            checkpoint_id=newest,
            digest=digest,
        )
        lineage.order_id = order.order_id
        self._wait(lineage, now, policy.verify_timeout)

    def _start(self, lineage: Lineage, agent: Agent, policy: RespawnPolicy, now: float) -> None:
        if self._side_orders.is_cleaning_up(agent):
            self._wait(
                lineage, now, CLEANED_UP_EVERY
            )  # `cleaned_up` ends this wait; this deadline is only a precaution.
            return
        held = self._fleet.hold(agent, Rung.RESPAWN, now)
        if held is not None and not lineage.requested:
            self._wait(lineage, now, max(1.0, held[1] - now))
            return
        self._fleet.acted(agent, Rung.RESPAWN, now)
        lineage.requested = False
        lineage.respawned_at.append(now)
        lineage.new_incarnation = (
            f"{slug(lineage.agent_id)}~{self._outbox.number()}"  # It may appear in a command.
        )
        order = self._outbox.order(
            Respawn,
            agent,
            now,
            task_id=lineage.task_id,
            checkpoint_id=lineage.checkpoint_id,
            new_incarnation=lineage.new_incarnation,
            attempt=lineage.attempts,
            handoff=handoff(lineage, agent, now),
            instead_of=tuple(lineage.starts),
        )
        lineage.order_id, lineage.acknowledged = order.order_id, False
        lineage.starts[lineage.new_incarnation] = order.order_id
        while len(lineage.starts) > STARTS_MAX:
            del lineage.starts[next(iter(lineage.starts))]
        lineage.unheard = min(STARTS_MAX, lineage.unheard + 1)
        agent.past = replace(agent.past, interventions=agent.past.interventions + 1)
        self._record(lineage, order.order_id, Stage.ORDERED, now, lineage.why)
        self._recovered(lineage, Recovered.INITIATED, now, life=lineage.new_incarnation)
        self._wait(lineage, now, policy.start_timeout)

    def _failed(self, lineage: Lineage, reason: str, policy: RespawnPolicy, now: float) -> None:
        lineage.failures += 1
        self._record(lineage, lineage.order_id, Stage.FAILED, now, reason)
        lineage.why = reason
        self._try(lineage, policy, now)

    def _give_up(self, lineage: Lineage, now: float, why: str, phase: Phase = Phase.REVIEW) -> None:
        self._enter(lineage, phase, now, NEVER)
        self._recovered(lineage, Recovered.FAILED, now, why)
        text = f"{lineage.agent_id} is not respawned any more: {sentence(why)} Clear it when it is mended."
        self._outbox.fact(NeedsHuman(now, lineage.agent_id, str(phase), text))

    # --- parts --------------------------------------------------------------------------------------

    def _enter(self, lineage: Lineage, phase: Phase, now: float, wait: float = 0.0) -> None:
        lineage.phase, lineage.doubted = phase, False
        if phase in (Phase.VERIFYING, Phase.STARTING):
            lineage.order_id = ""
        self._wait(lineage, now, wait)

    def _wait(self, lineage: Lineage, now: float, wait: float) -> None:
        lineage.waited_from, lineage.wait = now, wait

    def _drop_start(self, lineage: Lineage, now: float, why: str, but: str = "") -> bool:
        """Stop waiting for an open start. False if there is none."""
        out = lineage.phase is Phase.STARTING and bool(lineage.order_id)
        if out and lineage.order_id != but:
            self._record(lineage, lineage.order_id, Stage.DROPPED, now, why)
        return out

    def _record(self, lineage: Lineage, order_id: str, stage: Stage, now: float, text: str) -> None:
        self._outbox.fact(
            Intervention(
                now,
                lineage.agent_id,
                order_id,
                Rung.RESPAWN,
                stage,
                lineage.attempts,
                text,
                failure_class=lineage.failure_class,
            )
        )

    def _recovered(
        self, lineage: Lineage, stage: Recovered, now: float, why: str = "", *, life: str = ""
    ) -> None:
        self._outbox.fact(
            Recovery(
                now,
                lineage.agent_id,
                lineage.task_id,
                stage,
                lineage.attempts,
                lineage.checkpoint_id,
                why or lineage.why,
                lineage.ended or "",
                life,
            )
        )


def handoff(lineage: Lineage, agent: Agent, now: float) -> str:
    """What the next life should know: finished work, open work, and why the last life was stopped."""
    lines = [f"You continue the work of a previous life of {lineage.agent_id}."]
    if lineage.task_id:
        lines.append(f"Task: {lineage.task_id}.")
    if lineage.checkpoint_id:
        at = next((c.at for c in lineage.chain if c.id == lineage.checkpoint_id), now)
        saved = f"checkpoint {lineage.checkpoint_id}, {duration(now - at)} ago."
        unread = (
            "" if lineage.read_back else " Nobody has read it back: see for yourself whether it is whole."
        )
        lines.append(f"Done: everything up to {saved}{unread}")
    else:
        lines.append("Done: nothing that was kept; begin at the task's start.")
    if agent.work is not None and agent.work.last_tool:
        lines.append(f"Open: whatever came after; the last tool call was {agent.work.last_tool}.")
    lines.append(f"Stopped because: {lineage.why}")
    return "\n".join(lines)
