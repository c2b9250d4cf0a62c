"""indexer freezes: a blocking call in a coroutine, the commonest way to stop an event loop.

Its beats go on, for they come from a thread of the sender's. Who follows it begins after its last checkpoint and has
learnt from the handoff note that this page is better left out.
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
