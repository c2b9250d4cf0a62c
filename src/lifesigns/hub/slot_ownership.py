"""Slot ownership: which of several hubs judges which agents. Pure: rows and times come in, a plan comes out.

Agents are divided into slots. A row of the store says who owns each slot, under an epoch that only ever rises; whoever
changes it names the epoch that it has seen, so of two hubs one succeeds, and the beat of the owner: one that is back since
keeps its slots. What a hub concludes from the rows:

    * It trusts that it owns its slots for `TRUST_FOR` after it began to renew its own row, and no longer.
    * The owner of a slot is gone when this hub has seen its beat unchanged for `GONE_AFTER`, over `LOOKS_MIN` looks. That is
      the observer's own clock: no two clocks are compared. The wait counts from the end of the first such look to the
      beginning of the last: an observer that freezes in the middle of one has seen rows of long ago. A store that does not
      answer shows nothing about anybody, so the wait begins anew.
    * Among the hubs that may have a slot, a hash of both ranks them (rendezvous hashing): one hub that comes or goes moves
      only the slots it gets or had. The first in rank takes a slot without an owner, the next a few seconds later: the first
      may see things differently.
    * A hub that is new, or was gone, waits: one that comes and goes would move agents back and forth. Then the owners give
      it what it ranks first for, a few slots at a time. A drained hub gives away everything, unless it would be the last.

That the wait until a hub is gone is longer than its trust is why no two hubs trust themselves with the same slot. Should that
ever fail, the epoch decides in the transaction of each commit.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from math import inf
from typing import Final
from zlib import crc32

from lifesigns.ports.slots import Plan, SlotHub, SlotRow

SLOTS: Final = 256

TRUST_FOR: Final = 5.0
GONE_AFTER: Final = 6.0
"""A renewal may take two seconds, and one of them may fail."""
LOOKS_MIN: Final = 3
"""Looks that show the same beat. An observer that was frozen itself has waited long, but not looked."""

SEEN_WITHIN: Final = 3.0
"""A hub gets slots only if its beat was seen to change within this time: it may have died since."""

JOIN_AFTER: Final = 10.0
JOIN_AFTER_LOSSES: Final = 60.0
LOSSES_MAX: Final = 2
LOSSES_WITHIN: Final = 600.0
"""A hub that lost slots to others twice within this time waits longer before it takes some again: something is wrong with it."""

RANK_WAIT: Final = 3.0
"""How much longer each next hub in rank waits before it takes a slot that nobody owns."""

MOVES_AT_ONCE: Final = 4
"""Slots that one owner gives to others after one look, so that nobody has to restore a third of the fleet at once."""


def slot_of(agent_id: str) -> int:
    """The slot of an agent, the same everywhere and for ever."""
    return crc32(agent_id.encode("utf-8", "surrogatepass")) % SLOTS


@dataclass(slots=True)
class _Sighting:
    """What this hub has seen of another one's beat."""

    beat: int
    since: float
    """When this beat was first seen."""
    joined_at: float
    """When the hub was first seen, or seen again after it was gone."""
    looks: int = 1
    moved: bool = False
    """Whether it was seen to change, since the store last failed."""

    def is_gone(self, began_at: float) -> bool:
        """Whether it was gone when a look began."""
        return began_at - self.since >= GONE_AFTER and self.looks > LOOKS_MIN

    def is_settled(self, began_at: float, now: float) -> bool:
        """Whether the hub surely lives, and has for a while."""
        return self.moved and now - self.since < SEEN_WITHIN and began_at - self.joined_at >= JOIN_AFTER


