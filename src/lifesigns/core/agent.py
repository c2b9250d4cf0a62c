"""Agent: what we believe about one agent.

Owned by the engine and changed in place, because a healthy beat must cost about a microsecond. It is small, because
there may be a million: an agent carries work, call history or a case on the ladder only while it has them. All of it
is plain data, so that a snapshot can be stored and a restored engine continues exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from math import inf
from typing import Final

from msgspec import Struct

from lifesigns.core.detectors.call_history import CallHistory
from lifesigns.core.detectors.forecast import Trend
from lifesigns.core.effects import Finding, Kind, Rung, Stage
from lifesigns.core.health import Cause, Doing, FailureClass, Health
from lifesigns.core.signals import TOKENS_ONLY, Opinion

NEVER: Final = inf

RETIRED_MAX: Final = 8
"""How many former incarnations we remember per agent: enough to refuse stragglers, bounded against hostile ids."""

LONG_CALL: Final = 60.0

DECLARED: Final = "(declared)"
"""The call id of an operation that an agent declares with `busy`."""

MODEL_CALL: Final = "A model call"
"""The name of a model call. It excuses an agent as a tool call does, but is not a tool call."""

NAMELESS: Final = frozenset({"", DECLARED, TOKENS_ONLY})
"""Call ids that identify no call: the next call has the same one."""

ENDED_MAX: Final = 8
LATE_BEGINNING: Final = 10.0
"""How long after a call's end its start may still arrive. A later start is another call of the same name."""

CALLS_MAX: Final = 64
"""How many open calls we remember per agent. Beyond that we forget the oldest."""


@dataclass(slots=True)
class Suspicion:
    """A doubt whether the agent lives: since when, how often we asked, when we asked last."""

    since: float
    why: str
    asked: int = 0
    waited_from: float = 0.0
    wait: float = 0.0
    held: bool = False
    """The verdict was postponed once, because the whole host was late."""
    zones: tuple[str, ...] | None = None
    """The other zones that were asked whether they hear it; None if nobody was asked yet."""
    opinions: dict[str, Opinion] = field(default_factory=dict)
    """What they said."""


@dataclass(slots=True)
class Call:
    """A tool or model call that has started and not ended."""

    what: str
    started_at: float
    bound: float
    said: bool = False
    """The agent itself said how long the call takes."""
    args_digest: str = ""
    """Of a tool call, if they were told when it began."""
    unheard: float = 0.0
    """For how long nothing was heard of the agent since: it may have ended then."""

    @property
    def may_take(self) -> float:
        """How long the agent may be in it, counted from its start."""
        return self.bound + self.unheard


class CpuLevel(StrEnum):
    """How much of a core a program uses, in three classes."""

    COLD = "cold"
    WARM = "warm"
    HOT = "hot"


