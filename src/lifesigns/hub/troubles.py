"""Troubles: what the hub rests on and is away, told when it goes and when it is back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from lifesigns.ports import Event

STORE = "STORE"
BUS = "BUS"


@dataclass(slots=True)
class Trouble:
    """What is away, since when."""

    what: str
    since: float | None = None
    why: str = ""


class Troubles:
    """The store and the bus. `announce` keeps and tells an event, `tell` only tells it."""

    def __init__(
        self,
        announce: Callable[[str, Mapping[str, object]], None],
        tell: Callable[[Sequence[Event]], None],
    ) -> None:
        self._announce = announce
        self._tell = tell
        self._all = {what: Trouble(what) for what in (STORE, BUS)}

    def now(self) -> list[Trouble]:
        """What is away right now."""
        return [trouble for trouble in self._all.values() if trouble.since is not None]

    def note(self, what: str, why: str, now: float) -> None:
        """It is away for this reason, or there. While the store is away nothing can be kept: then it is told at once, and
        without a number."""
        trouble = self._all[what]
        if why and trouble.since is None:
            trouble.since, trouble.why = now, why
            if self._all[STORE].since is None:
                self._announce(f"HUB_{what}_LOST", {"reason": why})
            else:
                self._tell([Event(0, now, f"HUB_{what}_LOST", "", msgspec.json.encode({"reason": why}))])
        elif not why and trouble.since is not None:
            away_for = round(now - trouble.since, 3)
            self._announce(f"HUB_{what}_BACK", {"reason": trouble.why, "away_for_s": away_for})
            trouble.since = None
