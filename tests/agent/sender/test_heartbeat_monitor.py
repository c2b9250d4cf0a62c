"""`HeartbeatMonitor`: Task Sentinel's worker, over a sender."""

import time

import pytest
from msgspec.structs import replace

from lifesigns.core.effects import AskBack, OfferTask
from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.signals import (
    AgentLeft,
    AgentRegistered,
    Signal,
    TaskAssigned,
    TaskClaimed,
    TaskDone,
    TaskReleased,
)
from lifesigns.errors import UsageError
from lifesigns.integrations.task_sentinel import HeartbeatMonitor
from lifesigns.wire import plain
from tests.agent.sender.ear import Ear


def test_a_worker_beats_with_its_tasks_and_counts(ear: Ear) -> None:
    monitor = HeartbeatMonitor("worker-local-1", "org/repo", {"heartbeat_interval": 100}, hub=ear.url)
    monitor.start()
    monitor.add_task("task-123")
    monitor.add_task("task-456")
    ear.until(lambda: ear.beats and ear.beats[-1].tasks == ("task-123", "task-456"))
    monitor.remove_task("task-123")
    monitor.record_task_completion()
    monitor.remove_task("task-456")
    monitor.record_task_failure()
    ear.until(lambda: ear.beats[-1].doing is Doing.IDLE)
    beat = ear.beats[-1]
    metrics = monitor.get_metrics()
    assert monitor.get_health_status() in ("healthy", "degraded", "unhealthy")
    monitor.stop()
    assert beat.metadata == {"repo": "org/repo"}
    assert beat.metrics is not None
    assert (beat.metrics.tasks_completed, beat.metrics.tasks_failed) == (1, 1)
    assert (metrics["tasks_completed"], metrics["tasks_failed"]) == (1, 1)
    assert set(metrics) == {"cpu_usage", "memory_usage", "tasks_completed", "tasks_failed", "uptime"}
    assert [task.task_id for task in ear.of(TaskAssigned)] == ["task-123", "task-456"]
    ear.until_word(AgentLeft)


def test_a_task_that_is_added_is_claimed_all_are_held_by_beats_and_removing_gives_one_back(ear: Ear) -> None:
    """The hub's own engine hears what the worker says: two claims, both held as long as it beats, and one given back."""
    config = {"heartbeat_interval": 100, "stale_threshold": 60_000, "detection_interval": 10_000}
    monitor = HeartbeatMonitor("worker-local-1", "org/repo", config, hub=ear.url, capacity=3)
    monitor.start()
    monitor.add_task("task-123")
    monitor.add_task("task-456")
    ear.until(lambda: [claim.task_id for claim in ear.of(TaskClaimed)] == ["task-123", "task-456"])
    ear.until(lambda: ear.beats and ear.beats[-1].capacity_available == 1)
    engine, at = Engine(fleet=FleetPolicy(canary_every=0.0)), 1000.0
    said: list[Signal] = [*ear.of(AgentRegistered), *ear.of(TaskAssigned), *ear.of(TaskClaimed)]
    for signal in said:
        engine.hear(signal, at)
    for n in range(1, 20):
        engine.hear(replace(plain(ear.beats[-1]), seq=n), at + n)
    assert set(engine.beliefs.claims) == {"task-123", "task-456"}
    monitor.remove_task("task-123")
    ear.until(lambda: [done.task_id for done in ear.of(TaskDone)] == ["task-123"])
    ear.until(lambda: ear.beats[-1].capacity_available == 2)
    engine.hear(ear.of(TaskDone)[0], at + 20)
    assert set(engine.beliefs.claims) == {"task-456"}
    assert engine.policy_of(engine.beliefs.agents["worker-local-1"]).claim.lease == 60.0
    monitor.stop()


