"""What became of a world, in a form that goes from one process to another."""

from __future__ import annotations

import logging
from typing import NamedTuple

from tools.hub_worlds.world import World


class Outcome(NamedTuple):
    """What became of a world."""

    seed: int
    broken: list[str]
    takeovers: int
    struck: list[str]
    found_after: list[float]
    nudges: int
    events: int


def live(seed: int) -> Outcome:
    """One world."""
    logging.disable(logging.CRITICAL)
    world = World(seed)
    broken = world.run()
    return Outcome(
        seed,
        broken,
        world.laws.takeovers,
        world.nemesis.struck,
        world.laws.found_after,
        len(world.people.taken),
        world.laws.last_event,
    )