class SlotOwnership:
    """The slots of one hub, as it concludes from what it reads."""

    def __init__(self, name: str, knows_format: int) -> None:
        self._name = name
        self._format = knows_format
        self._sightings: dict[str, _Sighting] = {}
        self._held: dict[int, int] | None = None
        """By slot: its epoch, as of the last look; None before the first one."""
        self._free_since: dict[int, float] = {}
        """By slot that nobody owns: when this hub first saw that."""
        self._trust_ends_at = -inf
        self._joined_at = inf
        self._losses: list[float] = []
        self._began_at = self._now = -inf
        """Of the present look."""

    @property
    def trust_ends_at(self) -> float:
        """Until when this hub may judge what it holds."""
        return self._trust_ends_at

    def held(self, now: float) -> Mapping[int, int]:
        """The slots that this hub judges now, and their epochs."""
        return {} if now >= self._trust_ends_at else self._held or {}

    def store_failed(self) -> None:
        """The store did not answer: the others may have been unable to renew their rows."""
        for sighting in self._sightings.values():
            sighting.looks, sighting.since = 0, inf
        self._free_since.clear()

    def look(self, hubs: Sequence[SlotHub], slots: Iterable[SlotRow], began_at: float, now: float) -> Plan:
        """This hub has renewed its row, which it began to do at `began_at`, and read all rows: what does it want?"""
        self._began_at, self._now = began_at, now
        self._see(hubs)
        rows = {row.slot: row for row in slots}
        first = self._held is None
        own = {slot: row.epoch for slot, row in rows.items() if row.owner == self._name}
        if not first:
            self._note_losses(own)
        self._held = (
            {} if first else own
        )  # Of a life before this one: another epoch ends what is still under way of it.
        self._trust_ends_at = began_at + TRUST_FOR
        plan = Plan(beats={hub.name: hub.beat for hub in hubs})
        for slot in range(SLOTS):
            row = rows.get(slot, SlotRow(slot))
            if row.owner == self._name:
                if first and row.format <= self._format:
                    plan.claim[slot] = row.epoch
                continue
            if self._is_free(row):
                self._free_since.setdefault(slot, now)
                if self._may_claim(row, hubs):
                    plan.claim[slot] = row.epoch
            else:
                self._free_since.pop(slot, None)
        if not first:
            plan.give = self._surplus(own, rows, hubs)
            for slot in plan.give:
                del self._held[slot]
        return plan

    def claimed(self, epochs: Mapping[int, int]) -> None:
        """The store says which of the wanted slots are ours, and under which epochs."""
        if self._held is not None:
            self._held = {**self._held, **epochs}

    # --- the others -----------------------------------------------------------------------------------

    def _see(self, hubs: Sequence[SlotHub]) -> None:
        now = self._now
        self._joined_at = min(self._joined_at, now)
        before, self._sightings = self._sightings, {}
        for hub in hubs:
            known = before.get(hub.name)
            if known is None or (known.beat != hub.beat and known.is_gone(self._began_at)):
                known = _Sighting(hub.beat, now, now)
            elif known.beat != hub.beat:
                known = _Sighting(hub.beat, now, known.joined_at, moved=True)
            elif known.since == inf:
                known = _Sighting(hub.beat, now, known.joined_at)
            else:
                known.looks += 1
            self._sightings[hub.name] = known

    def _note_losses(self, own: Mapping[int, int]) -> None:
        """Note it if others took slots: what this hub gave away it did not hold any more."""
        if any(slot not in own for slot in self._held or ()):
            recent = [at for at in self._losses if self._now - at < LOSSES_WITHIN]
            self._losses, self._joined_at = [*recent, self._now], self._now

    def _is_free(self, row: SlotRow) -> bool:
        owner = self._sightings.get(row.owner)
        return owner is None or owner.is_gone(self._began_at)

    # --- who may have a slot --------------------------------------------------------------------------

    def _may_claim(self, row: SlotRow, hubs: Sequence[SlotHub]) -> bool:
        if row.format > self._format:
            return False
        others = [hub for hub in hubs if hub.name != self._name and self._lives(hub.name)]
        if not others:
            return True
        if any(hub.drained for hub in hubs if hub.name == self._name):
            rank = len(others) + 1
        else:
            own = weight(self._name, row.slot)
            rank = sum(weight(hub.name, row.slot) > own for hub in others if self._is_fit(hub, row))
        may_from = max(self._free_since[row.slot], self._joined_at + self._join_after())
        return self._began_at - may_from >= RANK_WAIT * rank

    def _surplus(
        self, own: Mapping[int, int], rows: Mapping[int, SlotRow], hubs: Sequence[SlotHub]
    ) -> dict[int, tuple[int, str]]:
        """The slots of this hub that others rank first for, and who does; all of them if this one is drained."""
        drained = any(hub.drained for hub in hubs if hub.name == self._name)
        give: dict[int, tuple[int, str]] = {}
        for slot in own:
            fit = [hub.name for hub in hubs if hub.name != self._name and self._is_fit(hub, rows[slot])]
            if not drained:
                fit.append(self._name)
            best = max(fit, key=lambda name: weight(name, slot), default=self._name)
            if best != self._name:
                give[slot] = (own[slot], best)
            if len(give) >= MOVES_AT_ONCE and not drained:
                break
        return give

    def _is_fit(self, hub: SlotHub, row: SlotRow) -> bool:
        """Whether another hub may and can have this slot."""
        return (
            not hub.drained
            and row.format <= hub.format
            and self._sightings[hub.name].is_settled(self._began_at, self._now)
        )

    def _lives(self, name: str) -> bool:
        return not self._sightings[name].is_gone(self._began_at)

    def _join_after(self) -> float:
        lately = sum(self._now - at < LOSSES_WITHIN for at in self._losses)
        return JOIN_AFTER_LOSSES if lately >= LOSSES_MAX else JOIN_AFTER


@lru_cache(maxsize=16 * SLOTS)
def weight(name: str, slot: int) -> bytes:
    """The claim of a hub to a slot: the highest ranks first."""
    return blake2b(f"{slot} {name}".encode(), digest_size=8).digest()
