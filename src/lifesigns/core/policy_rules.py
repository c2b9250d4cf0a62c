"""The rules of a policy: numbers that are numbers, and relations without which it could not work.

Each rule has a condition, the key that is wrong if it does not hold, and a sentence with both numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from lifesigns.core import templates
from lifesigns.errors import PolicyError

if TYPE_CHECKING:
    from lifesigns.core.policy import BreakerPolicy, LoopingPolicy, Policy, SilencePolicy

NUMBER_MAX: Final = 1e15
"""No clock counts further, and sums and products of smaller numbers stay finite."""

_NO_NUMBERS: Final = (bool, str, type(None))

Rule = tuple[bool, str, str]


def check(policy: Policy) -> None:
    """Raises a `PolicyError` for the first rule that is broken."""
    for section, values in _sections(policy):
        check_numbers(section, values)
    for holds, key, detail in _rules(policy):
        if not holds:
            raise PolicyError(key, detail)


def check_numbers(section: str, values: Any) -> None:
    """Every number of a section is usable."""
    for name in values.__struct_fields__:
        value = getattr(values, name)
        for number in value if isinstance(value, tuple) else (value,):
            if not isinstance(number, _NO_NUMBERS) and not 0 <= number <= NUMBER_MAX:
                check_number(f"{section}.{name}", number)


def check_number(key: str, number: float) -> None:
    """Neither negative nor absurdly large."""
    if number > NUMBER_MAX:
        raise PolicyError(key, f"is larger than {NUMBER_MAX:g}")
    if not number >= 0:
        raise PolicyError(key, f"{number} is not a number >= 0")


def _sections(policy: Policy) -> Iterator[tuple[str, Any]]:
    for section in policy.__struct_fields__:
        value = getattr(policy, section)
        if isinstance(value, Mapping):
            yield from ((f"{section}.{name}", part) for name, part in value.items())
        else:
            yield section, value


def _rules(policy: Policy) -> Iterator[Rule]:
    yield from _silence(policy.silence)
    yield from _at_least_once(policy)
    yield from _signs_of_work(policy)
    yield from _looping(policy.looping)
    yield from _shares_and_loads(policy)
    yield from _what_follows(policy)
    yield from _remembered(policy)
    yield from _breaker("breaker", policy.breaker)
    for name, breaker in policy.breakers.items():
        yield from _breaker(f"breakers.{name}", breaker)


def _silence(s: SilencePolicy) -> Iterator[Rule]:
    yield s.interval > 0, "silence.interval", "must be greater than 0"
    shorter = f"{s.timeout} s is not longer than the interval of {s.interval} s"
    yield s.timeout > s.interval, "silence.timeout", shorter
    yield s.missed_max >= 1, "silence.missed_max", "must be at least 1"
    yield s.pings >= 1, "silence.pings", "must be at least 1: nobody is convicted unasked"
    no_room = (
        f"{s.pings} pings of {s.ping_wait} s leave no time for a beat every {s.interval} s "
        f"within the timeout of {s.timeout} s"
    )
    yield s.suspect_after > s.interval, "silence.ping_wait", no_room
    faster, slower = s.unwell_factor, s.calm_factor
    yield 0.1 <= faster <= 1, "silence.unwell_factor", f"{faster} is not between 0.1 and 1"
    yield 1 <= slower <= 10, "silence.calm_factor", f"{slower} is not between 1 and 10"
    rate = s.false_suspicion_rate
    yield 0 < rate < 1, "silence.false_suspicion_rate", f"{rate} is not between 0 and 1"


def _signs_of_work(policy: Policy) -> Iterator[Rule]:
    freeze, stall = policy.freeze, policy.stall
    yield _not_below(
        "freeze", "conclusive_after", freeze.conclusive_after, "freeze.after", freeze.after, " s", "shorter"
    )
    yield _not_below(
        "stall",
        "checkpoint_stuck_after",
        stall.checkpoint_stuck_after,
        "checkpoint_degraded_after",
        stall.checkpoint_degraded_after,
        " s",
        "shorter",
    )
    yield _not_below("stall", "spin_cpu", stall.spin_cpu, "idle_cpu", stall.idle_cpu)


def _at_least_once(policy: Policy) -> Iterator[Rule]:
    for key, factor in (
        ("silence.busy_factor", policy.silence.busy_factor),
        ("task.overdue_factor", policy.task.overdue_factor),
    ):
        yield factor >= 1, key, f"{factor} is not a number >= 1"


def _looping(lo: LoopingPolicy) -> Iterator[Rule]:
    for key, rising in (
        ("same_notice", (lo.same_notice, lo.same_stuck, lo.same_conclusive)),
        ("error_notice", (lo.error_notice, lo.error_stuck, lo.error_conclusive)),
        ("cycle_notice", (lo.cycle_notice, lo.cycle_conclusive)),
        ("changing_notice", (lo.changing_notice, lo.changing_human)),
    ):
        shown = "/".join(map(str, rising))
        yield (
            rising[0] > 1 and list(rising) == sorted(rising),
            f"looping.{key}",
            f"{shown} do not rise from 2",
        )
    for key, value in (("unknown_notice", lo.unknown_notice), ("talk_notice", lo.talk_notice)):
        yield value > 1, f"looping.{key}", f"{value} is not at least 2"
    for key, value, window in (
        ("recent_notice", lo.recent_notice, lo.recent_window),
        ("failing_notice", lo.failing_notice, lo.failing_window),
    ):
        yield 1 < value <= window, f"looping.{key}", f"{value} does not fit into the window of {window}"
    yield _not_below("looping", "recent_stuck", lo.recent_stuck, "recent_notice", lo.recent_notice)
    yield _not_below("looping", "recent_window", lo.recent_window, "failing_window", lo.failing_window)
    share = lo.wait_model_share
    yield 0 < share <= 1, "looping.wait_model_share", f"{share} is not between 0 and 1"


def _shares_and_loads(policy: Policy) -> Iterator[Rule]:
    rate, soft, load = policy.erring.rate_max, policy.spending.soft, policy.overload
    yield 0 < rate <= 1, "erring.rate_max", f"{rate} is not a rate between 0 and 1"
    full, calls = policy.erring.context_full, policy.erring.context_calls
    yield 0 < full <= 1, "erring.context_full", f"{full} is not a part between 0 and 1"
    yield calls > 1, "erring.context_calls", f"{calls} is not at least 2"
    yield 0 < soft <= 1, "spending.soft", f"{soft} is not between 0 and 1"
    share = policy.forecast.memory_from
    yield 0 < share <= 1, "forecast.memory_from", f"{share} is not a part between 0 and 1"
    yield policy.forecast.window > 0, "forecast.window", "must be greater than 0"
    yield _not_below("overload", "cpu_unhealthy", load.cpu_unhealthy, "cpu_degraded", load.cpu_degraded)
    yield _not_below(
        "overload",
        "memory_unhealthy_mb",
        load.memory_unhealthy_mb,
        "memory_degraded_mb",
        load.memory_degraded_mb,
    )


def _what_follows(policy: Policy) -> Iterator[Rule]:
    backoff, lease, interval = policy.respawn.backoff, policy.claim.lease, policy.silence.interval
    yield bool(backoff), "respawn.backoff", "needs at least one wait"
    too_long = f"{list(backoff)} s are together longer than the hour that per_hour_max counts over"
    yield sum(backoff) <= 3600, "respawn.backoff", too_long
    wrong = templates.fault(policy.ladder.nudge_template, templates.NUDGE_FACTS)
    yield not wrong, "ladder.nudge_template", wrong
    yield lease > interval, "claim.lease", f"{lease} s is not longer than the interval of {interval} s"
    m = policy.message
    rising = m.urgent <= m.high <= m.normal <= m.low
    yield rising, "message.urgent", "deadlines must not shrink from urgent to low"


def _remembered(policy: Policy) -> Iterator[Rule]:
    for key, value, most in (
        ("erring.rate_window", policy.erring.rate_window, 1000),
        ("looping.recent_window", policy.looping.recent_window, 1000),
        ("looping.cycle_length_max", policy.looping.cycle_length_max, 32),
        ("looping.cycle_conclusive", policy.looping.cycle_conclusive, 100),
        ("respawn.chain_max", policy.respawn.chain_max, 1000),
        ("message.open_max", policy.message.open_max, 100_000),
    ):
        yield value <= most, key, f"{value} is more than {most}, and would be remembered for every agent"


def _breaker(key: str, breaker: BreakerPolicy) -> Iterator[Rule]:
    yield breaker.failure_threshold >= 1, f"{key}.failure_threshold", "must be at least 1"
    yield breaker.half_open_requests >= 1, f"{key}.half_open_requests", "must be at least 1"
    yield breaker.backoff_factor >= 1, f"{key}.backoff_factor", "must be at least 1"
    yield breaker.recovery_timeout > 0, f"{key}.recovery_timeout", "must be greater than 0"
    yield breaker.half_open_wait_max > 0, f"{key}.half_open_wait_max", "must be greater than 0"
    yield breaker.window_calls >= 1, f"{key}.window_calls", "must be at least 1"
    yield _is_rate(breaker.failure_rate), f"{key}.failure_rate", "must be between 0 and 1"
    yield _is_rate(breaker.slow_rate), f"{key}.slow_rate", "must be between 0 and 1"


def _not_below(
    section: str, key: str, value: float, than: str, least: float, unit: str = "", word: str = "lower"
) -> Rule:
    return value >= least, f"{section}.{key}", f"{value}{unit} is {word} than {than} ({least}{unit})"


def _is_rate(value: float | None) -> bool:
    return value is None or 0 < value <= 1
