"""`python -m tools.hub_worlds`: many worlds, each from its own seed. Exits with 1 if a law was broken."""

from __future__ import annotations

import argparse
import logging
import sys
import time
from collections import Counter
from multiprocessing import get_context

from tools.hub_worlds.outcome import Outcome, live
from tools.hub_worlds.world import World


def main() -> None:
    """Live through them."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--worlds", type=int, default=500)
    reader.add_argument("--seed", type=int, default=1, help="of the first world; the others follow")
    reader.add_argument("--jobs", type=int, default=2)
    reader.add_argument("--story", action="store_true", help="tell what happened in the first world")
    asked = reader.parse_args()
    if asked.story:
        logging.disable(logging.CRITICAL)
        world = World(asked.seed)
        broken = world.run()
        print("\n".join((*world.notes, *broken)))
        sys.exit(1 if broken else 0)
    began_at = time.monotonic()
    seeds = range(asked.seed, asked.seed + asked.worlds)
    outcomes: list[Outcome] = []
    with get_context("spawn").Pool(asked.jobs, maxtasksperchild=50) as pool:
        for outcome in pool.imap(live, seeds):
            outcomes.append(outcome)
            for law in outcome.broken[:3]:
                print(f"BROKEN in seed {outcome.seed}: {law}", flush=True)
    bad = [outcome for outcome in outcomes if outcome.broken]
    struck = Counter(name for outcome in outcomes for name in outcome.struck)
    found = sorted(after for outcome in outcomes for after in outcome.found_after)
    print(
        f"{len(outcomes)} worlds from seed {asked.seed} in {time.monotonic() - began_at:.0f} s: "
        f"{sum(outcome.takeovers for outcome in outcomes)} takeovers, {sum(outcome.events for outcome in outcomes)} events, "
        f"{sum(outcome.nudges for outcome in outcomes)} nudges, {len(found)} deaths found"
        + (f" after {found[len(found) // 2]:.0f} s (median), {found[-1]:.0f} s (worst)" if found else "")
    )
    print(", ".join(f"{name} {times}" for name, times in sorted(struck.items())))
    print(f"{len(bad)} worlds with a broken law")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