@dataclass(slots=True)
class Work:
    """How an agent with work makes progress.

    A rule applies only to signs the agent has shown before: an agent that never reports tokens does not lack them.
    """

    since: float
    """When this work began or resumed."""
    clocks_from: float = 0.0
    """The same for the clocks that long calls stop: `since` plus the time those calls took."""
    checkpoint_at: float | None = None
    checkpoint_id: str | None = None
    saves: bool = False
    """An earlier life saved checkpoints of this task, so we expect some from this life too."""
    excused: float = 0.0
    """The longest call since the last checkpoint. Calls do not add up: otherwise an agent that builds all day would
    never owe a checkpoint."""
    unheard: float = 0.0
    """For how long nothing was heard of the agent since the last checkpoint: it may have saved one then."""
    tool_at: float | None = None
    tokens_at: float | None = None
    output_at: float | None = None
    repeated: str = ""
    """A line of its output, if that has only repeated itself since `output_at`."""
    repeats_error: bool = False
    cpu_level: CpuLevel | None = None
    cpu_level_at: float = 0.0
    """How much CPU it uses, and since when: a program watched from outside shows little else."""
    calls: dict[str, Call] = field(default_factory=dict)
    ended: dict[str, float] = field(default_factory=dict)
    """The last calls that ended, and when: on a bus that reorders and repeats, a start may arrive after its end."""
    closed: dict[str, None] = field(default_factory=dict)
    """Those whose start we heard: a repeated end of such a call is not a second call."""
    again: dict[str, None] = field(default_factory=dict)
    """Those of `closed` that were told again as a whole: told a third time, they are calls that share an id."""
    retold: tuple[str, float] = ("", 0.0)
    """The closed call whose start was told again last, and when."""
    tool_calls: int = 0
    last_tool: str = ""
    tool_told: str | None = None
    """The last tool call, if only beats name it: another name is another call."""
    full_calls: int = 0
    """Model calls in a row whose context window was full, and since when."""
    full_since: float = 0.0
    repeats: int = 0

    def begin_call(self, call_id: str, call: Call) -> None:
        """A call began, unless we already heard its end."""
        ended_at = self.ended.pop(call_id, None)
        if call_id in self.closed:
            del self.closed[call_id]
            self.retold = (call_id, call.started_at)
        if ended_at is not None and call.started_at - ended_at < LATE_BEGINNING:
            return
        if len(self.calls) >= CALLS_MAX:
            del self.calls[next(iter(self.calls))]
        self.calls[call_id] = call

    def is_told_again(self, call_id: str, now: float) -> bool:
        """Whether this end is no news: the call has ended before, or its start and end were told again in one breath.

        A sender that got no answer sends both again, together; an agent that uses one id for all its calls begins and
        ends them one after the other. If it does that in one breath too, we miss one of its calls.
        """
        if call_id in self.closed:
            return True
        if self.retold != (call_id, now) or call_id in self.again:
            return False
        self.calls.pop(call_id, None)
        self.ended[call_id] = now
        self.closed[call_id] = self.again[call_id] = None
        if len(self.again) > ENDED_MAX:
            del self.again[next(iter(self.again))]
        return True

    def end_call(self, call_id: str, now: float, lapsed: Callable[[float, float], float]) -> Call | None:
        """A call ended; returns it if we heard its start.

        A long call stops the agent's clocks: they move on by the time it took, and by the time before it in which we
        did not look (`Awareness.lapsed`), which must not count against the agent. A short call stops no clock. The
        checkpoint clock never stops; the agent only gets the longest call on top.
        """
        call = self.calls.pop(call_id, None)
        if call_id not in NAMELESS:
            self.ended[call_id] = now
            ended = self.ended
            while len(ended) > ENDED_MAX:
                oldest = next(iter(ended))
                if now - ended[oldest] < LATE_BEGINNING and len(ended) <= CALLS_MAX:
                    break  # Calls that waited for us end all at once, and a start of theirs may still come again.
                del ended[oldest]
                if self.closed or self.again:
                    self.closed.pop(oldest, None)
                    self.again.pop(oldest, None)
            if call is not None:
                self.closed[call_id] = None
        if call is not None and (took := now - call.started_at - call.unheard) >= LONG_CALL:
            self._move_clocks(now - took, now, lapsed)
            self.excused = max(self.excused, took)
        return call

    def skip(self, since: float, now: float, lapsed: Callable[[float, float], float]) -> None:
        """Nothing was heard of the agent meanwhile: nobody knows what it did, and the time counts neither for nor against it."""
        self._move_clocks(since, now, lapsed)
        self.unheard += now - since
        for call in self.calls.values():
            call.unheard += now - since

    def _move_clocks(self, since: float, now: float, lapsed: Callable[[float, float], float]) -> None:
        self.clocks_from = _delayed(max(self.since, self.clocks_from), since, now, lapsed)
        if self.tool_at is not None:
            self.tool_at = _delayed(self.tool_at, since, now, lapsed)
        if self.tokens_at is not None:
            self.tokens_at = _delayed(self.tokens_at, since, now, lapsed)
        if self.output_at is not None:
            self.output_at = _delayed(self.output_at, since, now, lapsed)


