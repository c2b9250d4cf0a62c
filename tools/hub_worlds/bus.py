"""The bus: a server per zone, as a cluster has them. It keeps nothing; what cannot be carried now is lost."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from lifesigns.adapters.bus.subjects import matcher
from lifesigns.errors import AdapterError
from lifesigns.ports import Hear, MessageFilter

if TYPE_CHECKING:
    from tools.hub_worlds.machine import Machine
    from tools.hub_worlds.world import World

PAYLOAD_MAX: Final = 1024 * 1024


def server_in(zone: str) -> str:
    """The name of the server there."""
    return f"bus:{zone}"


class BusServers:
    """The servers, and who has subscribed to what."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.away: set[str] = set()
        """Zones whose server is down."""
        self._subscribers: list[tuple[Callable[[str], bool], str, Callable[[str, bytes], None]]] = []

    def carries(self, source: str, target: str) -> bool:
        """Whether what one publishes reaches the other: to the server of its zone, perhaps to another, and on."""
        network = self._world.network
        here, there = network.zone(source), network.zone(target)
        return (
            not self.away & {here, there}
            and network.reaches(source, server_in(here))
            and (here == there or network.reaches(server_in(here), server_in(there)))
            and network.reaches(server_in(there), target)
        )

    def subscribe(self, pattern: str, node: str, hear: Callable[[str, bytes], None]) -> Callable[[], None]:
        """Let this node hear; returns what ends it."""
        entry = (matcher(pattern), node, hear)
        self._subscribers.append(entry)
        return lambda: self._subscribers.remove(entry) if entry in self._subscribers else None

    def publish(self, source: str, subject: str, payload: bytes) -> None:
        world = self._world
        for is_meant, node, hear in self._subscribers:
            if is_meant(subject) and self.carries(source, node):
                world.at(
                    world.now + world.network.delay(),
                    lambda what: what[0](*what[1:]),
                    (hear, subject, payload),
                )


class SimulatedSubscription:
    """What a hub has subscribed to."""

    dropped = 0

    def __init__(self, end: Callable[[], None]) -> None:
        self._end = end

    async def end(self) -> None:
        self._end()


class SimulatedBus:
    """A hub's connection to the server of its zone. Implements `lifesigns.ports.Bus`."""

    def __init__(self, world: World, machine: Machine) -> None:
        self._world = world
        self._machine = machine
        self._process = machine.loop
        self._ends: list[Callable[[], None]] = []
        self._connected = False

    @property
    def payload_max(self) -> int:
        return PAYLOAD_MAX

    @property
    def connected(self) -> bool:
        return self._connected and self._machine.zone not in self._world.bus.away

    async def connect(self) -> None:
        server = server_in(self._machine.zone)
        network = self._world.network
        there = network.reaches(self._machine.name, server) and network.reaches(server, self._machine.name)
        if self._machine.zone in self._world.bus.away or not there:
            raise AdapterError("the bus does not answer")
        self._connected = True

    async def publish(self, subject: str, payload: bytes) -> None:
        if not self.connected or self._world.over:
            raise AdapterError("the bus does not answer")
        self._world.bus.publish(self._machine.name, subject, payload)

    async def flush(self) -> None:
        if not self.connected:
            raise AdapterError("the bus does not answer")

    async def subscribe(self, pattern: str, hear: Hear) -> SimulatedSubscription:
        if not self.connected:
            raise AdapterError("the bus does not answer")

        def arrive(subject: str, payload: bytes) -> None:
            if self._machine.loop is self._process:
                self._machine.call(hear, subject, payload)

        end = self._world.bus.subscribe(pattern, self._machine.name, arrive)
        self._ends.append(end)
        return SimulatedSubscription(end)

    def drop(self, unwanted: MessageFilter | None) -> None:
        """Nobody floods here."""

    async def close(self) -> None:
        self.hang_up()

    def hang_up(self) -> None:
        """The process ends, whether it says so or not."""
        self._connected = False
        for end in self._ends:
            end()
        self._ends.clear()
