"""Throttle: a client that shows wrong tokens too often has to wait.

No guess will ever find 256 bits; this keeps the log readable and a confused client slow. It applies only to wrong
tokens: the hub always accepts a right one, however many wrong ones came from the same address, so that no one behind a
NAT can lock out the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address
from math import ceil
from typing import Final

FAILURES_MAX: Final = 10
WINDOW_FOR: Final = 60.0
BURSTS_SHOWN_MAX: Final = 5
ADDRESSES_MAX: Final = 10_000
"""A thousand addresses a minute is an attack by many; then the oldest are forgotten first."""


class Throttle:
    """Failures of the last minute, by address."""

    def __init__(self) -> None:
        self._failures: OrderedDict[str, tuple[float, int]] = OrderedDict()
        self.refused = 0
        self.throttled = 0
        """Of these, the throttled ones."""
        self._taken = 0
        """The count at the last burst taken."""
        self._bursting: dict[str, None] = {}

    def failed(self, address: str, now: float) -> Failures:
        """Count one more failure from there."""
        key = network(address)
        since, count = self._failures.pop(key, (now, 0))
        if not since <= now < since + WINDOW_FOR:
            since, count = now, 0
        self._failures[key] = (since, count + 1)
        self.refused += 1
        if count + 1 > FAILURES_MAX:
            self.throttled += 1
            if len(self._bursting) < BURSTS_SHOWN_MAX:
                self._bursting[address[:64]] = None
        while len(self._failures) > ADDRESSES_MAX:
            self._failures.popitem(last=False)
        return Failures(count + 1, since + WINDOW_FOR - now)

    def take_burst(self) -> tuple[int, Sequence[str]]:
        """Failures since the last call, and some addresses that had too many; 0 if there is none."""
        count, addresses = self.refused - self._taken, tuple(self._bursting)
        self._taken, self._bursting = self.refused, {}
        return (count, addresses) if addresses else (0, ())


class Failures:
    """How often an address has failed within the window, this time included."""

    __slots__ = ("count", "retry_after")

    def __init__(self, count: int, retry_after: float) -> None:
        self.count = count
        self.retry_after = max(1, ceil(retry_after))
        """Whole seconds, for the header of that name."""

    @property
    def too_many(self) -> bool:
        return self.count > FAILURES_MAX

    @property
    def worth_logging(self) -> bool:
        """Whether to log it: the first failure and the first throttled one, however many follow."""
        return self.count in (1, FAILURES_MAX + 1)


def network(address: str) -> str:
    """The address, but for IPv6 the /64: the owner of one address there has all of them."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return address[:64]
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped is not None:
            return str(parsed.ipv4_mapped)
        return parsed.packed[:8].hex()
    return str(parsed)
