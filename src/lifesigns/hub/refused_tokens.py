"""Refused tokens: agents that run and report, but get 401, so that no hub watches them.

One wrong token is a typing error. The same token again and again is a program that cannot know better: its token was
revoked or expired, or this hub has lost its store and all its tokens.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

from lifesigns.core.printable import clean
from lifesigns.core.words import duration
from lifesigns.hub.alerting.reading import mend_of
from lifesigns.hub.alerting.wording import line
from lifesigns.hub.principals import NOBODY, Patterns
from lifesigns.ports import StoredToken

TOKENS_MAX: Final = 1000
NAMES_MAX: Final = 20
SHOWN_MAX: Final = 5
AGAIN_FROM: Final = 2
"""Refusals of one token before it is a trouble."""
OVER_AFTER: Final = 120.0
"""Seconds without a refusal after which it is over. A sender tries again at least every minute."""


@dataclass(slots=True)
class _Refusal:
    token_id: str
    at: float
    expired: StoredToken | None = None
    """Its row, if it was valid once."""
    times: int = 0
    names: dict[str, None] = field(default_factory=dict)


class RefusedTokens:
    """The tokens refused lately, and the agents they claimed to speak for."""

    def __init__(self) -> None:
        self._all: OrderedDict[bytes, _Refusal] = OrderedDict()

    def note(
        self,
        digest: bytes,
        token_id: str,
        names: Sequence[str],
        now: float,
        expired: StoredToken | None = None,
    ) -> None:
        """Record a refused token; `expired` is its row, if it was valid once. Its holder claims the names: we check
        them only against the patterns of such a row."""
        refused = self._all.pop(digest, None) or _Refusal(token_id, now)
        refused.expired = expired
        refused.at, refused.times = now, refused.times + 1
        for name in names[: NAMES_MAX - len(refused.names)]:
            refused.names[line(name)[:100]] = None
        self._all[digest] = refused
        while len(self._all) > TOKENS_MAX:
            self._all.popitem(last=False)

    def why(self, agents_known: int, now: float) -> str:
        """Describe them for people; empty if there is nothing."""
        while self._all and next(iter(self._all.values())).at < now - OVER_AFTER:
            self._all.popitem(last=False)
        again = [one for one in self._all.values() if one.times >= AGAIN_FROM]
        unknown = [one for one in again if one.expired is None]
        said = [_expired(one.expired, one.names, now) for one in again if one.expired is not None]
        more = len(said) - SHOWN_MAX
        said = [*said[:SHOWN_MAX], *([f"And {more} more have expired"] if more > 0 else [])]
        return ". ".join([*said, *([_unknown(unknown, agents_known)] if unknown else [])])


def _expired(token: StoredToken, names: Iterable[str], now: float) -> str:
    """Names only agents that the token was for: a thief may hold it."""
    meant = Patterns.of(token.agents) if token.agents else NOBODY
    holders = sorted(name for name in names if meant.match(name))
    ago = duration(now - (token.expires_at or now))
    return (
        f"Token {token.id} of {clean(token.agents or token.name, 100)} expired {ago} ago, and is still shown"
        f"{f' by {_shown(holders)}' if holders else ''}; they are not watched. {mend_of(token.id, token.role)}"
    )


def _unknown(refused: Sequence[_Refusal], agents_known: int) -> str:
    names = sorted({name for one in refused for name in one.names})
    ids = sorted(one.token_id for one in refused)
    text = f"{len(refused)} tokens ({_shown(ids)})" if len(refused) > 1 else f"the token {ids[0]}"
    text += " is refused again and again" if len(refused) == 1 else " are refused again and again"
    text += f"; who shows it says to be {_shown(names)}" if names else ""
    if not agents_known:
        return f"{text}. This hub knows no agent at all: was its store or its state folder lost? Restore a backup"
    return f"{text}. They are not watched; give them a new token (lifesigns token create)"


def _shown(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
