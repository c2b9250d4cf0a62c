"""`python -m tools.day`: the slow truth about memory and disk. A day of virtual time with 1,000 agents that come and go.

Prints what the hub holds hour by hour; exits with 1 if anything grows without end. `tests/hub/test_bounded.py` is the
small version of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from pathlib import Path

import psutil

from tests.hub.day import Count, Day, Plan, grown


class Shown(Day):
    """A day that reports while it passes."""

    def _look(self) -> Count:
        count = super()._look()
        size = psutil.Process().memory_info().rss >> 20
        print(
            f"{len(self.counts) + 1:3} h  {count.agents:6} agents  {count.heard:9} signals  {count.events:8} events  "
            f"{sum(count.held.values()):8} things held  {size:5} MB  {count.disk >> 20:5} MB on disk",
            flush=True,
        )
        return count


def main() -> None:
    """Run it."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--agents", type=int, default=1000)
    reader.add_argument("--hours", type=int, default=24)
    asked = reader.parse_args()
    began_at = time.monotonic()
    plan = Plan(asked.agents, asked.hours, 3600, life=7200.0, forget_after=3600.0, history_for=4 * 3600.0)
    with tempfile.TemporaryDirectory() as folder:
        counts = asyncio.run(Shown(plan, Path(folder)).live())
    complaints = grown(counts, warm=asked.hours // 3)
    print(f"{asked.hours} h of {asked.agents} agents in {time.monotonic() - began_at:.0f} s")
    for complaint in complaints:
        print(f"BROKEN: {complaint}")
    sys.exit(1 if complaints else 0)


if __name__ == "__main__":
    main()
