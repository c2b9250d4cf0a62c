"""Views: beliefs and events in the shapes that people and programs see.

The shapes are the public contract: the API sends them, its OpenAPI page is made from them, the client reads them back.
They know no engine, so that a command is quick; `builders/` makes them from beliefs and events, in the hub.
"""

from lifesigns.views.access import (
    Me,
    NewTokenView,
    SessionList,
    SessionView,
    SignInLink,
    TokenList,
    TokenView,
)
from lifesigns.views.agents import (
    AgentHealth,
    AgentMetrics,
    BreakerView,
    FindingView,
    InterventionView,
)
from lifesigns.views.alerts import Alert, AlertList
from lifesigns.views.audit import AuditConsistency, AuditEntry, AuditList, AuditProof
from lifesigns.views.breakers import BreakerList
from lifesigns.views.events import EventList, EventView
from lifesigns.views.fleet import FleetView, HubHealth, Spare
from lifesigns.views.history import FindingPoint, FlipPoint, History, InterventionPoint, Point, SamplePoint
from lifesigns.views.listing import AgentList
from lifesigns.views.messages import Inbox, InboxMessage, MessageList, MessageView
from lifesigns.views.moments import Moment, moment
from lifesigns.views.orders import Orders, OrdersByAgent
from lifesigns.views.probes import AgentAlive, Alive, Ready
from lifesigns.views.problems import ProblemDetails
from lifesigns.views.receipts import LastBeat, Receipt, RejectedMessage
from lifesigns.views.tasks import (
    CheckpointList,
    CheckpointView,
    ClaimGranted,
    ClaimView,
    DueView,
    TaskList,
    TaskView,
)

__all__ = [
    "AgentAlive",
    "AgentHealth",
    "AgentList",
    "AgentMetrics",
    "Alert",
    "AlertList",
    "Alive",
    "AuditConsistency",
    "AuditEntry",
    "AuditList",
    "AuditProof",
    "BreakerList",
    "BreakerView",
    "CheckpointList",
    "CheckpointView",
    "ClaimGranted",
    "ClaimView",
    "DueView",
    "EventList",
    "EventView",
    "FindingPoint",
    "FindingView",
    "FleetView",
    "FlipPoint",
    "History",
    "HubHealth",
    "Inbox",
    "InboxMessage",
    "InterventionPoint",
    "InterventionView",
    "LastBeat",
    "Me",
    "MessageList",
    "MessageView",
    "Moment",
    "NewTokenView",
    "Orders",
    "OrdersByAgent",
    "Point",
    "ProblemDetails",
    "Ready",
    "Receipt",
    "RejectedMessage",
    "SamplePoint",
    "SessionList",
    "SessionView",
    "SignInLink",
    "Spare",
    "TaskList",
    "TaskView",
    "TokenList",
    "TokenView",
    "moment",
]
