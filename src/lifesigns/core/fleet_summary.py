"""Fleet summary: what an engine that judges a part of the fleet tells the others, so that together they act as one would.

Moments are told as seconds ago: no two engines share a clock. A summary is some seconds old when it is heard; so whatever
is heard of elsewhere is taken to be older than it says.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import Rung
from lifesigns.core.source_counts import Count

KNOWN_FOR: Final = 5.0
"""Seconds for which a summary counts. What only all together can know is not known afterwards, and acts wait."""

CountsBySource = dict[str, Count]


class ActElsewhere(Struct, frozen=True):
    """An automatic act."""

    ago: float
    rung: Rung
    agent_id: str
    source: str


class Wish(Struct, frozen=True):
    """An automatic act that waits until all others know of it."""

    rung: Rung
    agent_id: str
    source: str


class FleetSummary(Struct, frozen=True):
    """A part of the fleet."""

    groups: Mapping[str, CountsBySource] = {}
    """Of hosts only those that matter: somebody is unwell or silent there, here or elsewhere. Where each agent has a host of its own,
    all of them every second would cost more than the beats."""
    in_trouble: Sequence[str] = ()
    """The hosts on which that is so here: the others say what they know of them."""
    suspected: Mapping[str, Mapping[str, int]] = {}
    """By host and source: how many were suspected just now."""
    heard_ago: Mapping[str, float] = {}
    """By host: when a living agent of it was last heard."""
    acts: Sequence[ActElsewhere] = ()
    """Of the last minute."""
    wishes: Sequence[Wish] = ()


def together(parts: Sequence[FleetSummary]) -> FleetSummary:
    """Several parts as one."""
    groups: dict[str, CountsBySource] = {}
    suspected: dict[str, dict[str, int]] = {}
    heard_ago: dict[str, float] = {}
    for part in parts:
        for name, by_source in part.groups.items():
            group = groups.setdefault(name, {})
            for source, (members, unwell) in by_source.items():
                before = group.get(source, (0, 0))
                group[source] = (before[0] + members, before[1] + unwell)
        for host, counts in part.suspected.items():
            here = suspected.setdefault(host, {})
            for source, count in counts.items():
                here[source] = here.get(source, 0) + count
        for host, ago in part.heard_ago.items():
            heard_ago[host] = min(ago, heard_ago.get(host, ago))
    acts = [act for part in parts for act in part.acts]
    wishes = [wish for part in parts for wish in part.wishes]
    in_trouble = [*dict.fromkeys(host for part in parts for host in part.in_trouble)]
    return FleetSummary(groups, in_trouble, suspected, heard_ago, acts, wishes)
