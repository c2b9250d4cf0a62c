"""Policy: every threshold in the system, with its default, its reason and the relations it must keep.

A policy is a value: frozen, shared by all agents that have it. `profiles.py` holds the named ones and
decides which agent gets which. All durations are seconds.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, Final

from lifesigns.errors import PolicyError

MINUTE: Final = 60.0
HOUR: Final = 3600.0

NUMBER_MAX: Final = 1e15
"""No clock counts further; and sums and products of what is below stay finite."""


@dataclass(frozen=True, slots=True)
class SilencePolicy:
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
    """Two, because one lost ping must not be a verdict."""
    adaptive: bool = True
    adaptive_from: int = 30
    """Beats heard before the adaptive margin replaces the fixed one."""
    false_suspicion_rate: float = 1e-7
    """The chance per beat that a healthy agent is suspected; at 5 s beats about once in 1.6 years."""
    degrade_on_suspicion: bool = False
    """With intervals of minutes a suspicion lasts long enough to be shown as `degraded`."""
    grace: float = 120.0
    """How long a registered agent may take to speak for the first time."""
    forget_after: float = 24 * HOUR
    """How long a terminated or long lost agent stays in memory (its history stays in the store)."""

    suspect_after: float = field(init=False)

    def __post_init__(self) -> None:
        fixed = (self.missed_max + 0.5) * self.interval
        suspect_after = min(fixed, self.timeout - self.pings * self.ping_wait)
        object.__setattr__(self, "suspect_after", suspect_after)


@dataclass(frozen=True, slots=True)
class FreezePolicy:
    """Beats come, but the loop or main thread behind them does not answer."""

    after: float = 10.0
    conclusive_after: float = 60.0
    """Nothing legitimate blocks a loop for this long without declaring itself busy."""


@dataclass(frozen=True, slots=True)
class StallPolicy:
    """An agent that lives but does not come forward, judged only while it has work."""

    checkpoint_degraded_after: float = 10 * MINUTE
    checkpoint_stuck_after: float = 30 * MINUTE
    tool_call_after: float = 15 * MINUTE
    tokens_after: float = 15 * MINUTE
    call_max: float = 30 * MINUTE
    """How long a declared tool or model call may take before it is a finding."""
    output_after: float = 10 * MINUTE
    """For programs that are watched from outside: neither output nor CPU for this long."""
    spin_after: float = 10 * MINUTE
    """The same, but burning CPU all the while."""
    idle_cpu: float = 5.0
    spin_cpu: float = 50.0
    """Percent of one core: below the first nothing is done, from the second on it burns. Between, it works."""


@dataclass(frozen=True, slots=True)
class LoopingPolicy:
    """The same thing over and over. `same` compares results too, `changing` only the calls."""

    same_notice: int = 4
    same_stuck: int = 8
    same_conclusive: int = 12
    error_notice: int = 3
    error_stuck: int = 5
    error_conclusive: int = 8
    cycle_length_max: int = 5
    cycle_notice: int = 3
    cycle_conclusive: int = 5
    changing_notice: int = 20
    changing_human: int = 60
    recent_notice: int = 6
    recent_window: int = 30
    polling_tools: tuple[str, ...] = ("wait", "sleep", "poll*", "*_status", "check_*")
    polling_for: float = HOUR
    """The wait budget: how long a declared polling tool may poll before it counts like any other."""


@dataclass(frozen=True, slots=True)
class ErringPolicy:
    """Too many failures."""

    rate_max: float = 0.25
    rate_window: int = 20
    rate_min_calls: int = 8
    """A rate over fewer calls says nothing: two failures of four calls are an accident."""
    consecutive_max: int = 3


@dataclass(frozen=True, slots=True)
class SpendingPolicy:
    """Caps on tokens and money (None: no cap), and a spike against the agent's own baseline."""

    tokens_max: int | None = None
    cost_max: float | None = None
    task_tokens_max: int | None = None
    task_cost_max: float | None = None
    hour_tokens_max: int | None = None
    hour_cost_max: float | None = None
    soft: float = 0.8
    """The part of a cap at which people are warned."""
    spike_slack: float = 1.0
    spike_limit: float = 8.0
    """CUSUM slack and limit in standard deviations: about one false alarm in a thousand hours of minutes."""
    spike_min_samples: int = 20


@dataclass(frozen=True, slots=True)
class OverloadPolicy:
    """Load that is worth a word, never a termination."""

    cpu_degraded: float = 70.0
    cpu_unhealthy: float = 90.0
    memory_degraded_mb: float = 4096.0
    memory_unhealthy_mb: float = 8192.0
    beats: int = 3
    """Beats in a row over the line: one busy moment is no state."""


