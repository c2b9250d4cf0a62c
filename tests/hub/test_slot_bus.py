"""One bus for all slots of a process."""

from __future__ import annotations

import asyncio
from functools import partial

from lifesigns.adapters.bus.memory import MemoryBus
from lifesigns.hub.slot_bus import SharedBus, speaker_of
from lifesigns.hub.slots import SLOTS, slot_of

Heard = list[tuple[int, str]]


def note(heard: Heard, slot: int, subject: str, _payload: bytes) -> None:
    heard.append((slot, subject))


async def delivered() -> None:
    """A bus in this process delivers within some rounds of the loop."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_a_subject_names_its_speaker() -> None:
    assert speaker_of("heartbeat.coder.7") == "coder.7"
    assert speaker_of("lifesigns.signal.coder") == "coder"
    assert speaker_of("lifesigns.report.relay:x.1.coder") == "coder"
    assert speaker_of("heartbeat.relay:x") is None
    assert speaker_of("lifesigns.canary.hub") is None


async def test_a_message_reaches_the_slot_of_its_agent_and_no_other() -> None:
    bus = MemoryBus("memory://slots")
    shared = SharedBus(bus)
    heard: Heard = []
    for slot in range(SLOTS):
        one = shared.of_slot(slot)
        await one.connect()
        await one.subscribe("heartbeat.>", partial(note, heard, slot))
    for n in range(50):
        await bus.publish(f"heartbeat.agent-{n}", b"{}")
    await delivered()
    assert sorted(heard) == sorted((slot_of(f"agent-{n}"), f"heartbeat.agent-{n}") for n in range(50))


async def test_what_names_no_agent_reaches_every_slot_that_listens_there_until_it_ends() -> None:
    bus = MemoryBus("memory://slots")
    shared = SharedBus(bus)
    heard: Heard = []
    ones = [shared.of_slot(slot) for slot in range(3)]
    for slot, one in enumerate(ones):
        await one.connect()
        await one.subscribe("heartbeat.>", partial(note, heard, slot))
    await bus.publish("heartbeat.relay:x", b"[]")
    await delivered()
    assert sorted(slot for slot, _ in heard) == [0, 1, 2]
    await ones[1].close()
    await bus.publish("heartbeat.relay:x", b"[]")
    await delivered()
    assert sorted(slot for slot, _ in heard) == [0, 0, 1, 2, 2]
    assert ones[0].connected
