"""The nemesis: what happens to hubs, servers and links. Each strike is over when it returns, and everything is mended."""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final

from tools.chaos_hubs.machines import BUS, STORE
from tools.chaos_hubs.world import HUBS, HubMachine, NoAnswer, World, until


def _judge(world: World) -> HubMachine:
    until(lambda: world.judge() is not None, "a hub judges")
    hub = world.judge()
    return hub if hub is not None else _judge(world)


def _other(world: World, chance: random.Random) -> HubMachine:
    judge = _judge(world)
    return chance.choice([hub for hub in world.hubs if hub is not judge])


def _kill(hub: HubMachine, chance: random.Random) -> None:
    hub.kill()
    time.sleep(chance.uniform(0.0, 12.0))
    hub.start()


def _freeze(hub: HubMachine, chance: random.Random) -> None:
    hub.signal(signal.SIGSTOP)
    time.sleep(chance.uniform(1.0, 15.0))
    hub.signal(signal.SIGCONT)


def _kill_the_judge(world: World, chance: random.Random) -> None:
    _kill(_judge(world), chance)


def _kill_another(world: World, chance: random.Random) -> None:
    _kill(_other(world, chance), chance)


def _kill_two(world: World, chance: random.Random) -> None:
    judge, other = _judge(world), _other(world, chance)
    judge.kill()
    time.sleep(chance.uniform(0.0, 8.0))
    other.kill()
    time.sleep(chance.uniform(0.0, 8.0))
    judge.start()
    other.start()


def _freeze_the_judge(world: World, chance: random.Random) -> None:
    _freeze(_judge(world), chance)


def _stop_the_judge(world: World, chance: random.Random) -> None:
    hub = _judge(world)
    hub.stop()
    time.sleep(chance.uniform(0.0, 5.0))
    hub.start()


def _roll(world: World, chance: random.Random) -> None:
    """An upgrade: all of them, one after the other."""
    for hub in chance.sample(world.hubs, HUBS):
        hub.stop()
        hub.start()
        until(lambda: world.judge() is not None, "a hub judges")


def _drain_the_judge(world: World, chance: random.Random) -> None:
    """A drain is refused while no other hub stands by: then it is tried again."""
    drained: list[tuple[HubMachine, str]] = []

    def drain() -> bool:
        hub = _judge(world)
        names = {one["url"]: one["name"] for one in world.ask("GET", "/api/v1/hubs")["hubs"]}
        path = f"/api/v1/hubs/{names.get(hub.url)}/drain"
        with suppress(NoAnswer):
            world.ask("POST", path)
            drained.append((hub, path))
        return bool(drained)

    until(drain, "the hub that judges is drained")
    hub, path = drained[0]
    until(lambda: world.judge() not in (None, hub), "another hub judges")
    time.sleep(chance.uniform(0.0, 3.0))

    def undrain() -> bool:
        with suppress(NoAnswer):  # It has released its row, and has the next one in a moment.
            world.ask("DELETE", path)
            return True
        return False

    until(undrain, "it may judge again")


def _cut_the_judge_from_the_store(world: World, chance: random.Random) -> None:
    with _judge(world).machine.silent_towards(STORE):
        time.sleep(chance.uniform(2.0, 15.0))


def _cut_the_judge_from_the_bus(world: World, chance: random.Random) -> None:
    with _judge(world).machine.silent_towards(BUS):
        time.sleep(chance.uniform(2.0, 15.0))


def _deafen_the_judge(world: World, chance: random.Random) -> None:
    with _judge(world).machine.deaf():
        time.sleep(chance.uniform(2.0, 15.0))


def _unplug_the_judge(world: World, chance: random.Random) -> None:
    with _judge(world).machine.unplugged():
        time.sleep(chance.uniform(2.0, 15.0))


def _kill_the_store(world: World, chance: random.Random) -> None:
    world.store.kill()
    time.sleep(chance.uniform(0.0, 8.0))
    world.store.start()


def _freeze_the_store(world: World, chance: random.Random) -> None:
    world.store.freeze()
    time.sleep(chance.uniform(1.0, 12.0))
    world.store.thaw()


def _kill_the_bus(world: World, chance: random.Random) -> None:
    world.bus.kill()
    time.sleep(chance.uniform(0.0, 8.0))
    world.bus.start()


def _freeze_the_bus(world: World, chance: random.Random) -> None:
    world.bus.freeze()
    time.sleep(chance.uniform(1.0, 12.0))
    world.bus.thaw()


STRIKES: Final[Mapping[str, Callable[[World, random.Random], None]]] = {
    strike.__name__.replace("_", " ").strip(): strike
    for strike in (
        _kill_the_judge,
        _kill_another,
        _kill_two,
        _freeze_the_judge,
        _stop_the_judge,
        _roll,
        _drain_the_judge,
        _cut_the_judge_from_the_store,
        _cut_the_judge_from_the_bus,
        _deafen_the_judge,
        _unplug_the_judge,
        _kill_the_store,
        _freeze_the_store,
        _kill_the_bus,
        _freeze_the_bus,
    )
}
