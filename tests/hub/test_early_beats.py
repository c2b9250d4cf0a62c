"""A hub that takes over from one that hands over misses no beat on the bus."""

from __future__ import annotations

import json

from lifesigns.hub.early_beats import EarlyBeats
from tests.hub.test_bus_receiver import Doorstep, until


def beat(number: int) -> bytes:
    return json.dumps({"agent_id": "a", "seq": number}).encode()


def numbers(ground: Doorstep) -> list[object]:
    return [getattr(signal, "seq", None) for signal in ground.heard]


async def test_what_came_before_the_hub_judged_is_heard_once_and_in_order() -> None:
    ground = Doorstep()
    early = EarlyBeats(ground.door)
    await early.listen()
    for number in (1, 2):
        await ground.bus.publish("heartbeat.a", beat(number))
    assert ground.heard == [], "the hub has no engine yet"
    await early.pass_on()
    await ground.door.open()
    for number in (3, 4):
        await ground.bus.publish("heartbeat.a", beat(number))
    await until(lambda: len(ground.heard) >= 4)
    assert numbers(ground) == [1, 2, 3, 4]


async def test_a_handover_that_is_called_off_leaves_nothing_behind() -> None:
    ground = Doorstep()
    early = EarlyBeats(ground.door)
    await early.listen()
    await ground.bus.publish("heartbeat.a", beat(1))
    await early.end()
    await ground.bus.publish("heartbeat.a", beat(2))
    await early.pass_on()
    await ground.door.open()
    await ground.bus.publish("heartbeat.a", beat(3))
    await until(lambda: ground.heard)
    assert numbers(ground) == [3]


async def test_a_hub_whose_leader_died_has_listened_to_nothing() -> None:
    ground = Doorstep()
    await EarlyBeats(ground.door).pass_on()
    await ground.door.open()
    await ground.bus.publish("heartbeat.a", beat(1))
    await until(lambda: ground.heard)
    assert ground.door.state == "ok"
