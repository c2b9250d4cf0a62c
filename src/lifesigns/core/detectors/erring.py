"""Erring: too many of an agent's calls fail.

Infrastructure errors (a rate limit, a server's 5xx) count towards the rate, but not towards failures in a row: the
agent did not cause them, and a restart does not fix them. But when they last for half an hour, the agent is failing
and the engine asks people (`judgement.py` ends no agent for it). The same holds for a breaker that stays tripped while
nothing succeeds: the world fails, and the agent waits for it.
"""

from __future__ import annotations

from collections.abc import Iterable

from lifesigns.core.agent import Outcomes
from lifesigns.core.detectors.error_kinds import is_infrastructure
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import ErringPolicy
from lifesigns.core.signals import BreakerState
from lifesigns.core.words import duration


def succeeded(outcomes: Outcomes, policy: ErringPolicy, now: float) -> None:
    """A call succeeded. If a breaker is tripped all the same, that concerns something else."""
    _push(outcomes, 0, policy)
    outcomes.consecutive = outcomes.world_run = 0
    outcomes.tripped_at = None if outcomes.tripped_at is None else now
    outcomes.unrecoverable = ""


def failed(outcomes: Outcomes, what: str, error_kind: str | None, policy: ErringPolicy, now: float) -> None:
    """A call failed."""
    _push(outcomes, 1, policy)
    outcomes.last = what
    if is_infrastructure(error_kind):
        outcomes.world_since = outcomes.world_since if outcomes.world_run else now
        outcomes.world_run += 1
        return
    if not outcomes.consecutive:
        outcomes.since = now
    outcomes.consecutive += 1


def tripped(outcomes: Outcomes, states: Iterable[BreakerState], now: float) -> None:
    """One of its breakers turned. A half-open one is still tripped: it only tries whether it may close."""
    states = tuple(states)
    outcomes.breaker_open = BreakerState.OPEN in states
    if all(state is BreakerState.CLOSED for state in states):
        outcomes.tripped_at = None
    elif outcomes.tripped_at is None:
        outcomes.tripped_at = now


def gave_up(outcomes: Outcomes, message: str, now: float) -> None:
    """The agent itself says that it cannot continue."""
    outcomes.heard += 1
    outcomes.unrecoverable = message
    outcomes.since = now


def examine(outcomes: Outcomes, policy: ErringPolicy, now: float) -> Finding | None:
    """The finding in the outcomes of the last calls."""
    failures = outcomes.bits.bit_count()
    rate = failures / outcomes.count if outcomes.count else 0.0
    numbers = {"consecutive": float(outcomes.consecutive), "rate": round(rate, 3)}
    in_a_row = outcomes.consecutive > policy.consecutive_max
    if in_a_row or outcomes.unrecoverable:
        if outcomes.unrecoverable:
            text = f"Reported an error it cannot recover from: {outcomes.unrecoverable}"
        else:
            text = f"{outcomes.consecutive} calls in a row failed, the last with: {outcomes.last}"
        conclusive = in_a_row and outcomes.breaker_open
        text += " The breaker is open." if conclusive else ""
        return Finding(Kind.ERRORS, outcomes.since, Severity.FAILING, text, numbers, conclusive)
    lasted = now - outcomes.world_since
    if outcomes.world_run > policy.consecutive_max and lasted >= policy.infrastructure_for:
        text = f"No call has succeeded for {duration(lasted)}, the last failed with: {outcomes.last}"
        numbers |= {"world_run": float(outcomes.world_run)}
        return Finding(Kind.ERRORS, outcomes.world_since, Severity.FAILING, text, numbers)
    if outcomes.tripped_at is not None and now - outcomes.tripped_at >= policy.breaker_for:
        text = f"A breaker has been tripped for {duration(now - outcomes.tripped_at)}, and no call has succeeded since."
        return Finding(Kind.ERRORS, outcomes.tripped_at, Severity.FAILING, text, {**numbers, "tripped": 1.0})
    if outcomes.count >= policy.rate_min_calls and rate > policy.rate_max:
        text = f"{failures} of the last {outcomes.count} calls failed."
        return Finding(Kind.ERRORS, now, Severity.DEGRADED, text, numbers)
    return None


def _push(outcomes: Outcomes, bit: int, policy: ErringPolicy) -> None:
    mask = (1 << policy.rate_window) - 1
    outcomes.bits = (outcomes.bits << 1 | bit) & mask
    outcomes.count = min(outcomes.count + 1, policy.rate_window)
