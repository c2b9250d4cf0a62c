"""What it costs to watch agents in one's own process, beside a monitor that polls each of them.

Ours is the whole process: the monitor's thread and the loop's answers to it. The agents wait for something that does
not come, so nothing else is in the numbers but what an empty loop costs. The alternative is the design of seed 000 as
most people would write it in Python: for each agent an asyncio task that pings it every two seconds and waits for its
pong with `wait_for`. Both watch the same number of agents in the same process, one after the other.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from lifesigns.agent.monitor import Monitor

INTERVAL, PING_WAIT = 2.0, 1.0
"""Those of `balanced`, which are the seed's."""
SETTLE = 3.0
"""Before measuring: the monitor has met all agents."""


def cost_of_watching(size: int, seconds: float = 60.0) -> dict[str, float]:
    """Percent of one core for both, and how many times more the polling one takes."""
    ours = asyncio.run(_watched(size, seconds))
    theirs = asyncio.run(_polled(size, min(seconds, 20.0)))
    return {"percent": ours, "polling_percent": theirs, "ratio": theirs / ours}


async def _watched(size: int, seconds: float) -> float:
    async def life(done: asyncio.Event) -> None:
        await done.wait()

    done = asyncio.Event()
    lives = [asyncio.create_task(life(done), name=f"agent-{n}") for n in range(size)]
    with Monitor("balanced") as monitor:
        monitor.watch_all(lives)
        cost = await _measure(seconds)
        assert set(monitor.all().values()) == {"healthy"}
    done.set()
    await asyncio.gather(*lives)
    return cost


async def _polled(size: int, seconds: float) -> float:
    async def answer(ping: asyncio.Queue[asyncio.Future[None]]) -> None:
        while True:
            (await ping.get()).set_result(None)

    async def poll(ping: asyncio.Queue[asyncio.Future[None]], begin_after: float) -> None:
        await asyncio.sleep(begin_after)
        while True:
            pong: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            ping.put_nowait(pong)
            await asyncio.wait_for(pong, PING_WAIT)
            await asyncio.sleep(INTERVAL)

    inboxes: list[asyncio.Queue[asyncio.Future[None]]] = [asyncio.Queue() for _ in range(size)]
    # Agents do not begin all at once.
    both: list[Callable[[int], Awaitable[None]]] = [
        lambda n: answer(inboxes[n]),
        lambda n: poll(inboxes[n], INTERVAL * n / size),
    ]
    tasks = [asyncio.ensure_future(one(n)) for n in range(size) for one in both]
    cost = await _measure(seconds)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return cost


async def _measure(seconds: float) -> float:
    """Percent of one core that this process uses."""
    await asyncio.sleep(SETTLE)
    began, cpu = time.monotonic(), time.process_time()
    await asyncio.sleep(seconds)
    return 100 * (time.process_time() - cpu) / (time.monotonic() - began)
