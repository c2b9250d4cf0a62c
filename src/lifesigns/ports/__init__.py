"""Ports: what we ask of the world, as protocols. Adapters answer; `assembly` brings both together.

Everything here is asynchronous and belongs to one event loop. What fails raises `AdapterError`: `transient` if it is
worth another try. Nothing is retried behind the caller's back, except that a bus finds its way back to its server.
"""

from lifesigns.ports.bus import Bus, Hear, Subscription
from lifesigns.ports.channel import Channel, Notice, NoticeSeverity, NoticeStage, NotTold
from lifesigns.ports.checkpoints import Contents, TooLarge
from lifesigns.ports.hands import Hand, NotDone, sameness
from lifesigns.ports.link import Link, SavedState
from lifesigns.ports.not_taken import NotTaken
from lifesigns.ports.signer import Signer
from lifesigns.ports.store import (
    Belief,
    Chunk,
    Deed,
    Event,
    KeptOrder,
    KeptToken,
    Page,
    Remembered,
    Sample,
    Seal,
    Store,
)

__all__ = [
    "Belief",
    "Bus",
    "Channel",
    "Chunk",
    "Contents",
    "Deed",
    "Event",
    "Hand",
    "Hear",
    "KeptOrder",
    "KeptToken",
    "Link",
    "NotDone",
    "NotTaken",
    "NotTold",
    "Notice",
    "NoticeSeverity",
    "NoticeStage",
    "Page",
    "Remembered",
    "Sample",
    "SavedState",
    "Seal",
    "Signer",
    "Store",
    "Subscription",
    "TooLarge",
    "sameness",
]
