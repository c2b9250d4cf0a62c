"""Views: what is believed and what happened, in the shapes that people and programs see.

The shapes are the public contract: the API sends them, its OpenAPI page is made from them, the client reads them back.
"""

from lifesigns.views.agents import (
    AgentHealth,
    AgentMetrics,
    BreakerView,
    FindingView,
    InterventionView,
    agent_health,
)
from lifesigns.views.fleet import FleetView, HubHealth, Spare, fleet_view, hub_health
from lifesigns.views.moments import Moment, moment

__all__ = [
    "AgentHealth",
    "AgentMetrics",
    "BreakerView",
    "FindingView",
    "FleetView",
    "HubHealth",
    "InterventionView",
    "Moment",
    "Spare",
    "agent_health",
    "fleet_view",
    "hub_health",
    "moment",
]
