"""Ports: what we ask of the world, as protocols. Adapters answer; `assembly` brings both together.

Everything here is asynchronous and belongs to one event loop. What fails raises `AdapterError`: `transient` if it is
worth another try. Nothing is retried behind the caller's back, except that a bus finds its way back to its server.
"""

from lifesigns.ports.bus import Bus, Hear, Subscription
from lifesigns.ports.link import Link
from lifesigns.ports.store import (
    Belief,
    Event,
    KeptOrder,
    KeptToken,
    Page,
    Remembered,
    Sample,
    Store,
)

__all__ = [
    "Belief",
    "Bus",
    "Event",
    "Hear",
    "KeptOrder",
    "KeptToken",
    "Link",
    "Page",
    "Remembered",
    "Sample",
    "Store",
    "Subscription",
]
