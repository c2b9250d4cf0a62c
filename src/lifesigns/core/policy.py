"""Policy: every threshold in the system, with its default, its reason and the relations it must keep.

A policy is a value: frozen, shared by all agents that have it. `profiles.py` holds the named ones and
decides which agent gets which. All durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Any, Final

from msgspec import Struct, field

from lifesigns.core import policy_changes, policy_rules
from lifesigns.errors import PolicyError

MINUTE: Final = 60.0
HOUR: Final = 3600.0

Number = Annotated[float, "a plain number"]
"""A rate, a share, money or megabytes. Every other float is a duration."""


class SilencePolicy(Struct, frozen=True, dict=True):
    """When a silent agent is suspected, and when it is disconnected.

    At a self-health score of 0 the verdict never falls later than `timeout` after the last sign of life:

        suspect_after = min((missed_max + 1/2) * interval, timeout - pings * ping_wait)
        verdict       = suspected_at + pings * ping_wait * (1 + score)

    The half interval is room for jitter: a beat that is due right now is not missed yet.
    """

    interval: float = 5.0
    timeout: float = 15.0
    missed_max: int = 2
    ping_wait: float = 2.0
    pings: int = 2
    """Two, because one lost ping must not lead to a verdict."""
    adaptive: bool = True
    adaptive_from: int = 30
    """Beats heard before the adaptive margin replaces the fixed one."""
    false_suspicion_rate: Number = 1e-7
    """The chance per beat that a healthy agent is suspected; at 5 s beats about once in 1.6 years."""
    degrade_on_suspicion: bool = False
    """With intervals of minutes a suspicion lasts long enough to be shown as `degraded`."""
    tell_interval: bool = False
    """Tell senders that follow it to beat oftener while unwell and more rarely while calm. Off: it changes traffic."""
    unwell_factor: Number = 0.5
    calm_factor: Number = 1.5
    """What becomes of the interval. However large, a calm sender's beat still fits 1.5 times into `suspect_after`."""
    calm_after: float = 10 * MINUTE
    """Healthy for this long is calm."""
    busy_factor: Number = 3.0
    """An agent that last reported "busy" has this many times the timeout: it may be slow to speak."""
    busy_max: float = 30 * MINUTE
    """The longest silence of an agent that said until when it is busy and has not beaten since."""
    grace: float = 120.0
    """How long a registered agent may take to speak for the first time."""
    forget_after: float = 24 * HOUR
    """How long a terminated or long lost agent stays in memory (its history stays in the store)."""

    @cached_property
    def suspect_after(self) -> float:
        """How long after the last sign of life an agent is suspected, by the fixed margin."""
        fixed = (self.missed_max + 0.5) * self.interval
        return min(fixed, self.timeout - self.pings * self.ping_wait)


class FreezePolicy(Struct, frozen=True):
    """Beats come, but the agent's loop or main thread does not answer."""

    after: float = 10.0
    conclusive_after: float = 60.0
    """Nothing legitimate blocks a loop for this long without declaring itself busy."""


class StallPolicy(Struct, frozen=True):
    """An agent that lives but makes no progress, judged only while it has work."""

    checkpoint_degraded_after: float = 10 * MINUTE
    checkpoint_stuck_after: float = 30 * MINUTE
    checkpoint_expected: bool = False
    """Whether to judge an agent that never saved a checkpoint too, from the start of its work. Otherwise only one
    that saved before, in this life or an earlier one with the same task: many agents save none at all."""
    tool_call_after: float = 15 * MINUTE
    tokens_after: float = 15 * MINUTE
    call_max: float = 30 * MINUTE
    """How long a declared tool or model call may take before it becomes a finding."""
    output_after: float = 10 * MINUTE
    """For programs watched from outside: neither output nor CPU use for this long."""
    spin_after: float = 10 * MINUTE
    """No output for this long, but high CPU use."""
    repeat_after: float = 10 * MINUTE
    """Output for this long that only repeats itself."""
    idle_cpu: Number = 5.0
    spin_cpu: Number = 50.0
    """Percent of one core: below the first the program is idle, from the second on it burns CPU; between them it works."""


class LoopingPolicy(Struct, frozen=True):
    """The same thing over and over. `same` compares results too, `changing` only the calls."""

    same_notice: int = 4
    same_stuck: int = 8
    same_conclusive: int = 12
    error_notice: int = 3
    error_stuck: int = 5
    error_conclusive: int = 8
    cycle_length_max: int = 12
    cycle_notice: int = 3
    cycle_conclusive: int = 5
    changing_notice: int = 20
    changing_human: int = 60
    unknown_notice: int = 5
    """The same call in a row, or calls in a cycle, without reported results."""
    recent_notice: int = 6
    recent_stuck: int = 12
    recent_window: int = 30
    failing_notice: int = 3
    failing_window: int = 10
    talk_notice: int = 10
    """Model calls in a row without a tool call, progress or a human's turn: healthy agents have 2 or 3 of them."""
    wait_period_min: float = 30.0
    wait_model_share: Number = 0.5
    """Waiting is not looping: identical calls this far apart, with model calls in less than this part of the time. In
    real loops they fill 99 % of it, in healthy polling 3 to 13 %."""
    polling_tools: tuple[str, ...] = ("wait", "sleep", "poll*", "*_status", "check_*")
    polling_for: float = HOUR
    """The wait budget: how long a declared polling tool may poll before it counts like any other."""
    polling_gap_min: float = 5.0
    """An agent that polls more often does not wait, whatever its tool's name."""


