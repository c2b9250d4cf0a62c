"""Looping: the same thing over and over.

Two calls are the same if tool, arguments and outcome are the same; the outcome is the result, or the
error. Eight rules, the worst that holds is the finding:

    same      the same call and outcome in a row               4 degraded ·  8 stuck · 12 conclusive
    error     ... and the outcome is an error                  3 degraded ·  5 stuck ·  8 conclusive
    cycle     2-12 calls that repeat with their outcomes       3 degraded ·            5 conclusive
    unknown   either of them, with results nobody told         5 degraded
    changing  the same arguments in a row, other outcomes     20 degraded · 60 stuck, people decide
    recent    the same call and outcome among the last 30      6 degraded · 12 stuck
    failing   the same call and error among the last 10        3 degraded
    talk      model calls in a row, and nothing is done       10 degraded

Laws:
- Waiting is not looping. In a real loop model calls fill the time between identical calls; who polls sleeps. Calls
  that come 30 s or more apart, or further apart each time, are a wait if model calls fill less than half of that
  time: worth a notice, `degraded` and a word to people at 60. If model calls were never told it may be a wait: `degraded`.
- Other arguments are another call. Batch work (one tool, other arguments, always "ok") is never a loop;
  therefore the door digests arguments `exact`, and only results and errors without their volatile parts.
- What we do not know is no evidence. A call without an `args_digest` equals no other call, and ends a run: something
  else may have happened there. An author who names no arguments may have left them out: that is never conclusive, and
  no evidence at all without an outcome.
- Work between two equal calls explains them: `recent` and `failing` do not count a call if something new succeeded
  since the last time. The same green test after each change is work, as is `go_back` after each page.
- Infrastructure errors and declared retries do not count: they neither extend nor end a run.
- A declared polling tool is left out in the same way until its wait budget is over, unless it polls without a wait. A
  loop with such a wait inside may be polling by other means: for as long as that budget it is `degraded`, no more.
- Only another call ends a run. Approvals, pauses and the time between calls do not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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

NO_ARGS: Final = digest(None, exact=True)
"""The arguments of a call whose author named none."""

TIGHT_FOR: Final = 10.0
"""How long polls have come without a wait before that counts: what was said while we were away comes all at once."""

BACKOFF_TURNS: Final = 4
BACKOFF_GROWTH: Final = 1.5
BACKOFF_FROM: Final = 4.0
"""A backoff: so many times in a row the wait was longer by this factor, and the last one took so many seconds. Less would
be the jitter of a tight loop."""

_GAP: Final = "\x1f"
_ERROR: Final = "!"
_UNKNOWN: Final = "?"

_NEW: Final = 1
_BARREN: Final = 2
"""Marks of a call: it did something new, or repeats another with nothing new in between."""

_Level = tuple[Severity, bool]
_DEGRADED: Final[_Level] = Severity.DEGRADED, False
_STUCK: Final[_Level] = Severity.STUCK, False
_CONCLUSIVE: Final[_Level] = Severity.STUCK, True


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
    backlog_until: float = 0.0
    """Up to when what is heard may have waited for us or for the agent's link: nobody knows the time between such calls."""


@dataclass(frozen=True, slots=True)
class PastCall:
    """A call as the tape has it: names and digests, no contents. All but the moment are empty where it cannot be compared."""

    at: float
    tool: str = ""
    args: str = ""
    outcome: str = ""
    failed: bool = False


def past_calls(call_history: CallHistory) -> Iterator[PastCall]:
    """The calls on a tape, oldest first."""
    for at, rkey in zip(call_history.times, call_history.rkeys, strict=True):
        if rkey:
            tool, args, outcome = rkey.split(_GAP)
            told = "" if outcome == _UNKNOWN else outcome.removeprefix(_ERROR)
            yield PastCall(at, tool, args, told, outcome.startswith(_ERROR))
        else:
            yield PastCall(at)


