"""Signals: everything the engine can hear, in the past tense.

Three kinds of speaker: the agent itself (beats and the signals of the wire contract), the world around it (a
process that ended, the outcome of an order) and people (pause, terminate, a decision).

Every signal names an `agent_id`; the few about the hub itself do not. `incarnation` is None where the speaker does
not know it; the engine refuses a signal of a retired incarnation. An agent's own times (`sent_at` and the like) are
data: shown, used to estimate skew, never the basis of a deadline.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, Protocol

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


@dataclass(slots=True)
class Metrics:
    """What a beat may report about its process and its tasks."""

    cpu_percent: float | None = None
    memory_mb: float | None = None
    tasks_completed: int | None = None
    tasks_failed: int | None = None
    uptime_s: float | None = None


@dataclass(slots=True)
class BeatReceived:
    """One "I live" message. Not frozen, because a frozen one takes three times as long to make; no code changes it."""

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
    """Every signal that is not a beat."""

    __slots__ = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSignal(Report):
    """What all reports about one agent share."""

    agent_id: str
    incarnation: str | None = None
    source: str = ""
    """The door it came through, as of a beat. Set by us."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentRegistered(AgentSignal):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivitySeen(AgentSignal):
    """Any other sign of life: output, an event, a message."""

    kind: str = "activity"
    note: str = ""
    """What was seen, in one line."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted(AgentSignal):
    """A tool call began: the agent is busy until the call ends or exceeds its bound."""

    call_id: str
    tool: str
    args_digest: str = ""
    bound: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFinished(AgentSignal):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted(AgentSignal):
    """A model call began."""

    call_id: str = ""
    bound: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFinished(AgentSignal):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSaved(AgentSignal):
    """The agent saved a checkpoint of its task."""

    checkpoint_id: str
    task_id: str | None = None
    parent_id: str | None = None
    digest: str = ""
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgressMade(AgentSignal):
    """The agent made progress in its task."""

    task_id: str | None = None
    percent: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorReported(AgentSignal):
    """The agent hit an error outside of a tool call."""

    message: str
    recoverable: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DoingChanged(AgentSignal):
    """The agent says what it is doing, and until when if it knows."""

    doing: Doing
    until: float | None = None
    """A time of *our* clock; the receiver translates the agent's."""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PongReceived(AgentSignal):
    """The answer to a ping."""

    seq: int | None = None
    status: str | None = None
    task_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeSeen(AgentSignal):
    """The agent has read the nudge."""

    nudge_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeAnswered(AgentSignal):
    """The agent answered the nudge."""

    nudge_id: str
    answer: Answer
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskAssigned(AgentSignal):
    """The agent was given a task."""

    task_id: str
    expected_for: float | None = None
    description: str = ""
    percent: float | None = None
    """How much of it was done before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDone(AgentSignal):
    """The agent finished its task."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFailed(AgentSignal):
    """The agent says it cannot finish its task."""

    task_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskClaimed(AgentSignal):
    """A worker wants to claim a task."""

    task_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReleased(AgentSignal):
    """A worker gives a task back; `token` is the one its claim was granted with."""

    task_id: str
    token: int


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageSent(AgentSignal):
    """`agent_id` sent a message to `to` and wants it acknowledged."""

    message_id: str
    to: str
    priority: Priority = Priority.NORMAL


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAcked(AgentSignal):
    """`agent_id` acknowledged a message sent to it."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageWithdrawn(AgentSignal):
    """`agent_id` no longer wants an acknowledgement of its message."""

    message_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerReported(AgentSignal):
    """A breaker of this agent changed or reported its state."""

    name: str
    state: BreakerState
    failures: int = 0
    until: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeft(AgentSignal):
    """The agent said good-bye. Silence after this is no failure."""

    reason: str = ""


# --- the world: what is seen of the agent, and the outcomes of orders --------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessExited(AgentSignal):
    """The agent's process is gone. Conclusive."""

    status: int | None = None
    signal: int | None = None
    detail: str = ""
    orphaned: bool = False
    """Its supervisor was killed before it, so nothing can restart it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionClosed(AgentSignal):
    """The agent's connection was closed by its side: reason enough to ask, not to convict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeerHeard(AgentSignal):
    """Another monitor still hears this agent: a second opinion."""

    peer: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OrderOutcome(AgentSignal):
    """What the outcomes of orders share."""

    order_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeDelivered(OrderOutcome):
    """The nudge reached the agent's side; the agent may not have read it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeFailed(OrderOutcome):
    """The nudge could not be delivered."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationDecided(OrderOutcome):
    """A person or orchestrator decided an escalation."""

    decision: Decision
    by: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationDone(OrderOutcome):
    """The agent was stopped; its partial state is kept as `checkpoint_id` if there was any."""

    checkpoint_id: str | None = None
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationFailed(OrderOutcome):
    """The agent could not be stopped."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointVerified(OrderOutcome):
    """A stored checkpoint was read back and its digest compared."""

    task_id: str
    checkpoint_id: str
    valid: bool
    read_back: bool = True
    """False: no executor has its content, and only the agent says that it is good."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RespawnStarted(OrderOutcome):
    """A new life of the agent was started; it still has to speak."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RespawnFailed(OrderOutcome):
    """The new life could not be started."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerTurned(OrderOutcome):
    """The breaker was turned as ordered; its next report says what it is now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerNotTurned(OrderOutcome):
    """The breaker could not be turned: there is none of that name."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedUp(OrderOutcome):
    """The clean-up after a life is done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanUpFailed(OrderOutcome):
    """The clean-up after a life is impossible."""

    reason: str = ""


# --- people ------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonActed(AgentSignal):
    """What all acts of people share: who acted. A request with the same `key` is the same act."""

    by: str = ""
    key: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NudgeRequested(PersonActed):
    """A person wants the agent nudged now."""

    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EscalationRequested(PersonActed):
    """A person wants the orchestrator asked now."""

    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TerminationRequested(PersonActed):
    """A person wants the agent stopped."""

    reason: str = ""
    respawn: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PauseRequested(PersonActed):
    """A person pauses this agent for a while (None: until resumed)."""

    pause_for: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRequested(PersonActed):
    """A person ends a pause."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClearRequested(PersonActed):
    """A person resets the agent: quarantine, open interventions and limits are lifted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecoveryRequested(PersonActed):
    """A person wants the task respawned, limits or not."""

    task_id: str
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerTurnRequested(PersonActed):
    """A person wants an agent's breaker reset, opened or closed."""

    name: str
    act: BreakerAct
    reason: str = ""


