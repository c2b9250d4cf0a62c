"""Bus monitors: the public `BusMonitor`, which finds its bus by address."""

from __future__ import annotations

from typing import Any

from lifesigns.agent import bus_monitor as agent
from lifesigns.agent.bus_monitor import BusAgent
from lifesigns.agent.sender.callbacks import Callback
from lifesigns.assembly.links import bus_at
from lifesigns.ports import Bus

__all__ = ["BusAgent", "BusMonitor"]


class BusMonitor(agent.BusMonitor):
    """Watches the agents on a bus, without a hub: `nats://`, `redis://` or `memory://`, or a `Bus` that is not connected
    yet and is the monitor's from then on. Use it as `with` or `async with`; it lives once.

    An agent is dead after `timeout` seconds without a beat on `heartbeat.<id>`, by default three intervals: `on_dead` is
    called once, `on_alive` when an agent is heard for the first time or again, `on_left` when its last beat said
    `stopping`. Callbacks get a `BusAgent`; plain ones run in a thread of the monitor, coroutine functions on the loop
    that runs at the start. A `registry` (a mapping by id, or an object with `remove(id)` or `unregister(id)`) loses who
    is dead or has left.
    """

    def __init__(
        self,
        bus: str | Bus,
        *,
        on_dead: Callback[BusAgent] | None = None,
        on_alive: Callback[BusAgent] | None = None,
        on_left: Callback[BusAgent] | None = None,
        registry: Any = None,
        interval: float = 5.0,
        timeout: float | None = None,
    ) -> None:
        super().__init__(
            bus_at(bus) if isinstance(bus, str) else bus,
            on_dead=on_dead,
            on_alive=on_alive,
            on_left=on_left,
            registry=registry,
            interval=interval,
            timeout=timeout,
        )
