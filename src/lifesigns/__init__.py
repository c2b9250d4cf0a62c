"""lifesigns tells you which of your agents are alive, frozen, stuck or looping, and gets them going again.

This is the front door. What stands in `__all__` is imported when it is first used, so that
`import lifesigns` costs nothing inside an agent: no driver, no web, no command line.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lifesigns.agent.monitor import AgentHealthMonitor, Event
    from lifesigns.assembly.breakers import BREAKERS, AsyncSaveQueue, Breaker, SaveQueue, guard
    from lifesigns.assembly.bus_monitors import BusAgent, BusMonitor
    from lifesigns.assembly.monitors import Monitor
    from lifesigns.assembly.senders import Sender
    from lifesigns.client import AsyncClient, Client
    from lifesigns.core.engine import Engine
    from lifesigns.core.health import Health
    from lifesigns.core.policy import Policy
    from lifesigns.core.profiles import profile
    from lifesigns.errors import (
        AdapterError,
        BreakerOpen,
        Bug,
        HubError,
        LifesignsError,
        PolicyError,
        RunStopped,
        UsageError,
        WireError,
    )
    from lifesigns.integrations.task_sentinel import HeartbeatMonitor

__version__ = "0.1.0"

__all__ = [
    "BREAKERS",
    "AdapterError",
    "AgentHealthMonitor",
    "AsyncClient",
    "AsyncSaveQueue",
    "Breaker",
    "BreakerOpen",
    "Bug",
    "BusAgent",
    "BusMonitor",
    "Client",
    "Engine",
    "Event",
    "Health",
    "HeartbeatMonitor",
    "HubError",
    "LifesignsError",
    "Monitor",
    "Policy",
    "PolicyError",
    "RunStopped",
    "SaveQueue",
    "Sender",
    "UsageError",
    "WireError",
    "__version__",
    "guard",
    "profile",
]

_HOMES: Final = {
    "BREAKERS": "lifesigns.assembly.breakers",
    "AgentHealthMonitor": "lifesigns.agent.monitor",
    "AsyncClient": "lifesigns.client",
    "AsyncSaveQueue": "lifesigns.assembly.breakers",
    "Breaker": "lifesigns.assembly.breakers",
    "BusAgent": "lifesigns.assembly.bus_monitors",
    "BusMonitor": "lifesigns.assembly.bus_monitors",
    "Client": "lifesigns.client",
    "Engine": "lifesigns.core.engine",
    "Event": "lifesigns.agent.monitor",
    "Health": "lifesigns.core.health",
    "HeartbeatMonitor": "lifesigns.integrations.task_sentinel",
    "Monitor": "lifesigns.assembly.monitors",
    "Policy": "lifesigns.core.policy",
    "SaveQueue": "lifesigns.assembly.breakers",
    "Sender": "lifesigns.assembly.senders",
    "guard": "lifesigns.assembly.breakers",
    "profile": "lifesigns.core.profiles",
}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'lifesigns' has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES.get(name, "lifesigns.errors")), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
