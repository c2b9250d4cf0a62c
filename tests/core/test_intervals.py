"""The hub tells a sender how often to beat; and whether that arrives or not, no healthy agent is doubted for it."""

import pytest

from lifesigns.core.effects import Flip, SendPing, SetInterval
from lifesigns.core.health import Health
from lifesigns.core.policy import Policy
from lifesigns.core.signals import AgentRegistered, BeatReceived
from lifesigns.errors import PolicyError
from tests.core.harness import START, Watch

TELLING = Policy().with_changes({"silence": {"tell_interval": True}})
CALM_AFTER = TELLING.silence.calm_after
SLOW = 11.0 / 1.5


def watched(policy: Policy = TELLING, *, follows: bool = True) -> Watch:
    watch = Watch(policy)
    watch.hear(AgentRegistered(agent_id="a", follows_interval=follows))
    watch.beat()
    return watch


def intervals(watch: Watch) -> list[float]:
    return [round(order.interval, 3) for order in watch.orders(SetInterval)]


def hot(watch: Watch, until: float, every: float = 5.0) -> None:
    """It beats, and says that it is degraded."""
    watch.live(until, every=every, status="degraded")


def test_a_calm_agent_is_told_once_to_beat_more_rarely() -> None:
    watch = watched()
    watch.live(START + CALM_AFTER - 5)
    assert intervals(watch) == []
    watch.live(START + CALM_AFTER + 5)
    assert intervals(watch) == [round(SLOW, 3)]
    watch.live(START + 5 * CALM_AFTER, every=SLOW)
    assert len(intervals(watch)) == 1


def test_an_unwell_agent_beats_oftener_and_as_before_when_it_is_well() -> None:
    watch = watched()
    hot(watch, watch.now + 60)
    assert watch.health() is Health.DEGRADED
    assert intervals(watch) == [2.5]
    watch.live(watch.now + 60, every=2.5, status="healthy")
    assert watch.health() is Health.HEALTHY
    assert intervals(watch) == [2.5, 5.0]


@pytest.mark.parametrize("policy", [Policy(), Policy().with_changes({"silence": {"calm_after": 1.0}})])
def test_without_the_policy_nobody_is_told(policy: Policy) -> None:
    watch = watched(policy)
    hot(watch, watch.now + 60)
    watch.live(watch.now + 2 * CALM_AFTER, status="healthy")
    assert intervals(watch) == []


def test_a_sender_that_did_not_say_that_it_follows_is_not_told() -> None:
    watch = watched(follows=False)
    hot(watch, watch.now + 60)
    watch.live(watch.now + 2 * CALM_AFTER, status="healthy")
    assert intervals(watch) == []


@pytest.mark.parametrize("every", [5.0, SLOW, 2.5])
@pytest.mark.parametrize("from_", [0.0, 20.0, 300.0])
def test_whatever_the_sender_makes_of_it_nobody_is_suspected(every: float, from_: float) -> None:
    """The order is lost, late, or followed at once: the timeout of the policy holds for all of them."""
    watch = watched()
    watch.live(START + CALM_AFTER + 5)
    assert intervals(watch)
    watch.live(watch.now + from_)
    watch.forget()
    watch.live(watch.now + 4 * 3600, every=every)
    assert watch.orders(SendPing) == []
    assert watch.facts(Flip) == []


@pytest.mark.parametrize("every", [5.0, SLOW])
def test_a_death_is_found_within_the_timeout_whatever_was_told(every: float) -> None:
    watch = watched()
    watch.live(START + CALM_AFTER + 5)
    watch.live(watch.now + 3600, every=every)
    died_at = watch.agent().heard_at
    watch.run_until(died_at + 60)
    lost = [flip for flip in watch.facts(Flip) if flip.now is Health.DISCONNECTED]
    assert len(lost) == 1
    assert lost[0].at - died_at <= TELLING.silence.timeout


def test_the_bounds_hold_for_every_factor() -> None:
    """A calm sender never beats so rarely that one late beat would be a suspicion."""
    policy = TELLING.with_changes({"silence": {"calm_factor": 10}})
    watch = watched(policy)
    watch.live(START + CALM_AFTER + 5)
    assert intervals(watch) == [round(policy.silence.suspect_after / 1.5, 3)]
    for key, value in (
        ("unwell_factor", 0.01),
        ("unwell_factor", 2),
        ("calm_factor", 0.5),
        ("calm_factor", 11),
    ):
        with pytest.raises(PolicyError, match=key):
            TELLING.with_changes({"silence": {key: value}})


def test_a_new_life_is_told_anew() -> None:
    watch = Watch(TELLING)
    for life in ("i-1", "i-2"):
        watch.hear(AgentRegistered(agent_id="a", incarnation=life, follows_interval=True))
        for _ in range(int(CALM_AFTER / 5) + 2):
            watch.hear(BeatReceived("a", watch.seqs.setdefault(life, 0), life), watch.now + 5)
            watch.seqs[life] += 1
    assert intervals(watch) == [round(SLOW, 3)] * 2
