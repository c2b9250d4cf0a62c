"""What an agent costs while nothing happens to it."""

import sys

from lifesigns.core.agent import Agent

POOLED_MAX = 512
"""CPython takes objects up to this size from its own pools; a larger one costs a block of the system's."""


def test_an_agent_fits_into_the_pools_of_the_interpreter() -> None:
    size = sys.getsizeof(Agent("a", 0))

    assert size <= POOLED_MAX, (
        f"an agent has {size} bytes: move a field that few agents need to `Past`, `Work` or the like"
    )


def test_agents_to_which_nothing_happened_share_their_past() -> None:
    assert Agent("a", 0).past is Agent("b", 1).past
