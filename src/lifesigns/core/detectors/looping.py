"""Looping: the same thing over and over.

Two calls are the same if tool, arguments and outcome are the same; the outcome is the result, or the
error. Five rules, the worst that holds is the finding:

    same      the same call and outcome in a row               4 degraded · 8 stuck · 12 conclusive
    error     ... and the outcome is an error                  3 degraded · 5 stuck ·  8 conclusive
    cycle     2-5 calls that repeat with their outcomes        3 degraded ·           5 conclusive
    changing  the same arguments in a row, other outcomes     20 degraded · 60 stuck, people decide
    recent    the same call and outcome among the last 30      6 degraded

Laws:
- Other arguments are another call. Batch work (one tool, other arguments, always "ok") is never a loop;
  therefore the door digests arguments `exact`, and only results and errors without their volatile parts.
- What we do not know is no evidence. A call without an `args_digest` equals no other call; one without an
  outcome counts for `changing` only. Both end a run: something else may have happened there.
- Infrastructure errors and declared retries do not count: they neither extend nor end a run.
- A declared polling tool is left out in the same way until its wait budget is over. A loop with such a
  wait inside may be polling by other means: for as long as that budget it is `degraded`, no more.
- Only another call ends a run. Approvals, pauses and the time between calls do not.
- `recent` counts outcomes too: the same test after every edit is work as long as it ends differently,
  and counting arguments alone would speak at 6 where `changing` is to speak at 20.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Final

from lifesigns.core.digests import digest, fingerprint
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import LoopingPolicy
from lifesigns.core.signals import ToolFinished

INFRASTRUCTURE: Final = frozenset(
    "ratelimit ratelimited toomanyrequests 429 408 425 overloaded 5xx server internalserver api "
    "badgateway serviceunavailable unavailable gatewaytimeout deadlineexceeded timeout timedout "
    "apitimeout requesttimeout connecttimeout readtimeout connection apiconnection "
    "connectionreset connectionrefused connect network dns".split()
)
"""Kinds of error that are the world's fault, as `is_infrastructure` spells them."""

NAME_MAX: Final = 64
"""Longest name or digest kept as it is: a sha256 in hex. Longer ones are hashed, so the tape is bounded."""

_GAP: Final = "\x1f"
_ERROR: Final = "!"

_Level = tuple[Severity, bool]
_DEGRADED: Final[_Level] = Severity.DEGRADED, False
_STUCK: Final[_Level] = Severity.STUCK, False
_CONCLUSIVE: Final[_Level] = Severity.STUCK, True


@dataclass(slots=True)
class Tape:
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


@dataclass(frozen=True, slots=True)
class Taped:
    """A call as the tape has it: names and digests, no contents. All but the moment are empty where it cannot be compared."""

    at: float
    tool: str = ""
    args: str = ""
    outcome: str = ""
    failed: bool = False


def taped(tape: Tape) -> Iterator[Taped]:
    """The calls on a tape, oldest first."""
    for at, rkey in zip(tape.times, tape.rkeys, strict=True):
        if rkey:
            tool, args, outcome = rkey.split(_GAP)
            yield Taped(at, tool, args, outcome.removeprefix(_ERROR), outcome.startswith(_ERROR))
        else:
            yield Taped(at)


def observe(
    tape: Tape, call: ToolFinished, policy: LoopingPolicy, now: float, slept_for: float = 0.0
) -> Finding | None:
    """Hear one finished call; the loop that now holds, if any.

    `slept_for` is how long we did not look since the call before: that is no part of anybody's wait budget.
    """
    tape.slept_for += slept_for
    if tape.polling_since is not None:
        tape.polling_since += slept_for
    if not _excused(tape, call, policy, now):
        _record(tape, call, policy, max(now, tape.times[-1]) if tape.times else now)
    return holding(tape, policy)


def holding(tape: Tape, policy: LoopingPolicy) -> Finding | None:
    """The worst loop on the tape. It depends on the tape alone: looking again changes nothing."""
    if tape.key_run < 2 and not tape.often and not any(tape.matched):
        return None
    found = (_same(tape, policy), _cycle(tape, policy), _changing(tape, policy))
    worst = max((f for f in found if f), key=_badness, default=None) or _recent(tape)
    return worst and _tempered(worst, tape, policy)