class ErringPolicy(Struct, frozen=True):
    """Too many failures."""

    rate_max: Number = 0.25
    rate_window: int = 20
    rate_min_calls: int = 8
    """A rate over fewer calls says nothing: two failures of four calls are an accident."""
    consecutive_max: int = 3
    infrastructure_for: float = 30 * MINUTE
    """How long every call may fail by infrastructure errors before the engine asks people."""
    breaker_for: float = 5 * MINUTE
    """How long a breaker may be tripped without any call that succeeds. Breakers are there to trip; five recovery
    timeouts of a minute without one success are more than a pause."""
    context_full: Number = 0.98
    """The part of a model's context window that counts as all of it. Agents that compact do so below."""
    context_calls: int = 5
    """Calls in a row with a full window. One or two come before each compaction."""


class SpendingPolicy(Struct, frozen=True):
    """Caps on tokens and money (None: no cap), and a spike against the agent's own baseline."""

    tokens_max: int | None = None
    cost_max: Number | None = None
    task_tokens_max: int | None = None
    task_cost_max: Number | None = None
    hour_tokens_max: int | None = None
    hour_cost_max: Number | None = None
    soft: Number = 0.8
    """The part of a cap at which the engine warns people."""
    spike_slack: Number = 1.0
    spike_limit: Number = 8.0
    """CUSUM slack and limit in standard deviations: with one sample a minute, about one false alarm in a thousand hours."""
    spike_min_samples: int = 20


class OverloadPolicy(Struct, frozen=True):
    """Load that is worth a warning, never a termination."""

    cpu_degraded: Number = 70.0
    cpu_unhealthy: Number = 90.0
    memory_degraded_mb: Number = 4096.0
    memory_unhealthy_mb: Number = 8192.0
    beats: int = 3
    """Beats in a row over the line: one busy moment is no overload."""


class ForecastPolicy(Struct, frozen=True):
    """Where an agent is heading: a notice, and never more."""

    enabled: bool = True
    window: float = 2 * MINUTE
    """One point of a series. Ten of them make a trend, so the shortest is 20 minutes."""
    horizon: float = 25 * MINUTE
    """What is further away is not worth a notice: few things go on for longer as they are."""
    memory_from: Number = 0.25
    """The part of `overload.memory_degraded_mb` from which on an agent's memory is followed."""


class LadderPolicy(Struct, frozen=True):
    """Nudge, escalate, terminate: how often and how long."""

    enabled: bool = True
    nudge_enabled: bool = True
    nudge_max: int = 3
    nudge_every: float = 10 * MINUTE
    nudge_template: str = "{facts} You can report progress, request a handoff or report a blocker."
    """What a nudge says, with places for `templates.NUDGE_FACTS`. A nudge states facts: models rightly distrust a
    command from nowhere."""
    hesitate_for: float = 10.0
    """The wait before we ask people about a lost agent: when a host dies, its agents vanish one after the other
    within seconds, and this wait makes them one question instead of twenty."""
    escalation_timeout: float = 15 * MINUTE
    save_for: float = 30.0
    confirm_for: float = MINUTE
    """How long after `save_for` somebody may take to report that the agent has ended, before we order its end again. After
    three orders without an answer nobody can end it: if it is silent and its host is there, its successor takes over."""
    cleanup_for: float = 5 * MINUTE
    """How long the clean-up after a life may take; its successor waits for it."""
    more_time_for: float = 30 * MINUTE
    """What `need_time` or `more_time` grants."""


class RespawnPolicy(Struct, frozen=True):
    """Respawns: how often, how soon."""

    enabled: bool = True
    per_task_max: int = 3
    per_hour_max: int = 5
    backoff: tuple[float, ...] = (60.0, 120.0, 240.0)
    jitter: Number = 0.1
    hesitate_for: float = 10.0
    """The wait after a crash that only the agent itself reported: its process may have caught the error and go on
    with a new life, and a second one must not work beside it."""
    probation: float = 15 * MINUTE
    start_timeout: float = 5 * MINUTE
    """How long a new life may take to speak before its respawn counts as failed."""
    verify_timeout: float = MINUTE
    crash_loop_max: int = 5
    crash_loop_window: float = 15 * MINUTE
    chain_max: int = 64
    """Checkpoints remembered per task."""


