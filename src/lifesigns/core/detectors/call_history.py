"""The last calls of an agent: what the rules of `looping.py` look at.

Two calls are the same if tool, arguments and outcome are the same; the outcome is the result, or the error. What we do
not know is no evidence: a call without an `args_digest` equals no other. Work between two equal calls explains them: a
call is barren only if nothing new succeeded since it came before.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from msgspec import Struct

from lifesigns.core.digests import digest, fingerprint
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ToolFinished

NAME_MAX: Final = 64
"""Longest name or digest kept as it is: a sha256 in hex. Longer ones are hashed, so the tape is bounded."""

NO_ARGS: Final = digest(None, exact=True)
"""The arguments of a call whose author named none."""

BACKLOG: Final = 10.0
"""For so long after its return, or after its first word, an agent may send reports that it could not send before."""

GAP: Final = "\x1f"
ERROR: Final = "!"
UNKNOWN: Final = "?"

NEW: Final = 1
BARREN: Final = 2
"""Marks of a call: it did something new, or repeats another with nothing new in between."""


@dataclass(slots=True)
class CallHistory:
    """What is remembered of one agent's calls. Bounded by the policy; plain values, because it is stored.

    `matched[n - 1]` counts the calls in a row that were the same as the call `n` before them, so a
    period of `n` has been seen `(matched + n) // n` times; `started` says when its first call ended.
    """

    rkeys: list[str] = field(default_factory=list)
    """Tool, arguments and outcome of the last calls; "" where they cannot be compared."""
    times: list[float] = field(default_factory=list)
    matched: list[int] = field(default_factory=list)
    started: list[float] = field(default_factory=list)
    key: str = ""
    key_run: int = 0
    key_since: float = 0.0
    often: str = ""
    """The rkey that fills the recent window, while one does."""
    often_since: float = 0.0
    polling_since: float | None = None
    polled_at: float | None = None
    slept_for: float = 0.0
    marks: list[int] = field(default_factory=list)
    failing: str = ""
    """The rkey of the error that comes again and again, while one does."""
    poll_at: float | None = None
    """When a polling tool was last called, and `model_s` then."""
    poll_model_s: float = 0.0
    tight_since: float | None = None
    """Since when polls come without a wait."""
    model_s: float = 0.0
    """How long model calls took, all together; `model_until`: up to when they are counted."""
    model_until: float = 0.0
    model_known: bool = False
    """Whether begin and end of model calls are told at all."""
    model_at: list[float] = field(default_factory=list)
    """`model_s` at the time of each call."""
    talk: int = 0
    """Model calls in a row since something was last done."""
    talk_since: float = 0.0
    talked_at: float = 0.0
    talk_model_s: float = 0.0
    """`model_s` when the first of them was over."""
    acts: bool = False
    """Whether tool calls were ever told in this life: only then are they missed."""
    took: list[float] = field(default_factory=list)
    """How many seconds each of the last calls took; 0 if nobody said."""
    backlog_until: float = 0.0
    """Up to when what is heard may have waited for us or for the agent's link: nobody knows the time between such calls."""


class PastCall(Struct, frozen=True):
    """A call as the tape has it: names and digests, no contents. All but the moment are empty where it cannot be compared."""

    at: float
    tool: str
    args: str
    outcome: str
    failed: bool
    took_s: float


def past_calls(history: CallHistory) -> Iterator[PastCall]:
    """The calls on a tape, oldest first."""
    untold = len(history.times) - len(history.took)
    for at, rkey, took in zip(history.times, history.rkeys, [0.0] * untold + history.took, strict=True):
        if rkey:
            tool, args, outcome = rkey.split(GAP)
            told = "" if outcome == UNKNOWN else outcome.removeprefix(ERROR)
            yield PastCall(at, tool, args, told, outcome.startswith(ERROR), took)
        else:
            yield PastCall(at, "", "", "", failed=False, took_s=took)


def keys_of(call: ToolFinished) -> tuple[str, str]:
    """Tool and arguments; and the outcome too. Empty where they cannot be compared."""
    outcome = _outcome(call)
    told = call.args_digest and (outcome != UNKNOWN or call.args_digest != NO_ARGS)
    key = f"{_short(call.tool)}{GAP}{_short(call.args_digest)}" if told else ""
    return key, f"{key}{GAP}{outcome}" if key else ""


