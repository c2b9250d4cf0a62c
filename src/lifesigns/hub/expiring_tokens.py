"""Expiring tokens: people are told in time that a token or key which is in use will be refused soon.

Each is an alert of its own, so that it is over when that token has a new secret, whatever becomes of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from lifesigns.core.effects import Fact
from lifesigns.events.hub_facts import TokenExpiring, TokenNotExpiring
from lifesigns.ports import StoredToken

DAY: Final = 86400.0
TOLD_FOR: Final = 7 * DAY
"""How long before its end people are told: a week has a working day in it."""
SHARE: Final = 4
"""But not for more than this part of its life."""
LASTS_MIN: Final = DAY / 2
"""Whoever makes tokens that last less makes the next one too, by a program; nobody has to be told."""


def is_expiring(token: StoredToken, now: float) -> bool:
    """Whether it is in use and will be refused soon."""
    if token.expires_at is None or not token.made_at <= now < token.expires_at:
        return False
    lasts = token.expires_at - token.made_at
    told_for = min(TOLD_FOR, lasts / SHARE)
    in_use = token.used_at is not None and token.used_at >= now - told_for
    return lasts >= LASTS_MIN and in_use and token.expires_at - now <= told_for


class ExpiringTokens:
    """Of which tokens people were told. Each is told again when it has a day less, so that what people read stays true."""

    def __init__(self, announce: Callable[[Fact], None]) -> None:
        self._announce = announce
        self._told: dict[str, TokenExpiring] = {}

    def now(self) -> Sequence[TokenExpiring]:
        """Those that expire soon, as they were told last."""
        return [*self._told.values()]

    def look(self, tokens: Iterable[StoredToken], now: float) -> None:
        """Tell what is new: these tokens there are, with when they were used."""
        expiring = [_expiring(token, now) for token in tokens if is_expiring(token, now)]
        for fact in expiring:
            told = self._told.get(fact.id)
            if told is None or told.days_left != fact.days_left:
                self._told[fact.id] = fact
                self._announce(fact)
        for token_id in self._told.keys() - {fact.id for fact in expiring}:
            told = self._told.pop(token_id)
            self._announce(TokenNotExpiring(now, token_id, now >= told.at + told.expires_in_s))


def _expiring(token: StoredToken, now: float) -> TokenExpiring:
    assert token.expires_at is not None
    return TokenExpiring(now, token.id, token.role, token.name, token.agents, token.expires_at - now)
