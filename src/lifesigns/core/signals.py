"""Signals: everything the engine can hear, in the past tense.

Three kinds of speaker: the agent itself (beats and the signals of the wire contract), the world around it (a
process that ended, the outcome of an order) and people (pause, terminate, a decision).

Every signal names an `agent_id`; the few about the hub itself do not. `incarnation` is None where the speaker does
not know it; the engine refuses a signal of a retired incarnation. An agent's own times (`sent_at` and the like) are
data: shown, used to estimate skew, never the basis of a deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Final, Protocol

from msgspec import Struct

from lifesigns.core.health import Doing

TOKENS_ONLY: Final = "(tokens)"


class Answer(StrEnum):
    """What an agent can answer to a nudge."""

    PROGRESS = "progress"
    NEED_TIME = "need_time"
    HANDOFF = "handoff"
    BLOCKED = "blocked"


class Decision(StrEnum):
    """What an orchestrator or a person can decide about an escalation."""

    MORE_TIME = "more_time"
    HANDOFF = "handoff"
    TERMINATE = "terminate"
    IGNORE = "ignore"


class Priority(StrEnum):
    """How soon a message needs an acknowledgement."""

    URGENT = "urgent"
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"


class BreakerState(StrEnum):
    """The state of a circuit breaker as its owner reports it."""

    CLOSED = "closed"
    OPEN = "open"
    HALF_OPEN = "half_open"
    FORCED_OPEN = "forced_open"
    DISABLED = "disabled"
    OBSERVING = "observing"


class Opinion(StrEnum):
    """What a hub in another zone says about an agent that this one does not hear."""

    HEARD = "heard"
    NOT_HEARD = "not_heard"
    CANNOT_TELL = "cannot_tell"
    """Its own bus is away, or it has just started."""
    CANNOT_BE_ASKED = "cannot_be_asked"
    """No hub of the zone answered in time."""


class BreakerAct(StrEnum):
    """What a person can do with an agent's breaker."""

    RESET = "reset"
    OPEN = "open"
    CLOSE = "close"


# --- the agent itself -----------------------------------------------------------------------------


class Gauges(Protocol):
    """What a beat may report about its process."""

    @property
    def cpu_percent(self) -> float | None: ...
    @property
    def memory_mb(self) -> float | None: ...
    @property
    def tasks_completed(self) -> int | None: ...
    @property
    def tasks_failed(self) -> int | None: ...
    @property
    def uptime_s(self) -> float | None: ...


class Beat(Protocol):
    """One "I live" message, as far as the engine reads it.

    A protocol, because beats come by the hundred thousand: the wire hands over its decoder's object without first
    filling thirty fields of another. Everyone else uses `BeatReceived`.
    """

    @property
    def agent_id(self) -> str: ...
    @property
    def seq(self) -> int | None: ...
    @property
    def incarnation(self) -> str | None: ...
    @property
    def sent_at(self) -> float | None: ...
    @property
    def status(self) -> str | None: ...
    @property
    def doing(self) -> Doing | None: ...
    @property
    def until(self) -> float | None: ...
    @property
    def load(self) -> float | None: ...
    @property
    def task_id(self) -> str | None: ...
    @property
    def tasks(self) -> Sequence[str]: ...
    @property
    def token_count(self) -> int | None: ...
    @property
    def cost_usd(self) -> float | None: ...
    @property
    def error_count(self) -> int | None: ...
    @property
    def last_tool_call(self) -> str | None: ...
    @property
    def capacity_available(self) -> int | None: ...
    @property
    def loop_lag_ms(self) -> float | None: ...
    @property
    def metrics(self) -> Gauges | None: ...
    @property
    def host(self) -> str | None: ...
    @property
    def role(self) -> str | None: ...
    @property
    def metadata(self) -> Mapping[str, str] | None: ...
    @property
    def source(self) -> str:
        """The door it came through (a token, a link): we set it, and count ids per source."""


