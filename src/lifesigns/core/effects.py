"""Effects: what the engine wants stored (facts, nouns) and done (orders, imperative).

The law: facts carry the moment they fell due, not the moment they were noticed. An order keeps its id however often
it is carried out, and carries the fencing `epoch` of the hub that gave it: the agent's side refuses an epoch lower
than one it has seen. Facts and orders of one call belong in one transaction, and orders are carried out only after
it.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct, field

from lifesigns.core.health import Cause, FailureClass, Health
from lifesigns.core.signals import BreakerAct, BreakerState, Priority


class Kind(StrEnum):
    """The ways of being unwell that a detector can notice."""

    SILENCE = "silence"
    NEVER_STARTED = "never_started"
    EXIT = "exit"
    FREEZE = "freeze"
    NO_CHECKPOINT = "no_checkpoint"
    NO_TOOL_CALL = "no_tool_call"
    NO_TOKENS = "no_tokens"
    NO_OUTPUT = "no_output"
    REPEATED_OUTPUT = "repeated_output"
    SPINNING = "spinning"
    LONG_CALL = "long_call"
    LOOPING = "looping"
    ERRORS = "errors"
    CONTEXT = "context"
    SPENDING = "spending"
    OVERLOAD = "overload"
    TASK_STALLED = "task_stalled"
    SELF_REPORTED = "self_reported"
    FORECAST = "forecast"


class Severity(StrEnum):
    """How bad a finding is: the health it argues for. Ordered by `RANK`."""

    NOTICE = "notice"
    DEGRADED = "degraded"
    STUCK = "stuck"
    FAILING = "failing"
    DISCONNECTED = "disconnected"


class Finding(Struct, frozen=True):
    """What one detector noticed, with its evidence and since when."""

    kind: Kind
    since: float
    severity: Severity
    text: str
    numbers: Mapping[str, int | float | str] = field(default_factory=dict)
    conclusive: bool = False


# --- facts -------------------------------------------------------------------------------------------


class Fact(Struct, frozen=True):
    """Something that became true at a moment."""

    at: float


class Flip(Fact, frozen=True):
    """A stored change of health, with its reason and evidence."""

    agent_id: str
    was: Health
    now: Health
    reason: str
    cause: Cause | None = None
    evidence: tuple[Finding, ...] = ()
    failure_class: FailureClass | None = None
    class_reason: str = ""


class FailureClassified(Fact, frozen=True):
    """The class of a failure changed. `asked`: people know, and decide whether the agent is replaced."""

    agent_id: str
    was: FailureClass
    now: FailureClass
    reason: str
    asked: bool = False


class FindingOpened(Fact, frozen=True):
    """A detector found something, or an open finding became worse."""

    agent_id: str
    finding: Finding


class FindingClosed(Fact, frozen=True):
    """A finding is over."""

    agent_id: str
    kind: Kind
    since: float


class Rung(StrEnum):
    """The steps of the ladder, in order; then the two beside it: turn a breaker, clean up after a life."""

    NUDGE = "nudge"
    ESCALATE = "escalate"
    TERMINATE = "terminate"
    RESPAWN = "respawn"
    BREAKER = "breaker"
    CLEANUP = "cleanup"


class Stage(StrEnum):
    """How far one intervention has come."""

    ORDERED = "ordered"
    DELIVERED = "delivered"
    SEEN = "seen"
    ANSWERED = "answered"
    DONE = "done"
    FAILED = "failed"
    HELD = "held"
    DROPPED = "dropped"


class Intervention(Fact, frozen=True):
    """One step of the ladder reached a new stage. `id` is that of its order."""

    agent_id: str
    id: str
    rung: Rung
    stage: Stage
    attempt: int
    text: str = ""
    by: str = ""
    key: str = ""
    """The person's request it comes from, in the stage `ordered`."""
    failure_class: FailureClass | None = None
    """That of the failure it is to mend."""