# --- what counts -------------------------------------------------------------------------------------


def _excused(tape: Tape, call: ToolFinished, policy: LoopingPolicy, now: float) -> bool:
    if call.retry or (not call.ok and is_infrastructure(call.error_kind)):
        return True
    if not _polls(call.tool, policy.polling_tools):
        tape.polling_since = None
        return False
    if tape.polling_since is None:
        tape.polling_since = now
    if now - tape.polling_since >= policy.polling_for:
        return False
    tape.polled_at = now
    return True


def is_infrastructure(kind: str | None) -> bool:
    """`RateLimitError`, `rate_limit`, `http_503` and the like, however they are spelled."""
    if not kind:
        return False
    name = "".join(filter(str.isalnum, kind[:NAME_MAX].lower())).removeprefix("http")
    name = name.removesuffix("exception").removesuffix("error")
    return name in INFRASTRUCTURE or (len(name) == 3 and name[0] == "5" and name.isdecimal())


_TOOLS_MAX: Final = 1024
_PATTERNS_MAX: Final = 64
_polls_memo: dict[tuple[str, ...], dict[str, bool]] = {}


def _polls(tool: str, patterns: tuple[str, ...]) -> bool:
    """Whether the tool is declared to be a polling one. Remembered: matching costs more than all else."""
    name = tool[:NAME_MAX]
    answer = _polls_memo.setdefault(patterns, {}).get(name)
    if answer is None:
        if len(_polls_memo) > _PATTERNS_MAX or len(_polls_memo[patterns]) >= _TOOLS_MAX:
            _polls_memo.clear()
        answer = any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)
        _polls_memo.setdefault(patterns, {})[name] = answer
    return answer


def _record(tape: Tape, call: ToolFinished, policy: LoopingPolicy, now: float) -> None:
    key = f"{_short(call.tool)}{_GAP}{_short(call.args_digest)}" if call.args_digest else ""
    outcome = _outcome(call) if key else ""
    rkey = f"{key}{_GAP}{outcome}" if outcome else ""
    if key and key == tape.key:
        tape.key_run += 1
    else:
        tape.key, tape.key_run, tape.key_since = key, 1, now
    seen = tape.rkeys.count(rkey) if rkey else 0
    _follow_periods(tape, rkey if seen else "", max(1, policy.cycle_length_max))
    tape.rkeys.append(rkey)
    tape.times.append(now)
    excess = len(tape.rkeys) - max(policy.recent_window, policy.cycle_length_max, 1)
    if excess > 0:
        del tape.rkeys[:excess], tape.times[:excess]
    _follow_often(tape, rkey if seen else "", policy.recent_notice)


def _outcome(call: ToolFinished) -> str:
    if call.ok:
        return _short(call.result_digest)
    known = call.error or call.error_kind or call.result_digest
    return _ERROR + digest([call.error_kind, call.error or call.result_digest]) if known else ""


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX and _GAP not in name else fingerprint(name)


def _follow_periods(tape: Tape, rkey: str, periods: int) -> None:
    """Compare with the calls 1, 2 ... `periods` before; "" is like none of them."""
    if len(tape.matched) != periods:
        tape.matched, tape.started = [0] * periods, [0.0] * periods
    matched = tape.matched
    if not rkey:
        if any(matched):
            tape.matched = [0] * periods
        return
    rkeys = tape.rkeys
    for i in range(min(periods, len(rkeys))):
        if rkeys[-1 - i] != rkey:
            matched[i] = 0
            continue
        if not matched[i]:
            tape.started[i] = tape.times[-1 - i]
        matched[i] += 1


