"""`python -m tools.ladder_soak`: the slow truth about the ladder, with real processes.

An agent freezes under `lifesigns run`, and is nudged, asked about, ended and begun anew by a hub. On the way one of them is
killed with `kill -9`, or both: right after each step that is told, and at moments of chance. Every time each step must be done
exactly once, one life must follow the one that ended, from its last checkpoint, healthy, and all of it be on an audit log that
holds. Prints a line for each; exits with 1 if anything was wrong. `tests/acceptance/test_ladder.py` is the small version of it.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tests.acceptance.climbing import CHILD_DIES_AT, HUB_DIES_AT, Agent, Climb, Step, climbing


@dataclass(frozen=True)
class Case:
    """Which process dies, at which step, and how long after it."""

    hub: Step | None
    child: Step | None
    after: float = 0.0

    def __str__(self) -> str:
        who = " and ".join(
            f"{name} at {step.value!r}" for name, step in (("hub", self.hub), ("child", self.child)) if step
        )
        return f"{who}, {self.after:.2f} s later" if self.after else who


def cases(rounds: int, chance: Random) -> Iterator[Case]:
    """Every boundary once; then as many random cases as wanted."""
    yield from (Case(step, None) for step in HUB_DIES_AT)
    yield from (Case(None, step) for step in CHILD_DIES_AT)
    yield from (Case(step, step) for step in CHILD_DIES_AT)
    for _ in range(rounds):
        hub = chance.choice((None, *HUB_DIES_AT))
        child = chance.choice(CHILD_DIES_AT if hub is None else (None, *CHILD_DIES_AT))
        yield Case(hub, child, chance.uniform(0.0, 1.5))


async def live(case: Case) -> list[str]:
    """The errors of a case."""
    with tempfile.TemporaryDirectory() as folder:
        async with climbing(Path(folder), "coder") as climb:
            (agent,) = climb.agents
            try:
                await _go(case, agent, climb)
            except AssertionError as error:
                return [str(error)]
            return [*_wrong(case, agent, climb), *await climb.flaws()]


async def _go(case: Case, agent: Agent, climb: Climb) -> None:
    lives = 2
    for step in Step:
        if step not in (case.hub, case.child):
            continue
        await climb.until(agent, step)
        await asyncio.sleep(case.after)
        if step is case.child:
            if step is Step.BACK:
                await climb.well_again(agent, lives=2)
            lives = len(agent.lives) + 1
            agent.kill()
        if step is case.hub:
            await climb.hub.kill()
            await climb.hub.start()
    await climb.well_again(agent, lives)


def _wrong(case: Case, agent: Agent, climb: Climb) -> Iterator[str]:
    done = Counter(climb.rungs(agent))
    for step in Step:
        if done[step] > 1:
            yield f"{step.value} was done {done[step]} times: {climb.steps(agent)}, {agent.lives}"
    if case.child is None:
        for step in set(Step) - {Step.FOUND, Step.DELIVERED}:
            if not done[step]:
                yield f"{step.value} was never done: {climb.rungs(agent)}"
    wanted = {"cp-2"}
    if case.hub and case.child:
        wanted.add("cp-1")  # Killed before the hub has the second one, which is lost then.
    first, *later = agent.lives
    if first["checkpoint"] is not None or not {life["checkpoint"] for life in later} <= wanted:
        yield f"not from the last checkpoint: {agent.lives}"
    if len({life["incarnation"] for life in agent.lives}) != len(agent.lives):
        yield f"one life twice: {agent.lives}"


async def main() -> int:
    """Run, print, sum up."""
    reader = argparse.ArgumentParser(prog="python -m tools.ladder_soak", description=__doc__)
    reader.add_argument(
        "--rounds", type=int, default=30, help="how many by chance, after every boundary once"
    )
    reader.add_argument("--seed", type=int, default=1)
    asked = reader.parse_args()
    bad = total = 0
    for case in cases(asked.rounds, Random(asked.seed)):
        began, wrong = time.monotonic(), await live(case)
        total, bad = total + 1, bad + bool(wrong)
        print(
            f"{total:>3}  {time.monotonic() - began:5.1f} s  {case}: {'WRONG' if wrong else 'well'}",
            flush=True,
        )
        for text in wrong:
            print(f"     {text}", flush=True)
    print(f"\n{total} ladders (seed {asked.seed}), {bad} went wrong")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
