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
- Talk is told by deeds that are missing. From an agent that never told of a tool call (a summariser, a chat bot) none is missed:
  a notice. Who lets as much time pass between its model calls as they take is talked to: nothing.
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

PAUSES_MIN: Final = 3
"""Between calls: of fewer pauses the longest says as much as the others."""

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
    talk_model_s: float = 0.0
    """`model_s` when the first of them was over."""
    acts: bool = False
    """Whether tool calls were ever told in this life: only then are they missed."""
    took: list[float] = field(default_factory=list)
    """How many seconds each of the last calls took; 0 if nobody said."""
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
    took_s: float = 0.0


def past_calls(history: CallHistory) -> Iterator[PastCall]:
    """The calls on a tape, oldest first."""
    untold = len(history.times) - len(history.took)
    for at, rkey, took in zip(history.times, history.rkeys, [0.0] * untold + history.took, strict=True):
        if rkey:
            tool, args, outcome = rkey.split(_GAP)
            told = "" if outcome == _UNKNOWN else outcome.removeprefix(_ERROR)
            yield PastCall(at, tool, args, told, outcome.startswith(_ERROR), took)
        else:
            yield PastCall(at, took_s=took)


def observe(
    history: CallHistory,
    call: ToolFinished,
    policy: LoopingPolicy,
    now: float,
    slept_for: float = 0.0,
    truce_until: float = 0.0,
) -> Finding | None:
    """Hear one finished call; the loop that now holds, if any. One out of a backlog counts for none: an hour of polls that
    come at once is no tight loop, and a loop goes on; so does a cycle, in which the call only takes its turn. Something new that was done is heard all the same: it explains others.

    `slept_for` is how long we did not look since the call before: that is no part of anybody's wait budget.
    """
    history.talk, history.acts = 0, True
    history.slept_for += slept_for
    if history.polling_since is not None:
        history.polling_since += slept_for
    if now < max(history.backlog_until, truce_until):
        counts = _is_new(history, call, policy)
        if counts:
            history.polling_since = None
        else:
            _go_on(history, call, policy, now)
    else:
        counts = not _excused(history, call, policy, now)
    if counts:
        _record(history, call, policy, max(now, history.times[-1]) if history.times else now)
    return holding(history, policy)


def thought(history: CallHistory, started_at: float | None, ok: bool, now: float) -> None:
    """Hear one finished model call; `started_at` is None if nobody told. Of calls side by side one counts as talk."""
    if started_at is not None:
        history.model_known = True
        history.model_s += max(0.0, now - max(started_at, history.model_until))
        history.model_until = max(now, history.model_until)
    if ok and (not history.talk or started_at is None or started_at >= history.talked_at):
        if not history.talk:
            history.talk_since, history.talk_model_s = now, history.model_s
        history.talk += 1
        history.talked_at = now


