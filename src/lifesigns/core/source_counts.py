"""Source counts: how much the agents of one source count for the agents of another.

A source (a token, the bus) can make up any number of agents. So each source has its own view of a group: its own agents
one by one, every other source as a single agent, which is unwell if most of its agents are. One of the other sources
may lie, so one alone counts for nothing: of the well ones one is left out, and unwell ones count from two on. Ten
agents of a host with a token each count as ten; ten thousand of one other token count as none.

A fleet of one source sees itself agent by agent.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

Count = tuple[int, int]
"""How many agents there are, and how many of them are unwell."""

NONE: Final = (0, 0)

CORROBORATED: Final = 2
"""So many other sources that agree are believed."""


class SourceCounts:
    """The sources of one group, and how many agents of each are unwell."""

    __slots__ = ("_counts", "_share", "_sources", "_unwell")

    def __init__(self, share: float) -> None:
        self._share = share
        """The share of unwell agents from which on a source is unwell."""
        self._sources: dict[str, Count] = {}
        self._counts: dict[Count, int] = {}
        """How many sources have the same count: few counts differ, however many sources there are."""
        self._unwell = 0
        """Sources that are unwell."""

    def __len__(self) -> int:
        return len(self._sources)

    @property
    def counts(self) -> Mapping[Count, int]:
        """How many sources there are of each count."""
        return self._counts

    def items(self) -> Iterable[tuple[str, Count]]:
        """Each source, and its agents."""
        return self._sources.items()

    def of(self, source: str) -> Count:
        """The agents of this source."""
        return self._sources.get(source, NONE)

    def shift(self, source: str, members: int, unwell: int) -> None:
        """Add to, or subtract from, the members and the unwell of a source."""
        before = self._sources.get(source, NONE)
        after = (before[0] + members, before[1] + unwell)
        self._note(before, -1)
        self._note(after, +1)
        if after[0]:
            self._sources[source] = after
        else:
            self._sources.pop(source, None)

    def seen_by(self, own: Count) -> Count:
        """The group as a source with this count sees it."""
        others = len(self._sources) - (own[0] > 0)
        return seen_from(own, others, self._unwell - self.is_unwell(own))

    def is_unwell(self, count: Count) -> bool:
        """Whether a source with this count is unwell, to the others."""
        members, unwell = count
        return unwell > 0 and unwell >= self._share * members

    def _note(self, count: Count, by: int) -> None:
        if not count[0]:
            return
        self._unwell += by * self.is_unwell(count)
        left = self._counts.get(count, 0) + by
        if left:
            self._counts[count] = left
        else:
            del self._counts[count]


def seen_from(own: Count, others: int, unwell: int) -> Count:
    """Our own agents, and those of the other sources that count: there are so many of them, and so many are unwell."""
    members = own[0] + max(0, others - unwell - 1)
    return (members, own[1]) if unwell < CORROBORATED else (members + unwell, own[1] + unwell)