class BreakerPolicy(Struct, frozen=True):
    """When a breaker opens and how it closes again (the semantics of `breaker.py`)."""

    failure_threshold: int = 3
    recovery_timeout: float = 60.0
    half_open_requests: int = 1
    half_open_wait_max: float = 60.0
    failure_rate: Number | None = None
    slow_rate: Number | None = None
    slow_call_after: float = 60.0
    window_calls: int = 100
    window_for: float | None = None
    min_calls: int = 10
    backoff_factor: Number = 1.0
    recovery_timeout_max: float = 10 * MINUTE


class ClaimPolicy(Struct, frozen=True):
    """An agent's hold on a task."""

    lease: float = 10 * MINUTE
    """Without a beat for this long the claim is stale."""
    grace: float = 5 * MINUTE
    """For a claim whose agent has not beaten yet at all."""
    check_wait: float = 30.0
    """The double check: a stale claim is pinged and looked at again after this."""


class MessagePolicy(Struct, frozen=True):
    """How soon a message needs an acknowledgement, by priority."""

    urgent: float = 2 * MINUTE
    high: float = 5 * MINUTE
    normal: float = 15 * MINUTE
    low: float = HOUR
    open_max: int = 1000
    """Unacknowledged messages of one sender."""


class TaskPolicy(Struct, frozen=True):
    """When a task is stalled, and how long its agent has to explain."""

    stalled_after: float = 30 * MINUTE
    overdue_factor: Number = 3.0
    """How many times as long as expected a task may take without a report before its agent is `degraded`, however
    short the task is."""
    inquiry_wait: float = 5 * MINUTE


class Policy(Struct, frozen=True):
    """How the engine watches one agent."""

    silence: SilencePolicy = field(default_factory=SilencePolicy)
    freeze: FreezePolicy = field(default_factory=FreezePolicy)
    stall: StallPolicy = field(default_factory=StallPolicy)
    looping: LoopingPolicy = field(default_factory=LoopingPolicy)
    erring: ErringPolicy = field(default_factory=ErringPolicy)
    spending: SpendingPolicy = field(default_factory=SpendingPolicy)
    overload: OverloadPolicy = field(default_factory=OverloadPolicy)
    forecast: ForecastPolicy = field(default_factory=ForecastPolicy)
    ladder: LadderPolicy = field(default_factory=LadderPolicy)
    respawn: RespawnPolicy = field(default_factory=RespawnPolicy)
    breaker: BreakerPolicy = field(default_factory=BreakerPolicy)
    breakers: Mapping[str, BreakerPolicy] = field(
        default_factory=lambda: {
            "tool_execution": BreakerPolicy(failure_threshold=5, recovery_timeout=30.0),
            "checkpoint_write": BreakerPolicy(recovery_timeout=120.0),
        }
    )
    claim: ClaimPolicy = field(default_factory=ClaimPolicy)
    message: MessagePolicy = field(default_factory=MessagePolicy)
    task: TaskPolicy = field(default_factory=TaskPolicy)

    def __post_init__(self) -> None:
        policy_rules.check(self)

    def with_changes(self, changes: Mapping[str, Any]) -> Policy:
        """This policy with some values changed: `policy.with_changes({"silence": {"interval": 2}})`."""
        changed: Policy = policy_changes.changed(self, changes, BreakerPolicy())
        return changed


class FleetPolicy(Struct, frozen=True):
    """What holds for all agents together, and how much the monitor trusts itself."""

    judging: bool = True
    """Whether the engine judges agents. If not, it hears and shows them, and finds and does nothing unasked."""
    agents_max: int = 2_000_000
    agents_per_source: int = 100_000
    """A million made-up ids from one token must not push the real ones out."""
    messages_per_source: int = 20_000
    """That are not acknowledged yet. There is room for 100,000."""
    claims_per_source: int = 20_000
    tasks_per_source: int = 20_000
    """With an expected end. There is room for 100,000."""
    brake_count: int = 3
    brake_share: Number = 0.55
    lost_after: float = 5 * MINUTE
    """An agent that has been disconnected for this long no longer counts as part of the fleet: agents lost long ago
    and agents unwell now are not unwell at once. Agents lost under a brake stay a person's decision."""
    acted_share: Number = 0.15
    """The engine acts on at most this part of the fleet per minute by itself (but always on one)."""
    nudges_per_minute: int = 60
    terminations_per_minute: int = 10
    respawns_per_minute: int = 10
    moves_per_minute: int = 0
    """Tasks of unwell workers that are offered to others or asked back. 0 switches rebalancing off."""
    tick_every: float = 1.0
    """How often the hub calls the engine at least, so that the engine notices when it slept."""
    tick_late_after: float = 1.0
    truce_min: float = 5.0
    calm_after: float = 30.0
    """This long without trouble takes one point off the self-health score."""
    canary_every: float = 5.0
    """0 switches the canary off: an engine without a bus has nothing to be blind to."""
    canary_late_after: float = 14.0
    """Three canaries in a row must be missing: one lost message does not make us blind."""

    def __post_init__(self) -> None:
        policy_rules.check_numbers("fleet", self)
        if not 0 < self.brake_share <= 1:
            raise PolicyError("fleet.brake_share", f"{self.brake_share} is not between 0 and 1")