def holding(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """The worst loop on the tape. It depends on the tape alone: looking again changes nothing."""
    _fill_in(history)
    talk = _talk(history, policy) if history.talk >= policy.talk_notice else None
    if history.key_run < 2 and not history.often and not history.failing and not any(history.matched):
        return talk
    rules = (_same, _cycle, _changing, _recent, _failing)
    found = [one for rule in rules if (one := rule(history, policy)) is not None]
    if talk is not None:
        found.append(talk)
    return max(found, key=_badness, default=None)


# --- what counts -------------------------------------------------------------------------------------


def _excused(history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> bool:
    if call.retry or (not call.ok and is_infrastructure(call.error_kind)):
        return True
    if not _polls(call.tool, policy.polling_tools):
        history.polling_since = None
        return False
    if history.polling_since is None:
        history.polling_since = now
    if now - history.polling_since >= policy.polling_for or _polls_without_a_wait(history, policy, now):
        return False
    history.polled_at = now
    return True


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


def _is_new(history: CallHistory, call: ToolFinished, policy: LoopingPolicy) -> bool:
    """Whether this did something that is not on the tape, and is no look at the same thing either."""
    key, rkey = _keys(call)
    return (
        call.ok
        and key != history.key
        and rkey not in history.rkeys
        and not _polls(call.tool, policy.polling_tools)
    )


def _keys(call: ToolFinished) -> tuple[str, str]:
    """Tool and arguments; and the outcome too. Empty where they cannot be compared."""
    outcome = _outcome(call)
    told = call.args_digest and (outcome != _UNKNOWN or call.args_digest != NO_ARGS)
    key = f"{_short(call.tool)}{_GAP}{_short(call.args_digest)}" if told else ""
    return key, f"{key}{_GAP}{outcome}" if key else ""


def _record(history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> None:
    key, rkey = _keys(call)
    if key and key == history.key:
        history.key_run += 1
    else:
        history.key, history.key_run, history.key_since = key, 1, now
    _fill_in(history)
    seen = rkey in history.rkeys if rkey else False
    mark = _mark(history, call, rkey, seen)
    _follow_periods(history, rkey if seen else "", max(1, policy.cycle_length_max))
    _append(history, rkey, mark, call, policy, now)
    again = rkey if mark == _BARREN and _counts(rkey) else ""
    _follow_often(history, again, policy)
    _follow_failing(history, again if not call.ok else "", policy)


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


def _go_on(history: CallHistory, call: ToolFinished, policy: LoopingPolicy, now: float) -> None:
    """A call that does not count takes its turn in a cycle that has begun: without it the next one would be out of turn."""
    key, rkey = _keys(call)
    takes_turn = [
        matched > 0 and rkey != "" and history.rkeys[-1 - i] == rkey
        for i, matched in enumerate(history.matched[: len(history.rkeys)])
    ]
    if not any(takes_turn) or takes_turn[0]:
        return
    _fill_in(history)
    history.matched = [
        matched if i < len(takes_turn) and takes_turn[i] else 0 for i, matched in enumerate(history.matched)
    ]
    history.key, history.key_run, history.key_since = key, 1, now
    _append(history, rkey, 0, call, policy, max(now, history.times[-1]))


def _fill_in(history: CallHistory) -> None:
    """A tape that an older version stored has no marks, no model times, and does not say how long its calls took."""
    missing = len(history.rkeys) - len(history.marks)
    if missing > 0:
        history.marks[:0], history.model_at[:0] = [0] * missing, [0.0] * missing
    if (untold := len(history.rkeys) - len(history.took)) > 0:
        history.took[:0] = [0.0] * untold


def _mark(history: CallHistory, call: ToolFinished, rkey: str, seen: bool) -> int:
    if not seen:
        return _NEW if call.ok else 0
    for before, mark in zip(reversed(history.rkeys), reversed(history.marks), strict=True):
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
    repeats = _barren(history, culprit or rkey)
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
    return next((rkey for rkey in calls if _counts(rkey) and _barren(history, rkey) >= enough), "")


def _follow_failing(history: CallHistory, rkey: str, policy: LoopingPolicy) -> None:
    enough, window = policy.failing_notice, policy.failing_window
    if history.failing and _barren(history, history.failing, window) < enough:
        history.failing = ""
    if not history.failing and rkey and _barren(history, rkey, window) >= enough:
        history.failing = rkey


def _counts(rkey: str) -> bool:
    """Whether its outcome is known."""
    return not rkey.endswith(_GAP + _UNKNOWN)


def _barren(history: CallHistory, rkey: str, window: int = 0) -> int:
    """How often a call is among the last ones without anything new in between; the first time counts."""
    marks = [m for r, m in zip(history.rkeys[-window:], history.marks[-window:], strict=True) if r == rkey]
    return 1 + marks[1:].count(_BARREN) if marks else 0


# --- the rules ---------------------------------------------------------------------------------------


def _same(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    repeats = history.matched[0] + 1
    if repeats < min(policy.same_notice, policy.error_notice, policy.unknown_notice):
        return None
    tool, _, outcome = history.rkeys[-1].split(_GAP)
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
    return _run(history, policy, text, level, repeats, 1, tool)


def _cycle(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """The shortest period that holds: it has the most repeats, its multiples say the same with fewer."""
    for period, matched in enumerate(history.matched[1:], start=2):
        repeats = (matched + period) // period
        # Equal calls have every period; they are for `_same` to judge, by its own numbers.
        if repeats < policy.cycle_notice or history.matched[0] >= period - 1:
            continue
        calls = history.rkeys[-period:]
        tools = ", ".join(rkey.split(_GAP)[0] for rkey in calls)
        if all(map(_counts, calls)):
            results, level = "the same results", _level(repeats, *[policy.cycle_conclusive] * 2)
        elif repeats >= policy.unknown_notice:
            results, level = "unknown results", _DEGRADED
        else:
            return None
        text = f"The same {period} calls ({tools}) came {repeats} times over with {results}"
        return _run(history, policy, text, level, repeats, period, tools)
    return None


def _changing(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    """Never conclusive: a result that changes may be what the agent is waiting for."""
    repeats = history.key_run
    if repeats < policy.changing_notice:
        return None
    tool = history.key.split(_GAP)[0]
    text = f"{tool} was called {repeats} times in a row: same arguments, other or unknown results"
    numbers: dict[str, float | str] = {"repeats": repeats, "period": 1, "tool": tool}
    level = _DEGRADED
    if repeats >= policy.changing_human:
        level, numbers["people"] = _STUCK, 1
    found = _finding(history, history.key_since, text, level, **numbers)
    return _tempered(found, history, policy, repeats - 1, repeats)


def _recent(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    if not history.often:
        return None
    tool, repeats, window = (
        history.often.split(_GAP)[0],
        _barren(history, history.often),
        len(history.rkeys),
    )
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments and outcome"
    level = _STUCK if repeats >= policy.recent_stuck else _DEGRADED
    found = _finding(history, history.often_since, text, level, repeats=repeats, window=window, tool=tool)
    return _tempered(found, history, policy, repeats - 1, window - history.rkeys.index(history.often))


def _failing(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    if not history.failing:
        return None
    window = min(policy.failing_window, len(history.rkeys))
    tool, repeats = history.failing.split(_GAP)[0], _barren(history, history.failing, window)
    text = f"{repeats} of the last {window} calls were {tool} with the same arguments, and failed alike"
    first = history.rkeys.index(history.failing, len(history.rkeys) - window)
    found = _finding(
        history, history.times[first], text, _DEGRADED, repeats=repeats, window=window, tool=tool
    )
    return _tempered(found, history, policy, repeats - 1, len(history.rkeys) - first)


def _talk(history: CallHistory, policy: LoopingPolicy) -> Finding | None:
    lasted, model_s = history.talked_at - history.talk_since, history.model_s - history.talk_model_s
    if history.model_known and model_s < policy.wait_model_share * lasted:
        return None
    text = f"{history.talk} model calls in a row, and no tool call and no progress since, for {_lasting(lasted)}."
    severity = Severity.DEGRADED if history.acts else Severity.NOTICE
    return Finding(Kind.LOOPING, history.talk_since, severity, text, {"talk": history.talk})


# --- how much a rule may say ---------------------------------------------------------------------------


def _run(
    history: CallHistory,
    policy: LoopingPolicy,
    text: str,
    level: _Level,
    repeats: int,
    period: int,
    tools: str,
) -> Finding:
    """A finding about calls that came in a row, or in turn."""
    if level == _CONCLUSIVE and all(rkey.split(_GAP)[1] == NO_ARGS for rkey in history.rkeys[-period:]):
        level = _STUCK
    since = history.started[period - 1]
    found = _finding(history, since, text, level, repeats=repeats, period=period, tool=tools)
    return _tempered(found, history, policy, repeats - 1, history.matched[period - 1] + period, period)


def _level(repeats: int, stuck: int, conclusive: int) -> _Level:
    """`stuck` 0: no number of repeats is that."""
    if repeats < stuck or not stuck:
        return _DEGRADED
    return _CONCLUSIVE if repeats >= conclusive else _STUCK


def _finding(history: CallHistory, since: float, text: str, level: _Level, **numbers: float | str) -> Finding:
    severity, conclusive = level
    text = f"{text}, for {_lasting(history.times[-1] - since)}."
    return Finding(Kind.LOOPING, since, severity, text, numbers, conclusive)


_BADNESS: Final = (Severity.NOTICE, Severity.DEGRADED, Severity.STUCK)


def _badness(finding: Finding) -> tuple[bool, int]:
    return finding.conclusive, _BADNESS.index(finding.severity)


def _tempered(
    finding: Finding,
    history: CallHistory,
    policy: LoopingPolicy,
    turns: int,
    calls: int,
    period: int = 1,
) -> Finding:
    """A finding about the last `calls`, which took so many turns: no more than its waits allow."""
    if _waits(history, policy, turns, calls, period):
        return _waiting(finding, history, policy, turns + 1)
    polled = history.polled_at is not None and finding.since < history.polled_at
    if polled and history.times[-1] - finding.since < policy.polling_for + history.slept_for:
        return replace(finding, severity=Severity.DEGRADED, conclusive=False)
    return finding


def _waits(history: CallHistory, policy: LoopingPolicy, turns: int, calls: int, period: int) -> bool:
    """Whether the time of these calls is mostly time between them. Only those on the tape are looked at, and the longest
    pause is left out: a rate limit, or a time in which we heard nothing, makes no wait of a loop."""
    on_tape = min(calls, len(history.times))
    turns = min(turns, max(1, (on_tape - 1) // period)) if calls > on_tape else turns
    lasted = history.times[-1] - history.times[-on_tape]
    if lasted < policy.wait_period_min * turns and not _backs_off(history.times[-on_tape:], period):
        return False
    times, model_at = history.times[-on_tape:], history.model_at[-on_tape:]
    pauses = [(times[n] - times[n - 1], model_at[n] - model_at[n - 1]) for n in range(1, on_tape)]
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


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
