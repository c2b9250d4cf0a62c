"""Spells: the times in which somebody was thought unwell, and how those of two engines differ.

A health other than well is a spell, and so is every finding; one that becomes worse is another. Two of the same kind
that overlap are the same one, seen earlier or later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from lifesigns.core.effects import FindingClosed, FindingOpened, Flip
from lifesigns.core.health import Health

MOVED_MIN: Final = 0.1
"""Seconds: what is found this much earlier or later is found at the same time."""

_UNSPOKEN: Final = frozenset({Health.HEALTHY, Health.STARTING})


@dataclass(slots=True)
class Spell:
    """Somebody was thought unwell from one moment to another; `ended_at` is infinite if that has not come."""

    agent_id: str
    what: str
    """A health (`disconnected`), or the kind of a finding and how bad it is (`looping (stuck)`)."""
    began_at: float
    text: str
    cause: str | None = None
    note: str = ""
    """How sure this is."""
    ended_at: float = inf


class Spells:
    """Collects those of one engine."""

    def __init__(self) -> None:
        self.all: list[Spell] = []
        self._open: dict[tuple[str, str], Spell] = {}

    def see(self, fact: Flip | FindingOpened | FindingClosed, note: str = "") -> None:
        """A fact begins or ends a spell."""
        match fact:
            case Flip(now=now):
                self._end(fact.agent_id, "", fact.at)
                if now not in _UNSPOKEN:
                    spell = Spell(fact.agent_id, str(now), fact.at, fact.reason, fact.cause, note)
                    self._begin("", spell)
            case FindingOpened(finding=found):
                self._end(fact.agent_id, found.kind, fact.at)
                what = f"{found.kind} ({found.severity})"
                self._begin(found.kind, Spell(fact.agent_id, what, fact.at, found.text, note=note))
            case FindingClosed():
                self._end(fact.agent_id, fact.kind, fact.at)

    def between(self, since: float, until: float) -> list[Spell]:
        """Those that touch this time."""
        return [spell for spell in self.all if spell.ended_at >= since and spell.began_at < until]

    def _begin(self, kind: str, spell: Spell) -> None:
        self.all.append(spell)
        self._open[spell.agent_id, kind] = spell

    def _end(self, agent_id: str, kind: str, at: float) -> None:
        spell = self._open.pop((agent_id, kind), None)
        if spell is not None:
            spell.ended_at = at


class Change(StrEnum):
    """How the other policy differs from the one in force."""

    MORE = "more"
    LESS = "less"
    EARLIER = "earlier"
    LATER = "later"


@dataclass(frozen=True, slots=True)
class Difference:
    """A spell that only one of two engines saw, or one later than the other. `spell` is the other policy's, unless only the
    one in force has it; `by` says how much earlier or later."""

    change: Change
    spell: Spell
    by: float = 0.0


def compare(in_force: Iterable[Spell], other: Iterable[Spell]) -> list[Difference]:
    """What the other policy judges differently, by agent and in the order of time."""
    groups: dict[tuple[str, str], tuple[list[Spell], list[Spell]]] = defaultdict(lambda: ([], []))
    for side, spells in enumerate((in_force, other)):
        for spell in spells:
            groups[spell.agent_id, spell.what][side].append(spell)
    found = [difference for pair in groups.values() for difference in _differences(*pair)]
    return sorted(found, key=lambda d: (d.spell.agent_id, d.spell.began_at, d.spell.what))


def _differences(ours: list[Spell], theirs: list[Spell]) -> Iterator[Difference]:
    """Of the spells of one agent and one kind, each list in order."""
    mine, others = iter(ours), iter(theirs)
    one, two = next(mine, None), next(others, None)
    while one is not None or two is not None:
        if two is None or (one is not None and one.ended_at < two.began_at):
            assert one is not None
            yield Difference(Change.LESS, one)
            one = next(mine, None)
        elif one is None or two.ended_at < one.began_at:
            yield Difference(Change.MORE, two)
            two = next(others, None)
        else:
            by = two.began_at - one.began_at
            if abs(by) >= MOVED_MIN:
                yield Difference(Change.EARLIER if by < 0 else Change.LATER, two, abs(by))
            one, two = next(mine, None), next(others, None)
