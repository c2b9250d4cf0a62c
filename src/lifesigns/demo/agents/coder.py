"""coder works: it calls its model and its tools, makes progress and saves. Nobody should do anything about it."""

import asyncio

from lifesigns.demo.agents.turns import done_before, sender, work_on


async def main() -> None:
    async with sender() as life:
        await work_on(life, after=done_before(life))


asyncio.run(main())
