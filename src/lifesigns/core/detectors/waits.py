"""Waiting is not looping: which calls are excused, and how much less a loop says if its time is mostly time between calls.

In a real loop model calls fill the time between identical calls; who polls sleeps.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import Final

from msgspec.structs import replace

from lifesigns.core.detectors.call_history import NAME_MAX, CallHistory
from lifesigns.core.detectors.error_kinds import is_infrastructure
from lifesigns.core.effects import Finding, Severity
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ToolFinished

TIGHT_FOR: Final = 10.0
"""How long polls have come without a wait before that counts: what was said while we were away comes all at once."""

BACKOFF_TURNS: Final = 4
BACKOFF_GROWTH: Final = 1.5
BACKOFF_FROM: Final = 4.0
"""A backoff: so many times in a row the wait was longer by this factor, and the last one took so many seconds. Less would
be the jitter of a tight loop."""

PAUSES_MIN: Final = 3
"""Between calls: of fewer pauses the longest says as much as the others."""

_TOOLS_MAX: Final = 1024
_PATTERNS_MAX: Final = 64
_polls_memo: dict[tuple[str, ...], dict[str, bool]] = {}


def excused(history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> bool:
    """Whether this call neither extends nor ends a run: the world's fault, a declared retry, or a poll within its budget."""
    if call.retry or (not call.ok and is_infrastructure(call.error_kind)):
        return True
    if not polls(call.tool, policy.polling_tools):
        history.polling_since = None
        return False
    if history.polling_since is None:
        history.polling_since = now
    if now - history.polling_since >= policy.polling_for or _polls_without_a_wait(history, policy, now):
        return False
    history.polled_at = now
    return True


def polls(tool: str, patterns: tuple[str, ...]) -> bool:
    """Whether the tool is declared to be a polling one. Remembered: matching costs more than all else."""
    name = tool[:NAME_MAX]
    answer = _polls_memo.setdefault(patterns, {}).get(name)
    if answer is None:
        if len(_polls_memo) > _PATTERNS_MAX or len(_polls_memo[patterns]) >= _TOOLS_MAX:
            _polls_memo.clear()
        answer = any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
        _polls_memo.setdefault(patterns, {})[name] = answer
    return answer


def _polls_without_a_wait(history: CallHistory, policy: LoopingPolicy, now: float) -> bool:
    """Whether this poll came right after the one before."""
    before_at, before_model_s = history.poll_at, history.poll_model_s
    history.poll_at, history.poll_model_s = now, history.model_s
    if before_at is None:
        return False
    gap, model_s = now - before_at, history.model_s - before_model_s
    if gap >= policy.polling_gap_min and not (
        history.model_known and model_s >= policy.wait_model_share * gap
    ):
        history.tight_since = None
        return False
    if history.tight_since is None:
        history.tight_since = before_at
    return now - history.tight_since >= TIGHT_FOR


def tempered(
    finding: Finding,
    history: CallHistory,
    policy: LoopingPolicy,
    turns: int,
    calls: int,
    period: int = 1,
    after: int = 0,
) -> Finding:
    """A finding about the last `calls`, which took so many turns: no more than its waits allow. With the very last, which
    came `after` them, or without: work after a wait makes no loop of it, and neither does a wait that goes on between work."""
    if any(waits(history, policy, turns, calls, period, cut) for cut in (0, after)):
        return _waiting(finding, history, policy, turns + 1)
    polled = history.polled_at is not None and finding.since < history.polled_at
    if polled and history.times[-1] - finding.since < policy.polling_for + history.slept_for:
        return replace(finding, severity=Severity.DEGRADED, conclusive=False)
    return finding


def waits(
    history: CallHistory, policy: LoopingPolicy, turns: int, calls: int, period: int, after: int = 0
) -> bool:
    """Whether the time of these calls is mostly time between them. Only those on the tape are looked at, and the longest
    pause is left out: a rate limit, or a time in which we heard nothing, makes no wait of a loop."""
    on_tape = min(calls, len(history.times))
    turns = min(turns, max(1, (on_tape - 1) // period)) if calls > on_tape else turns
    span = slice(len(history.times) - on_tape, len(history.times) - after)
    times, model_at = history.times[span], history.model_at[span]
    lasted = times[-1] - times[0]
    if lasted < policy.wait_period_min * turns and not _backs_off(times, period):
        return False
    pauses = [(times[n] - times[n - 1], model_at[n] - model_at[n - 1]) for n in range(1, len(times))]
    model_s, share = model_at[-1] - model_at[0], policy.wait_model_share
    longest, thought = max(pauses) if len(pauses) >= PAUSES_MIN else (0.0, 0.0)
    if thought < share * longest:
        lasted, model_s = lasted - longest, model_s - thought
    return model_s < share * lasted


def _backs_off(times: Sequence[float], period: int) -> bool:
    """Whether each turn came later after the last than that after the one before."""
    last = times[::-1][::period][: BACKOFF_TURNS + 1]
    gaps = [last[i] - last[i + 1] for i in range(len(last) - 1)]
    if len(gaps) < BACKOFF_TURNS or gaps[0] < BACKOFF_FROM:
        return False
    return all(gaps[i] >= BACKOFF_GROWTH * gaps[i + 1] for i in range(len(gaps) - 1))


def _waiting(finding: Finding, history: CallHistory, policy: LoopingPolicy, repeats: int) -> Finding:
    known = history.model_known and repeats < policy.changing_human
    numbers = {**finding.numbers, "waiting": 1} | ({"people": 1} if repeats >= policy.changing_human else {})
    severity = Severity.NOTICE if known else Severity.DEGRADED
    text = f"{finding.text} Most of that time it may have waited."
    return replace(finding, severity=severity, conclusive=False, numbers=numbers, text=text)