def observe(
    call_history: CallHistory,
    call: ToolFinished,
    policy: LoopingPolicy,
    now: float,
    slept_for: float = 0.0,
    truce_until: float = 0.0,
) -> Finding | None:
    """Hear one finished call; the loop that now holds, if any. One out of a backlog counts for none: an hour of polls that
    come at once is no tight loop, and a loop goes on. Something new that was done is heard all the same: it explains others.

    `slept_for` is how long we did not look since the call before: that is no part of anybody's wait budget.
    """
    call_history.talk = 0
    call_history.slept_for += slept_for
    if call_history.polling_since is not None:
        call_history.polling_since += slept_for
    waited = now < max(call_history.backlog_until, truce_until)
    if _is_new(call_history, call, policy) if waited else not _excused(call_history, call, policy, now):
        _record(call_history, call, policy, max(now, call_history.times[-1]) if call_history.times else now)
    return holding(call_history, policy)


def thought(call_history: CallHistory, started_at: float | None, ok: bool, now: float) -> None:
    """Hear one finished model call; `started_at` is None if nobody told. Of calls side by side one counts as talk."""
    if started_at is not None:
        call_history.model_known = True
        call_history.model_s += max(0.0, now - max(started_at, call_history.model_until))
        call_history.model_until = max(now, call_history.model_until)
    if ok and (not call_history.talk or started_at is None or started_at >= call_history.talked_at):
        call_history.talk_since = call_history.talk_since if call_history.talk else now
        call_history.talk += 1
        call_history.talked_at = now


