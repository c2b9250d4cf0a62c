"""Prometheus: the hub in numbers, as the text of `/metrics`. Every family is in docs/reference/metrics.md.

Labels have few values and all of them exist from the start, so that the rate over a counter that has not counted yet is
0 and not missing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from enum import StrEnum
from itertools import accumulate
from typing import Final, TypeVar

from prometheus_client import CollectorRegistry, ProcessCollector, exposition
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    InfoMetricFamily,
    Metric,
)
from prometheus_client.openmetrics import exposition as openmetrics

from lifesigns import __version__
from lifesigns.core.agent import Agent
from lifesigns.core.effects import Rung, Stage
from lifesigns.core.health import Health
from lifesigns.core.signals import Opinion
from lifesigns.hub.counters import BUS, HTTP, Histogram, HubCounters
from lifesigns.hub.dead_man_pings import DeadManPings
from lifesigns.hub.last_beats import LastBeats
from lifesigns.hub.opinion_asker import OpinionAsker
from lifesigns.hub.samples import tasks_of
from lifesigns.hub.service import Service
from lifesigns.hub.shares import Shares
from lifesigns.views.builders.census import Census, FreshCensus
from lifesigns.web.connections import Connections
from lifesigns.web.quotas import WebQuotas
from lifesigns.web.rates import Rates

PER_AGENT_MAX: Final = 200
"""In a larger fleet agents have no series of their own: a scrape carries ten series each for so many without harm, and
50,000 series would stop the hub for a second. The API has every agent."""

MB: Final = 1024 * 1024
_STATUS_CLASSES: Final = range(1, 6)
_REFUSALS: Final = (400, 401, 403, 404, 405, 408, 409, 413, 415, 421, 422, 429, 431, 503, 507)
_openmetrics: Final[Callable[[CollectorRegistry], bytes]] = openmetrics.generate_latest
_Word = TypeVar("_Word", bound=StrEnum)


class Metrics:
    """Reads a service on each scrape; all its agents at most once a second.

    `answered` counts HTTP answers by their status.
    """

    def __init__(
        self,
        service: Service,
        answered: Mapping[int, int],
        rates: Rates,
        quotas: WebQuotas,
        connections: Connections | None = None,
    ) -> None:
        self._service = service
        self._answered = answered
        self._connections = connections
        self._rates = rates
        self._quotas = quotas
        self._census = FreshCensus()
        self._registry = CollectorRegistry()
        self._registry.register(self)
        ProcessCollector(registry=self._registry)

    def text(self, accept: str = "") -> tuple[bytes, str]:
        """The exposition and its content type: OpenMetrics if the client accepts it, else the older text format."""
        if "application/openmetrics-text" in accept:
            return _openmetrics(self._registry), openmetrics.CONTENT_TYPE_LATEST
        return exposition.generate_latest(self._registry), exposition.CONTENT_TYPE_PLAIN_0_0_4

    def collect(self) -> Iterator[Metric]:
        """Called by the registry."""
        service, hub = self._service, self._service.hub
        agents = service.engine.beliefs.agents
        yield InfoMetricFamily(
            "lifesigns_hub",
            "The version of the hub, and its fencing epoch, which is higher with every hub that takes over this store",
            {"version": __version__, "epoch": str(hub.epoch)},
        )
        yield from _fleet(self._census.of(service.engine.beliefs, service.clock()), hub.counters)
        yield from _incoming(service)
        yield from _hub(service)
        yield from self._http()
        yield _limits(self._rates, self._service.hub.shares)
        yield _quotas(self._quotas)
        yield from _store_and_bus(service)
        yield _opinions(service.opinion_asker)
        if service.dead_man_pings is not None:
            yield from _dead_man(service.dead_man_pings)
        if 0 < len(agents) <= PER_AGENT_MAX:
            yield from _each(agents.values())
            yield from _workers(agents, hub.last_beats)

    def _http(self) -> Iterator[Metric]:
        connections = self._connections
        refused = {} if connections is None else connections.refused
        yield from _answers(Counter(self._answered) + Counter(refused))
        yield _counter(
            "lifesigns_connections_turned_away",
            "Connections refused because there were too many, of all or of one address",
            0 if connections is None else connections.turned_away,
        )
        yield _counter(
            "lifesigns_connections_cut_off",
            "Connections ended because their peer took too long, or did not read its answer",
            0 if connections is None else connections.cut_off,
        )


def _fleet(counted: Census, counters: HubCounters) -> Iterator[Metric]:
    yield _gauges("lifesigns_agents", "Agents by judged health", "state", counted.states)
    yield _gauges("lifesigns_agents_doing", "Agents by what they say they are doing", "doing", counted.doing)
    yield _gauges("lifesigns_findings_open", "Open findings by kind", "kind", counted.findings)
    yield _gauges("lifesigns_breakers", "Circuit breakers that agents report", "state", counted.breakers)
    flips = CounterMetricFamily("lifesigns_flips", "Changes of health, by the state reached", labels=["to"])
    for state in Health:
        flips.add_metric([state], counters.flips.get(state, 0))
    yield flips
    steps = CounterMetricFamily(
        "lifesigns_interventions", "Steps of the ladder, by how far they came", labels=["rung", "stage"]
    )
    for rung in Rung:
        for stage in Stage:
            steps.add_metric([rung, stage], counters.interventions.get((rung, stage), 0))
    yield steps


def _incoming(service: Service) -> Iterator[Metric]:
    counters = service.hub.counters
    yield _counter("lifesigns_beats", "Beats heard", counters.beats)
    yield _counter("lifesigns_reports", "Signals heard that are not beats", counters.reports)
    yield _counter(
        "lifesigns_signals_refused",
        "Signals that were read and not believed; many of one kind are counted once a minute",
        counters.refused,
    )
    yield _counter(
        "lifesigns_signals_unreadable",
        "Messages that could not be read, or were not their sender's to say",
        counters.unreadable,
    )
    forged = CounterMetricFamily(
        "lifesigns_messages_forged",
        "Messages that were not their sender's to say, by what gave them away",
        labels=["reason"],
    )
    for reason, count in counters.forged.counts.items():
        forged.add_metric([reason], count)
    yield forged
    yield _counter("lifesigns_signals_turned_away", "Signals that found the inbox full", counters.turned_away)
    yield _counter(
        "lifesigns_bus_messages_dropped",
        "Messages on the bus that came faster than they were heard",
        0 if service.bus_receiver is None else service.bus_receiver.dropped,
    )
    yield _counter(
        "lifesigns_bus_messages_over_share",
        "Messages on the bus whose sender had used up its share of the hub's time",
        0 if service.bus_receiver is None else service.bus_receiver.over_share,
    )
    yield _counter(
        "lifesigns_tokens_refused",
        "Requests with a wrong token, sign-in code or session",
        service.access.throttle.refused,
    )
    yield _counter(
        "lifesigns_guesses_throttled",
        "Of these, those whose address was told to wait",
        service.access.throttle.throttled,
    )
    not_own = CounterMetricFamily(
        "lifesigns_ownership_refused",
        "Signals and calls about tasks, checkpoints and messages of others, by the way they came",
        labels=["way"],
    )
    for way in (HTTP, BUS):
        not_own.add_metric([way], counters.not_own[way])
    yield not_own
    yield _gauge("lifesigns_inbox_signals", "Signals that wait to be heard", service.hub.inbox.waiting)


def _hub(service: Service) -> Iterator[Metric]:
    counters, engine = service.hub.counters, service.engine
    yield _histogram(
        "lifesigns_detection_late_seconds",
        "How long after it fell due a disconnection was known",
        counters.finds_late,
    )
    yield _histogram("lifesigns_tick_late_seconds", "How late deadlines were looked at", counters.looks_late)
    yield _gauge(
        "lifesigns_tick_late_last_seconds",
        "How late deadlines were looked at the last time",
        counters.look_late,
        unit="seconds",
    )
    yield _gauge(
        "lifesigns_blind", "1 while the hub knows that it cannot see", engine.beliefs.awareness.blind
    )
    yield _gauge(
        "lifesigns_self_doubt_score",
        "How far the hub doubts itself: 0 to 8, every wait is that much longer",
        engine.self_doubt(service.clock()),
    )
    yield _gauge(
        "lifesigns_orders_waiting", "Orders that no agent has acknowledged yet", service.hub.ledger.offered
    )
    yield _gauge("lifesigns_event_listeners", "Listeners to the live events", len(service.feed))


def _answers(answered: Mapping[int, int]) -> Iterator[Metric]:
    answers = CounterMetricFamily(
        "lifesigns_http_requests", "HTTP requests answered, by class of status", labels=["status"]
    )
    for first in _STATUS_CLASSES:
        answers.add_metric(
            [f"{first}xx"], sum(count for status, count in answered.items() if status // 100 == first)
        )
    yield answers
    refused = CounterMetricFamily(
        "lifesigns_http_requests_refused", "HTTP requests refused, by status", labels=["status"]
    )
    for status in _REFUSALS:
        refused.add_metric([str(status)], answered.get(status, 0))
    yield refused


def _limits(rates: Rates, shares: Shares) -> Metric:
    refused = CounterMetricFamily(
        "lifesigns_http_requests_over_limit", "HTTP requests refused by a limit per second", labels=["limit"]
    )
    for limit, rate in rates:
        refused.add_metric([limit], rate.refused)
    refused.add_metric(["busy_share"], shares.refused)
    return refused


def _quotas(quotas: WebQuotas) -> Metric:
    refused = CounterMetricFamily(
        "lifesigns_over_quota", "What was refused because one token had enough of it", labels=["quota"]
    )
    for quota, count in quotas.refused():
        refused.add_metric([quota], count)
    return refused


def _store_and_bus(service: Service) -> Iterator[Metric]:
    committer, bus = service.hub.committer, service.bus_state
    yield _gauge("lifesigns_store_up", "1 while the store takes commits", service.store_state == "ok")
    if bus != "none":
        yield _gauge("lifesigns_bus_up", "1 while the bus is connected; missing without a bus", bus == "ok")
    yield _histogram("lifesigns_store_commit_seconds", "How long a commit took", committer.took)
    yield _counter("lifesigns_pages_kept", "Commits stored", sum(committer.took.counts))
    yield _counter("lifesigns_events_kept", "Events stored", committer.events)
    yield _counter(
        "lifesigns_events_lost", "Events lost because the store was away for too long", committer.lost
    )


def _opinions(asker: OpinionAsker | None) -> Metric:
    given = CounterMetricFamily(
        "lifesigns_second_opinions",
        "What hubs in other zones said of silent agents, one by one",
        labels=["opinion"],
    )
    for opinion in Opinion:
        given.add_metric([opinion], 0 if asker is None else asker.given[opinion])
    return given


def _dead_man(pings: DeadManPings) -> Iterator[Metric]:
    results = CounterMetricFamily(
        "lifesigns_dead_man_pings",
        "Pings to the dead-man's switch, by whether it took them",
        labels=["result"],
    )
    results.add_metric(["taken"], pings.sent)
    results.add_metric(["failed"], pings.failed)
    yield results
    yield _gauge(
        "lifesigns_dead_man_held_back",
        "1 while the hub does not ping, because something it needs is away",
        bool(pings.held_back),
    )


def _each(agents: Iterable[Agent]) -> Iterator[Metric]:
    """Agents one by one; see `PER_AGENT_MAX`."""
    up = GaugeMetricFamily("lifesigns_agent_up", "1 while the agent is heard of", labels=["agent"])
    beat_at = GaugeMetricFamily(
        "lifesigns_agent_last_beat_seconds",
        "When the agent was last heard, in seconds since 1970",
        labels=["agent"],
        unit="seconds",
    )
    tokens = CounterMetricFamily("lifesigns_agent_tokens", "Tokens the agent used", labels=["agent"])
    cost = CounterMetricFamily(
        "lifesigns_agent_cost_usd", "What the agent cost, in dollars", labels=["agent"]
    )
    for agent in agents:
        spent = agent.spending
        up.add_metric([agent.id], agent.alive)
        if agent.beats:
            beat_at.add_metric([agent.id], agent.heard_at)
        tokens.add_metric([agent.id], spent.tokens if spent else 0)
        cost.add_metric([agent.id], spent.cost if spent else 0.0)
    return iter((up, beat_at, tokens, cost))


def _workers(agents: Mapping[str, Agent], last_beats: LastBeats) -> Iterator[Metric]:
    """Those that say how many tasks they have room for, as in Task Sentinel's protocol."""

    def gauge(name: str, text: str) -> GaugeMetricFamily:
        return GaugeMetricFamily(f"lifesigns_worker_{name}", text, labels=["agent"])

    def counter(name: str, text: str) -> CounterMetricFamily:
        return CounterMetricFamily(f"lifesigns_worker_{name}", text, labels=["agent"])

    cpu, memory = gauge("cpu_percent", "CPU it uses"), gauge("memory_bytes", "Memory it uses")
    tasks, room = gauge("tasks", "Tasks it works on"), gauge("capacity_available", "Tasks it has room for")
    completed = counter("tasks_completed", "Tasks it completed, as it says")
    failed = counter("tasks_failed", "Tasks it failed, as it says")
    workers = {agent.id: agent for agent in agents.values() if agent.capacity is not None}
    for agent_id, (beat, _) in last_beats.of_all(workers):
        agent, metrics = workers[agent_id], beat.metrics
        values = (
            (cpu, agent.cpu_percent),
            (memory, None if agent.memory_mb is None else agent.memory_mb * MB),
            (tasks, len(tasks_of(agent, beat))),
            (room, agent.capacity),
            (completed, None if metrics is None else metrics.tasks_completed),
            (failed, None if metrics is None else metrics.tasks_failed),
        )
        for family, value in values:
            if value is not None:
                family.add_metric([agent_id], value)
    return iter((cpu, memory, tasks, room, completed, failed) if workers else ())


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(name, text, value=value)


def _gauge(name: str, text: str, value: float, *, unit: str = "") -> Metric:
    return GaugeMetricFamily(name, text, value=value, unit=unit)


def _gauges(name: str, text: str, label: str, values: Mapping[_Word, int]) -> Metric:
    family = GaugeMetricFamily(name, text, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family


def _histogram(name: str, text: str, histogram: Histogram) -> Metric:
    """Prometheus counts everything up to a bound, not what lies between two."""
    up_to = [*map(str, histogram.up_to), "+Inf"]
    buckets = list(zip(up_to, accumulate(histogram.counts), strict=True))
    return HistogramMetricFamily(name, text, buckets=buckets, sum_value=histogram.total, unit="seconds")
