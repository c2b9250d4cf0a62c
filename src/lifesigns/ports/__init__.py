"""Ports: what we need from the world, as protocols. Adapters implement them; `assembly` connects both.

Everything here is asynchronous and belongs to one event loop. A failure raises `AdapterError`, `transient` if a retry
may help. No adapter retries by itself, except that a bus reconnects to its server.
"""

from lifesigns.ports.bus import Bus, Hear, MessageFilter, Subscription
from lifesigns.ports.channel import Channel, NotDelivered, Notice, NoticeSeverity, NoticeStage
from lifesigns.ports.checkpoints import Contents, TooLarge
from lifesigns.ports.dead_man_switch import DeadManSwitch
from lifesigns.ports.executors import NotExecuted, OrderExecutor, sameness
from lifesigns.ports.hub_caller import HubAnswer, HubCaller
from lifesigns.ports.issues import Issue, IssueComment, IssueEvent, IssueRef, IssueTracker, TrackerError
from lifesigns.ports.link import Link, SavedState
from lifesigns.ports.messenger import (
    IncomingMessage,
    Messenger,
    MessengerError,
    OutgoingMessage,
    SentMessage,
    SessionActivity,
    SessionState,
    UnknownRecipient,
)
from lifesigns.ports.not_taken import NotTaken
from lifesigns.ports.signer import Signer
from lifesigns.ports.store import (
    AuditRecord,
    Belief,
    Chunk,
    Commit,
    Event,
    HubRow,
    Sample,
    Seal,
    Store,
    StoredOrder,
    StoredState,
    StoredToken,
)
from lifesigns.ports.witness import Witness

__all__ = [
    "AuditRecord",
    "Belief",
    "Bus",
    "Channel",
    "Chunk",
    "Commit",
    "Contents",
    "DeadManSwitch",
    "Event",
    "Hear",
    "HubAnswer",
    "HubCaller",
    "HubRow",
    "IncomingMessage",
    "Issue",
    "IssueComment",
    "IssueEvent",
    "IssueRef",
    "IssueTracker",
    "Link",
    "MessageFilter",
    "Messenger",
    "MessengerError",
    "NotDelivered",
    "NotExecuted",
    "NotTaken",
    "Notice",
    "NoticeSeverity",
    "NoticeStage",
    "OrderExecutor",
    "OutgoingMessage",
    "Sample",
    "SavedState",
    "Seal",
    "SentMessage",
    "SessionActivity",
    "SessionState",
    "Signer",
    "Store",
    "StoredOrder",
    "StoredState",
    "StoredToken",
    "Subscription",
    "TooLarge",
    "TrackerError",
    "UnknownRecipient",
    "Witness",
    "sameness",
]
