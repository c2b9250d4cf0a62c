"""Lease: this hub among the hubs on one store. One of them leads, and judges; the others stand by.

Every hub raises the beat in its row once a second, or twice while it stands by, and sees the rows of the others. A hub
that stands by takes over when the leader has released its row, or when the leader's beat has not changed for `GONE_AFTER`
by the clock of the observer: no two clocks are compared. A store that does not answer shows nothing about the leader, so
the wait begins anew.

The lease only says when another hub may take over. Whose commits count is decided by the epoch, in the transaction of
each commit: a leader that was frozen, and goes on, can store nothing more and carries out nothing that is not stored.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, NamedTuple

from lifesigns.errors import AdapterError
from lifesigns.ports import HubRow, Store

RENEW_EVERY: Final = 1.0
LOOK_EVERY: Final = 0.5
"""A hub that stands by sees the last beat of a leader at most so much later, and counts from there."""
GONE_AFTER: Final = 6.0
"""A renewal may take two seconds, and one of them may fail."""
LOOKS_MIN: Final = 3
"""Looks that show the same beat. An observer that was frozen itself has waited long, but not looked."""

LOST_AFTER: Final = 30.0
"""People are told of a hub that has not renewed its row for so long; of one that led and died, at the takeover."""

log: Final = logging.getLogger("lifesigns.hub")


class LeaderWatch:
    """Tells when the leader is gone. Pure: rows and times come in."""

    def __init__(self, own_name: str) -> None:
        self._own_name = own_name
        self._seen: tuple[str, int] | None = None
        self._since = 0.0
        self._looks = 0

    def is_gone(self, rows: Sequence[HubRow], now: float) -> bool:
        """Whether this hub may take over, after a look at all rows."""
        leader = leader_of(rows)
        if leader is None or leader.name == self._own_name:  # The last life of this hub has ended.
            return True
        if self._seen != (leader.name, leader.beat):
            self._seen, self._since, self._looks = (leader.name, leader.beat), now, 0
        self._looks += 1
        return now - self._since >= GONE_AFTER and self._looks > LOOKS_MIN

    def start_anew(self) -> None:
        """The store did not answer: the leader may have been unable to renew its row."""
        self._seen = None


def leader_of(rows: Sequence[HubRow]) -> HubRow | None:
    """The hub that leads, if one does."""
    return next((row for row in rows if row.leads), None)


class HubSighting(NamedTuple):
    """A hub, and for how long its row has not changed."""

    row: HubRow
    still_for: float
    led_and_died: bool = False
    """This hub took over from it because it stood still."""

    @property
    def lost(self) -> bool:
        return self.led_and_died or self.still_for >= LOST_AFTER


class Lease:
    """The row of this hub, and the rows of the others as this hub sees them."""

    def __init__(self, store: Store, name: str, url: str, version: str) -> None:
        self._store = store
        self.name = name
        self._url = url
        self._version = version
        self._watch = LeaderWatch(name)
        self.rows: Sequence[HubRow] = ()
        """All hubs at the last renewal."""
        self._changed_at: dict[str, tuple[int, float]] = {}
        """By name: the beat, and when this hub saw it first."""
        self._dead: HubRow | None = None
        """The row, as it stood still, of the leader that this hub took over from."""

    @property
    def leader(self) -> HubRow | None:
        """The hub that led at the last renewal."""
        return leader_of(self.rows)

    async def may_lead(self) -> bool:
        """Whether no other hub leads: then the next `open` of the store takes over, unless another hub is quicker."""
        await self._renew()
        return self._watch.is_gone(self.rows, asyncio.get_running_loop().time())

    async def stand_by(self) -> None:
        """Return when this hub may lead."""
        told = ""
        while True:
            try:
                if await self.may_lead():
                    self._dead = self.leader
                    return
            except AdapterError as error:
                if not error.transient:
                    raise
                self._watch.start_anew()
            if self.leader is not None and self.leader.name != told:
                told = self.leader.name
                log.info("standing by for %s", told, extra={"action": "standing_by"})
            await asyncio.sleep(LOOK_EVERY)

    async def hold(self) -> None:
        """Renew while this hub leads; return when another one does. A store that is away is nobody else's."""
        while True:
            try:
                await self._renew()
            except AdapterError as error:
                log.debug("the row of this hub is not renewed: %s", error)
            else:
                if self.leader is None or self.leader.name != self.name:
                    by = "another hub" if self.leader is None else self.leader.name
                    log.critical("%s has taken over: standing by", by, extra={"action": "deposed"})
                    return
            await asyncio.sleep(RENEW_EVERY)

    def sightings(self) -> list[HubSighting]:
        """All hubs on the store, by name."""
        now = asyncio.get_running_loop().time()
        dead = None if self._dead is None else (self._dead.name, self._dead.beat)
        return [
            HubSighting(row, now - self._changed_at[row.name][1], (row.name, row.beat) == dead)
            for row in self.rows
        ]

    def why_lost(self, _now: float) -> str:
        """Describe the hubs that are gone without having been stopped; empty if there is none."""
        lost = [
            f"{seen.row.name} at {seen.row.url} (for {seen.still_for:.0f} s)"
            for seen in self.sightings()
            if seen.lost
        ]
        return f"{', '.join(lost)}: start it again, or lifesigns hubs forget NAME" if lost else ""

    async def forget(self, name: str) -> None:
        """Delete the row of a hub that will not come back."""
        await self._store.release(name)
        self.rows = [row for row in self.rows if row.name != name]

    async def _renew(self) -> None:
        self.rows = await self._store.renew(self.name, self._url, self._version)
        now = asyncio.get_running_loop().time()
        before = self._changed_at
        self._changed_at = {
            row.name: before[row.name] if before.get(row.name, (None,))[0] == row.beat else (row.beat, now)
            for row in self.rows
        }
