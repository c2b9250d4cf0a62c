"""Three agents on one event loop, watched from a thread. Run it: `python examples/watch_your_own_agents.py`.

One works, one crashes, one calls something that blocks the loop for everybody. The monitor says which, how and where:
it looks from outside of the loop, so it also sees when the loop stands still.
"""

from __future__ import annotations

import asyncio
import time

import lifesigns


async def work() -> None:
    """Does its job, a little at a time."""
    for _ in range(40):
        await asyncio.sleep(0.2)


async def crash() -> None:
    """Meets something unexpected."""
    await asyncio.sleep(0.5)
    raise ValueError("the model answered with a poem")


async def block() -> None:
    """Forgets that it shares the loop."""
    await asyncio.sleep(1.0)
    time.sleep(5)  # noqa: ASYNC251 -- this is what the monitor is to find


def tell(event: lifesigns.Event) -> None:
    """One line for each change, and where it hangs."""
    print(f"{event.name}: {event.agent}: {event.reason}", flush=True)
    if event.type == "event-loop-freeze" and event.stack is not None:
        line = next(line for line in event.stack.splitlines() if "time.sleep" in line)
        print(f"    it stands at: {line.strip()}", flush=True)


async def main() -> None:
    """Start them, watch them, wait for them."""
    with lifesigns.Monitor(profile="balanced") as monitor:
        monitor.on("*", tell)
        tasks = [asyncio.create_task(agent(), name=agent.__name__) for agent in (work, crash, block)]
        monitor.watch_all(tasks)
        await asyncio.gather(*tasks, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