def record(history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> None:
    """A call that counts: the next on the tape, with the runs and periods it continues or ends."""
    key, rkey = keys_of(call)
    if key and key == history.key:
        history.key_run += 1
    else:
        history.key, history.key_run, history.key_since = key, 1, now
    fill_in(history)
    seen = rkey in history.rkeys if rkey else False
    mark = _mark(history, call, rkey, seen)
    _follow_periods(history, rkey if seen else "", max(1, policy.cycle_length_max))
    _append(history, rkey, mark, call, policy, now)
    again = rkey if mark == BARREN and outcome_known(rkey) else ""
    if again or history.often:
        _follow_often(history, again, policy)
    if again or history.failing:
        _follow_failing(history, again if not call.ok else "", policy)


def take_turn(history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> None:
    """A call that does not count takes its turn in a cycle that has begun: without it the next one would be out of turn."""
    key, rkey = keys_of(call)
    takes_turn = [
        matched > 0 and rkey != "" and history.rkeys[-1 - i] == rkey
        for i, matched in enumerate(history.matched[: len(history.rkeys)])
    ]
    if not any(takes_turn) or takes_turn[0]:
        return
    fill_in(history)
    history.matched = [
        matched if i < len(takes_turn) and takes_turn[i] else 0 for i, matched in enumerate(history.matched)
    ]
    history.key, history.key_run, history.key_since = key, 1, now
    _append(history, rkey, 0, call, policy, max(now, history.times[-1]))
    _follow_often(history, "", policy)
    _follow_failing(history, "", policy)


def fill_in(history: CallHistory) -> None:
    """A tape that an older version stored has no marks, no model times, and does not say how long its calls took."""
    missing = len(history.rkeys) - len(history.marks)
    if missing > 0:
        history.marks[:0], history.model_at[:0] = [0] * missing, [0.0] * missing
    if (untold := len(history.rkeys) - len(history.took)) > 0:
        history.took[:0] = [0.0] * untold


def outcome_known(rkey: str) -> bool:
    """Whether its outcome is known."""
    return not rkey.endswith(GAP + UNKNOWN)


def brought_nothing_new(history: CallHistory) -> bool:
    """Whether the last call was a poll, or the same as the one before it with the same outcome."""
    return history.polling_since is not None or history.matched[:1] > [0]


def barren_repeats(history: CallHistory, rkey: str, window: int = 0) -> int:
    """How often a call is among the last ones without anything new in between; the first time counts."""
    marks = [m for r, m in zip(history.rkeys[-window:], history.marks[-window:], strict=True) if r == rkey]
    return 1 + marks[1:].count(BARREN) if marks else 0


def _append(
    history: CallHistory, rkey: str, mark: int, call: ToolFinished, policy: LoopingPolicy, now: float
) -> None:
    history.rkeys.append(rkey)
    history.times.append(now)
    history.marks.append(mark)
    history.model_at.append(history.model_s)
    history.took.append(call.duration_s or 0.0)
    excess = len(history.rkeys) - max(policy.recent_window, policy.cycle_length_max, 1)
    if excess > 0:
        del (
            history.rkeys[:excess],
            history.times[:excess],
            history.marks[:excess],
            history.model_at[:excess],
            history.took[:excess],
        )


def _mark(history: CallHistory, call: ToolFinished, rkey: str, seen: bool) -> int:
    if not seen:
        return NEW if call.ok else 0
    for before, mark in zip(reversed(history.rkeys), reversed(history.marks), strict=True):
        if before == rkey:
            break
        if mark == NEW:
            return 0
    return BARREN


def _outcome(call: ToolFinished) -> str:
    if call.ok:
        return _short(call.result_digest) or UNKNOWN
    known = call.error or call.error_kind or call.result_digest
    return ERROR + digest([call.error_kind, call.error or call.result_digest]) if known else UNKNOWN


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX and GAP not in name else fingerprint(name)


def _follow_periods(history: CallHistory, rkey: str, periods: int) -> None:
    """Compare with the calls 1, 2 ... `periods` before; "" is like none of them."""
    if len(history.matched) != periods:
        history.matched, history.started = [0] * periods, [0.0] * periods
    matched = history.matched
    if not rkey:
        if any(matched):
            history.matched = [0] * periods
        return
    rkeys = history.rkeys
    for i in range(min(periods, len(rkeys))):
        if rkeys[-1 - i] != rkey:
            matched[i] = 0
            continue
        if not matched[i]:
            history.started[i] = history.times[-1 - i]
        matched[i] += 1


def _follow_often(history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    """Keep the culprit of `recent` for as long as it fills the window, so that it does not flap; one that is stuck takes its place."""
    culprit, enough, stuck = history.often, policy.recent_notice, policy.recent_stuck
    repeats = barren_repeats(history, culprit or rkey)
    if not culprit:
        found = rkey if repeats >= enough else ""
    elif repeats >= stuck:
        return
    else:
        found = _repeated(history, stuck) or (culprit if repeats >= enough else _repeated(history, enough))
    if found != culprit:
        history.often = found
        history.often_since = history.times[history.rkeys.index(found)] if found else 0.0


def _repeated(history: CallHistory, enough: int) -> str:
    """The first call that repeats so often without anything new in between."""
    calls = dict.fromkeys(history.rkeys)
    return next(
        (rkey for rkey in calls if outcome_known(rkey) and barren_repeats(history, rkey) >= enough), ""
    )


def _follow_failing(history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    enough, window = policy.failing_notice, policy.failing_window
    if history.failing and barren_repeats(history, history.failing, window) < enough:
        history.failing = ""
    if not history.failing and rkey and barren_repeats(history, rkey, window) >= enough:
        history.failing = rkey