# --- the hub about itself ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CanaryReturned(Report):
    """The hub's own beat came back over the bus."""

    seq: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PathLost(Report):
    """A server between the hub and some agents does not answer. `path` is the source of what comes by it."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PathRestored(Report):
    """That server answers again, and everything that waited there has been heard."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupReleased(Report):
    """A person looked at a braked group and lets interventions go on there."""

    group: str
    by: str = ""


Signal = (
    Beat
    | AgentRegistered
    | ActivitySeen
    | ToolStarted
    | ToolFinished
    | ModelStarted
    | ModelFinished
    | CheckpointSaved
    | ProgressMade
    | ErrorReported
    | DoingChanged
    | PongReceived
    | NudgeSeen
    | NudgeAnswered
    | TaskAssigned
    | TaskDone
    | TaskFailed
    | TaskClaimed
    | TaskReleased
    | MessageSent
    | MessageAcked
    | MessageWithdrawn
    | BreakerReported
    | AgentLeft
    | ProcessExited
    | ConnectionClosed
    | PeerHeard
    | NudgeDelivered
    | NudgeFailed
    | EscalationDecided
    | TerminationDone
    | TerminationFailed
    | CheckpointVerified
    | RespawnStarted
    | RespawnFailed
    | BreakerTurned
    | BreakerNotTurned
    | CleanedUp
    | CleanUpFailed
    | NudgeRequested
    | EscalationRequested
    | TerminationRequested
    | PauseRequested
    | ResumeRequested
    | ClearRequested
    | RecoveryRequested
    | BreakerTurnRequested
    | CanaryReturned
    | PathLost
    | PathRestored
    | GroupReleased
)
