"""What people see of an agent and of a fleet is what is believed, in the shapes of the contract."""

from __future__ import annotations

import msgspec

from lifesigns import views
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import BreakerReported, BreakerState, DoingChanged
from lifesigns.views.builders.agents import agent_health
from lifesigns.views.builders.fleet import fleet_view, hub_health
from tests.core.harness import START, Watch


def test_an_agent_is_shown_with_everything_the_contract_names() -> None:
    watch = Watch()
    watch.live(START + 60, "a", token_count=1200, cost_usd=0.5, host="ws-1", role="active-development")
    watch.hear(BreakerReported(agent_id="a", name="search-api", state=BreakerState.OPEN))
    agent = watch.agent("a")
    shown = msgspec.to_builtins(agent_health(agent, watch.engine.beliefs, watch.now + 1.5))
    assert {
        "agent_id": "a",
        "state": agent.health,
        "doing": "unknown",
        "host": "ws-1",
        "role": "active-development",
        "since_heartbeat_s": 1.5,
        "intervention": None,
    }.items() <= shown.items()
    assert shown["last_heartbeat"].endswith("Z")
    assert shown["metrics"]["total_heartbeats"] == agent.beats
    (breaker,) = shown["circuit_breakers"]
    assert (breaker["agent_id"], breaker["name"], breaker["state"]) == ("a", "search-api", "open")
    assert msgspec.json.decode(msgspec.json.encode(shown), type=views.AgentHealth).agent_id == "a"


def test_a_finding_is_shown_with_its_words_and_numbers() -> None:
    watch = Watch()
    watch.beat("a")
    watch.beat("a", loop_lag_ms=30_000.0)
    (finding,) = agent_health(watch.agent("a"), watch.engine.beliefs, watch.now).findings
    assert finding.kind == "freeze"
    assert finding.numbers == {"loop_lag_s": 30.0}


def test_the_fleet_counts_everybody_and_names_who_waits_for_a_person() -> None:
    watch = Watch()
    for name in "abc":
        watch.beat(name)
    watch.hear(DoingChanged(agent_id="b", doing=Doing.WAITING_FOR_HUMAN))
    hub = hub_health(
        watch.engine,
        watch.now,
        inbox=0,
        look_late=0.0,
        look_late_max=0.0,
        store="ok",
        bus="none",
        dead_man_switch="none",
        epoch=1,
        version="0.1.0",
    )
    fleet = fleet_view(watch.engine, hub)
    assert (fleet.agents, fleet.states[Health.HEALTHY], fleet.waiting_for_human) == (3, 3, ("b",))
    assert not fleet.hub.blind
