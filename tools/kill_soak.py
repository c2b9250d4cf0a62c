"""`python -m tools.kill_soak`: the slow truth about `kill -9`. A hub under load is killed fifty times at random moments.

Prints how it went; exits with 1 if a promise was broken. `tests/hub/test_killed.py` is the small version of it.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from tests.hub.killing import story


def main() -> None:
    """Kill it."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--kills", type=int, default=50)
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    began_at = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        told = asyncio.run(story(Path(folder), kills=asked.kills, seed=asked.seed))
        size = sum(file.stat().st_size for file in Path(folder).glob("lifesigns.db*"))
    print(
        f"seed {asked.seed}: {told.deaths} deaths in {time.monotonic() - began_at:.0f} s; {told.posts} posts, "
        f"{told.events} events seen, {told.orders} orders carried out, {told.found} dead found, {size >> 10} kB; "
        f"there again after {statistics.median(told.starts):.2f} s (at worst {max(told.starts):.2f} s)"
    )
    for broken in told.broken[:20]:
        print(f"BROKEN: {broken}")
    sys.exit(1 if told.broken else 0)


if __name__ == "__main__":
    main()
