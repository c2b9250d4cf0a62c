"""indexer freezes: a blocking call in a coroutine, the commonest way to stop an event loop.

Its beats continue, because they come from the sender's thread. Its successor begins after its last checkpoint and knows
from the handoff note to skip this page.
"""

import asyncio
import time

from lifesigns.demo.agents.turns import done_before, sender, turn, work_on

POISONED = 5


async def main() -> None:
    async with sender() as life:
        done = done_before(life)
        if life.handoff:
            print(f"goes on after turn {done}, and leaves page {POISONED} out", flush=True)
            await work_on(life, after=done)
        for number in range(done + 1, POISONED):
            await turn(life, number)
        print(f"fetches page {POISONED} with a blocking call, and its loop stands still", flush=True)
        time.sleep(3600)  # noqa: ASYNC251 -- this is the mistake it shows


asyncio.run(main())
