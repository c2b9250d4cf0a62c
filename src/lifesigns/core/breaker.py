"""Breaker: stop calling what is down, and find out politely when it is up again.

                 failures, rate or slowness              wait is over
        CLOSED ─────────────────────────────► OPEN ─────────────────────► HALF_OPEN
          ▲                                     ▲                          │     │
          │                                     └── a probe fails, is lost ┘     │
          └───────────────────────── all probes succeed ────────────────────────┘

    by hand, from anywhere:  OPEN  CLOSED  FORCED_OPEN  DISABLED  OBSERVING

Laws (those of resilience4j, and of never being stuck):
- CLOSED never refuses. HALF_OPEN lets exactly `half_open_requests` probes through. FORCED_OPEN refuses all,
  DISABLED counts nothing, OBSERVING counts but never refuses; these three are left only by hand.
- A breaker first grows older up to `now`, then carries out the call. A change carries the moment it fell due, so
  looking more often changes nothing. Time never runs backwards.
- It cannot get stuck: a probe that does not return within `half_open_wait_max` is lost. If no probe has succeeded so
  far, that counts as a failure; otherwise only its place becomes free. Open waits grow but are capped.
- A result counts for the state that granted its permit. The breaker ignores later and second results.

The breaker takes no lock; its owner holds one around every method, and never across the guarded call. Two calls need
none: `permit` and `success` of a CLOSED breaker without rates read or write one attribute, and the worst outcome of a
race is a success counted a moment earlier, or an outdated permit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from math import inf
from typing import Final

from msgspec import Struct

from lifesigns.core.policy import BreakerPolicy
from lifesigns.core.signals import BreakerState
from lifesigns.errors import BreakerOpen, Bug, PolicyError

CLOSED, OPEN, HALF_OPEN = BreakerState.CLOSED, BreakerState.OPEN, BreakerState.HALF_OPEN
FORCED_OPEN, DISABLED, OBSERVING = (
    BreakerState.FORCED_OPEN,
    BreakerState.DISABLED,
    BreakerState.OBSERVING,
)
_BY_HAND: Final = frozenset({CLOSED, OPEN, FORCED_OPEN, DISABLED, OBSERVING})

LEGAL: Final[Mapping[BreakerState, frozenset[BreakerState]]] = {
    CLOSED: _BY_HAND - {CLOSED},
    OPEN: _BY_HAND - {OPEN} | {HALF_OPEN},
    HALF_OPEN: _BY_HAND,
    FORCED_OPEN: _BY_HAND - {FORCED_OPEN},
    DISABLED: _BY_HAND - {DISABLED},
    OBSERVING: _BY_HAND - {OBSERVING},
}
"""Only a wait in OPEN leads to half-open; a person can choose every other state, from anywhere."""

TURNS_MAX: Final = 64
"""How many changes we keep for an owner that does not fetch them."""
BUCKETS: Final = 20
"""Buckets of a time window: it forgets a twentieth at a time, and fits in one to five cache lines."""


class Permit(Struct, frozen=True, eq=False):
    """Permission for one call; return it with `success`, `failure` or `release`.

    All calls of one closed period share one permit, so that a grant costs nothing.
    """

    generation: int
    probe: bool = False


class Turn(Struct, frozen=True):
    """One change of state, and why."""

    at: float
    was: BreakerState
    now: BreakerState
    reason: str


class BreakerStatus(Struct, frozen=True):
    """A breaker as people see it."""

    name: str
    state: BreakerState
    failures: int
    """In a row."""
    calls: int
    """Calls in the window; 0 if the policy has no rate."""
    failure_rate: float | None
    slow_rate: float | None
    """None while there are fewer than `min_calls`: a rate over three calls says nothing."""
    trips: int
    """How often it opened by itself; while OBSERVING, how often it would have."""
    until: float | None


class Breaker:
    """One breaker. All times come from the caller's one clock."""

    __slots__ = (
        "_failures", "_generation", "_now", "_open_for", "_pass", "_probes", "_state",
        "_succeeded", "_succeeded_slowly", "_until", "_window", "name", "policy", "trips", "turns",
    )  # fmt: skip

    def __init__(self, name: str, policy: BreakerPolicy) -> None:
        _check(policy)
        self.name = name
        self.policy = policy
        self.trips = 0
        self.turns: deque[Turn] = deque(maxlen=TURNS_MAX)
        """Its changes, oldest first; the owner takes from the left."""
        self._state = CLOSED
        self._generation = 0
        self._pass: Permit | None = Permit(0)
        """The shared permit while the breaker refuses nothing, else None: one read decides."""
        self._now = -inf
        self._failures = 0
        self._window = _window_of(policy)
        self._until = -inf
        self._open_for = policy.recovery_timeout
        self._probes: dict[Permit, float] = {}
        """Outstanding probes and when each counts as lost; sorted by both."""
        self._succeeded = self._succeeded_slowly = 0

    # --- round a call ---------------------------------------------------------------------------------

    def permit(self, now: float) -> Permit:
        """A permit for one call; raises `BreakerOpen` on a refusal."""
        shared = self._pass
        if shared is not None:
            return shared
        now = self._grow_older(now)
        if self._state is HALF_OPEN:
            if len(self._probes) + self._succeeded < self.policy.half_open_requests:
                probe = Permit(self._generation, probe=True)
                self._probes[probe] = now + self.policy.half_open_wait_max
                return probe
            raise BreakerOpen(self.name, next(iter(self._probes.values())), now)
        raise BreakerOpen(self.name, self._until, now)

    def success(self, permit: Permit, now: float, took: float = 0.0) -> None:
        """The call succeeded. With a slow-call rate, `took` decides whether it was fast enough."""
        if permit is self._pass:
            if self._window is None:
                self._failures = 0
            elif self._state is not DISABLED:
                self._failures = 0
                self._count(now, failed=False, slow=took >= self.policy.slow_call_after)
        elif self._returned(permit, now):
            self._succeeded += 1
            self._succeeded_slowly += took >= self.policy.slow_call_after
            self._judge_probes()

    def failure(self, permit: Permit, now: float, took: float = 0.0) -> None:
        """The call failed."""
        if permit is self._pass:
            if self._state is not DISABLED:
                self._failures += 1
                self._count(now, failed=True, slow=took >= self.policy.slow_call_after)
        elif self._returned(permit, now):
            self._failures += 1
            self._reopen(self._now, "a probe failed")

    def release(self, permit: Permit, now: float) -> None:
        """The call was cancelled, or its outcome says nothing: take the permit back and count nothing."""
        if permit.probe:
            self._returned(permit, now)

    ignore = release

    # --- by hand --------------------------------------------------------------------------------------

    def open(self, now: float) -> None:
        """Open as after failures; an open breaker begins its wait anew."""
        now = self._turn_by_hand(OPEN, now)
        self._until = now + self._open_for

    def close(self, now: float) -> None:
        """Close and count from zero, even if already closed. The next open wait keeps the length it had grown to."""
        self._turn_by_hand(CLOSED, now)
        self._forget_counts()

    def reset(self, now: float) -> None:
        """Close and forget everything, as if new."""
        self.close(now)
        self._open_for = self.policy.recovery_timeout
        self.trips = 0

    def force_open(self, now: float) -> None:
        """Refuse every call until a person says otherwise."""
        self._turn_by_hand(FORCED_OPEN, now)
        self._until = inf

    def disable(self, now: float) -> None:
        """Let every call through and count nothing."""
        self._turn_by_hand(DISABLED, now)

    def observe_only(self, now: float) -> None:
        """Let every call through, but count how often the breaker would have opened (`trips`)."""
        self._turn_by_hand(OBSERVING, now)

    # --- to look at -----------------------------------------------------------------------------------

    def state(self, now: float) -> BreakerState:
        """The state that a call would meet now."""
        self._grow_older(now)
        return self._state

    @property
    def opens_until(self) -> float | None:
        """The end of the open wait: infinity if forced, None if not open."""
        return self._until if self._state in (OPEN, FORCED_OPEN) else None

    def time_until_half_open(self, now: float) -> float | None:
        """Seconds until the breaker tries a call again; None if not open."""
        now = self._grow_older(now)
        return None if self.opens_until is None else self.opens_until - now

    def status(self, now: float) -> BreakerStatus:
        """The breaker as people see it."""
        state = self.state(now)
        calls = failed = slow = 0
        if self._window is not None:
            calls, failed, slow = self._window.totals(self._now)
        known = calls >= _calls_needed(self.policy) and calls > 0
        return BreakerStatus(
            self.name,
            state,
            self._failures,
            calls,
            failed / calls if known else None,
            slow / calls if known else None,
            self.trips,
            self.opens_until,
        )

    # --- the machine ----------------------------------------------------------------------------------

    def _grow_older(self, now: float) -> float:
        """Apply every change that fell due, at the moment it fell due; returns the current time."""
        self._now = now = max(self._now, now)
        while True:
            if self._state is OPEN and self._until <= now:
                self._turn(HALF_OPEN, self._until, "the wait is over")
            due = next(iter(self._probes.values()), inf)
            if due > now:
                return now
            del self._probes[next(iter(self._probes))]
            if not self._succeeded:
                self._reopen(due, "a probe was lost")

    def _returned(self, permit: Permit, now: float) -> bool:
        """Take a probe back, unless it belongs to another generation, is lost, or is already back."""
        self._grow_older(now)
        return self._probes.pop(permit, None) is not None

    def _judge_probes(self) -> None:
        if self._succeeded < self.policy.half_open_requests:
            return
        slow_rate = self.policy.slow_rate
        if slow_rate is not None and self._succeeded_slowly / self._succeeded >= slow_rate:
            self._reopen(self._now, "the probes were slow")
            return
        self._turn(CLOSED, self._now, "the probes succeeded")
        self._open_for = self.policy.recovery_timeout

    def _count(self, now: float, *, failed: bool, slow: bool) -> None:
        """The result of one call in CLOSED or OBSERVING, and the change it causes."""
        if self._window is not None:
            self._window.add(now, failed, slow)
        elif self._failures < self.policy.failure_threshold:
            return
        self._now = now = max(self._now, now)
        reason = self._reason_to_open(now)
        if reason is None:
            return
        self.trips += 1
        if self._state is OBSERVING:
            self._forget_counts()
        else:
            self._turn(OPEN, now, reason)
            self._until = now + self._open_for

    def _reason_to_open(self, now: float) -> str | None:
        policy = self.policy
        if self._failures >= policy.failure_threshold:
            return f"{self._failures} failures in a row"
        if self._window is None:
            return None
        calls, failed, slow = self._window.totals(now)
        if calls < _calls_needed(policy):
            return None
        if policy.failure_rate is not None and failed / calls >= policy.failure_rate:
            return f"{failed} of {calls} calls failed"
        if policy.slow_rate is not None and slow / calls >= policy.slow_rate:
            return f"{slow} of {calls} calls were slow"
        return None

    def _reopen(self, at: float, reason: str) -> None:
        """From half-open back to open, for longer. The cap limits the growth, not the first wait."""
        cap = max(self.policy.recovery_timeout, self.policy.recovery_timeout_max)
        self._open_for = min(self._open_for * self.policy.backoff_factor, cap)
        self.trips += 1
        self._turn(OPEN, at, reason)
        self._until = at + self._open_for

    def _forget_counts(self) -> None:
        self._failures = 0
        if self._window is not None:
            self._window.clear()

    def _turn_by_hand(self, to: BreakerState, now: float) -> float:
        now = self._grow_older(now)
        if self._state is not to:
            self._turn(to, now, "by hand")
        return now

    def _turn(self, to: BreakerState, at: float, reason: str) -> None:
        if to not in LEGAL[self._state]:
            raise Bug(f"breaker {self.name!r} turned from {self._state} to {to}")
        self.turns.append(Turn(at, self._state, to, reason))
        self._state = to
        self._generation += 1
        self._probes.clear()
        self._succeeded = self._succeeded_slowly = 0
        if to in (CLOSED, DISABLED, OBSERVING):
            self._pass = Permit(self._generation)
            self._forget_counts()
        else:
            self._pass = None  # the counts stay: people want to see what opened it


