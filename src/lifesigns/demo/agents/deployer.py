"""deployer asks a person: it waits for the answer, however long that takes, and continues with it."""

import asyncio

from lifesigns.demo.agents.turns import done_before, sender, turn, work_on

ASKS_AFTER = 7


async def main() -> None:
    async with sender() as life:
        done = done_before(life)
        for number in range(done + 1, ASKS_AFTER + 1):
            await turn(life, number)
        print("asks whether it may deploy, and waits", flush=True)
        life.doing("waiting_for_human", note="May I deploy version 2 to production?")
        async for answer in life.nudges():
            print(f"is told: {answer.text}", flush=True)
            answer.answer("progress", "deploying")
            break
        life.doing(None)
        await work_on(life, after=max(done, ASKS_AFTER))


asyncio.run(main())