class Metrics(Struct):
    """What a beat may report about its process and its tasks."""

    cpu_percent: float | None = None
    memory_mb: float | None = None
    tasks_completed: int | None = None
    tasks_failed: int | None = None
    uptime_s: float | None = None


class BeatReceived(Struct):
    """One "I live" message. Not frozen, because senders fill it in piece by piece; nobody changes a sent one."""

    agent_id: str
    seq: int | None = None
    incarnation: str | None = None
    sent_at: float | None = None
    status: str | None = None
    doing: Doing | None = None
    until: float | None = None
    load: float | None = None
    task_id: str | None = None
    tasks: Sequence[str] = ()
    phase: str | None = None
    progress: str | None = None
    last_tool_call: str | None = None
    """From the agent, like all its times: shown, never the basis of a deadline."""
    last_checkpoint: str | None = None
    token_count: int | None = None
    cost_usd: float | None = None
    error_count: int | None = None
    capacity_available: int | None = None
    loop_lag_ms: float | None = None
    metrics: Metrics | None = None
    host: str | None = None
    pid: int | None = None
    role: str | None = None
    metadata: Mapping[str, str] | None = None
    source: str = ""


class Report:
    """Every signal that is not a beat. Not a struct itself: to ask whether something is one is cheap only of a plain
    class, and that is asked of every beat."""

    __slots__ = ()


class AgentSignal(Report, Struct, frozen=True, kw_only=True):
    """What all reports about one agent share."""

    agent_id: str
    incarnation: str | None = None
    source: str = ""
    """The door it came through, as of a beat. Set by us."""


class AgentRegistered(AgentSignal, frozen=True, kw_only=True):
    """An agent is registered: it has a grace to speak for the first time."""

    role: str | None = None
    host: str | None = None
    task_id: str | None = None
    grace: float | None = None
    policy: Mapping[str, object] | None = None
    bounded: bool = False
    """Whether it may only tighten what the administrator set: it is no operator's word. Set by us, as the source is."""
    beats: bool = True
    """Whether it is going to beat. If others only report on it afterwards, as by spans, its silence means nothing."""
    follows_interval: bool = False
    """Whether it beats as often as `SetInterval` says."""


class ActivitySeen(AgentSignal, frozen=True, kw_only=True):
    """Any other sign of life: output, an event, a message."""

    kind: str = "activity"
    note: str = ""
    """What was seen, in one line."""


class ToolStarted(AgentSignal, frozen=True, kw_only=True):
    """A tool call began: the agent is busy until the call ends or exceeds its bound."""

    call_id: str
    tool: str
    args_digest: str = ""
    bound: float | None = None


class ToolFinished(AgentSignal, frozen=True, kw_only=True):
    """A tool call ended. The receiver makes the digests: exact for arguments, without volatile parts (ids, times,
    durations) for results."""

    call_id: str
    tool: str
    args_digest: str = ""
    result_digest: str = ""
    ok: bool = True
    error: str | None = None
    error_kind: str | None = None
    duration_s: float | None = None
    ended_at: float | None = None
    """When it ended, if that was earlier: a time of *our* clock, the receiver translates. The time between calls is judged
    by it, and no deadline depends on it."""
    retry: bool = False
    """The agent declares it as the retry of a failed call: it never counts as a loop."""


class ModelStarted(AgentSignal, frozen=True, kw_only=True):
    """A model call began."""

    call_id: str = ""
    bound: float | None = None


class ModelFinished(AgentSignal, frozen=True, kw_only=True):
    """A model call ended. The id `TOKENS_ONLY` means: tokens were used in an unknown number of calls."""

    call_id: str = ""
    tokens_in: int = 0
    tokens_out: int = 0
    cost_usd: float = 0.0
    ok: bool = True
    error_kind: str | None = None
    duration_s: float | None = None
    ended_at: float | None = None
    """As of a tool call."""
    context_tokens: int = 0
    """How many tokens its window held, and how many it can hold; 0 if unknown."""
    context_window: int = 0


