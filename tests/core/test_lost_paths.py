"""A server between the hub and some agents dies: that is not the death of these agents."""

from lifesigns.core import signals as s
from lifesigns.core.effects import AskStatus, EscalateMessage, Flip, MessageOverdue, Order
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy, Policy
from tests.core.harness import START, Watch

FIXED = Policy().with_changes(
    {"silence": {"adaptive": False}, "message": {"urgent": 20.0}, "task": {"stalled_after": 20.0}}
)
"""Suspected after 11 s of silence, disconnected after 15."""


def watch_two() -> Watch:
    """`far` speaks through a server, `near` by itself."""
    watch = Watch(FIXED, fleet=FleetPolicy(canary_every=0.0))
    watch.beat("far", source="ai-maestro")
    watch.beat("near", source="token")
    return watch


def lost(watch: Watch) -> list[str]:
    return [flip.agent_id for flip in watch.facts(Flip) if flip.now is Health.DISCONNECTED]


def test_while_its_path_is_lost_an_agent_is_neither_suspected_nor_convicted() -> None:
    watch = watch_two()
    watch.hear(s.PathLost(path="ai-maestro"))
    watch.live(START + 600, "near", source="token")
    assert lost(watch) == []
    assert not watch.orders(Order)


def test_others_are_convicted_all_the_same() -> None:
    watch = watch_two()
    watch.hear(s.PathLost(path="ai-maestro"))
    watch.beat("third", START + 1, source="token")
    watch.live(START + 60, "third", source="token")
    assert lost(watch) == ["near"]


def test_when_it_is_back_silence_starts_anew_and_the_dead_are_found() -> None:
    watch = watch_two()
    watch.hear(s.PathLost(path="ai-maestro"))
    watch.live(START + 100, "near", source="token")
    watch.hear(s.PathRestored(path="ai-maestro"))
    watch.live(START + 110, "near", source="token")
    assert lost(watch) == []
    watch.live(START + 140, "near", source="token")
    assert lost(watch) == ["far"]


def test_a_suspicion_from_before_the_loss_does_not_ripen_after_it() -> None:
    """The question was asked, or its answer was on the way, when the server died."""
    watch = watch_two()
    watch.live(START + 10, "near", source="token")
    watch.live(START + 12, "near", source="token", every=1.0)
    assert watch.agent("far").suspicion is not None
    watch.hear(s.PathLost(path="ai-maestro"))
    watch.hear(s.PathRestored(path="ai-maestro"))
    watch.live(START + 20, "near", source="token", every=1.0)
    assert lost(watch) == []


def test_a_message_to_such_an_agent_is_not_overdue_and_its_task_not_asked_about_meanwhile() -> None:
    watch = watch_two()
    watch.hear(s.TaskAssigned(agent_id="far", task_id="t", expected_for=10.0))
    watch.hear(s.MessageSent(agent_id="near", message_id="m", to="far", priority=s.Priority.URGENT))
    watch.hear(s.PathLost(path="ai-maestro"))
    watch.live(START + 300, "near", source="token")
    assert not watch.facts(MessageOverdue)
    assert not watch.orders(AskStatus)
    watch.hear(s.PathRestored(path="ai-maestro"))
    watch.beat("far", source="ai-maestro")
    watch.live(START + 340, "near", "far", every=2.0)
    assert watch.orders(EscalateMessage)


def test_the_next_hub_judges_its_paths_itself() -> None:
    """A path may not be configured any more."""
    watch = watch_two()
    watch.hear(s.PathLost(path="ai-maestro"))
    engine = Engine.restore(watch.engine.snapshot(), START + 1)
    assert not engine.beliefs.awareness.lost_paths