def test_a_worker_takes_what_it_is_offered_and_gives_back_what_it_has_not_begun(ear: Ear) -> None:
    """Asked twice, for a task it has begun and for one it has not: only the second is given back, with its token."""
    config = {"heartbeat_interval": 100}
    monitor = HeartbeatMonitor("w", None, config, hub=ear.url, capacity=3)
    monitor.accept_moves(take=lambda task_id: task_id != "huge", give_back=lambda task_id: task_id != "begun")
    monitor.start()
    monitor.add_task("begun")
    ear.until(lambda: ear.beats)
    by = time.time() + 60
    for n, task_id in enumerate(("huge", "small")):
        ear.order(OfferTask(time.time(), f"1-{n}", 1, "w", None, task_id, "other", "free", by))
    ear.until(lambda: [claim.task_id for claim in ear.of(TaskClaimed)] == ["begun", "small"])
    for n, task_id in enumerate(("begun", "small"), start=5):
        ear.order(AskBack(time.time(), f"1-{n}", 1, "w", None, task_id, n, "you are unwell", by))
    ear.until(lambda: [(one.task_id, one.token) for one in ear.of(TaskReleased)] == [("small", 6)])
    ear.until(lambda: ear.beats[-1].tasks == ("begun",) and ear.beats[-1].capacity_available == 2)
    monitor.stop()


def test_each_beat_declares_its_health_status(ear: Ear, monkeypatch: pytest.MonkeyPatch) -> None:
    monitor = HeartbeatMonitor("w", None, {"heartbeat_interval": 100}, hub=ear.url)
    monkeypatch.setattr(monitor, "get_health_status", lambda: "unhealthy")
    monitor.start()
    ear.until(lambda: ear.beats and ear.beats[-1].status == "unhealthy")
    monitor.stop()


def test_the_names_of_the_protocol_work_as_well(ear: Ear) -> None:
    monitor = HeartbeatMonitor("w", None, {"heartbeatInterval": 100, "staleThreshold": 60_000}, hub=ear.url)
    monitor.start()
    monitor.addTask("a")
    monitor.addTask("b")
    assert monitor.get_current_tasks() == ["a", "b"]
    monitor.removeTask("a")
    monitor.recordTaskCompletion()
    monitor.recordTaskFailure()
    assert (monitor.getMetrics()["tasks_completed"], monitor.getMetrics()["tasks_failed"]) == (1, 1)
    assert monitor.getHealthStatus() in ("healthy", "degraded", "unhealthy")
    assert monitor.get_current_tasks() == ["b"]
    assert monitor.get_capacity_available() is None
    assert monitor.get_failures() == []
    monitor.stop()


def test_by_default_it_beats_every_five_minutes_as_the_fleet_profile(ear: Ear) -> None:
    monitor = HeartbeatMonitor("w", hub=ear.url)
    monitor.start()
    policy = ear.until_word(AgentRegistered).policy
    monitor.stop()
    assert policy is not None
    assert policy["silence"]["interval"] == 300.0  # type: ignore[index]
    assert policy["silence"]["timeout"] == 600.0  # type: ignore[index]


def test_when_a_lock_is_stale_is_announced_to_the_hub(ear: Ear) -> None:
    """The seed's fast tasks, section 8: they were read and had no effect."""
    config = {"heartbeat_interval": 120_000, "stale_threshold": 300_000, "detection_interval": 30_000}
    monitor = HeartbeatMonitor("w", None, config, hub=ear.url)
    monitor.start()
    policy = ear.until_word(AgentRegistered).policy
    monitor.stop()
    assert policy is not None
    assert policy["silence"]["timeout"] == 300.0  # type: ignore[index]
    assert policy["claim"] == {"lease": 300.0, "check_wait": 30.0, "grace": 600.0}


def test_a_threshold_that_cannot_be_is_refused() -> None:
    with pytest.raises(UsageError, match="stale_threshold"):
        HeartbeatMonitor("w", None, {"heartbeat_interval": 300_000, "stale_threshold": 200_000})


def test_an_unknown_key_is_refused_with_the_known_ones() -> None:
    with pytest.raises(UsageError, match=r"heartbeat_intervall.*heartbeat_interval"):
        HeartbeatMonitor("w", None, {"heartbeat_intervall": 1})


@pytest.mark.parametrize(
    ("cpu", "memory", "status"),
    [
        (69.9, 4095.0, "healthy"),
        (70.0, 0.0, "degraded"),
        (0.0, 4096.0, "degraded"),
        (90.0, 8192.0, "degraded"),
        (90.1, 0.0, "unhealthy"),
        (0.0, 8192.1, "unhealthy"),
    ],
)
def test_health_is_judged_by_cpu_and_memory(
    cpu: float, memory: float, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monitor = HeartbeatMonitor("w", hub="memory://x")
    monkeypatch.setattr(monitor, "get_metrics", lambda: {"cpu_usage": cpu, "memory_usage": memory})
    assert monitor.get_health_status() == status
