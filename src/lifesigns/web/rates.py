"""Rates: how many requests an agent's token may make. One that runs wild must not slow down the others.

Each token has a moment up to which its requests are paid for; a request moves it on by its price. Who is ahead of the
clock by more than a burst has to wait. One number per token, and no clock of its own.
"""

from __future__ import annotations

from typing import Final

BURST_FOR: Final = 1.0
"""Seconds' worth of requests that may come at once."""

TOKENS_MAX: Final = 20_000
"""More than a hub has; revoked ones are let go with the others when it is reached, and nobody suffers by it."""


class Rates:
    """What each token has used."""

    def __init__(self, per_second: float) -> None:
        self._price = 1.0 / max(per_second, 1.0)
        self._paid_until: dict[str, float] = {}

    def wait_for(self, token_id: str, now: float) -> float:
        """Count a request: 0 if it may pass, or the seconds after which one may."""
        paid_until = self._paid_until.get(token_id, 0.0)
        if paid_until < now:
            if len(self._paid_until) >= TOKENS_MAX:
                self._paid_until.clear()
            paid_until = now
        ahead = paid_until - now
        if ahead >= BURST_FOR:
            return ahead - BURST_FOR + self._price
        self._paid_until[token_id] = paid_until + self._price
        return 0.0
