"""Beats arrive, but what they beat for does not move."""

import pytest
from msgspec.structs import replace

from lifesigns.core.detectors import freeze
from lifesigns.core.effects import FindingClosed, FindingOpened, Flip, Kind, SendNudge, Severity
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.core.policy import MINUTE, FreezePolicy
from lifesigns.core.profiles import PROFILES, profile
from lifesigns.core.signals import DoingChanged, ToolFinished, ToolStarted
from tests.core.harness import START, Watch


@pytest.mark.parametrize(
    ("lag_ms", "found"), [(0.0, False), (9999.0, False), (10_000.0, True), (10_001.0, True)]
)
def test_a_loop_that_has_not_moved_for_long_is_frozen(lag_ms: float, found: bool) -> None:
    assert (freeze.examine(lag_ms, FreezePolicy(), START) is not None) is found


@pytest.mark.parametrize(("lag_ms", "conclusive"), [(59_999.0, False), (60_000.0, True)])
def test_a_very_long_freeze_is_conclusive(lag_ms: float, conclusive: bool) -> None:
    finding = freeze.examine(lag_ms, FreezePolicy(), START)
    assert finding is not None
    assert finding.conclusive is conclusive


def test_a_freeze_counts_from_when_the_loop_last_moved() -> None:
    finding = freeze.examine(12_500.0, FreezePolicy(), START)
    assert finding is not None
    assert finding.since == START - 12.5
    assert finding.severity is Severity.DISCONNECTED
    assert finding.text == "The process lives, but its loop has not moved for 12 s."


def test_where_the_loop_stands_is_evidence_of_a_bounded_size() -> None:
    finding = freeze.examine(12_500.0, FreezePolicy(), START, {"stack": "x" * 2000})
    assert finding is not None
    assert finding.numbers == {"loop_lag_s": 12.5, "stack": "x" * 1024}


@pytest.mark.parametrize("said", [None, {}, {"stack": ""}, {"host": "h"}])
def test_without_a_stack_there_is_only_the_lag(said: dict[str, str] | None) -> None:
    finding = freeze.examine(12_500.0, FreezePolicy(), START, said)
    assert finding is not None
    assert finding.numbers == {"loop_lag_s": 12.5}


def test_a_frozen_agent_is_disconnected_by_freeze_while_its_process_lives() -> None:
    watch = Watch()
    watch.beat(loop_lag_ms=2.0)
    watch.beat(at=START + 5, loop_lag_ms=9999.0)
    assert watch.health() is Health.HEALTHY
    watch.beat(at=START + 10, loop_lag_ms=14_999.0)
    assert watch.health() is Health.DISCONNECTED
    assert watch.agent().cause is Cause.FREEZE


def test_a_frozen_agent_can_still_be_nudged() -> None:
    """Its process lives and takes messages: it is not gone like one that answers no ping."""
    watch = Watch()
    watch.beat()
    watch.live(START + 30, loop_lag_ms=12_000.0)
    assert [order.agent_id for order in watch.orders(SendNudge)] == ["a"]


def test_a_loop_that_moves_again_is_well_again() -> None:
    watch = Watch()
    watch.beat()
    watch.beat(at=START + 5, loop_lag_ms=12_000.0)
    watch.beat(at=START + 10, loop_lag_ms=1.0)
    assert watch.health() is Health.HEALTHY
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.FREEZE]


def test_a_beat_that_says_nothing_about_the_loop_clears_nothing() -> None:
    watch = Watch()
    watch.beat()
    watch.beat(at=START + 5, loop_lag_ms=12_000.0)
    watch.beat(at=START + 10)
    assert watch.agent().finding(Kind.FREEZE) is not None


def test_a_declared_call_may_block_the_loop() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(ToolStarted(agent_id="a", call_id="c", tool="compile"))
    watch.beat(at=START + 5, loop_lag_ms=90_000.0)
    assert watch.health() is Health.HEALTHY
    watch.hear(ToolFinished(agent_id="a", call_id="c", tool="compile"))
    watch.beat(at=START + 10, loop_lag_ms=90_000.0)
    assert watch.health() is Health.DISCONNECTED


def test_a_call_whose_end_was_lost_does_not_hide_a_freeze_for_ever() -> None:
    """An agent that got on with other things since is not in that call: after its bound it excuses nothing."""
    watch = Watch()
    watch.beat()
    watch.hear(ToolStarted(agent_id="a", call_id="lost", tool="fetch", bound=600.0))
    watch.hear(ToolFinished(agent_id="a", call_id="other", tool="read"), START + 300)
    watch.beat(at=START + 599, loop_lag_ms=90_000.0)
    assert watch.agent().finding(Kind.FREEZE) is None
    watch.beat(at=START + 600, loop_lag_ms=90_000.0)
    assert watch.agent().finding(Kind.FREEZE) is not None


