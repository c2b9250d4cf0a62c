"""People are told in time that a token in use expires, and once; it is over when the token is good for longer."""

from __future__ import annotations

import pytest

from lifesigns.core.effects import Fact
from lifesigns.events.hub_facts import TokenExpiring, TokenNotExpiring
from lifesigns.hub.expiring_tokens import DAY, LASTS_MIN, ExpiringTokens, is_expiring
from lifesigns.ports import StoredToken

MADE = 1_000_000.0


def token(lasts: float | None, used_at: float | None = None, token_id: str = "abcd") -> StoredToken:
    ends = None if lasts is None else MADE + lasts
    return StoredToken(token_id, b"", "agent", "n", "coder-*", MADE, ends, used_at)


@pytest.mark.parametrize(
    ("lasts", "told_for"),
    [(90 * DAY, 7 * DAY), (28 * DAY, 7 * DAY), (4 * DAY, DAY), (DAY, DAY / 4), (LASTS_MIN, LASTS_MIN / 4)],
)
def test_a_week_before_its_end_and_never_for_more_than_a_quarter_of_its_life(
    lasts: float, told_for: float
) -> None:
    ends = MADE + lasts
    for now, told in ((ends - told_for - 1, False), (ends - told_for, True), (ends - 1, True), (ends, False)):
        assert is_expiring(token(lasts, used_at=now), now) is told


def test_who_is_not_in_use_is_not_told_of() -> None:
    now = MADE + 88 * DAY
    assert not is_expiring(token(90 * DAY, None), now)
    assert not is_expiring(token(90 * DAY, now - 7 * DAY - 1), now)
    assert is_expiring(token(90 * DAY, now - 7 * DAY), now)


def test_what_lasts_for_ever_or_for_hours_is_not_told_of() -> None:
    now = MADE + LASTS_MIN - 2
    assert not is_expiring(token(None, now), now)
    assert not is_expiring(token(LASTS_MIN - 1, now), now)


def test_each_is_told_once_and_ends_by_itself() -> None:
    told: list[Fact] = []
    tokens, now = ExpiringTokens(told.append), MADE + 89 * DAY
    both = [token(90 * DAY, now, one) for one in ("a", "b")]
    for _ in range(3):
        tokens.look(both, now)
    assert told == [TokenExpiring(now, one, "agent", "n", "coder-*", DAY) for one in ("a", "b")]
    told.clear()
    tokens.look(both, now + 1)
    assert [fact.days_left for fact in tokens.now()] == [0, 0], "what is told stays true to the day"
    assert told == [*tokens.now()]
    told.clear()
    tokens.look(both[1:], now + 2)
    assert told == [TokenNotExpiring(now + 2, "a", False)], "rotated, or revoked"
    told.clear()
    tokens.look(both[1:], now + DAY)
    assert told == [TokenNotExpiring(now + DAY, "b", True)]
