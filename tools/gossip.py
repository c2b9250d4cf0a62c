"""Gossip and peer-to-peer heartbeats beside one hub, in numbers: messages, and how soon everybody knows of a death.

    python -m tools.gossip

Rounds of one beat interval each, without loss, which is the best case for all of them. *Peer-to-peer*: everybody beats to everybody. *Gossip*:
everybody sends its table of newest beats to `FANOUT` others a round, as van Renesse's failure detector does, and gives up whoever has no
news for `wait` rounds: as long as news may need to reach everybody with a chance of a false verdict below `FALSE_MAX`. *Hub*: one beat each.
`docs/explanation/why-no-gossip.md` has the table.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

FANOUT: Final = 3
FALSE_MAX: Final = 1e-7
ENTRY_BYTES: Final = 24
"""An agent's id and the number of its newest beat."""
BEAT_BYTES: Final = 150
MISSED_MAX: Final = 2.5
"""A hub gives up after this many intervals."""


@dataclass(frozen=True)
class Row:
    """What one way costs and how soon it is known."""

    way: str
    agents: int
    messages: float
    """By each agent, a round."""
    bytes: float
    """Sent by each agent, a round."""
    known_after: float
    """Rounds from a death until everybody who decides knows of it."""


def spread_rounds(agents: int, chance: random.Random) -> int:
    """Rounds until the news of one agent has reached all."""
    heard, rounds = {0}, 0
    while len(heard) < agents:
        rounds += 1
        heard |= {chance.randrange(agents) for _ in range(FANOUT * len(heard))}
    return rounds


def wait_rounds(agents: int, chance: random.Random, tries: int = 50) -> float:
    """Rounds without news before a gossiping agent may give another one up.

    News reaches a given agent in a round with a chance that tends to `1 - exp(-FANOUT)` once nearly all have it: beyond the
    slowest spread seen, each further round makes a miss `exp(-FANOUT)` times as likely.
    """
    slowest = max(spread_rounds(agents, chance) for _ in range(tries))
    further, miss = 0, 1.0 / tries / agents
    while miss > FALSE_MAX / agents:
        miss *= 2.718281828**-FANOUT
        further += 1
    return float(slowest + further)


def compare(agents: int, seed: int = 0) -> list[Row]:
    """The three ways, for so many agents."""
    wait = wait_rounds(agents, random.Random(seed))
    return [
        Row("hub", agents, 1.0, BEAT_BYTES, MISSED_MAX),
        Row("peer-to-peer", agents, agents - 1.0, (agents - 1.0) * BEAT_BYTES, MISSED_MAX),
        Row("gossip", agents, FANOUT, FANOUT * agents * ENTRY_BYTES, wait),
    ]


def main() -> None:
    """Print the table."""
    print(f"{'agents':>7}  {'way':13} {'messages':>9} {'kB':>9}  known after (intervals)")
    for agents in (10, 100, 1000, 10_000):
        for row in compare(agents):
            print(
                f"{row.agents:7}  {row.way:13} {row.messages:9.0f} {row.bytes / 1000:9.1f}  {row.known_after:.1f}"
            )


if __name__ == "__main__":
    main()
