"""researcher overspends: the dearest model for everything. Its cap, in the demo's lifesigns.yaml, ends it."""

import asyncio

import lifesigns
from lifesigns.demo.agents.turns import TURN, done_before, turn

DEAR_AFTER = 8


async def think_dearly(life: lifesigns.Sender) -> None:
    with life.model() as call:
        await asyncio.sleep(TURN)
        call.tokens(60_000, 9_000, cost=0.15)


async def save(stop: object) -> str:
    print("saves and ends", flush=True)
    return "last-notes"


async def main() -> None:
    async with lifesigns.Sender(profile="tolerant", interval=1.0, on_stop=save) as life:
        for number in range(done_before(life) + 1, DEAR_AFTER + 1):
            await turn(life, number)
        print("asks the dearest model about everything", flush=True)
        while True:
            await think_dearly(life)


asyncio.run(main())
