"""Spending: caps that really stop, and a spike against the agent's own habits.

Caps are the user's word: the soft part of one warns, reaching it is conclusive. The spike is a one-sided
CUSUM over tokens per minute in units of the agent's own standard deviation: it notices a lasting change
quickly and forgets a single burst. It is weak evidence, and a change of pace is none: more tool calls explain more
tokens, a new task has habits of its own, waiting shows no pace of work, and what has lasted for an hour is a habit.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import sqrt
from typing import Final

from lifesigns.core.agent import Spending
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import HOUR, MINUTE, SpendingPolicy
from lifesigns.core.words import duration

FORGET: Final = 1 / 60
"""The weight of a new minute in the baseline: it follows the agent's habits over about an hour."""

SPREAD_MIN: Final = 1.0
"""The baseline's spread is taken as at least this part of its mean: to use twice as much as usual is not far more."""

STEP_MAX: Final = 4.0
"""The most one minute may add to the sum, in standard deviations: a spike has to last."""

CALLS_MIN: Final = 0.5
"""Tool calls a minute: who usually made fewer is taken to have made so many, else its first one would explain anything."""


def spend(
    spending: Spending,
    tokens: int,
    cost: float,
    policy: SpendingPolicy,
    now: float,
    calls: int,
    *,
    waits: bool = False,
) -> None:
    """The agent used some more; `calls` is how many tool calls its life has seen, `waits` whether the last ones brought
    nothing new."""
    _turn_hour(spending, now)
    _turn_minute(spending, policy, now, calls, waits=waits)
    _add(spending, tokens, cost)


def spend_unnoticed(spending: Spending, tokens: int, cost: float, policy: SpendingPolicy, now: float) -> bool:
    """As `spend`, if `examine` has nothing new to say after it: no minute or hour is over, and no cap is near. Else nothing.

    Most beats of an agent at work carry totals, and for most of them this is so.
    """
    if not spending.minute_at or now - spending.minute_at >= MINUTE or now - spending.hour_at >= HOUR:
        return False
    for _, used, cap, unit in _caps(spending, policy) if _has_caps(policy) else ():
        if used + (tokens if unit == "tokens" else cost) >= policy.soft * cap:
            return False
    if tokens or cost:
        _add(spending, tokens, cost)
    return True


def _add(spending: Spending, tokens: int, cost: float) -> None:
    spending.tokens += tokens
    spending.cost += cost
    spending.task_tokens += tokens
    spending.task_cost += cost
    spending.hour_tokens += tokens
    spending.hour_cost += cost
    spending.minute_tokens += tokens


def take_over(spending: Spending, tokens: int, cost: float) -> None:
    """What was used before we listened: a part of its totals, but of no hour and of no habit."""
    spending.tokens += tokens
    spending.cost += cost
    spending.task_tokens += tokens
    spending.task_cost += cost


def new_task(spending: Spending) -> None:
    """A new task has its own budget, and its own pace."""
    spending.task_tokens, spending.task_cost = 0, 0.0
    _unlearn(spending)


def _unlearn(spending: Spending) -> None:
    spending.samples = 0
    spending.mean = spending.variance = spending.calls_mean = spending.drift = 0.0


def examine(spending: Spending, policy: SpendingPolicy, now: float) -> Finding | None:
    """The worst there is to say about this agent's spending."""
    warning = None
    for name, used, cap, unit in _caps(spending, policy) if _has_caps(policy) else ():
        if used >= cap:
            return _cap_finding(name, used, cap, unit, now, reached=True)
        if used >= policy.soft * cap:
            warning = warning or _cap_finding(name, used, cap, unit, now, reached=False)
    if warning is None and spending.drift > policy.spike_limit:
        text = (
            f"Uses far more tokens than it used to ({spending.mean:.0f} a minute) "
            f"for {duration(now - spending.drift_since)}."
        )
        numbers = {"baseline_per_min": round(spending.mean, 1), "drift": round(spending.drift, 2)}
        return Finding(Kind.SPENDING, spending.drift_since, Severity.DEGRADED, text, numbers)
    return warning


def _caps(s: Spending, p: SpendingPolicy) -> Iterator[tuple[str, float, float, str]]:
    caps = (
        ("this agent", s.tokens, p.tokens_max, "tokens"),
        ("this agent", s.cost, p.cost_max, "USD"),
        ("this task", s.task_tokens, p.task_tokens_max, "tokens"),
        ("this task", s.task_cost, p.task_cost_max, "USD"),
        ("this hour", s.hour_tokens, p.hour_tokens_max, "tokens"),
        ("this hour", s.hour_cost, p.hour_cost_max, "USD"),
    )
    for name, used, cap, unit in caps:
        if cap is not None:
            yield name, used, cap, unit


def _has_caps(p: SpendingPolicy) -> bool:
    return not (
        p.tokens_max is p.task_tokens_max is p.hour_tokens_max is None
        and p.cost_max is p.task_cost_max is p.hour_cost_max is None
    )


def _cap_finding(name: str, used: float, cap: float, unit: str, now: float, *, reached: bool) -> Finding:
    text = f"Used {used:g} of the {cap:g} {unit} allowed for {name}."
    return Finding(
        Kind.SPENDING,
        now,
        Severity.FAILING if reached else Severity.DEGRADED,
        text,
        {"used": used, "cap": cap, "unit": unit},
        conclusive=reached,
    )


def _turn_hour(spending: Spending, now: float) -> None:
    if not spending.hour_at or now - spending.hour_at >= HOUR:
        spending.hour_at = now
        spending.hour_tokens, spending.hour_cost = 0, 0.0


def _turn_minute(spending: Spending, policy: SpendingPolicy, now: float, calls: int, *, waits: bool) -> None:
    """Close the minutes that are over. Quiet minutes count, but no more than the baseline's memory."""
    if not spending.minute_at:
        spending.minute_at, spending.calls = now, calls
        return
    over = int((now - spending.minute_at) // MINUTE)
    if not over:
        return
    made = max(0, calls - spending.calls) / over
    _sample(spending, float(spending.minute_tokens), made, policy, now, waits=waits)
    for _ in range(min(over - 1, 60)):
        spending.drift = max(0.0, spending.drift - policy.spike_slack)
    spending.minute_tokens, spending.calls = 0, calls
    spending.minute_at += over * MINUTE


def _sample(
    spending: Spending, tokens: float, calls: float, policy: SpendingPolicy, now: float, *, waits: bool
) -> None:
    """One minute in which tokens were used: first judged by the baseline, then part of it, unless the agent only waited:
    who looks whether a job is done would seem to run away when it goes back to work."""
    if spending.samples >= policy.spike_min_samples:
        usual = spending.mean * max(1.0, calls / max(spending.calls_mean, CALLS_MIN))
        spread = max(sqrt(spending.variance), SPREAD_MIN * spending.mean, 1.0)
        step = min((tokens - usual) / spread - policy.spike_slack, STEP_MAX)
        if spending.drift <= 0.0 < step:
            spending.drift_since = now
        spending.drift = min(max(0.0, spending.drift + step), 2 * policy.spike_limit)
        if spending.drift > policy.spike_limit:
            if now - spending.drift_since < HOUR:
                return  # A runaway must not become its own baseline; a new pace must.
            _unlearn(spending)
    if waits:
        return
    spending.samples += 1
    weight = max(1 / spending.samples, FORGET)
    change = tokens - spending.mean
    spending.mean += weight * change
    spending.variance = (1 - weight) * (spending.variance + weight * change * change)
    spending.calls_mean += weight * (calls - spending.calls_mean)
