"""Lease: this hub among the hubs on one store. One of them leads, and judges; the others stand by.

Every hub raises the beat in its row once a second, or twice while it stands by, and sees the rows of the others. A hub
that stands by takes over when the leader has released its row, or when the leader's beat has not changed for `GONE_AFTER`
by the clock of the observer: no two clocks are compared. A store that does not answer shows nothing about the leader, so
the wait begins anew.

The lease only says when another hub may take over. Whose commits count is decided by the epoch, in the transaction of
each commit: a leader that was frozen, and goes on, can store nothing more and carries out nothing that is not stored.

A leader among several that cannot renew its row doubts itself. Another one may lead by now, and an agent that is heard
here would not look for that one: so beats over HTTP are refused. And whatever cuts it off from the store may cut its
agents off from it: it convicts none of silence until it has renewed its row and they had time to come back.

A leader that stops, or is drained, hands over: it judges on until a hub that stands by has a copy of everything, and then
releases its row. A drained hub stands by like the others, but takes over only if none of them does.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from math import inf
from typing import Final, NamedTuple

from lifesigns.errors import AdapterError
from lifesigns.hub.belief_copy import BeliefCopy
from lifesigns.ports import HubRow, Store

RENEW_EVERY: Final = 1.0
LOOK_EVERY: Final = 0.5
"""A hub that stands by sees the last beat of a leader at most so much later, and counts from there."""
GONE_AFTER: Final = 6.0
"""A renewal may take two seconds, and one of them may fail."""
LOOKS_MIN: Final = 3
"""Looks that show the same beat. An observer that was frozen itself has waited long, but not looked."""

DRAINED_AFTER: Final = 30.0
"""A drained hub waits for so long instead: the others go first, but a hub that was to rest is better than none."""

FOLLOWED_WITHIN: Final = 15.0
"""A leader that hands over waits so long for a hub that stands by. With 100,000 agents it needs about five seconds."""
LOOK_OFTEN_EVERY: Final = 0.1
"""While the leader hands over."""

TRUST_FOR: Final = 5.0
"""A leader whose last renewal began so long ago does not know whether it still leads, nor whether anybody reaches it.
Sooner than another hub can take over."""

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

    def is_gone(self, rows: Sequence[HubRow], now: float, took: float = 0.0) -> bool:
        """Whether this hub may take over, after a look at all rows. The rows may be as old as the look took: an observer
        that was frozen in the middle of it sees what was true before."""
        leader = leader_of(rows)
        drained = any(row.drained for row in rows if row.name == self._own_name)
        if not drained and (leader is None or leader.name == self._own_name):
            return True  # If it is the leader, its last life has ended.
        seen = ("", 0) if leader is None else (leader.name, leader.beat)
        if self._seen != seen:
            self._seen, self._since, self._looks = seen, now, 0
        self._looks += 1
        wait = DRAINED_AFTER if drained else GONE_AFTER
        return now - took - self._since >= wait and self._looks > LOOKS_MIN

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

    @property
    def can_take_over(self) -> bool:
        """Whether it stands by, and may judge as soon as nobody else does."""
        return not (self.row.leads or self.row.drained) and self.still_for < GONE_AFTER


class Lease:
    """The row of this hub, and the rows of the others as this hub sees them."""

    def __init__(
        self, store: Store, name: str, url: str, version: str, zone: str = "", *, drained: bool = False
    ) -> None:
        self._store = store
        self._drains: bool | None = drained
        """What the row says from the first renewal on; None: what is there."""
        self.name = name
        self._url = url
        self._version = version
        self.zone = zone
        self._watch = LeaderWatch(name)
        self.rows: Sequence[HubRow] = ()
        """All hubs at the last renewal."""
        self._changed_at: dict[str, tuple[int, float]] = {}
        """By name: the beat, and when this hub saw it first."""
        self.renewed: Callable[[], None] = lambda: None
        """Called after each renewal."""
        self.unrenewed: Callable[[], None] = lambda: None
        """Called now and then while this hub leads and has not renewed its row for `TRUST_FOR`, if there are others."""
        self._renewal_began_at = -inf
        """Of the last one that succeeded."""
        self._dead: HubRow | None = None
        """The row, as it stood still, of the leader that this hub took over from."""
        self.copied = -1
        """The commit up to which this hub, standing by, has a copy of the beliefs."""
        self.handing_over = asyncio.Event()
        """While this hub stands by: the leader is about to go, and waits for those who stand by."""
        self.wanted = asyncio.Event()
        """While this hub leads: it is to hand over, and another one can take over."""

    @property
    def url(self) -> str:
        """Where other hubs reach this one."""
        return self._url

    @property
    def leader(self) -> HubRow | None:
        """The hub that led at the last renewal."""
        return leader_of(self.rows)

    async def may_lead(self) -> bool:
        """Whether no other hub leads: then the next `open` of the store takes over, unless another hub is quicker."""
        await self._renew()
        now = asyncio.get_running_loop().time()
        return self._watch.is_gone(self.rows, now, now - self._renewal_began_at)

    @property
    def drained(self) -> bool:
        """Whether this hub is to hand over, and not to judge."""
        return any(row.drained for row in self.rows if row.name == self.name)

    async def stand_by(self, copy: BeliefCopy) -> None:
        """Return when this hub may lead. The copy follows closely while the leader hands over."""
        told = ""
        while True:
            self.copied = copy.commit
            if self.leader is not None and self.leader.drained:
                self.handing_over.set()
                copy.hurry()
            else:
                self.handing_over.clear()
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
            await asyncio.sleep(LOOK_OFTEN_EVERY if self.handing_over.is_set() else LOOK_EVERY)

    async def hand_over(self, commit: int) -> bool:
        """Return when a hub that stands by has a copy of everything up to this commit; whether one has, in time."""
        await self._store.drain(self.name)
        ends_at = asyncio.get_running_loop().time() + FOLLOWED_WITHIN
        while asyncio.get_running_loop().time() < ends_at:
            if any(seen.row.copied >= commit for seen in self.successors()):
                return True
            await asyncio.sleep(LOOK_OFTEN_EVERY)
            await self._renew()
        return False

    def successors(self) -> list[HubSighting]:
        """The hubs that could judge if this one did not."""
        return [seen for seen in self.sightings() if seen.row.name != self.name and seen.can_take_over]

    async def drain(self, name: str, *, drained: bool = True) -> None:
        """Tell a hub to hand over, and not to judge; or that it may."""
        await self._store.drain(name, drained=drained)
        await self._renew()

    async def hold(self) -> None:
        """Renew while this hub leads; return when another one does. A store that is away is nobody else's."""
        while True:
            try:
                await self._renew()
            except AdapterError as error:
                log.debug("the row of this hub is not renewed: %s", error)
                if self._may_be_replaced(asyncio.get_running_loop().time()):
                    self.unrenewed()
            else:
                if self.leader is None or self.leader.name != self.name:
                    by = "another hub" if self.leader is None else self.leader.name
                    log.critical("%s has taken over: standing by", by, extra={"action": "deposed"})
                    return
                if self.wants_to_go():
                    self.wanted.set()
            await asyncio.sleep(RENEW_EVERY)

    def wants_to_go(self) -> bool:
        """Whether this hub was drained, and another one can take over."""
        return self.drained and bool(self.successors())

    def _may_be_replaced(self, now: float) -> bool:
        """Whether another hub may have seen for long enough that this one did not renew its row. A hub alone judges on."""
        others = any(row.name != self.name for row in self.rows)
        return others and now - self._renewal_began_at >= TRUST_FOR

    def sightings(self) -> list[HubSighting]:
        """All hubs on the store, by name."""
        now = asyncio.get_running_loop().time()
        dead = None if self._dead is None else (self._dead.name, self._dead.beat)
        return [
            HubSighting(row, now - self._changed_at[row.name][1], (row.name, row.beat) == dead)
            for row in self.rows
        ]

    def other_zones(self) -> frozenset[str]:
        """The zones of other hubs, also of lost ones; none if this hub has no zone itself."""
        return frozenset(row.zone for row in self.rows if self.zone) - {"", self.zone}

    def hubs_in(self, zone: str) -> list[HubRow]:
        """The hubs in a zone, the one first that renewed its row last."""
        here = [seen for seen in self.sightings() if seen.row.zone == zone]
        return [seen.row for seen in sorted(here, key=lambda seen: seen.still_for)]

    def why_lost(self, _now: float) -> str:
        """Describe the hubs that are gone without having been stopped, and what that means; empty if there is none."""
        lost = [seen for seen in self.sightings() if seen.lost]
        if not lost:
            return ""
        named = ", ".join(f"{seen.row.name} at {seen.row.url} (for {seen.still_for:.0f} s)" for seen in lost)
        text = f"{named}: start it again, or lifesigns hubs forget NAME"
        if unasked := self._unasked_zones():
            text += f". Until then no agent is ended for its silence: nobody can be asked in zone {' and '.join(unasked)}"
        return text

    def _unasked_zones(self) -> list[str]:
        """The other zones whose hubs are all lost."""
        there = {seen.row.zone for seen in self.sightings() if not seen.lost}
        return sorted(self.other_zones() - there)

    async def forget(self, name: str) -> None:
        """Delete the row of a hub that will not come back."""
        await self._store.release(name)
        self.rows = [row for row in self.rows if row.name != name]

    async def _renew(self) -> None:
        began_at = asyncio.get_running_loop().time()
        rows = await self._renew_row()
        if self._drains is not None:
            await self._store.drain(self.name, drained=self._drains)
            self._drains = None
            rows = await self._renew_row()
        self.rows = rows
        now, self._renewal_began_at = asyncio.get_running_loop().time(), began_at
        before = self._changed_at
        self._changed_at = {
            row.name: before[row.name] if before.get(row.name, (None,))[0] == row.beat else (row.beat, now)
            for row in self.rows
        }
        self.renewed()

    async def _renew_row(self) -> Sequence[HubRow]:
        return await self._store.renew(self.name, self._url, self._version, self.zone, self.copied)
