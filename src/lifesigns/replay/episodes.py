"""Episodes: the times in which an agent was judged unwell, and how those of two engines differ.

A health other than well is a episode, and so is every finding; one that becomes worse is another. Two overlapping episodes
of the same kind are the same one, seen earlier or later.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from math import inf
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import FindingClosed, FindingOpened, Flip
from lifesigns.core.health import Health

MOVED_MIN: Final = 0.1
"""Seconds: a smaller difference counts as the same time."""

_UNSPOKEN: Final = frozenset({Health.HEALTHY, Health.STARTING})


@dataclass(slots=True)
class Episode:
    """An agent was judged unwell from one moment to another; `ended_at` is infinite while it lasts."""

    agent_id: str
    what: str
    """A health (`disconnected`), or a finding's kind and severity (`looping (stuck)`)."""
    began_at: float
    text: str
    cause: str | None = None
    note: str = ""
    """How certain this is."""
    ended_at: float = inf


class Episodes:
    """Collects the episodes of one engine."""

    def __init__(self) -> None:
        self.all: list[Episode] = []
        self._open: dict[tuple[str, str], Episode] = {}

    def see(self, fact: Flip | FindingOpened | FindingClosed, note: str = "") -> None:
        """Let a fact begin or end a episode."""
        match fact:
            case Flip(now=now):
                self._end(fact.agent_id, "", fact.at)
                if now not in _UNSPOKEN:
                    episode = Episode(fact.agent_id, str(now), fact.at, fact.reason, fact.cause, note)
                    self._begin("", episode)
            case FindingOpened(finding=finding):
                self._end(fact.agent_id, finding.kind, fact.at)
                what = f"{finding.kind} ({finding.severity})"
                self._begin(finding.kind, Episode(fact.agent_id, what, fact.at, finding.text, note=note))
            case FindingClosed():
                self._end(fact.agent_id, fact.kind, fact.at)

    def between(self, since: float, until: float) -> list[Episode]:
        """The episodes that overlap this time."""
        return [episode for episode in self.all if episode.ended_at >= since and episode.began_at < until]

    def _begin(self, kind: str, episode: Episode) -> None:
        self.all.append(episode)
        self._open[episode.agent_id, kind] = episode

    def _end(self, agent_id: str, kind: str, at: float) -> None:
        episode = self._open.pop((agent_id, kind), None)
        if episode is not None:
            episode.ended_at = at


class Change(StrEnum):
    """How the other policy differs from the one in force."""

    MORE = "more"
    LESS = "less"
    EARLIER = "earlier"
    LATER = "later"


class Difference(Struct, frozen=True):
    """A episode that only one of two engines saw, or one later than the other. `episode` is the other policy's, unless only
    the one in force has it; `by` says how much earlier or later."""

    change: Change
    episode: Episode
    by: float = 0.0


def compare(in_force: Iterable[Episode], other: Iterable[Episode]) -> list[Difference]:
    """What the other policy judges differently, by agent and in the order of time."""
    groups: dict[tuple[str, str], tuple[list[Episode], list[Episode]]] = defaultdict(lambda: ([], []))
    for side, episodes in enumerate((in_force, other)):
        for episode in episodes:
            groups[episode.agent_id, episode.what][side].append(episode)
    differences = [difference for pair in groups.values() for difference in _differences(*pair)]
    return sorted(differences, key=lambda d: (d.episode.agent_id, d.episode.began_at, d.episode.what))


def _differences(ours: list[Episode], theirs: list[Episode]) -> Iterator[Difference]:
    """The differences of one agent's episodes of one kind, each list in order."""
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
