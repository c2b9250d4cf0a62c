"""`AgentHealthMonitor`: the names and the configuration of seed 000."""

from __future__ import annotations

import asyncio

import pytest

from lifesigns.agent.monitor import AgentHealthMonitor
from lifesigns.errors import UsageError
from tests.agent.monitor.heard import Heard
from tests.agent.monitor.test_emitters import Emitter

QUICK = {"activityTimeout": 1000, "heartbeatInterval": 300, "heartbeatTimeout": 150, "maxMissedBeats": 2}


async def test_agents_are_registered_asked_about_and_unregistered() -> None:
    with AgentHealthMonitor(QUICK) as monitor:
        heard = Heard(monitor)
        monitor.register_agent(Emitter("coder", answers=True))
        await heard.comes("agent-healthy", "coder")
        health, metrics = monitor.get_health("coder"), monitor.get_metrics("coder")
        assert health is not None
        assert health.status == "healthy"
        assert metrics is not None
        assert metrics.disconnection_count == 0
        assert set(monitor.get_all_health()) == {"coder"}
        monitor.unregister_agent("coder")
        assert monitor.get_health("coder") is None
        assert monitor.get_all_health() == {}


@pytest.mark.parametrize(
    "config",
    [
        {"activityTimeout": 3000, "heartbeatInterval": 1000, "maxMissedBeats": 2},
        {"activityTimeout": 5000, "heartbeatInterval": 2000, "maxMissedBeats": 2},
        {"activityTimeout": 10000, "heartbeatInterval": 3000, "maxMissedBeats": 3},
        {"activity_timeout": 5, "heartbeat_interval": 2.0, "heartbeat_timeout": None},
        {},
    ],
)
def test_the_configurations_of_the_seed_are_taken_as_they_stand(config: dict[str, float]) -> None:
    AgentHealthMonitor(config)


async def test_without_heartbeats_only_activity_is_a_sign_of_life() -> None:
    with AgentHealthMonitor(QUICK, enable_heartbeats=False) as monitor:
        heard = Heard(monitor)
        active, idle = Emitter("active"), Emitter("idle")
        monitor.register_agent(active)
        monitor.register_agent(idle)
        for _ in range(14):
            active.emit("response_generated")
            await asyncio.sleep(0.1)
        await heard.comes("agent-disconnected", "idle")
        assert heard.of("active") == ["agent-healthy"]


async def test_without_heartbeats_nobody_is_pinged_and_a_pong_is_no_sign_of_life() -> None:
    """`enableHeartbeats: false` is honoured also for agents that would answer."""
    pings: list[object] = []
    with AgentHealthMonitor(QUICK, enableHeartbeats=False) as monitor:
        heard = Heard(monitor)
        idle = Emitter("idle", answers=True)
        idle.on("heartbeat-ping", pings.append)
        monitor.register_agent(idle)
        event = await heard.comes("agent-disconnected", "idle")
    assert pings == []
    assert event.code == "missed_heartbeats"
    assert event.idle_time is not None
    assert event.idle_time >= 0.9


async def test_an_agent_that_never_answers_is_disconnected_as_in_the_seed() -> None:
    """AC1 as it stands there: register, then `removeAllListeners('heartbeat-ping')`."""
    with AgentHealthMonitor(QUICK) as monitor:
        heard = Heard(monitor)
        agent = Emitter("coder", answers=True)
        monitor.register_agent(agent)
        agent.handlers.pop("heartbeat-ping")
        event = await heard.comes("agent-disconnected", "coder")
        assert (event.code, event.type) == ("missed_heartbeats", "event-loop-freeze")


async def test_without_activity_tracking_nothing_listens_to_the_agents_events() -> None:
    with AgentHealthMonitor(enableActivityTracking=False) as monitor:
        agent = Emitter("coder")
        monitor.register_agent(agent)
        assert "tool_executed" not in agent.handlers


def test_what_cannot_be_understood_is_named() -> None:
    with pytest.raises(UsageError, match="activityTimout is unknown; known are activity_timeout"):
        AgentHealthMonitor({"activityTimout": 1})
    with pytest.raises(UsageError, match="heartbeatInterval is 'fast', but has to be a number"):
        AgentHealthMonitor({"heartbeatInterval": "fast"})
    with pytest.raises(UsageError, match="enableHeartbeats is 1, but has to be true or false"):
        AgentHealthMonitor({"enableHeartbeats": 1})
