"""writer meets a rate limit: it says until when, waits, and continues. Waiting is no stall.

Its breaker refuses all calls of the model meanwhile.
"""

import asyncio
import time

import lifesigns
from lifesigns.demo.agents.turns import TURN, done_before, sender, turn, work_on

LIMITED_AFTER = 10
LIMITED_FOR = 12 * TURN


async def main() -> None:
    async with sender() as life:
        model_api = lifesigns.Breaker("model-api", recovery_timeout=LIMITED_FOR)
        done = done_before(life)
        for number in range(done + 1, LIMITED_AFTER + 1):
            await turn(life, number)
        print(f"has used up its rate limit for {LIMITED_FOR:g} s", flush=True)
        with life.model() as call:
            call.failed("rate limit exceeded", kind="429")
        model_api.open()
        life.doing("rate_limited", until=time.time() + LIMITED_FOR)
        await asyncio.sleep(LIMITED_FOR)
        life.doing(None)
        model_api.close()
        await work_on(life, after=max(done, LIMITED_AFTER))


asyncio.run(main())