def test_who_does_nothing_beside_a_call_may_be_held_up_by_it_longer_than_its_bound() -> None:
    """It takes too long, which is said; but that is no freeze, and no reason to end it."""
    watch = Watch()
    watch.beat()
    watch.hear(ToolFinished(agent_id="a", call_id="other", tool="read"))
    watch.hear(ToolStarted(agent_id="a", call_id="c", tool="compile", bound=600.0), START + 1)
    watch.live(START + 900, loop_lag_ms=90_000.0)
    assert [finding.kind for finding in watch.agent().findings] == [Kind.LONG_CALL]


def test_where_the_loop_stands_is_evidence_for_people_and_nothing_else() -> None:
    """A hostile stack is cut, and changes no verdict."""
    plain = freeze.examine(12_500.0, FreezePolicy(), START)
    shown = freeze.examine(12_500.0, FreezePolicy(), START, {"stack": "x" * 5000, "provider": "p"})
    assert plain is not None
    assert shown is not None
    assert "stack" not in plain.numbers
    assert shown.numbers["stack"] == "x" * freeze.STACK_MAX
    assert replace(shown, numbers=plain.numbers) == plain


def test_a_declared_long_operation_may_block_the_loop() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(DoingChanged(agent_id="a", doing=Doing.BUSY))
    watch.beat(at=START + 5, loop_lag_ms=90_000.0)
    assert watch.health() is Health.HEALTHY


def test_a_declared_long_operation_whose_end_was_lost_does_not_hide_a_freeze_for_ever() -> None:
    """Busy is believed within its bound; who gets on with other things after it is not in that operation."""
    watch = Watch()
    watch.beat()
    watch.hear(DoingChanged(agent_id="a", doing=Doing.BUSY, until=START + 600))
    watch.hear(ToolFinished(agent_id="a", call_id="other", tool="read"), START + 300)
    watch.beat(at=START + 599, loop_lag_ms=90_000.0)
    assert watch.agent().finding(Kind.FREEZE) is None
    watch.beat(at=START + 600, loop_lag_ms=90_000.0)
    assert watch.agent().finding(Kind.FREEZE) is not None


def test_silence_after_a_freeze_is_still_noticed() -> None:
    watch = Watch()
    watch.beat()
    watch.beat(at=START + 5, loop_lag_ms=12_000.0)
    watch.run_until(START + 20)
    assert {finding.kind for finding in watch.agent().findings} == {Kind.FREEZE, Kind.SILENCE}
    assert watch.agent().cause is Cause.FREEZE


@pytest.mark.parametrize("name", ["swift", "balanced"])
def test_a_quick_profile_finds_a_freeze_within_four_seconds(name: str) -> None:
    """The beat that shows it comes at most one interval after the loop stood still for long enough."""
    policy = profile(name)
    assert policy.freeze.after + policy.silence.interval <= 4.0


@pytest.mark.parametrize("name", PROFILES)
def test_every_profile_finds_a_freeze_before_it_is_conclusive(name: str) -> None:
    policy = profile(name).freeze
    assert policy.after < policy.conclusive_after


def test_who_falls_silent_after_it_froze_is_lost_from_then_on_and_not_before() -> None:
    """It was disconnected all the time, but beat. Else facts about it would be dated before the last ones."""
    watch = Watch()
    watch.beat(task_id="t", loop_lag_ms=2.0)
    watch.live(START + 20 * MINUTE, "b", "a", loop_lag_ms=700_000.0)
    assert watch.agent().cause is Cause.FREEZE
    silent_from = watch.now
    watch.live(silent_from + 4 * MINUTE, "b")
    assert watch.agent().finding(Kind.SILENCE) is not None
    assert not watch.agent().past.absent
    watch.live(silent_from + 6 * MINUTE, "b")
    assert watch.agent().past.absent
    dated = [fact.at for fact in watch.effects if isinstance(fact, FindingOpened | FindingClosed | Flip)]
    assert dated == sorted(dated)


def test_a_lost_agent_that_is_heard_again_and_still_frozen_counts_again_among_those_of_its_host() -> None:
    """Else too many would be unwell at once, and nobody braked for it."""
    watch = Watch()
    watch.beat(host="h", loop_lag_ms=90_000.0)
    assert watch.agent().finding(Kind.FREEZE) is not None
    watch.run_until(START + 3600)
    assert watch.agent().past.absent
    watch.beat(host="h", loop_lag_ms=90_000.0)
    assert watch.health() is Health.DISCONNECTED
    assert not watch.agent().past.absent
