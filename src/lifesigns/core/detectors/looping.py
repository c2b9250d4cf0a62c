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

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass, replace
from fnmatch import fnmatchcase
from hashlib import blake2b
from typing import Final

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


def observe(tape: Tape, call: ToolFinished, policy: LoopingPolicy, now: float) -> Finding | None:
    """Hear one finished call; the loop that now holds, if any."""
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
    return name if len(name) <= NAME_MAX and _GAP not in name else _hash(name)


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
    if waited and tape.times[-1] - finding.since < policy.polling_for:
        return replace(finding, severity=Severity.DEGRADED, conclusive=False)
    return finding


def _lasting(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


# --- digests -----------------------------------------------------------------------------------------

TEXT_MAX: Final = 64 * 1024
"""Characters of one value that are read, over all its strings. Of the rest only the length counts."""
ITEMS_MAX: Final = 10_000
"""Items of one value that are read, over all its containers: depth alone does not bound `[x, x]` in x."""
DEPTH_MAX: Final = 32

_VOLATILE: Final = re.compile(
    # Every branch begins at a fixed sign, repeats only within bounds and has no repetition inside
    # another, so that the worst text costs a bounded number of steps per character.
    r"""
    (?<![0-9A-Za-z])(?:
      [0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}      # uuid
    | 0x[0-9a-fA-F]{6,16}                                                              # address
    | (?=[0-9]{0,63}[a-fA-F])(?=[a-fA-F]{0,63}[0-9])[0-9a-fA-F]{8,128}                 # commit, hash
    # A day alone is meant (a report of that day); a day with a time is a timestamp.
    | [0-9]{4}-[0-9]{2}-[0-9]{2}[T\ ][0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?
      (?:\ ?Z|\ ?[+-][0-9]{2}:?[0-9]{2})?
    | [0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?                                  # time of day
    | 1[0-9]{9}(?:[0-9]{3}){0,3}(?:\.[0-9]{1,9})?                                      # epoch
    # A unit that is a single letter stands close: "3m", "12 s", but not "3 m" or "2 h".
    | [0-9]{1,9}(?:\.[0-9]{1,9})?
      (?:[mh]|\ ?(?:ns|us|µs|ms|s|secs?|seconds?|mins?|minutes?|hrs?|hours?))
    | (?:toolu|call|req|msg|resp|chatcmpl)[-_](?=[A-Za-z]{0,63}[0-9])[0-9A-Za-z]{16,64}
    | pid[\ =:]{1,2}[0-9]{1,9}
    | (?:duration|elapsed|latency|took)\w{0,8}["']?\ ?[:=]\ ?[0-9]{1,12}(?:\.[0-9]{1,12})?
    )(?![0-9A-Za-z])
    | /tmp/(?=tmp|[^\s/"']{0,63}[0-9])[^\s/"']{1,255}
    | /var/folders/[^\s/"']{1,64}/[^\s/"']{1,64}/[A-Z]/[^\s/"']{1,255}
    """,
    re.VERBOSE,
)
_VOLATILE_FIELD: Final = re.compile(
    r"(?:duration|elapsed|latency|took)(?:_\w{1,8})?|timestamp|(?:request|trace|span)_id",
)
_DIGIT: Final = re.compile(r"[0-9]|/tmp/tmp")


def digest(value: object, *, exact: bool = False) -> str:
    """A short, stable digest of a JSON-like value: 16 hex digits, whatever the order of its keys.

    Unless `exact`, what changes from call to call without meaning anything is left out: uuids, long hex
    ids, addresses, timestamps, durations, pids, temporary paths. Results and errors are digested that
    way; arguments are digested exact, for the id in `delete(id)` is the whole difference.

    "" for a value nobody can look into (or which raises when looked into): it equals nothing, so it is
    no evidence. Never raises.
    """
    try:
        return _hash("".join(_Reader(exact).parts_of(value)))
    except Exception:  # noqa: BLE001 - a stranger's object may raise anything when it is read
        return ""


def _hash(text: str) -> str:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


class _OpaqueError(Exception):
    """Nothing in this value can be compared."""


class _Reader:
    """Writes a value down unambiguously, within its bounds."""

    __slots__ = ("exact", "items_left", "parts", "text_left")

    def __init__(self, exact: bool) -> None:
        self.exact = exact
        self.text_left = TEXT_MAX
        self.items_left = ITEMS_MAX
        self.parts: list[str] = []

    def parts_of(self, value: object) -> list[str]:
        self._read(value, 0)
        return self.parts

    def _read(self, value: object, depth: int) -> None:
        match value:
            case None | bool():
                self.parts.append(f"{value};")
            case str():
                self._text("s", value, len(value))
            case int() | float():
                self.parts.append(self._number(value))
            case bytes() | bytearray():
                readable = value[: self.text_left].decode("utf-8", "surrogateescape")
                self._text("b", readable, len(value))
            case _ if depth >= DEPTH_MAX:
                self.parts.append("deep;")
            case list() | tuple():
                self._items("l", len(value), value, depth)
            case dict():
                self._fields(value, depth)
            case _:
                self._fields(_inside(value), depth)

    def _text(self, tag: str, text: str, length: int) -> None:
        cut = length > self.text_left
        text = str.__getitem__(text, slice(self.text_left))
        self.text_left -= len(text)
        if not self.exact and _DIGIT.search(text):
            text = _VOLATILE.sub("~", text)
        self.parts.append(f"{tag}{len(text)}:{text};")
        if cut:
            self.parts.append(f"of {length};")

    def _number(self, value: float) -> str:
        if value >= 1e9 and not self.exact and _is_moment(value):
            return "n~;"
        if isinstance(value, int):
            return f"i{value.bit_length()}:{value % (1 << 256):x};"
        return f"f{float.__repr__(value)};"

    def _items(self, tag: str, length: int, items: Iterable[object], depth: int) -> None:
        self.parts.append(f"{tag}{length}:")
        for item in items:
            if self.items_left <= 0:
                break
            self.items_left -= 1
            self._read(item, depth + 1)
        self.parts.append(";")

    def _fields(self, values: dict[object, object], depth: int) -> None:
        """In the order of their keys; of a dict too large to read, the first ones as they come."""
        first = [item for _, item in zip(range(self.items_left + 1), values.items(), strict=False)]
        if not self.exact:
            first = [(k, v) for k, v in first if not _is_volatile_field(k)]
        first.sort(key=lambda pair: _order(pair[0]))
        self._items("d", len(values), (part for pair in first for part in pair), depth)


def _order(key: object) -> tuple[str, str]:
    if not isinstance(key, str | int | float | None):
        raise _OpaqueError
    return type(key).__name__, str(key)


def _is_moment(value: float) -> bool:
    """Like a time since the epoch in seconds, milli-, micro- or nanoseconds (2001 to 2033)."""
    return any(1e9 * unit <= value < 2e9 * unit for unit in (1, 1e3, 1e6, 1e9))


def _is_volatile_field(name: object) -> bool:
    return isinstance(name, str) and len(name) <= 32 and bool(_VOLATILE_FIELD.fullmatch(name))


def _inside(value: object) -> dict[object, object]:
    """What a stranger's object is made of. Its repr is not asked: it holds addresses, and is its own code."""
    if isinstance(value, type):
        raise _OpaqueError
    if is_dataclass(value):
        return {f.name: getattr(value, f.name) for f in fields(value)}
    inside = getattr(value, "__dict__", None)
    if not isinstance(inside, dict) or not inside:
        raise _OpaqueError
    return inside