class CheckpointSaved(AgentSignal, frozen=True, kw_only=True):
    """The agent saved a checkpoint of its task."""

    checkpoint_id: str
    task_id: str | None = None
    parent_id: str | None = None
    digest: str = ""
    size: int = 0


class ProgressMade(AgentSignal, frozen=True, kw_only=True):
    """The agent made progress in its task."""

    task_id: str | None = None
    percent: float | None = None
    note: str = ""


class ErrorReported(AgentSignal, frozen=True, kw_only=True):
    """The agent hit an error outside of a tool call."""

    message: str
    recoverable: bool = True


class DoingChanged(AgentSignal, frozen=True, kw_only=True):
    """The agent says what it is doing, and until when if it knows."""

    doing: Doing
    until: float | None = None
    """A time of *our* clock; the receiver translates the agent's."""
    note: str = ""


class PongReceived(AgentSignal, frozen=True, kw_only=True):
    """The answer to a ping."""

    seq: int | None = None
    status: str | None = None
    task_id: str | None = None


class NudgeSeen(AgentSignal, frozen=True, kw_only=True):
    """The agent has read the nudge."""

    nudge_id: str


class NudgeAnswered(AgentSignal, frozen=True, kw_only=True):
    """The agent answered the nudge."""

    nudge_id: str
    answer: Answer
    note: str = ""


class TaskAssigned(AgentSignal, frozen=True, kw_only=True):
    """The agent was given a task."""

    task_id: str
    expected_for: float | None = None
    description: str = ""
    percent: float | None = None
    """How much of it was done before."""


class TaskDone(AgentSignal, frozen=True, kw_only=True):
    """The agent finished its task."""

    task_id: str


class TaskFailed(AgentSignal, frozen=True, kw_only=True):
    """The agent says it cannot finish its task."""

    task_id: str
    reason: str = ""


class TaskClaimed(AgentSignal, frozen=True, kw_only=True):
    """A worker wants to claim a task."""

    task_id: str


class TaskReleased(AgentSignal, frozen=True, kw_only=True):
    """A worker gives a task back; `token` is the one its claim was granted with."""

    task_id: str
    token: int


class MessageSent(AgentSignal, frozen=True, kw_only=True):
    """`agent_id` sent a message to `to` and wants it acknowledged."""

    message_id: str
    to: str
    priority: Priority = Priority.NORMAL


class MessageAcked(AgentSignal, frozen=True, kw_only=True):
    """`agent_id` acknowledged a message sent to it."""

    message_id: str


class MessageWithdrawn(AgentSignal, frozen=True, kw_only=True):
    """`agent_id` no longer wants an acknowledgement of its message."""

    message_id: str


class BreakerReported(AgentSignal, frozen=True, kw_only=True):
    """A breaker of this agent changed or reported its state."""

    name: str
    state: BreakerState
    failures: int = 0
    until: float | None = None


class AgentLeft(AgentSignal, frozen=True, kw_only=True):
    """The agent said good-bye. Silence after this is no failure."""

    reason: str = ""


# --- the world: what is seen of the agent, and the outcomes of orders --------------------------------


class ProcessExited(AgentSignal, frozen=True, kw_only=True):
    """The agent's process is gone. Conclusive."""

    status: int | None = None
    signal: int | None = None
    detail: str = ""
    orphaned: bool = False
    """Its supervisor was killed before it, so nothing can restart it."""


class ConnectionClosed(AgentSignal, frozen=True, kw_only=True):
    """The agent's connection was closed by its side: reason enough to ask, not to convict."""


class OpinionGiven(AgentSignal, frozen=True, kw_only=True):
    """A hub in another zone was asked whether it hears this agent: a second opinion."""

    zone: str
    opinion: Opinion


class OrderOutcome(AgentSignal, frozen=True, kw_only=True):
    """What the outcomes of orders share."""

    order_id: str


class NudgeDelivered(OrderOutcome, frozen=True, kw_only=True):
    """The nudge reached the agent's side; the agent may not have read it."""