@dataclass(frozen=True, slots=True)
class LadderPolicy:
    """Nudge, escalate, terminate: how often and how long."""

    enabled: bool = True
    nudge_enabled: bool = True
    nudge_max: int = 3
    nudge_every: float = 10 * MINUTE
    hesitate_for: float = 10.0
    """Before people are asked about a lost agent: when a host dies, its agents are lost one after the other
    within seconds, and are one question instead of twenty if that is waited for."""
    escalation_timeout: float = 15 * MINUTE
    save_for: float = 30.0
    more_time_for: float = 30 * MINUTE
    """What `need_time` or `more_time` grants."""


@dataclass(frozen=True, slots=True)
class RespawnPolicy:
    """Starting anew: how often, how soon."""

    enabled: bool = True
    per_task_max: int = 3
    per_hour_max: int = 5
    backoff: tuple[float, ...] = (60.0, 120.0, 240.0)
    jitter: float = 0.1
    probation: float = 15 * MINUTE
    start_timeout: float = 5 * MINUTE
    """How long a new life may take to speak before its respawn counts as failed."""
    verify_timeout: float = MINUTE
    crash_loop_max: int = 5
    crash_loop_window: float = 15 * MINUTE
    chain_max: int = 64
    """Checkpoints remembered per task."""


@dataclass(frozen=True, slots=True)
class BreakerPolicy:
    """When a breaker opens and how it closes again (the semantics of `breaker.py`)."""

    failure_threshold: int = 3
    recovery_timeout: float = 60.0
    half_open_requests: int = 1
    half_open_wait_max: float = 60.0
    failure_rate: float | None = None
    slow_rate: float | None = None
    slow_call_after: float = 60.0
    window_calls: int = 100
    window_for: float | None = None
    min_calls: int = 10
    backoff_factor: float = 1.0
    recovery_timeout_max: float = 10 * MINUTE


@dataclass(frozen=True, slots=True)
class ClaimPolicy:
    """An agent's hold on a task."""

    lease: float = 10 * MINUTE
    """Without a beat for this long the claim is stale."""
    grace: float = 5 * MINUTE
    """For a claim whose agent has not beaten yet at all."""
    check_wait: float = 30.0
    """The double check: a stale claim is pinged and looked at again after this."""


@dataclass(frozen=True, slots=True)
class MessagePolicy:
    """How soon a message wants to be acknowledged, by priority."""

    urgent: float = 2 * MINUTE
    high: float = 5 * MINUTE
    normal: float = 15 * MINUTE
    low: float = HOUR
    open_max: int = 1000
    """Unacknowledged messages of one sender."""


@dataclass(frozen=True, slots=True)
class TaskPolicy:
    """When a task is stalled, and how long its agent has to explain."""

    stalled_after: float = 30 * MINUTE
    inquiry_wait: float = 5 * MINUTE


@dataclass(frozen=True, slots=True)
class Policy:
    """Everything about how one agent is watched."""

    silence: SilencePolicy = field(default_factory=SilencePolicy)
    freeze: FreezePolicy = field(default_factory=FreezePolicy)
    stall: StallPolicy = field(default_factory=StallPolicy)
    looping: LoopingPolicy = field(default_factory=LoopingPolicy)
    erring: ErringPolicy = field(default_factory=ErringPolicy)
    spending: SpendingPolicy = field(default_factory=SpendingPolicy)
    overload: OverloadPolicy = field(default_factory=OverloadPolicy)
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
        for section, values in _sections(self):
            _check_numbers(section, values)
        _check_relations(self)

    def but(self, changes: Mapping[str, Any]) -> Policy:
        """This policy with some values changed: `policy.but({"silence": {"interval": 2}})`."""
        changed: Policy = _replaced(self, changes, "")
        return changed


@dataclass(frozen=True, slots=True)
class FleetPolicy:
    """What holds for all agents together, and how much the monitor trusts itself."""

    agents_max: int = 2_000_000
    agents_per_source: int = 100_000
    """A million made-up ids from one token must not push the real ones out."""
    brake_count: int = 3
    brake_share: float = 0.55
    acted_share: float = 0.15
    """At most this part of the fleet is acted on automatically in a minute (but always one)."""
    nudges_per_minute: int = 60
    terminations_per_minute: int = 10
    respawns_per_minute: int = 10
    tick_every: float = 1.0
    """The engine wants to be looked at this often, so that it knows when it was not."""
    tick_late_after: float = 1.0
    truce_min: float = 5.0
    calm_after: float = 30.0
    """Quiet for this long takes one point off the self-health score."""
    canary_every: float = 5.0
    """0 switches the canary off: an engine without a bus has nothing to be blind to."""
    canary_late_after: float = 14.0
    """Three canaries in a row must be missing: one lost message does not make us blind."""

    def __post_init__(self) -> None:
        _check_numbers("fleet", self)
        if not 0 < self.brake_share <= 1:
            raise PolicyError("fleet.brake_share", f"{self.brake_share} is not between 0 and 1")


