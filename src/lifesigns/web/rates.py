"""Rates: how much an agent's token may send, and an address without a token may ask. One that runs wild must not slow
down the others.

    requests    with one token of role agent, and how much is in them:
    signals     beats and reports
    bytes       of bodies, decompressed
    events      stored because of its reports: the disk. Beats cause none
    unknown     requests from one address without a valid token

Each key has a moment up to which it has paid; each use moves it on by its price. A key that is ahead of the clock by
more than a burst has to wait. The size of a request is known only when it is read, so the charge comes afterwards, and
the next request waits for it. One number per key and rate, and no clock of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil
from typing import Final

from lifesigns.config.values import Limits
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.shares import Shares
from lifesigns.web.answers import Problem

BURST_FOR: Final = 1.0
"""Seconds' worth that may come at once."""

EVENTS_BURST_FOR: Final = 60.0
"""Seconds' worth of events that may come at once: when a large fleet starts, each of its agents makes a few."""

KEYS_MAX: Final = 20_000
"""More than a hub has tokens; when it is reached all are dropped, which harms no one."""


class Rate:
    """The use of one rate by each token or address."""

    def __init__(self, per_second: float, burst_for: float = BURST_FOR) -> None:
        self._price = 1.0 / max(per_second, 1.0)
        self._burst_for = burst_for
        self._paid_until: dict[str, float] = {}
        self.refused = 0

    def wait_for(self, key: str, now: float) -> float:
        """Count one: 0 if it may pass, or the seconds after which one may."""
        paid_until = self._paid_until.get(key, 0.0)
        if paid_until < now:
            paid_until = self._begin(now)
        ahead = paid_until - now
        if ahead >= self._burst_for:
            return ahead - self._burst_for + self._price
        self._paid_until[key] = paid_until + self._price
        return 0.0

    def owes(self, key: str, now: float) -> float:
        """The seconds to wait; 0 for none."""
        ahead = self._paid_until.get(key, 0.0) - now
        return ahead - self._burst_for + self._price if ahead >= self._burst_for else 0.0

    def charge(self, key: str, now: float, amount: int) -> None:
        """Charge this amount, even over the limit."""
        paid_until = self._paid_until.get(key, 0.0)
        if paid_until < now:
            paid_until = self._begin(now)
        self._paid_until[key] = paid_until + amount * self._price

    def _begin(self, now: float) -> float:
        if len(self._paid_until) >= KEYS_MAX:
            self._paid_until.clear()
        return now


class Rates:
    """All rates of a hub."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # The fast path does not count a single beat as a signal (`beat_fast_path.py`): so requests are never cheaper
        # than signals.
        self.requests = Rate(min(limits.requests_per_second, limits.signals_per_second))
        self.signals = Rate(limits.signals_per_second)
        self.bytes = Rate(limits.bytes_per_second)
        self.events = Rate(limits.events_per_second, EVENTS_BURST_FOR)
        self.unknown = Rate(limits.unknown_requests_per_second)

    def __iter__(self) -> Iterator[tuple[str, Rate]]:
        yield from (("requests", self.requests), ("signals", self.signals))
        yield from (("bytes", self.bytes), ("events", self.events), ("unknown_requests", self.unknown))

    def check_token(self, token_id: str, name: str, now: float) -> None:
        """Count a request with this token; raises a `Problem` if it has to wait."""
        limits = self._limits
        for rate, wait_for, limit in (
            (self.bytes, self.bytes.owes(token_id, now), f"{limits.bytes_per_second} bytes"),
            (self.signals, self.signals.owes(token_id, now), f"{limits.signals_per_second} signals"),
            (self.requests, self.requests.wait_for(token_id, now), f"{limits.requests_per_second} requests"),
        ):
            if wait_for:
                rate.refused += 1
                detail = f"{name!r} sent more than {limit} a second; beats can be sent in batches"
                raise Problem(429, detail, headers={"Retry-After": str(ceil(wait_for))})

    async def check_share(self, token_id: str, name: str, shares: Shares) -> None:
        """Wait until the hub has time for this token; raises a `Problem` if that takes too long."""
        if not await shares.begins(token_id):
            detail = (
                f"the hub has worked for {name!r} for {shares.share:.0%} of its time, and that is all it gets"
            )
            raise Problem(429, detail, headers={"Retry-After": str(ceil(shares.owes(token_id) or 1))})

    def check_events(self, who: Principal | None, now: float) -> None:
        """Count a request that causes events; raises a `Problem` if this token has caused too many."""
        if who is None or who.role is not Role.AGENT:
            return
        wait_for = self.events.wait_for(who.token_id, now)
        if wait_for:
            self.events.refused += 1
            detail = (
                f"reports of {who.name!r} led to more than {self._limits.events_per_second} events a second"
            )
            raise Problem(429, detail, headers={"Retry-After": str(ceil(wait_for))})

    def take_bytes(self, token_id: str, name: str, size: int, now: float) -> None:
        """Count a piece of a body; raises a `Problem` when all that come at once exceed one body and a burst."""
        limits = self._limits
        self.bytes.charge(token_id, now, size)
        wait_for = self.bytes.owes(token_id, now)
        if wait_for > limits.body_bytes / max(limits.bytes_per_second, 1):
            self.bytes.refused += 1
            raise Problem(
                429,
                f"{name!r} sent more than {limits.bytes_per_second} bytes a second",
                headers={"Retry-After": str(ceil(wait_for)), "Connection": "close"},
            )

    def check_address(self, address: str, now: float) -> None:
        """Count a request without a valid token; raises a `Problem` if there were too many."""
        wait_for = self.unknown.wait_for(address, now)
        if wait_for:
            self.unknown.refused += 1
            limit = self._limits.unknown_requests_per_second
            detail = f"over {limit} requests a second without a good token from this address"
            raise Problem(429, detail, headers={"Retry-After": str(ceil(wait_for)), "Connection": "close"})
