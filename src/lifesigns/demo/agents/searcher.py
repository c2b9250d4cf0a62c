"""searcher loops: the same search with the same result, again and again, until a nudge.

It reads its nudges between two turns, answers, and tries something else.
"""

import asyncio

import lifesigns
from lifesigns.demo.agents.turns import TURN, done_before, sender, turn, work_on

LOOPS_AFTER = 6


async def search(life: lifesigns.Sender, nudged: asyncio.Event) -> None:
    """Sure that it must be there somewhere."""
    while not nudged.is_set():
        with life.tool("search", {"query": "def frobnicate"}) as call:
            await asyncio.sleep(TURN / 2)
            call.result("no matches")


async def listen(life: lifesigns.Sender, nudged: asyncio.Event) -> None:
    async for nudge in life.nudges():
        print("is told, and tries something else", flush=True)
        nudge.answer("progress", "I repeat myself; I shall read the index instead")
        nudged.set()


async def main() -> None:
    async with sender() as life:
        nudged = asyncio.Event()
        listening = asyncio.create_task(listen(life, nudged))
        done = done_before(life)
        for number in range(done + 1, LOOPS_AFTER + 1):
            await turn(life, number)
        print("searches for the same thing again and again", flush=True)
        await search(life, nudged)
        await work_on(life, after=max(done, LOOPS_AFTER))
        await listening


asyncio.run(main())