class NudgeFailed(OrderOutcome, frozen=True, kw_only=True):
    """The nudge could not be delivered."""

    reason: str = ""


class EscalationDecided(OrderOutcome, frozen=True, kw_only=True):
    """A person or orchestrator decided an escalation."""

    decision: Decision
    by: str = ""
    note: str = ""


class TerminationDone(OrderOutcome, frozen=True, kw_only=True):
    """The agent was stopped; its partial state is kept as `checkpoint_id` if there was any."""

    checkpoint_id: str | None = None
    forced: bool = False


class TerminationFailed(OrderOutcome, frozen=True, kw_only=True):
    """The agent could not be stopped."""

    reason: str = ""


class CheckpointVerified(OrderOutcome, frozen=True, kw_only=True):
    """A stored checkpoint was read back and its digest compared."""

    task_id: str
    checkpoint_id: str
    valid: bool
    read_back: bool = True
    """False: no executor has its content, and only the agent says that it is good."""


class RespawnStarted(OrderOutcome, frozen=True, kw_only=True):
    """A new life of the agent was started; it still has to speak."""


class RespawnFailed(OrderOutcome, frozen=True, kw_only=True):
    """The new life could not be started."""

    reason: str = ""


class BreakerTurned(OrderOutcome, frozen=True, kw_only=True):
    """The breaker was turned as ordered; its next report says what it is now."""


class BreakerNotTurned(OrderOutcome, frozen=True, kw_only=True):
    """The breaker could not be turned: there is none of that name."""

    reason: str = ""


class CleanedUp(OrderOutcome, frozen=True, kw_only=True):
    """The clean-up after a life is done."""


class CleanUpFailed(OrderOutcome, frozen=True, kw_only=True):
    """The clean-up after a life is impossible."""

    reason: str = ""


# --- people ------------------------------------------------------------------------------------------


class PersonActed(AgentSignal, frozen=True, kw_only=True):
    """What all acts of people share: who acted. A request with the same `key` is the same act."""

    by: str = ""
    key: str = ""


class NudgeRequested(PersonActed, frozen=True, kw_only=True):
    """A person wants the agent nudged now."""

    message: str = ""


class EscalationRequested(PersonActed, frozen=True, kw_only=True):
    """A person wants the orchestrator asked now."""

    reason: str = ""


class TerminationRequested(PersonActed, frozen=True, kw_only=True):
    """A person wants the agent stopped."""

    reason: str = ""
    respawn: bool = False


class PauseRequested(PersonActed, frozen=True, kw_only=True):
    """A person pauses this agent for a while (None: until resumed)."""

    pause_for: float | None = None


class ResumeRequested(PersonActed, frozen=True, kw_only=True):
    """A person ends a pause."""


class ClearRequested(PersonActed, frozen=True, kw_only=True):
    """A person resets the agent: quarantine, open interventions and limits are lifted."""


class RecoveryRequested(PersonActed, frozen=True, kw_only=True):
    """A person wants the task respawned, limits or not."""

    task_id: str
    reason: str = ""


class BreakerTurnRequested(PersonActed, frozen=True, kw_only=True):
    """A person wants an agent's breaker reset, opened or closed."""

    name: str
    act: BreakerAct
    reason: str = ""


# --- the hub about itself ----------------------------------------------------------------------------


class CanaryReturned(Report, Struct, frozen=True, kw_only=True):
    """The hub's own beat came back over the bus."""

    seq: int


class PathLost(Report, Struct, frozen=True, kw_only=True):
    """A server between the hub and some agents does not answer. `path` is the source of what comes by it."""

    path: str


class PathRestored(Report, Struct, frozen=True, kw_only=True):
    """That server answers again, and everything that waited there has been heard."""

    path: str


class GroupReleased(Report, Struct, frozen=True, kw_only=True):
    """A person looked at a braked group and lets interventions go on there."""

    group: str
    by: str = ""


Signal = Beat | AgentSignal | CanaryReturned | PathLost | PathRestored | GroupReleased