def _delayed(at: float, since: float, now: float, lapsed: Callable[[float, float], float]) -> float:
    """A clock that stood still from `since` to `now`. Our own lapses before that go on not to count."""
    return min(now, at + now - since + lapsed(at, since))


@dataclass(slots=True)
class Outcomes:
    """The last results of an agent's calls, as bits: 1 is a failure."""

    bits: int = 0
    count: int = 0
    consecutive: int = 0
    since: float = 0.0
    world_run: int = 0
    """Infrastructure errors since the last success, and since when."""
    world_since: float = 0.0
    last: str = ""
    unrecoverable: str = ""
    breaker_open: bool = False
    tripped_at: float | None = None
    """Since when a breaker of it is not closed and no call has succeeded; None if all are closed."""
    reported: int = 0
    """The error count of the last beat that carried one."""
    heard: int = 0
    """Errors of this life that were reported one by one."""

    @property
    def errors(self) -> int:
        """Errors of this life: the larger of the reported total and our own count: one may include the other."""
        return max(self.reported, self.heard)


@dataclass(slots=True)
class Spending:
    """What an agent has used, and its usual rate."""

    by_beat: bool = False
    """Its beats carry totals: then its calls report the same tokens a second time."""
    reported: int = 0
    """Of this life: the total in the last beat, or, before the first one, the sum its calls reported."""
    reported_cost: float = 0.0

    tokens: int = 0
    cost: float = 0.0
    task_tokens: int = 0
    task_cost: float = 0.0
    hour_tokens: int = 0
    hour_cost: float = 0.0
    hour_at: float = 0.0
    minute_tokens: int = 0
    minute_at: float = 0.0
    samples: int = 0
    mean: float = 0.0
    variance: float = 0.0
    drift: float = 0.0
    drift_since: float = 0.0
    calls: int = 0
    """Tool calls of its life before this minute; `calls_mean`: how many a minute usually has."""
    calls_mean: float = 0.0


@dataclass(slots=True)
class Case:
    """An agent's way up the ladder. `waited_from` and `wait` make the next step's deadline."""

    rung: Rung
    reason: str
    attempt: int = 0
    order_id: str = ""
    waited_from: float = 0.0
    wait: float = 0.0
    held: str = ""
    nudge_ids: tuple[str, ...] = ()
    reached: tuple[Stage, ...] = ()
    """The stage of its order: a speaker that got no answer repeats itself, and a repetition is no news."""
    said: str = ""
    """The last answer to a nudge or an escalation, after the id of its order; for the same reason."""
    nudges: int = 0
    """Nudges that no progress followed."""
    escalated: bool = False
    grounds: bool = False
    """Whether there was reason enough to end the agent when people were asked about it."""
    on_silence: bool = False
    """The agent is silent: the first sign of life refutes the case."""
    last_look: Suspicion | None = None
    """What other zones say just before an agent is ended for its silence, while they are asked."""
    respawn: bool = True
    by: str = ""
    key: str = ""
    """The idempotency key of a person's request."""


class Failure(Struct, frozen=True):
    """Why an agent is unwell, as a class, with the reason for the class and since when."""

    failure_class: FailureClass
    reason: str
    since: float


class Past(Struct, frozen=True):
    """What an agent has been through, as far as something follows from it. It changes seldom, and agents to which nothing
    happened share one."""

    disconnections: int = 0
    interventions: int = 0
    failed_at: tuple[float, ...] = ()
    """When its last failures began."""
    withdrawn: str = ""
    """The last termination we withdrew: an executor may have carried it out all the same."""
    lost_with: str = ""
    """The group whose brake was on when it was lost: if the others stay away too, a person decides."""
    respawned: bool = False
    """Its present life was started by us."""
    retired: tuple[str, ...] = ()
    """Its former lives."""
    absent: bool = False
    """Disconnected for so long that it no longer counts as part of the fleet."""
    poisoned: bool = False
    """Our own code failed on it: it is set aside until a person clears it."""
    paused_until: float = 0.0


