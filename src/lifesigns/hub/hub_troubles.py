"""Troubles of the hub itself, told when they begin and when they are over: each stands while it lasts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lifesigns.ports import Event

STORE = "STORE"
BUS = "BUS"
TOKENS = "TOKENS"
CONNECTIONS = "CONNECTIONS"
ROWS = "ROWS"


@dataclass(slots=True)
class HubTrouble:
    """One thing that may be wrong: the events that say so, since when it is, and why."""

    what: str
    begun: str
    over: str
    since: float | None = None
    why: str = ""


def _troubles() -> tuple[HubTrouble, ...]:
    return (
        HubTrouble(STORE, "HUB_STORE_LOST", "HUB_STORE_BACK"),
        HubTrouble(BUS, "HUB_BUS_LOST", "HUB_BUS_BACK"),
        HubTrouble(TOKENS, "HUB_TOKENS_REFUSED", "HUB_TOKENS_ACCEPTED"),
        HubTrouble(CONNECTIONS, "HUB_CONNECTIONS_FULL", "HUB_CONNECTIONS_FREE"),
        HubTrouble(ROWS, "HUB_ROWS_UNREADABLE", "HUB_ROWS_READABLE"),
    )


class HubTroubles:
    """All of them. `announce` keeps and tells an event, `tell` only tells it."""

    def __init__(
        self,
        announce: Callable[[str, Mapping[str, object]], None],
        tell: Callable[[Sequence[Event]], None],
    ) -> None:
        self._announce = announce
        self._tell = tell
        self._all = {trouble.what: trouble for trouble in _troubles()}

    def now(self) -> list[HubTrouble]:
        """What is wrong right now."""
        return [trouble for trouble in self._all.values() if trouble.since is not None]

    def note(self, what: str, why: str, now: float) -> None:
        """It is wrong for this reason, or right. While the store is away nothing can be kept: then it is told at once, and
        without a number."""
        trouble = self._all[what]
        if why and trouble.since is None:
            trouble.since, trouble.why = now, why
            if self._all[STORE].since is None:
                self._announce(trouble.begun, {"reason": why})
            else:
                self._tell([Event(0, now, trouble.begun, "", msgspec.json.encode({"reason": why}))])
        elif why:
            trouble.why = why
        elif trouble.since is not None:
            away_for = round(now - trouble.since, 3)
            self._announce(trouble.over, {"reason": trouble.why, "away_for_s": away_for})
            trouble.since = None
