"""Seed 004 with AI Maestro: the hub pings its agents, follows the flow chart of 1.7, and reaches them by messages."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, serving
from tests.servers.ai_maestro import FakeAgent, FakeMaestro, ai_maestro

QUICK = {"interval": "1s", "timeout": "3s", "missed_max": 2, "ping_wait": "500ms", "busy_factor": 4}


def config(maestro: FakeMaestro, **more: object) -> dict[str, Any]:
    return {
        "roles": {"quick": {"silence": QUICK}},
        "policy": {"task": {"stalled_after": "1s", "inquiry_wait": "8s"}},
        "ai_maestro": {
            "url": maestro.url,
            "role": "quick",
            "look_every": "200ms",
            "inquiry_wait": "3s",
            "timeout": "1s",
            **more,
        },
    }


@pytest.fixture
def maestro(tmp_path: Path) -> Iterator[FakeMaestro]:
    with ai_maestro(tmp_path) as running:
        yield running


def are(hub: Hub, state: str, *names: str) -> bool:
    return all(hub.health(name) == state for name in names)


def why(hub: Hub, name: str) -> str:
    return " ".join(finding["text"] for finding in hub.get(f"/api/v1/agents/{name}")["findings"])


def test_the_flow_chart_of_the_document(maestro: FakeMaestro, tmp_path: Path) -> None:
    """1.7: who answers is healthy; who does not is looked up: without a session it is OFFLINE, with one it gets an inquiry
    and is UNRESPONSIVE after that; who answers the inquiry is busy."""
    names = ("steady", "crashes", "hangs", "late")
    agents = {name: FakeAgent(maestro, name) for name in names}
    with serving(tmp_path, config(maestro)) as hub:
        hub.until(lambda: are(hub, "healthy", *names), "every agent appears and answers")
        (ping, *_) = maestro.messages("steady", "heartbeat")
        assert ping["subject"] == "[HEARTBEAT] Health check"
        assert (ping["priority"], ping["content"]["message"]) == ("low", "ping")
        assert ping["content"]["context"]["sequence"] >= 1
        assert ping["content"]["context"]["timestamp"].endswith("Z")
        agents["crashes"].stop()
        maestro.session("crashes", session=False)
        agents["hangs"].stop()
        agents["late"].answers = {
            "status-inquiry": lambda _: {"type": "status", "message": "a long build", "context": {}}
        }
        hub.until(lambda: are(hub, "disconnected", "crashes"), "the crashed one is found")
        crashed = hub.get("/api/v1/agents/crashes")
        assert (crashed["cause"], "offline: its session is gone" in why(hub, "crashes")) == ("crash", True)
        assert not maestro.messages("crashes", "status-inquiry")
        hub.until(lambda: are(hub, "disconnected", "hangs"), "the hanging one is found")
        assert hub.get("/api/v1/agents/hangs")["cause"] == "unknown"
        assert hub.get("/api/v1/agents/hangs")["metrics"]["missed_heartbeats"] >= 2
        (inquiry, *_) = maestro.messages("hangs", "status-inquiry")
        assert (inquiry["priority"], "expected_response_by" in inquiry["content"]["context"]) == (
            "high",
            True,
        )
        hub.until(
            lambda: hub.get("/api/v1/agents/late/heartbeat")["beat"]["status"] == "busy",
            "who answers the inquiry is busy",
        )
        assert are(hub, "healthy", "steady")
        assert hub.disconnected() == {"crashes", "hangs"}
        back = FakeAgent(maestro, "crashes")
        maestro.session("crashes", session=True)
        hub.until(lambda: are(hub, "healthy", "crashes"), "it is back as soon as its session is")
        for agent in (*agents.values(), back):
            agent.stop()


def test_busy_is_spared_degraded_is_watched_and_activity_is_evidence(
    maestro: FakeMaestro, tmp_path: Path
) -> None:
    """1.3.3, 1.4.3 and the troubleshooting: a long operation, a person who is waited for, an agent without the hook."""
    agents = {
        name: FakeAgent(maestro, name, status)
        for name, status in (("calm", "healthy"), ("builder", "busy"), ("ill", "degraded"))
    }
    maestro.session("asks", status="waiting", notificationType="permission_prompt")
    maestro.session("hookless", status="active")
    with serving(tmp_path, config(maestro)) as hub:
        hub.until(lambda: are(hub, "healthy", "calm", "builder"), "both are there")
        hub.until(lambda: are(hub, "degraded", "ill"), "who says that it is degraded is")
        agents["calm"].stop()
        agents["builder"].stop()

        def calm_is_lost() -> bool:
            hookless["lastActivity"] += 10
            maestro.session("hookless", **hookless)
            return are(hub, "disconnected", "calm")

        hookless = {"lastActivity": 100}
        hub.until(calm_is_lost, "the silent one is lost")
        assert are(hub, "healthy", "builder", "hookless")
        asks = hub.get("/api/v1/agents/asks")
        assert (asks["state"], asks["doing"]) == ("healthy", "waiting_for_human")
        assert hub.disconnected() == {"calm"}
        hub.until(lambda: are(hub, "disconnected", "builder"), "busy is no excuse for ever")
        agents["ill"].stop()


def test_nudges_and_inquiries_about_tasks_come_as_messages_and_their_answers_count(
    maestro: FakeMaestro, tmp_path: Path
) -> None:
    """1.5.3: the agent is asked about its task by message; what it answers is shown."""
    agent = FakeAgent(maestro, "libs-svg-svgbbox")
    agent.answers["status-inquiry"] = lambda _: {
        "type": "status",
        "message": "the tests take long",
        "context": {"status": "busy", "progress_percentage": 70},
    }
    agent.answers["nudge"] = lambda _: {
        "type": "answer",
        "message": "give me an hour",
        "context": {"answer": "need_time"},
    }
    with serving(tmp_path, config(maestro)) as hub:
        hub.until(lambda: are(hub, "healthy", agent.name), "it is there")
        task = {"type": "task_assigned", "agent_id": agent.name, "task_id": "task-1", "expected_for": 1}
        hub.post("/api/v1/signals", task)
        hub.until(lambda: maestro.messages(agent.name, "status-inquiry"), "it is asked about its task")
        asked = maestro.messages(agent.name, "status-inquiry")[0]
        assert asked["content"]["context"]["task_id"] == "task-1"
        hub.until(lambda: hub.get("/api/v1/tasks/task-1")["due"]["percent"] == 70, "its answer is known")
        hub.cli("nudge", agent.name, "Please save a checkpoint.")
        hub.until(lambda: maestro.messages(agent.name, "nudge"), "the nudge arrives")
        (nudge,) = maestro.messages(agent.name, "nudge")
        assert "Please save a checkpoint." in nudge["content"]["message"]

        def said() -> str:
            return str(hub.events("INTERVENTION", agent=agent.name))

        hub.until(lambda: "give me an hour" in said(), "its answer is on record")
    agent.stop()


@pytest.mark.parametrize("fault", ["hang", "killed"])
def test_a_dead_ai_maestro_is_not_the_death_of_its_agents(
    maestro: FakeMaestro, tmp_path: Path, fault: str
) -> None:
    agent = FakeAgent(maestro, "steady")
    with serving(tmp_path, config(maestro)) as hub:
        hub.until(lambda: are(hub, "healthy", "steady"), "it is there")
        agent.stop()
        if fault == "killed":
            maestro.kill()
        else:
            maestro.fails(fault, only="/api/")
        hub.until(lambda: "are not judged" in hub.log.read_text(), "the hub knows that it cannot see")
        heard_at = hub.get("/api/v1/agents/steady")["last_heartbeat"]
        hub.until(
            lambda: hub.get("/api/v1/agents/steady")["since_heartbeat_s"] > 9,
            "longer than a silent agent has",
        )
        assert hub.get("/api/v1/agents/steady")["last_heartbeat"] == heard_at
        assert are(hub, "healthy", "steady")
        if fault == "killed":
            maestro.start()
        else:
            maestro.fails("")
        again = FakeAgent(maestro, "steady")
        hub.until(lambda: hub.get("/api/v1/agents/steady")["last_heartbeat"] != heard_at, "it is heard again")
        assert hub.disconnected() == set()
        again.stop()
        hub.until(lambda: are(hub, "disconnected", "steady"), "when it dies now, it is found")


def test_a_name_that_ai_maestro_does_not_know_is_told_and_convicts_nobody(
    maestro: FakeMaestro, tmp_path: Path
) -> None:
    """No answer could reach the hub: that is its own fault."""
    agent = FakeAgent(maestro, "steady")
    with serving(tmp_path, config(maestro, name="nobody-registered-me")) as hub:
        hub.until(lambda: "nobody-registered-me" in hub.log.read_text(), "the log says what is wrong")
        assert hub.disconnected() == set()
    agent.stop()