class Ending(Intervention, frozen=True):
    """A termination is done, with the life's last checkpoint if there is one."""

    checkpoint_id: str | None = None


class Recovered(StrEnum):
    """How far a recovery has come."""

    INITIATED = "initiated"
    COMPLETED = "completed"
    FAILED = "failed"


class Recovery(Fact, frozen=True):
    """A respawn began, led to an agent that speaks, or failed."""

    agent_id: str
    task_id: str | None
    stage: Recovered
    attempt: int
    checkpoint_id: str | None = None
    reason: str = ""
    old_incarnation: str = ""
    """The life that ended."""
    new_incarnation: str = ""
    """The life that follows it: ordered, or, when the recovery is completed, the one that speaks. Empty if it failed."""


class ClaimStage(StrEnum):
    """What happened to a claim."""

    GRANTED = "granted"
    REFUSED = "refused"
    RELEASED = "released"


class ClaimChanged(Fact, frozen=True):
    """An agent's hold on a task changed. `token` fences: a lower one is refused everywhere."""

    task_id: str
    agent_id: str
    stage: ClaimStage
    token: int
    reason: str = ""
    silent_for_s: float | None = None
    """How long the holder was silent, if the claim was released because it was lost."""


class MoveStage(StrEnum):
    """How far a task has come on its way from an unwell worker to a healthy one."""

    ASKED_BACK = "asked_back"
    OFFERED = "offered"
    TAKEN = "taken"
    NOT_TAKEN = "not_taken"


class TaskMove(Fact, frozen=True):
    """A task of an unwell worker (`giver`) is on its way to another one, `agent_id`; that is the giver itself while it is
    asked to give the task back, and empty if nobody took it."""

    task_id: str
    agent_id: str
    stage: MoveStage
    giver: str
    reason: str = ""


class MessageOverdue(Fact, frozen=True):
    """A message was not acknowledged in time."""

    message_id: str
    sender: str
    to: str
    priority: Priority
    overdue_for: float


class TaskVerdict(Fact, frozen=True):
    """A stalled task was judged: `failed`, or alive and merely `blocked` or `late`."""

    task_id: str
    agent_id: str
    verdict: str
    reason: str


class NeedsHuman(Fact, frozen=True):
    """A person should look, now."""

    agent_id: str
    reason: str
    text: str


class BreakerFlip(Fact, frozen=True):
    """An agent's breaker changed its state."""

    agent_id: str
    name: str
    was: BreakerState
    now: BreakerState


class HubVisibility(Fact, frozen=True):
    """The hub became blind, or can see again."""

    blind: bool
    reason: str


class Brake(Fact, frozen=True):
    """Interventions in a group stop because too many agents are unwell at once, or go on again. `by` is who released them."""

    group: str
    on: bool
    unwell: int
    members: int
    by: str = ""


class Pause(Fact, frozen=True):
    """A person pauses an agent, for so long or until it is resumed."""

    agent_id: str
    by: str
    pause_for: float | None


class Resumption(Fact, frozen=True):
    """A person ended a pause."""

    agent_id: str
    by: str


class Clearance(Fact, frozen=True):
    """A person resets an agent: its quarantine, open interventions and limits are lifted."""

    agent_id: str
    by: str


class RecoveryRequest(Fact, frozen=True):
    """A person wants an agent respawned, limits or not."""

    agent_id: str
    task_id: str
    by: str
    reason: str = ""


class Refusal(Fact, frozen=True):
    """The engine refused a signal. Counted per agent and reason, stored at most once a minute."""

    agent_id: str
    reason: str
    count: int = 1


class Poisoned(Fact, frozen=True):
    """Our code raised while it judged this agent, which is our bug. The agent is set aside, the others go on."""

    agent_id: str
    error: str


# --- orders ------------------------------------------------------------------------------------------


class Order(Struct, frozen=True):
    """Something to carry out once, whatever crashes in between."""

    at: float
    order_id: str
    epoch: int
    agent_id: str
    incarnation: str | None


