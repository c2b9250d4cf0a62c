"""Hostile agents that say as much as they can, with their tokens over HTTP and as a user of a bus, beside neighbours on both.

Promise: the neighbours' beats are heard, their deaths are found when they are due, and memory and disk stay within what one token may
fill. A small version; each attack by itself, for longer, is `make bench` (`hostile`).

How long an answer takes depends on the machine, too. A hub that waits for a processor is behind, and says so instead of convicting
anybody. So what is asked here of every machine is what the hub spends on the attack; and the times where it had its processor.
"""

from __future__ import annotations

import sys

import pytest

from tests.security.hostile import FLOODS, REDIS_FLOODS
from tests.security.neighbour import beside

LOAD_FOR = 5.0
BUSY_MAX = 0.85
"""The token's share of a quarter, what follows from its signals later, and the disk: half of a core; and what it floods the bus with
takes up to 0.3 of it to skip. Without shares it is all of it."""
BUSY_BY_SINGLES_MAX = 0.7
"""Nothing is read in turns and no bus is skipped then: 0.43 to 0.45. When waiting itself took time it was 0.86 to 0.96."""
STARVED = 0.05
"""From this share of the time on the machine is busy with something else."""
FOUND_WITHIN = 3.5
"""Beside several tokens twice as long: five of six that come and go make the hub doubt itself a little."""
P99_MAX = 0.1
TAKEN_MIN = {"reports": 5, "singles": 1_000}
"""Deliveries of an attack over HTTP."""
HEARD_MIN = 2_000
"""Signals, of five deliveries of the attack: those of the neighbours are a few hundred."""
SKIPPED_MIN = 50_000
MEMORY_MAX_MB = 300
DISK_MAX_MB = 150


@pytest.mark.parametrize(
    ("attacks", "tokens"),
    [
        (("new_ids", "reports", "bus_beats"), 1),
        (("redis_beats",), 1),
        (("reports", "claims"), 5),
        (("singles",), 1),
    ],
    ids=["HTTP and NATS", "Redis", "five tokens", "single posts"],
)
def test_a_neighbour_of_a_hostile_token_is_heard_and_its_death_is_found(
    attacks: tuple[str, ...], tokens: int
) -> None:
    within = FOUND_WITHIN * min(tokens, 2)
    floods = not {*FLOODS, *REDIS_FLOODS}.isdisjoint(attacks)

    def at_full_speed(answers: dict[str, int]) -> bool:
        """Whether the attack got through: it may have to wait for a processor, too."""
        by_http = answers.get("202", 0) >= max(TAKEN_MIN.get(attack, 0) for attack in attacks)
        return by_http and (not floods or answers.get("published", 0) >= 100_000)

    found = beside(attacks, tokens=tokens, load_for=LOAD_FOR, found_for=within + 2.5, attacked=at_full_speed)
    sys.stdout.write(f"{found}\n")
    assert at_full_speed(found.answers), f"nothing was attacked: {found}"
    assert "reports" not in attacks or found.heard >= HEARD_MIN, f"nothing of it was heard: {found}"
    assert not found.harmed, found
    assert found.busy <= (BUSY_BY_SINGLES_MAX if attacks == ("singles",) else BUSY_MAX), found
    assert found.memory_mb <= MEMORY_MAX_MB, found
    assert found.disk_mb <= DISK_MAX_MB, found
    if found.starved < STARVED:
        assert not floods or found.skipped >= SKIPPED_MIN, f"the hub was not flooded: {found}"
        assert found.found_after <= within, found
        assert not floods or found.found_on_bus_after <= within, found
        assert found.quantile(0.99) <= P99_MAX, found
