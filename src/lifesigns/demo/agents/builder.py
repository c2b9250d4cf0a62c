"""builder crashes: killed in the middle of its work, as by a machine that is out of memory."""

import asyncio
import os
import signal

from lifesigns.demo.agents.turns import done_before, sender, turn, work_on

CRASHES_AFTER = 9


async def main() -> None:
    async with sender() as life:
        done = done_before(life)
        if done:
            print(f"goes on after turn {done}", flush=True)
            await work_on(life, after=done)
        for number in range(1, CRASHES_AFTER + 1):
            await turn(life, number)
        print("runs out of memory and is killed", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)


asyncio.run(main())