def holding(call_history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """The worst loop on the tape. It depends on the tape alone: looking again changes nothing."""
    _fill_in(call_history)
    talk = _talk(call_history) if call_history.talk >= policy.talk_notice else None
    if (
        call_history.key_run < 2
        and not call_history.often
        and not call_history.failing
        and not any(call_history.matched)
    ):
        return talk
    rules = (_same, _cycle, _changing, _recent, _failing)
    found = [one for rule in rules if (one := rule(call_history, policy)) is not None]
    if talk is not None:
        found.append(talk)
    return max(found, key=_badness, default=None)


# --- what counts -------------------------------------------------------------------------------------


def _excused(call_history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> bool:
    if call.retry or (not call.ok and is_infrastructure(call.error_kind)):
        return True
    if not _polls(call.tool, policy.polling_tools):
        call_history.polling_since = None
        return False
    if call_history.polling_since is None:
        call_history.polling_since = now
    if now - call_history.polling_since >= policy.polling_for or _polls_without_a_wait(
        call_history, policy, now
    ):
        return False
    call_history.polled_at = now
    return True


def _polls_without_a_wait(call_history: CallHistory, policy: LoopingPolicy, now: float) -> bool:
    """Whether this poll came right after the one before."""
    before_at, before_model_s = call_history.poll_at, call_history.poll_model_s
    call_history.poll_at, call_history.poll_model_s = now, call_history.model_s
    if before_at is None:
        return False
    gap, model_s = now - before_at, call_history.model_s - before_model_s
    if gap >= policy.polling_gap_min and not (
        call_history.model_known and model_s >= policy.wait_model_share * gap
    ):
        call_history.tight_since = None
        return False
    if call_history.tight_since is None:
        call_history.tight_since = before_at
    return now - call_history.tight_since >= TIGHT_FOR


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


def _is_new(call_history: CallHistory, call: ToolFinished, policy: LoopingPolicy) -> bool:
    """Whether this did something that is not on the tape, and is no look at the same thing either."""
    key, rkey = _keys(call)
    return (
        call.ok
        and key != call_history.key
        and rkey not in call_history.rkeys
        and not _polls(call.tool, policy.polling_tools)
    )


def _keys(call: ToolFinished) -> tuple[str, str]:
    """Tool and arguments; and the outcome too. Empty where they cannot be compared."""
    outcome = _outcome(call)
    told = call.args_digest and (outcome != _UNKNOWN or call.args_digest != NO_ARGS)
    key = f"{_short(call.tool)}{_GAP}{_short(call.args_digest)}" if told else ""
    return key, f"{key}{_GAP}{outcome}" if key else ""


def _record(call_history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> None:
    key, rkey = _keys(call)
    if key and key == call_history.key:
        call_history.key_run += 1
    else:
        call_history.key, call_history.key_run, call_history.key_since = key, 1, now
    _fill_in(call_history)
    seen = rkey in call_history.rkeys if rkey else False
    mark = _mark(call_history, call, rkey, seen)
    _follow_periods(call_history, rkey if seen else "", max(1, policy.cycle_length_max))
    call_history.rkeys.append(rkey)
    call_history.times.append(now)
    call_history.marks.append(mark)
    call_history.model_at.append(call_history.model_s)
    excess = len(call_history.rkeys) - max(policy.recent_window, policy.cycle_length_max, 1)
    if excess > 0:
        del (
            call_history.rkeys[:excess],
            call_history.times[:excess],
            call_history.marks[:excess],
            call_history.model_at[:excess],
        )
    again = rkey if mark == _BARREN and _counts(rkey) else ""
    _follow_often(call_history, again, policy)
    _follow_failing(call_history, again if not call.ok else "", policy)


def _fill_in(call_history: CallHistory) -> None:
    """A tape that an older version stored has no marks and no model times."""
    missing = len(call_history.rkeys) - len(call_history.marks)
    if missing > 0:
        call_history.marks[:0], call_history.model_at[:0] = [0] * missing, [0.0] * missing


def _mark(call_history: CallHistory, call: ToolFinished, rkey: str, seen: bool) -> int:
    if not seen:
        return _NEW if call.ok else 0
    for before, mark in zip(reversed(call_history.rkeys), reversed(call_history.marks), strict=True):
        if before == rkey:
            break
        if mark == _NEW:
            return 0
    return _BARREN


def _outcome(call: ToolFinished) -> str:
    if call.ok:
        return _short(call.result_digest) or _UNKNOWN
    known = call.error or call.error_kind or call.result_digest
    return _ERROR + digest([call.error_kind, call.error or call.result_digest]) if known else _UNKNOWN


def _short(name: str) -> str:
    return name if len(name) <= NAME_MAX and _GAP not in name else fingerprint(name)


def _follow_periods(call_history: CallHistory, rkey: str, periods: int) -> None:
    """Compare with the calls 1, 2 ... `periods` before; "" is like none of them."""
    if len(call_history.matched) != periods:
        call_history.matched, call_history.started = [0] * periods, [0.0] * periods
    matched = call_history.matched
    if not rkey:
        if any(matched):
            call_history.matched = [0] * periods
        return
    rkeys = call_history.rkeys
    for i in range(min(periods, len(rkeys))):
        if rkeys[-1 - i] != rkey:
            matched[i] = 0
            continue
        if not matched[i]:
            call_history.started[i] = call_history.times[-1 - i]
        matched[i] += 1


def _follow_often(call_history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    """Keep the culprit of `recent` for as long as it fills the window, so that it does not flap."""
    enough = policy.recent_notice
    if call_history.often and _barren(call_history, call_history.often) < enough:
        repeated = (
            r for r, mark in zip(call_history.rkeys, call_history.marks, strict=True) if mark == _BARREN
        )
        call_history.often = next(
            (r for r in repeated if _counts(r) and _barren(call_history, r) >= enough), ""
        )
    elif not call_history.often and rkey and _barren(call_history, rkey) >= enough:
        call_history.often = rkey
    else:
        return
    if call_history.often:
        call_history.often_since = call_history.times[call_history.rkeys.index(call_history.often)]


def _follow_failing(call_history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    enough, window = policy.failing_notice, policy.failing_window
    if call_history.failing and _barren(call_history, call_history.failing, window) < enough:
        call_history.failing = ""
    if not call_history.failing and rkey and _barren(call_history, rkey, window) >= enough:
        call_history.failing = rkey


def _counts(rkey: str) -> bool:
    """Whether its outcome is known."""
    return not rkey.endswith(_GAP + _UNKNOWN)


def _barren(call_history: CallHistory, rkey: str, window: int = 0) -> int:
    """How often a call is among the last ones without anything new in between; the first time counts."""
    marks = [
        m
        for r, m in zip(call_history.rkeys[-window:], call_history.marks[-window:], strict=True)
        if r == rkey
    ]
    return 1 + marks[1:].count(_BARREN) if marks else 0


# --- the rules ---------------------------------------------------------------------------------------


def _same(call_history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    repeats = call_history.matched[0] + 1
    if repeats < min(policy.same_notice, policy.error_notice, policy.unknown_notice):
        return None
    tool, _, outcome = call_history.rkeys[-1].split(_GAP)
    if outcome == _UNKNOWN:
        notice, stuck, conclusive = policy.unknown_notice, 0, 0
        text = f"{tool} was called {repeats} times in a row with the same arguments, its results unknown"
    elif outcome.startswith(_ERROR):
        notice, stuck, conclusive = policy.error_notice, policy.error_stuck, policy.error_conclusive
        text = f"{tool} failed {repeats} times in a row with the same arguments and the same error"
    else:
        notice, stuck, conclusive = policy.same_notice, policy.same_stuck, policy.same_conclusive
        text = f"{tool} was called {repeats} times in a row with the same arguments and the same result"
    if repeats < notice:
        return None
    level = _level(repeats, stuck, conclusive)
    return _run(call_history, policy, text, level, repeats, 1, tool)


def _cycle(call_history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """The shortest period that holds: it has the most repeats, its multiples say the same with fewer."""
    for period, matched in enumerate(call_history.matched[1:], start=2):
        repeats = (matched + period) // period
        # Equal calls have every period; they are for `_same` to judge, by its own numbers.
        if repeats < policy.cycle_notice or call_history.matched[0] >= period - 1:
            continue
        calls = call_history.rkeys[-period:]
        tools = ", ".join(rkey.split(_GAP)[0] for rkey in calls)
        if all(map(_counts, calls)):
            results, level = "the same results", _level(repeats, *[policy.cycle_conclusive] * 2)
        elif repeats >= policy.unknown_notice:
            results, level = "unknown results", _DEGRADED
        else:
            return None
        text = f"The same {period} calls ({tools}) came {repeats} times over with {results}"
        return _run(call_history, policy, text, level, repeats, period, tools)
    return None


def _changing(call_history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """Never conclusive: a result that changes may be what the agent is waiting for."""
    repeats = call_history.key_run
    if repeats < policy.changing_notice:
        return None
    tool = call_history.key.split(_GAP)[0]
    text = f"{tool} was called {repeats} times in a row: same arguments, other or unknown results"
    numbers: dict[str, float | str] = {"repeats": repeats, "period": 1, "tool": tool}
    level = _DEGRADED
    if repeats >= policy.changing_human:
        level, numbers["people"] = _STUCK, 1
    found = _finding(call_history, call_history.key_since, text, level, **numbers)
    return _tempered(found, call_history, policy, repeats - 1, repeats)


def _recent(call_history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    if not call_history.often:
        return None
    tool, repeats, window = (
        call_history.often.split(_GAP)[0],
        _barren(call_history, call_history.often),
        len(call_history.rkeys),
    )
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments and outcome"
    level = _STUCK if repeats >= policy.recent_stuck else _DEGRADED
    found = _finding(
        call_history, call_history.often_since, text, level, repeats=repeats, window=window, tool=tool
    )
    return _tempered(
        found, call_history, policy, repeats - 1, window - call_history.rkeys.index(call_history.often)
    )


def _failing(call_history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    if not call_history.failing:
        return None
    window = min(policy.failing_window, len(call_history.rkeys))
    tool, repeats = call_history.failing.split(_GAP)[0], _barren(call_history, call_history.failing, window)
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments, and failed alike"
    first = call_history.rkeys.index(call_history.failing, len(call_history.rkeys) - window)
    found = _finding(
        call_history, call_history.times[first], text, _DEGRADED, repeats=repeats, window=window, tool=tool
    )
    return _tempered(found, call_history, policy, repeats - 1, len(call_history.rkeys) - first)


def _talk(call_history: CallHistory) -> Finding:
    lasting = _lasting(call_history.talked_at - call_history.talk_since)
    text = f"{call_history.talk} model calls in a row, and no tool call and no progress since, for {lasting}."
    return Finding(
        Kind.LOOPING, call_history.talk_since, Severity.DEGRADED, text, {"talk": call_history.talk}
    )


# --- how much a rule may say ---------------------------------------------------------------------------


def _run(
    call_history: CallHistory,
    policy: LoopingPolicy,
    text: str,
    level: _Level,
    repeats: int,
    period: int,
    tools: str,
) -> Finding:
    """A finding about calls that came in a row, or in turn."""
    if level == _CONCLUSIVE and all(rkey.split(_GAP)[1] == NO_ARGS for rkey in call_history.rkeys[-period:]):
        level = _STUCK
    since = call_history.started[period - 1]
    found = _finding(call_history, since, text, level, repeats=repeats, period=period, tool=tools)
    return _tempered(
        found, call_history, policy, repeats - 1, call_history.matched[period - 1] + period, period
    )


def _level(repeats: int, stuck: int, conclusive: int) -> _Level:
    """`stuck` 0: no number of repeats is that."""
    if repeats < stuck or not stuck:
        return _DEGRADED
    return _CONCLUSIVE if repeats >= conclusive else _STUCK


def _finding(
    call_history: CallHistory, since: float, text: str, level: _Level, **numbers: float | str
) -> Finding:
    severity, conclusive = level
    text = f"{text}, for {_lasting(call_history.times[-1] - since)}."
    return Finding(Kind.LOOPING, since, severity, text, numbers, conclusive)


_BADNESS: Final = (Severity.NOTICE, Severity.DEGRADED, Severity.STUCK)


def _badness(finding: Finding) -> tuple[bool, int]:
    return finding.conclusive, _BADNESS.index(finding.severity)


def _tempered(
    finding: Finding,
    call_history: CallHistory,
    policy: LoopingPolicy,
    turns: int,
    calls: int,
    period: int = 1,
) -> Finding:
    """A finding about the last `calls`, which took so many turns: no more than its waits allow."""
    if _waits(call_history, policy, turns, calls, period):
        return _waiting(finding, call_history, policy, turns + 1)
    polled = call_history.polled_at is not None and finding.since < call_history.polled_at
    if polled and call_history.times[-1] - finding.since < policy.polling_for + call_history.slept_for:
        return replace(finding, severity=Severity.DEGRADED, conclusive=False)
    return finding


def _waits(call_history: CallHistory, policy: LoopingPolicy, turns: int, calls: int, period: int) -> bool:
    """Whether the time of these calls is mostly time between them. Only those on the tape are looked at."""
    on_tape = min(calls, len(call_history.times))
    turns = min(turns, max(1, (on_tape - 1) // period)) if calls > on_tape else turns
    lasted = call_history.times[-1] - call_history.times[-on_tape]
    if lasted < policy.wait_period_min * turns and not _backs_off(call_history.times[-on_tape:], period):
        return False
    model_s = call_history.model_at[-1] - call_history.model_at[-on_tape]
    return model_s < policy.wait_model_share * lasted


def _backs_off(times: Sequence[float], period: int) -> bool:
    """Whether each turn came later after the last than that after the one before."""
    last = times[::-1][::period][: BACKOFF_TURNS + 1]
    gaps = [last[i] - last[i + 1] for i in range(len(last) - 1)]
    if len(gaps) < BACKOFF_TURNS or gaps[0] < BACKOFF_FROM:
        return False
    return all(gaps[i] >= BACKOFF_GROWTH * gaps[i + 1] for i in range(len(gaps) - 1))


def _waiting(finding: Finding, call_history: CallHistory, policy: LoopingPolicy, repeats: int) -> Finding:
    known = call_history.model_known and repeats < policy.changing_human
    numbers = {**finding.numbers, "waiting": 1} | ({"people": 1} if repeats >= policy.changing_human else {})
    severity = Severity.NOTICE if known else Severity.DEGRADED
    text = f"{finding.text} Most of that time it may have waited."
    return replace(finding, severity=severity, conclusive=False, numbers=numbers, text=text)


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
