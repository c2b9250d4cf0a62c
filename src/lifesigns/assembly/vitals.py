"""Vitals of a running service, and the metrics made of them."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.metadata import version

from lifesigns.adapters.observe.prometheus import Metrics
from lifesigns.adapters.observe.vitals import PER_AGENT_MAX, AgentVitals, Vitals
from lifesigns.core.agent import Agent
from lifesigns.hub.service import Service
from lifesigns.views.census import FreshCensus

__all__ = ["Metrics", "ServiceVitals", "metrics_of"]


def metrics_of(service: Service, answered: Mapping[int, int]) -> Metrics:
    """What `/metrics` tells of a service that has started; `answered` counts HTTP answers by the first digit of their
    status, and is read whenever somebody scrapes."""
    return Metrics(ServiceVitals(service, answered))


class ServiceVitals:
    """Reads the vitals of a service. Goes over all agents at most once a second."""

    def __init__(self, service: Service, answered: Mapping[int, int]) -> None:
        self._service = service
        self._answered = answered
        self._census = FreshCensus()
        self._version = version("lifesigns")

    def __call__(self) -> Vitals:
        """As they are now."""
        service, hub = self._service, self._service.hub
        beliefs, pulse, pages = hub.engine.beliefs, hub.pulse, hub.committer
        counted = self._census.of(beliefs, service.clock())
        bus = service.bus_state
        few = len(beliefs.agents) <= PER_AGENT_MAX
        return Vitals(
            version=self._version,
            epoch=hub.epoch,
            states=counted.states,
            doing=counted.doing,
            findings=counted.findings,
            breakers=counted.breakers,
            flips=pulse.flips,
            interventions=pulse.interventions,
            each=[_agent(agent) for agent in beliefs.agents.values()] if few else (),
            beats=pulse.beats,
            reports=pulse.reports,
            refused=pulse.refused,
            unreadable=pulse.unreadable,
            turned_away=pulse.turned_away,
            dropped=0 if service.door is None else service.door.dropped,
            inbox=hub.waiting,
            found_late=pulse.finds_late,
            looks_late=pulse.looks_late,
            look_late=pulse.look_late,
            blind=beliefs.awareness.blind,
            score=service.engine.self_doubt(service.clock()),
            orders_waiting=service.hub.ledger.offered,
            listeners=len(service.feed),
            answers=self._answered,
            store_up=service.store_state == "ok",
            bus_up=None if bus == "none" else bus == "ok",
            commits=pages.took,
            events_kept=pages.events,
            events_lost=pages.lost,
        )


def _agent(agent: Agent) -> AgentVitals:
    spent = agent.spending
    return AgentVitals(
        id=agent.id,
        up=agent.alive,
        beat_at=agent.heard_at if agent.beats else None,
        tokens=spent.tokens if spent else 0,
        cost_usd=spent.cost if spent else 0.0,
    )
