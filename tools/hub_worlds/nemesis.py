"""The nemesis: what happens to hubs, store, bus and links. Strikes overlap; each mends what it broke."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from tools.hub_worlds.bus import server_in
from tools.hub_worlds.network import STORE

if TYPE_CHECKING:
    from tools.hub_worlds.world import World

LOCK_FOR: Final = 10.0
"""A transaction whose client stands still is ended by the server after so long."""
MOMENT: Final = 0.5


class Nemesis:
    """Strikes until the world is to be quiet."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._chance = Random(f"nemesis {world.seed}")
        self.struck: list[str] = []

    def begin(self) -> None:
        world, setting = self._world, self._world.setting
        self._names = setting.strikes or tuple(name for name in STRIKES if name != "none")
        world.at(20.0, self._strike)
        names = self._chance.sample([*world.agents], setting.deaths)
        for name in names:
            world.at(self._chance.uniform(30.0, setting.storm_for + 10.0), self._kill_agent, name)

    def _strike(self, _: object) -> None:
        world = self._world
        if world.now > world.quiet_from - 20.0:
            return
        name = self._chance.choice(self._names)
        self.struck.append(name)
        world.note(f"-- {name}")
        STRIKES[name](self)
        world.at(world.now + self._chance.expovariate(1 / world.setting.strike_every), self._strike)

    def _kill_agent(self, name: str) -> None:
        agent = self._world.agents[name]
        self._world.note(f"{name} dies")
        agent.die()
        self._world.at(self._world.now + self._world.find_within, lambda _: self._world.laws.due(agent))

    # --- whom -----------------------------------------------------------------------------------------

    def _hub(self) -> str:
        """The hub that judges, more often than not."""
        leader = self._world.leader
        if leader is not None and self._chance.random() < 0.7:
            return leader
        return self._chance.choice(self._world.hub_names)

    def _lasting(self, low: float, high: float) -> float:
        """Not into the quiet time."""
        return min(self._chance.uniform(low, high), max(0.1, self._world.quiet_from - self._world.now))

    def _later(self, after: float, do: Callable[[], object], *troubled: str) -> None:
        """Mend, and say until when something was wrong."""
        world = self._world

        def mend(_: object) -> None:
            do()
            world.trouble(*troubled)
            world.look_who_is_heard()

        world.trouble(*troubled, until=world.now + after)
        world.look_who_is_heard()
        world.at(world.now + after, mend)

    def _cut(self, links: list[tuple[str, str]], how_long: float, *troubled: str) -> None:
        network = self._world.network
        for link in links:
            network.cut(*link)

        def mend() -> None:
            for link in links:
                network.mend(*link)

        self._later(how_long, mend, *troubled)

    # --- strikes --------------------------------------------------------------------------------------

    def crash(self) -> None:
        """A hub is killed, and comes back."""
        name = self._hub()
        self._world.crash_hub(name)
        self._later(self._lasting(0.5, 25.0), lambda: self._world.start_hub(name), name)

    def crash_all(self) -> None:
        """Nobody watches for a while."""
        for name in self._world.hub_names:
            self._world.crash_hub(name)
        for name in self._world.hub_names:
            self._later(self._lasting(15.0, 60.0), partial(self._world.start_hub, name), name)

    def freeze(self) -> None:
        """SIGSTOP, SIGCONT; now and then in the middle of a commit."""
        name = self._hub()
        machine, store = self._world.machines[name], self._world.store
        if machine.frozen or not machine.runs:
            return
        machine.freeze()
        how_long = self._lasting(1.0, 30.0)
        if self._chance.random() < 0.3 and self._world.leader == name and store.locked_by is None:
            store.locked_by = machine
            self._later(min(how_long, LOCK_FOR), self._unlock, "store")
        loop = machine.loop

        def thaw() -> None:
            if machine.loop is loop:
                machine.thaw()

        self._later(how_long, thaw, name)

    def _unlock(self) -> None:
        self._world.store.locked_by = None

    def stop(self) -> None:
        """SIGTERM; then a new process."""
        name = self._hub()
        self._world.stop_hub(name)
        self._later(0.1, lambda: None, name)

    def roll(self) -> None:
        """An upgrade: all of them, one after the other."""
        world = self._world
        for number, name in enumerate(self._chance.sample(world.hub_names, len(world.hub_names))):
            world.at(world.now + 4.0 * number, world.stop_hub, name)
        self._later(4.0 * len(world.hub_names), lambda: None, *world.hub_names)

    def drain(self) -> None:
        """A person drains the hub that judges, and lets it judge again later."""
        name = self._hub()
        world = self._world

        def tell(*, drained: bool) -> None:
            kept = world.store.kept
            if name in kept.hubs and not world.store.away:
                row, epoch = kept.hubs[name]
                kept.hubs[name] = replace(row, drained=drained), epoch
            world.trouble(name)

        tell(drained=True)
        self._later(self._lasting(1.0, 40.0), lambda: tell(drained=False), name)

    def cut_from_store(self) -> None:
        name = self._hub()
        links = self._chance.choice(([(name, STORE)], [(STORE, name)], [(name, STORE), (STORE, name)]))
        self._cut(links, self._lasting(1.0, 90.0), name)

    def cut_from_bus(self) -> None:
        name = self._hub()
        server = server_in(self._world.network.zone(name))
        links = self._chance.choice(([(name, server)], [(server, name)], [(name, server), (server, name)]))
        self._cut(links, self._lasting(1.0, 40.0), name)

    def unplug(self) -> None:
        """A hub reaches nobody, is reached by nobody, or both."""
        name = self._hub()
        links = self._chance.choice(([(name, "*")], [("*", name)], [(name, "*"), ("*", name)]))
        self._cut(links, self._lasting(1.0, 45.0), name)

    def cut_agents(self) -> None:
        """A few agents say and hear nothing for a while: what they are told waits."""
        for name in self._chance.sample([*self._world.agents], 3):
            self._cut([(name, "*"), ("*", name)], self._lasting(1.0, 40.0))

    def store_away(self) -> None:
        store = self._world.store
        if store.away:
            return
        store.away = True

        def back() -> None:
            store.away = False

        self._later(self._lasting(1.0, 25.0), back, "store")

    def store_slow(self) -> None:
        store = self._world.store
        store.slow_by = self._chance.uniform(0.2, 3.0)

        def quick() -> None:
            store.slow_by = 0.0

        self._later(self._lasting(3.0, 25.0), quick, "store")

    def bus_away(self) -> None:
        bus, zone = self._world.bus, self._chance.choice(self._world.zones)
        if zone in bus.away:
            return
        bus.away.add(zone)
        self._later(self._lasting(1.0, 40.0), lambda: bus.away.discard(zone))

    def split(self) -> None:
        """Two zones do not reach each other: on the bus only, or not at all."""
        zones = self._world.zones
        if len(zones) < 2:
            return
        one, other = self._chance.sample(zones, 2)
        if self._chance.random() < 0.6:
            ends = server_in(one), server_in(other)
        else:
            ends = f"zone:{one}", f"zone:{other}"
        hubs = [name for name in self._world.hub_names if self._world.network.zone(name) in (one, other)]
        self._cut([ends, ends[::-1]], self._lasting(20.0, 100.0), *hubs)

    def clock(self) -> None:
        """A wall clock is set, and its hub restarted."""
        name = self._hub()
        self._world.machines[name].skew += self._chance.uniform(-3600.0, 3600.0)
        self._world.stop_hub(name)
        self._later(0.1, lambda: None, name)

    def none(self) -> None:
        """A calm world."""


STRIKES: Final[Mapping[str, Callable[[Nemesis], None]]] = {
    "crash": Nemesis.crash,
    "crash all": Nemesis.crash_all,
    "freeze": Nemesis.freeze,
    "stop": Nemesis.stop,
    "roll": Nemesis.roll,
    "drain": Nemesis.drain,
    "cut from store": Nemesis.cut_from_store,
    "cut from bus": Nemesis.cut_from_bus,
    "unplug": Nemesis.unplug,
    "cut agents": Nemesis.cut_agents,
    "store away": Nemesis.store_away,
    "store slow": Nemesis.store_slow,
    "bus away": Nemesis.bus_away,
    "split": Nemesis.split,
    "clock": Nemesis.clock,
    "none": Nemesis.none,
}
