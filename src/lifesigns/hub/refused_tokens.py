"""Refused tokens: agents that run, report, and are answered 401, so that nobody watches them.

A wrong token once is somebody's typing error. The same token again and again is a program that does not know better: its
token was revoked or ran out, or this hub has lost its store and knows nobody any more.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from lifesigns.hub.alerting.wording import line

TOKENS_MAX: Final = 1000
NAMES_MAX: Final = 20
SHOWN_MAX: Final = 5
AGAIN_FROM: Final = 2
"""Refusals of one token before it is a trouble."""
OVER_AFTER: Final = 120.0
"""Seconds without a refusal after which it is over. A sender tries again at least every minute."""


@dataclass(slots=True)
class _Refused:
    token_id: str
    at: float
    times: int = 0
    names: dict[str, None] = field(default_factory=dict)


class RefusedTokens:
    """Which tokens were refused lately, and for whom they wanted to speak."""

    def __init__(self) -> None:
        self._all: OrderedDict[bytes, _Refused] = OrderedDict()

    def note(self, digest: bytes, token_id: str, names: Sequence[str], now: float) -> None:
        """A token was refused. The names are what its holder says of itself: nobody has checked them."""
        refused = self._all.pop(digest, None) or _Refused(token_id, now)
        refused.at, refused.times = now, refused.times + 1
        for name in names[: NAMES_MAX - len(refused.names)]:
            refused.names[line(name)[:100]] = None
        self._all[digest] = refused
        while len(self._all) > TOKENS_MAX:
            self._all.popitem(last=False)

    def why(self, agents_known: int, now: float) -> str:
        """What to tell about them; empty if there is nothing."""
        while self._all and next(iter(self._all.values())).at < now - OVER_AFTER:
            self._all.popitem(last=False)
        again = [one for one in self._all.values() if one.times >= AGAIN_FROM]
        if not again:
            return ""
        names = sorted({name for one in again for name in one.names})
        ids = sorted(one.token_id for one in again)
        text = f"{len(again)} tokens ({_shown(ids)})" if len(again) > 1 else f"the token {ids[0]}"
        text += " is refused again and again" if len(again) == 1 else " are refused again and again"
        text += f"; who shows it says to be {_shown(names)}" if names else ""
        if not agents_known:
            return f"{text}. This hub knows no agent at all: was its store or its state folder lost? Restore a backup"
        return f"{text}. They are not watched; give them a new token (lifesigns token create)"


def _shown(names: Sequence[str]) -> str:
    more = len(names) - SHOWN_MAX
    return ", ".join(names[:SHOWN_MAX]) + (f" and {more} more" if more > 0 else "")