def _follow_often(tape: Tape, rkey: str, enough: int) -> None:
    """Keep the culprit of `recent` for as long as it fills the window, so that it does not flap."""
    if tape.often and tape.rkeys.count(tape.often) < enough:
        tape.often = next((r for r in tape.rkeys if r and tape.rkeys.count(r) >= enough), "")
    elif not tape.often and rkey and tape.rkeys.count(rkey) >= enough:
        tape.often = rkey
    else:
        return
    if tape.often:
        tape.often_since = tape.times[tape.rkeys.index(tape.often)]


# --- the rules ---------------------------------------------------------------------------------------


def _same(tape: Tape, policy: LoopingPolicy) -> Finding | None:
    repeats = tape.matched[0] + 1
    if repeats < min(policy.same_notice, policy.error_notice):
        return None
    tool, _, outcome = tape.rkeys[-1].split(_GAP)
    if outcome.startswith(_ERROR):
        notice, stuck, conclusive = policy.error_notice, policy.error_stuck, policy.error_conclusive
        text = f"{tool} failed {repeats} times in a row with the same arguments and the same error"
    else:
        notice, stuck, conclusive = policy.same_notice, policy.same_stuck, policy.same_conclusive
        text = f"{tool} was called {repeats} times in a row with the same arguments and the same result"
    if repeats < notice:
        return None
    level = _level(repeats, stuck, conclusive)
    return _finding(tape, tape.started[0], text, level, repeats=repeats, period=1, tool=tool)


def _cycle(tape: Tape, policy: LoopingPolicy) -> Finding | None:
    """The shortest period that holds: it has the most repeats, its multiples say the same with fewer."""
    for period, matched in enumerate(tape.matched[1:], start=2):
        repeats = (matched + period) // period
        # Equal calls have every period; they are for `_same` to judge, by its own numbers.
        if repeats < policy.cycle_notice or tape.matched[0] >= period - 1:
            continue
        tools = ", ".join(rkey.split(_GAP)[0] for rkey in tape.rkeys[-period:])
        text = f"The same {period} calls ({tools}) came {repeats} times over with the same results"
        level = _level(repeats, policy.cycle_conclusive, policy.cycle_conclusive)
        since = tape.started[period - 1]
        return _finding(tape, since, text, level, repeats=repeats, period=period, tool=tools)
    return None


def _changing(tape: Tape, policy: LoopingPolicy) -> Finding | None:
    """Never conclusive: a result that changes may be what the agent is waiting for."""
    repeats = tape.key_run
    if repeats < policy.changing_notice:
        return None
    tool = tape.key.split(_GAP)[0]
    text = f"{tool} was called {repeats} times in a row: same arguments, other or unknown results"
    numbers: dict[str, float | str] = {"repeats": repeats, "period": 1, "tool": tool}
    if repeats < policy.changing_human:
        return _finding(tape, tape.key_since, text, _DEGRADED, **numbers)
    return _finding(tape, tape.key_since, text, _STUCK, **numbers, people=1)


def _recent(tape: Tape) -> Finding | None:
    if not tape.often:
        return None
    tool, repeats, window = tape.often.split(_GAP)[0], tape.rkeys.count(tape.often), len(tape.rkeys)
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments and outcome"
    since = tape.often_since
    return _finding(tape, since, text, _DEGRADED, repeats=repeats, window=window, tool=tool)


def _level(repeats: int, stuck: int, conclusive: int) -> _Level:
    if repeats < stuck:
        return _DEGRADED
    return _CONCLUSIVE if repeats >= conclusive else _STUCK


def _finding(tape: Tape, since: float, text: str, level: _Level, **numbers: float | str) -> Finding:
    severity, conclusive = level
    text = f"{text}, for {_lasting(tape.times[-1] - since)}."
    return Finding(Kind.LOOPING, since, severity, text, numbers, conclusive)


def _badness(finding: Finding) -> tuple[bool, bool]:
    return finding.conclusive, finding.severity is Severity.STUCK


def _tempered(finding: Finding, tape: Tape, policy: LoopingPolicy) -> Finding:
    waited = tape.polled_at is not None and finding.since < tape.polled_at
    if waited and tape.times[-1] - finding.since < policy.polling_for + tape.slept_for:
        return replace(finding, severity=Severity.DEGRADED, conclusive=False)
    return finding


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