# --- windows -----------------------------------------------------------------------------------------


class _LastCalls:
    """Failed and slow calls among the last `size`."""

    __slots__ = ("at", "calls", "failed", "marks", "slow")

    def __init__(self, size: int) -> None:
        self.marks = bytearray(size)
        self.clear()

    def clear(self) -> None:
        self.at = self.calls = self.failed = self.slow = 0

    def add(self, _now: float, failed: bool, slow: bool) -> None:
        at, marks = self.at, self.marks
        if self.calls == len(marks):
            self.failed -= marks[at] & 1
            self.slow -= marks[at] >> 1
        else:
            self.calls += 1
        marks[at] = failed | slow << 1
        self.failed += failed
        self.slow += slow
        self.at = at + 1 if at + 1 < len(marks) else 0

    def totals(self, _now: float) -> tuple[int, int, int]:
        return self.calls, self.failed, self.slow


class _LastSeconds:
    """Failed and slow calls of the last `seconds`; it forgets them a bucket at a time."""

    __slots__ = ("buckets", "calls", "failed", "newest", "slow", "width")

    def __init__(self, seconds: float) -> None:
        self.width = seconds / BUCKETS
        self.clear()

    def clear(self) -> None:
        self.buckets = [[0, 0, 0] for _ in range(BUCKETS)]
        self.newest: float = -inf
        self.calls = self.failed = self.slow = 0

    def add(self, now: float, failed: bool, slow: bool) -> None:
        bucket = self._bucket_at(now)
        bucket[0] += 1
        bucket[1] += failed
        bucket[2] += slow
        self.calls += 1
        self.failed += failed
        self.slow += slow

    def totals(self, now: float) -> tuple[int, int, int]:
        self._bucket_at(now)
        return self.calls, self.failed, self.slow

    def _bucket_at(self, now: float) -> list[int]:
        """The bucket for `now`, after emptying all that are too old."""
        newest = now // self.width
        if newest > self.newest:
            for i in range(int(min(newest - self.newest, BUCKETS))):
                self._empty(int(newest - i) % BUCKETS)
            self.newest = newest
        return self.buckets[int(self.newest) % BUCKETS]

    def _empty(self, place: int) -> None:
        calls, failed, slow = self.buckets[place]
        self.buckets[place] = [0, 0, 0]
        self.calls -= calls
        self.failed -= failed
        self.slow -= slow


