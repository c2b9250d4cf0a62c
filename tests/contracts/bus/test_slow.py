"""A subscriber that is too slow loses its own oldest messages, never somebody else's."""

import asyncio
import threading
import time
import tracemalloc

from lifesigns.adapters.bus.delivery import Delivery
from tests.contracts.bus.ground import Ear, Ground


async def test_who_is_too_slow_loses_its_oldest_and_others_lose_nothing(ground: Ground) -> None:
    """All on one connection and one loop, the hardest case: the slow one takes 2 ms for each message."""
    waiting_max = 200  # More than one read of a socket brings, which is 256 KiB.
    speaker, hearer = await ground.bus(), await ground.bus(waiting_max=waiting_max)
    other, elsewhere, slow = Ear(), Ear(), Ear()

    def drag(subject: str, payload: bytes) -> None:
        time.sleep(0.002)
        slow(subject, payload)

    dragging = await hearer.subscribe("heartbeat.*", drag)
    quick = await hearer.subscribe("heartbeat.>", other)
    bystander = await (await ground.bus()).subscribe("heartbeat.*", elsewhere)
    messages = [b"%-4000d" % number for number in range(1_500)]
    for message in messages:
        await speaker.publish("heartbeat.x", message)
    for ear in (other, elsewhere, slow):
        await ear.until_last(messages[-1])
    assert (quick.dropped, bystander.dropped) == (0, 0)
    assert other.payloads == elsewhere.payloads == messages
    assert dragging.dropped > 0
    assert dragging.dropped + len(slow.heard) == len(messages), "every message is either heard or counted"
    assert slow.payloads == sorted(slow.payloads, key=int)
    assert slow.payloads[-waiting_max:] == messages[-waiting_max:], "the newest are kept"


async def test_what_waits_for_somebody_who_never_hears_is_bounded() -> None:
    """Also in bytes: eight hundred messages of 1 MiB wait as at most 64 MiB, and in another thread nobody is held up."""
    delivery = Delivery("a", Ear(), lambda _: asyncio.sleep(0), waiting_max=65_536)
    tracemalloc.start()

    def pour() -> None:
        for _ in range(800):
            delivery.put("a", bytes(1024 * 1024))

    thread = threading.Thread(target=pour)
    thread.start()
    thread.join(60)  # The loop stands still meanwhile, and so nothing is heard.
    assert not thread.is_alive()
    size, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert size < 70 * 1024 * 1024
    assert delivery.dropped == 800 - 64
    delivery.cease()