# --- checking -----------------------------------------------------------------------------------------


def _sections(policy: Policy) -> Iterator[tuple[str, Any]]:
    for f in fields(policy):
        value = getattr(policy, f.name)
        if isinstance(value, Mapping):
            yield from ((f"{f.name}.{name}", part) for name, part in value.items())
        else:
            yield f.name, value


def _check_numbers(section: str, values: Any) -> None:
    for f in (f for f in fields(values) if f.init):
        value = getattr(values, f.name)
        for number in value if isinstance(value, tuple) else (value,):
            if not isinstance(number, bool | str | None):
                _check_number(f"{section}.{f.name}", number)


def _check_number(key: str, number: float) -> None:
    if number > NUMBER_MAX:
        raise PolicyError(key, f"is larger than {NUMBER_MAX:g}")
    if not number >= 0:
        raise PolicyError(key, f"{number} is not a number >= 0")


def _check_relations(policy: Policy) -> None:
    """Impossible relations, each told with both numbers."""
    s, st, lo, r = policy.silence, policy.stall, policy.looping, policy.respawn
    relations = [
        (s.interval > 0, "silence.interval", "must be greater than 0"),
        (
            s.timeout > s.interval,
            "silence.timeout",
            f"{s.timeout} s is not longer than the interval of {s.interval} s",
        ),
        (s.missed_max >= 1, "silence.missed_max", "must be at least 1"),
        (s.pings >= 1, "silence.pings", "must be at least 1: nobody is convicted unasked"),
        (
            s.suspect_after > s.interval,
            "silence.ping_wait",
            f"{s.pings} pings of {s.ping_wait} s leave no time for a beat every {s.interval} s "
            f"within the timeout of {s.timeout} s",
        ),
        (
            0 < s.false_suspicion_rate < 1,
            "silence.false_suspicion_rate",
            f"{s.false_suspicion_rate} is not between 0 and 1",
        ),
        (
            policy.freeze.conclusive_after >= policy.freeze.after,
            "freeze.conclusive_after",
            f"{policy.freeze.conclusive_after} s is shorter than freeze.after ({policy.freeze.after} s)",
        ),
        (
            st.checkpoint_stuck_after >= st.checkpoint_degraded_after,
            "stall.checkpoint_stuck_after",
            f"{st.checkpoint_stuck_after} s is shorter than checkpoint_degraded_after "
            f"({st.checkpoint_degraded_after} s)",
        ),
        (
            st.idle_cpu <= st.spin_cpu,
            "stall.spin_cpu",
            f"{st.spin_cpu} is lower than idle_cpu ({st.idle_cpu})",
        ),
        (
            1 < lo.same_notice <= lo.same_stuck <= lo.same_conclusive,
            "looping.same_notice",
            f"{lo.same_notice}/{lo.same_stuck}/{lo.same_conclusive} do not rise from 2",
        ),
        (
            1 < lo.error_notice <= lo.error_stuck <= lo.error_conclusive,
            "looping.error_notice",
            f"{lo.error_notice}/{lo.error_stuck}/{lo.error_conclusive} do not rise from 2",
        ),
        (
            1 < lo.cycle_notice <= lo.cycle_conclusive,
            "looping.cycle_notice",
            f"{lo.cycle_notice}/{lo.cycle_conclusive} do not rise from 2",
        ),
        (
            1 < lo.changing_notice <= lo.changing_human,
            "looping.changing_notice",
            f"{lo.changing_notice}/{lo.changing_human} do not rise from 2",
        ),
        (
            1 < lo.recent_notice <= lo.recent_window,
            "looping.recent_notice",
            f"{lo.recent_notice} does not fit into the window of {lo.recent_window}",
        ),
        (
            0 < policy.erring.rate_max <= 1,
            "erring.rate_max",
            f"{policy.erring.rate_max} is not a rate between 0 and 1",
        ),
        (
            0 < policy.spending.soft <= 1,
            "spending.soft",
            f"{policy.spending.soft} is not between 0 and 1",
        ),
        (
            policy.overload.cpu_unhealthy >= policy.overload.cpu_degraded,
            "overload.cpu_unhealthy",
            f"{policy.overload.cpu_unhealthy} is lower than cpu_degraded ({policy.overload.cpu_degraded})",
        ),
        (
            policy.overload.memory_unhealthy_mb >= policy.overload.memory_degraded_mb,
            "overload.memory_unhealthy_mb",
            f"{policy.overload.memory_unhealthy_mb} is lower than memory_degraded_mb "
            f"({policy.overload.memory_degraded_mb})",
        ),
        (bool(r.backoff), "respawn.backoff", "needs at least one wait"),
        (
            sum(r.backoff) <= HOUR,
            "respawn.backoff",
            f"{list(r.backoff)} s are together longer than the hour that per_hour_max counts over",
        ),
        (
            policy.claim.lease > s.interval,
            "claim.lease",
            f"{policy.claim.lease} s is not longer than the interval of {s.interval} s",
        ),
        (
            policy.message.urgent <= policy.message.high <= policy.message.normal <= policy.message.low,
            "message.urgent",
            "deadlines must not shrink from urgent to low",
        ),
    ]
    relations += [
        (value <= most, key, f"{value} is more than {most}, and would be remembered for every agent")
        for key, value, most in (
            ("erring.rate_window", policy.erring.rate_window, 1000),
            ("looping.recent_window", lo.recent_window, 1000),
            ("looping.cycle_length_max", lo.cycle_length_max, 32),
            ("looping.cycle_conclusive", lo.cycle_conclusive, 100),
            ("respawn.chain_max", r.chain_max, 1000),
            ("message.open_max", policy.message.open_max, 100_000),
        )
    ]
    for name, breaker in (("breaker", policy.breaker), *policy.breakers.items()):
        key = name if name == "breaker" else f"breakers.{name}"
        relations += [
            (breaker.failure_threshold >= 1, f"{key}.failure_threshold", "must be at least 1"),
            (breaker.half_open_requests >= 1, f"{key}.half_open_requests", "must be at least 1"),
            (breaker.backoff_factor >= 1, f"{key}.backoff_factor", "must be at least 1"),
            (breaker.recovery_timeout > 0, f"{key}.recovery_timeout", "must be greater than 0"),
            (breaker.half_open_wait_max > 0, f"{key}.half_open_wait_max", "must be greater than 0"),
            (breaker.window_calls >= 1, f"{key}.window_calls", "must be at least 1"),
            (_is_rate(breaker.failure_rate), f"{key}.failure_rate", "must be between 0 and 1"),
            (_is_rate(breaker.slow_rate), f"{key}.slow_rate", "must be between 0 and 1"),
        ]
    for holds, key, detail in relations:
        if not holds:
            raise PolicyError(key, detail)