UNEVENTFUL: Final = Past()


@dataclass(slots=True)
class Agent:
    """One agent, as we know it."""

    id: str
    order: int
    """The agent's place in the order of first mention: it breaks ties between deadlines the same way every time."""

    # Fields that every beat reads or writes come first, side by side: at a million agents a beat costs the memory it
    # fetches.
    calm: bool = False
    """Healthy, unsuspected, nothing open: a beat without news needs no closer look."""
    incarnation: str | None = None
    seq: int = -1
    beats: int = 0
    teach_at: int = 0
    heard_at: float = 0.0
    load: float | None = None
    capacity: int | None = None
    policy_no: int = 0
    """The number of its policy in the policy book."""
    cpu_percent: float | None = None
    memory_mb: float | None = None
    host: str | None = None
    role: str | None = None
    task_id: str | None = None
    doing: Doing = Doing.UNKNOWN
    work: Work | None = None
    spending: Spending | None = None
    outcomes: Outcomes | None = None
    status: str | None = None
    """The status it last reported, in a beat or in answer to a ping."""
    strays: int = 0
    """Beats in a row that did not continue the sequence."""
    via: str = ""
    """The door of its last signal; `source` is the door of its first one, and the one that counts it."""

    # Next to them the fields that its deadline reads when it comes up.
    armed_at: float = NEVER
    other_at: float = NEVER
    """The earliest deadline apart from silence."""
    margin: float = 0.0
    interval: float = 0.0
    refit_at: int = 0
    slowing: bool = False
    """Its last lessons came late: when its deadline comes up we look whether its beats come later and later."""
    told_interval: float | None = None
    """How often we told it to beat; 0 if never, None if it cannot be told."""
    suspicion: Suspicion | None = None

    health: Health = Health.STARTING
    since: float = 0.0
    cause: Cause | None = None
    failure: Failure | None = None
    past: Past = UNEVENTFUL
    findings: tuple[Finding, ...] = ()
    provider: str | None = None
    source: str = ""
    beatless: bool = False
    """It never beats: others report on it afterwards, and how late their reports come says nothing about the agent."""
    grace: float | None = None
    """How long it may take to speak, if it asked for a value other than its policy's."""
    started_at: float = 0.0
    sent_at: float | None = None
    lost: int = 0
    lessons: int = 0
    """Beats compared with their prediction; `taught_*` is the last of them, `teach_at` the next."""
    taught_at: float = 0.0
    taught_seq: int | None = None
    taught_beat: int = 0
    expected_at: float = 0.0
    lateness2: float = 0.0

    doing_from: float = 0.0
    doing_note: str = ""
    """In the agent's words: its question to a human, or what it is busy with. After its end: why it ended."""
    doing_until: float = NEVER
    call_history: CallHistory | None = None
    trend: Trend | None = None
    """Its last half hour, while it gives reason to follow it."""
    overloaded: int = 0
    """Beats in a row over a load line."""
    case: Case | None = None
    claims: tuple[str, ...] = ()
    """Tasks it holds."""
    messages: int = 0
    """Messages it sent that still lack an acknowledgement."""

    def finding(self, kind: Kind) -> Finding | None:
        """The open finding of this kind, if there is one."""
        for finding in self.findings:
            if finding.kind is kind:
                return finding
        return None

    @property
    def failure_class(self) -> FailureClass | None:
        return None if self.failure is None else self.failure.failure_class

    @property
    def alive(self) -> bool:
        """Neither terminated nor disconnected nor still awaited."""
        return self.health not in (Health.TERMINATED, Health.DISCONNECTED, Health.STARTING)

    @property
    def busy(self) -> bool:
        """In a tool or model call, or in a declared long operation."""
        return self.doing is Doing.BUSY or (self.work is not None and bool(self.work.calls))
