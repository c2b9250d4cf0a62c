"""Deliveries: which of a sender's last ones were heard. A sender whose answer is lost sends the same delivery again, and a
call that is heard twice looks like two calls.

Bounded in senders and in deliveries of each; who was not heard for the longest is forgotten first. A hub that starts knows
of none.
"""

from __future__ import annotations

import re
from collections import OrderedDict, deque
from hashlib import blake2b
from typing import Final, Generic, NamedTuple, TypeVar

SENDERS_MAX: Final = 20_000
KEYS_MAX: Final = 16
"""Of each sender over HTTP: it has one on the way, in a few parts, and waits for the answer before the next."""

T = TypeVar("T")

_SENT_AT: Final = re.compile(rb'"timestamp":"[^"]{0,64}"')


class KeyReused(Exception):
    """Another delivery had this key."""


class Deliveries(Generic[T]):
    """The last deliveries of each sender."""

    def __init__(self, each_max: int) -> None:
        self._each_max = each_max
        self._by_sender: OrderedDict[str, deque[T]] = OrderedDict()

    def of(self, sender: str) -> deque[T]:
        """Those of one sender, oldest first; to be added to."""
        known = self._by_sender.setdefault(sender, deque(maxlen=self._each_max))
        self._by_sender.move_to_end(sender)
        if len(self._by_sender) > SENDERS_MAX:
            self._by_sender.popitem(last=False)
        return known


class _KeyedDelivery(NamedTuple):
    number: str
    fingerprint: bytes


class KeyedDeliveries:
    """Those that came with a key (`SENDER/NUMBER`, or anything else), by whose token they came."""

    def __init__(self) -> None:
        self._heard: Deliveries[_KeyedDelivery] = Deliveries(KEYS_MAX)

    def note(self, token_id: str, key: str, fingerprint: bytes) -> bool:
        """Whether it is new; from now on it is not. Raises `KeyReused`."""
        known, number = self._place(token_id, key)
        for one in known:
            if one.number == number:
                if one.fingerprint != fingerprint:
                    raise KeyReused
                return False
        known.append(_KeyedDelivery(number, fingerprint))
        return True

    def forget(self, token_id: str, key: str) -> None:
        """It was not heard after all."""
        known, number = self._place(token_id, key)
        for one in [one for one in known if one.number == number]:
            known.remove(one)

    def _place(self, token_id: str, key: str) -> tuple[deque[_KeyedDelivery], str]:
        sender, _, number = key.rpartition("/")
        return self._heard.of(f"{token_id}/{sender}"), number


def fingerprint_of(body: bytes) -> bytes:
    """The same for the same delivery, which is told anew when it was sent: with an `until` goes the moment of sending."""
    return blake2b(_SENT_AT.sub(b"", body), digest_size=8).digest()