def _is_rate(value: float | None) -> bool:
    return value is None or 0 < value <= 1


def _replaced(value: Any, changes: Mapping[str, Any], path: str) -> Any:
    """A copy of a frozen dataclass with nested changes; unknown keys and wrong types are named."""
    if not isinstance(changes, Mapping):
        raise PolicyError(path.rstrip("."), f"needs named values, not {changes!r}")
    known = {f.name: f.default is None for f in fields(value) if f.init}
    made: dict[str, Any] = {}
    for name, change in changes.items():
        key = f"{path}{name}"
        if name not in known:
            raise PolicyError(key, f"is unknown; known are {', '.join(sorted(known))}")
        optional = known[name] and change is None
        made[name] = None if optional else _changed(getattr(value, name), change, key)
    return replace(value, **made)


def _changed(old: Any, new: Any, key: str) -> Any:
    if is_dataclass(old):
        return _replaced(old, new, f"{key}.")
    if isinstance(old, Mapping):
        if not isinstance(new, Mapping):
            raise PolicyError(key, f"needs named values, not {new!r}")
        changed = {
            name: _replaced(old.get(name, BreakerPolicy()), part, f"{key}.{name}.")
            for name, part in new.items()
        }
        return {**old, **changed}
    if isinstance(old, bool):
        if not isinstance(new, bool):
            raise PolicyError(key, f"needs true or false, not {new!r}")
    elif isinstance(old, tuple):
        return _changed_list(old, new, key)
    elif isinstance(new, bool) or not isinstance(new, int | float):
        raise PolicyError(key, f"needs a number, not {new!r}")
    elif isinstance(old, int) and isinstance(new, float):
        if not new.is_integer():
            raise PolicyError(key, f"needs a whole number, not {new!r}")
        return int(new)
    else:
        _check_number(key, new)
    return new


def _changed_list(old: tuple[Any, ...], new: Any, key: str) -> tuple[Any, ...]:
    if not isinstance(new, list | tuple):
        raise PolicyError(key, f"needs a list, not {new!r}")
    words = not old or isinstance(old[0], str)  # The only list that may be empty is one of words.
    kind = str if words else int | float
    for item in new:
        if isinstance(item, bool) or not isinstance(item, kind):
            raise PolicyError(key, f"needs a list of {'words' if words else 'numbers'}, not {new!r}")
    return tuple(new)