class SendPing(Order, frozen=True):
    """Ask a suspected agent; the ping carries the suspicion, and any answer refutes it."""

    seq: int
    suspicion: str


class AskSecondOpinion(Order, frozen=True):
    """Ask a hub in each of these zones whether it hears a suspected agent. Worth something only now: a zone that has not
    answered when the verdict falls could not be asked."""

    zones: tuple[str, ...]
    silent_for: float
    answer_within: float


class SetInterval(Order, frozen=True):
    """Beat so often from now on. Worth something only now, and nothing depends on its arrival."""

    interval: float


class SendNudge(Order, frozen=True):
    """Tell an agent the facts, at its next turn boundary."""

    attempt: int
    text: str


class Escalate(Order, frozen=True):
    """Ask the orchestrator or a person, with everything we know."""

    reason: str
    findings: tuple[Finding, ...]
    checkpoint_id: str | None
    answer_by: float


class Terminate(Order, frozen=True):
    """Ask the agent to save, wait, then force it to stop. Partial state is kept."""

    reason: str
    save_for: float
    findings: tuple[Finding, ...]
    seq_seen: int
    """The last sequence the decision knew of."""
    by: str = ""
    on_silence: bool = False
    """The reason is silence since `seq_seen`: an agent that reads the order is alive, so it refuses, and its next
    beat refutes the silence. The order is for a supervisor or a webhook, which can end an agent that no longer
    reads."""


class Withdraw(Order, frozen=True):
    """A termination is withdrawn: nobody may carry it out any more."""

    withdrawn: str
    """The id of the termination."""
    reason: str = ""


class VerifyCheckpoint(Order, frozen=True):
    """Read a checkpoint back and compare its digest."""

    task_id: str
    checkpoint_id: str
    digest: str


class Respawn(Order, frozen=True):
    """Start a new life of the agent; `incarnation` is the one that ended, `new_incarnation` the one to begin."""

    task_id: str | None
    checkpoint_id: str | None
    new_incarnation: str
    attempt: int
    handoff: str
    instead_of: tuple[str, ...] = ()
    """Lives ordered before this one and not heard yet: they may still come, and must not live beside it."""


class ReleaseClaim(Order, frozen=True):
    """Give a stale claim back: unassign, comment, relabel, queue."""

    task_id: str
    token: int
    comment: str


class Remind(Order, frozen=True):
    """Remind the recipient of an unacknowledged message."""

    message_id: str
    priority: Priority
    sender: str = ""
    text: str = ""


class EscalateMessage(Order, frozen=True):
    """Tell the sender's side that a message stays unacknowledged."""

    message_id: str
    to: str
    priority: Priority
    reason: str


class AskStatus(Order, frozen=True):
    """Ask an agent about a stalled task; it has until `answer_by`."""

    task_id: str
    text: str
    answer_by: float


class OfferTask(Order, frozen=True):
    """Offer a free task to a worker with room, which claims it or does not, until `answer_by`."""

    task_id: str
    giver: str
    text: str
    answer_by: float


class AskBack(Order, frozen=True):
    """Ask an unwell worker to give back a task that it has not begun; it decides, until `answer_by`."""

    task_id: str
    token: int
    """That of its claim, which it gives back."""
    text: str
    answer_by: float


class StopStranger(Order, frozen=True):
    """A retired incarnation still speaks: tell it alone that it was replaced. By the time it reads this, its
    successor (`incarnation`) may have a successor too."""

    reason: str
    retired: str = ""


class TurnBreaker(Order, frozen=True):
    """Reset, open or close a breaker of the agent, because a person wants it."""

    name: str
    act: BreakerAct
    by: str = ""


class CleanUp(Order, frozen=True):
    """Clean up what a life left behind; `incarnation` is the life that is over."""

    task_id: str | None
    checkpoint_id: str | None
    reason: str


class SendCanary(Struct, frozen=True):
    """Send the hub's own beat through the bus."""

    at: float
    seq: int


Effect = Fact | Order | SendCanary
