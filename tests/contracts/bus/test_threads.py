"""Buses in threads of their own, each with its own loop."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from lifesigns.adapters.bus.memory import MemoryBus
from tests.contracts.bus.ground import Ear, Ground


async def test_two_buses_in_two_threads_meet(ground: Ground) -> None:
    """And each subscriber is called in the thread of its own loop."""
    count = 500
    ready = threading.Barrier(2, timeout=30)

    async def talk(mine: str, theirs: str) -> tuple[set[str], list[bytes]]:
        bus, ear = ground.kind(ground.url), Ear()
        threads = set()

        def hear(subject: str, payload: bytes) -> None:
            threads.add(threading.current_thread().name)
            ear(subject, payload)

        await bus.connect()
        await bus.subscribe(f"heartbeat.{theirs}", hear)
        await asyncio.to_thread(ready.wait)
        for number in range(count):
            await bus.publish(f"heartbeat.{mine}", b"%d" % number)
        await bus.flush()
        await ear.until(count)
        await asyncio.to_thread(ready.wait)
        await bus.close()
        assert threads == {threading.current_thread().name}
        return threads, ear.payloads

    with ThreadPoolExecutor(2) as pool:
        one = pool.submit(lambda: asyncio.run(talk("one", "two")))
        two = pool.submit(lambda: asyncio.run(talk("two", "one")))
        results = [await asyncio.wrap_future(one), await asyncio.wrap_future(two)]
    assert results[0][0] != results[1][0]
    assert all(heard == [b"%d" % number for number in range(count)] for _, heard in results)


async def test_a_loop_that_ended_without_closing_its_memory_bus_holds_nobody_up() -> None:
    here, ear = MemoryBus("memory://left-behind"), Ear()
    await here.connect()

    async def leave_it_open() -> MemoryBus:
        bus = MemoryBus("memory://left-behind")
        await bus.connect()
        await bus.subscribe("a", Ear())
        return bus

    abandoned = await asyncio.to_thread(lambda: asyncio.run(leave_it_open()))
    await here.subscribe("a", ear)
    for _ in range(3):
        await here.publish("a", b"")
    await ear.until(3)
    await abandoned.close()
    await here.close()


async def test_memory_buses_of_other_names_do_not_meet() -> None:
    one, other, ear = MemoryBus("memory://one"), MemoryBus("memory://other"), Ear()
    for bus in (one, other):
        await bus.connect()
    await other.subscribe(">", ear)
    await one.publish("a", b"for one")
    await other.publish("a", b"for other")
    await ear.until(1)
    assert ear.payloads == [b"for other"]
    for bus in (one, other):
        await bus.close()