def _window_of(policy: BreakerPolicy) -> _LastCalls | _LastSeconds | None:
    if policy.failure_rate is None and policy.slow_rate is None:
        return None
    return _LastSeconds(policy.window_for) if policy.window_for else _LastCalls(policy.window_calls)


def _calls_needed(policy: BreakerPolicy) -> int:
    """A window of 5 calls never holds 10: then a full window is enough."""
    return policy.min_calls if policy.window_for else min(policy.min_calls, policy.window_calls)


def _check(policy: BreakerPolicy) -> None:
    """Checks what the laws above need, for policies outside a checked `Policy`."""
    for key in ("failure_threshold", "half_open_requests", "backoff_factor", "window_calls"):
        _require(policy, key, "a number from 1 on", 1 <= getattr(policy, key) < inf)
    for key in ("recovery_timeout", "recovery_timeout_max", "half_open_wait_max"):
        _require(policy, key, "a time greater than 0", 0 < getattr(policy, key) < inf)
    for key in ("failure_rate", "slow_rate"):
        rate = getattr(policy, key)
        _require(policy, key, "a rate between 0 and 1", rate is None or 0 < rate <= 1)


def _require(policy: BreakerPolicy, key: str, what: str, holds: bool) -> None:
    if not holds:
        raise PolicyError(f"breaker.{key}", f"{getattr(policy, key)} is not {what}")
