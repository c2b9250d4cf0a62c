"""Expiring tokens: warns people in time that the hub will soon refuse a token or key in use.

Each token has an alert of its own, which is over when that token has a new secret.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lifesigns.core.effects import Fact
from lifesigns.events.hub_facts import TokenExpiring, TokenNotExpiring
from lifesigns.ports import StoredToken

DAY: Final = 86400.0
ALERT_FOR: Final = 7 * DAY
"""How long before its end people get the alert: a week has a working day in it."""
SHARE: Final = 4
"""But at most this part of its lifetime."""
LASTS_MIN: Final = DAY / 2
"""A program makes and renews tokens with shorter lifetimes; people need no alert."""


def is_expiring(token: StoredToken, now: float) -> bool:
    """Whether it is in use and will be refused soon."""
    if token.expires_at is None or not token.made_at <= now < token.expires_at:
        return False
    lasts = token.expires_at - token.made_at
    alert_for = min(ALERT_FOR, lasts / SHARE)
    in_use = token.used_at is not None and token.used_at >= now - alert_for
    return lasts >= LASTS_MIN and in_use and token.expires_at - now <= alert_for


class ExpiringTokens:
    """The tokens with an open alert. Each is announced again with a day less, so that the alert stays true."""

    def __init__(self, announce: Callable[[Fact], None]) -> None:
        self._announce = announce
        self._announced: dict[str, TokenExpiring] = {}

    def now(self) -> Sequence[TokenExpiring]:
        """Those that expire soon, as last announced."""
        return [*self._announced.values()]

    def look(self, tokens: Iterable[StoredToken], now: float) -> None:
        """Announce what is new among these tokens."""
        expiring = [_expiring(token, now) for token in tokens if is_expiring(token, now)]
        for fact in expiring:
            announced = self._announced.get(fact.id)
            if announced is None or announced.days_left != fact.days_left:
                self._announced[fact.id] = fact
                self._announce(fact)
        for token_id in self._announced.keys() - {fact.id for fact in expiring}:
            announced = self._announced.pop(token_id)
            self._announce(TokenNotExpiring(now, token_id, now >= announced.at + announced.expires_in_s))


def _expiring(token: StoredToken, now: float) -> TokenExpiring:
    assert token.expires_at is not None
    return TokenExpiring(now, token.id, token.role, token.name, token.agents, token.expires_at - now)
