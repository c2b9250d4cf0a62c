"""Time in which nothing was heard of an agent is silence, not standing still: nobody knows what it did then."""

import pytest

from lifesigns.core.effects import FindingOpened, Kind, SendNudge
from lifesigns.core.health import Health
from lifesigns.core.policy import MINUTE
from lifesigns.core.signals import (
    CheckpointSaved,
    ModelFinished,
    Signal,
    TaskAssigned,
    ToolFinished,
    ToolStarted,
)
from tests.core.harness import START, Watch

CHECKPOINT = CheckpointSaved(agent_id="a", checkpoint_id="cp-1", task_id="t")
TOOL = ToolFinished(agent_id="a", call_id="c", tool="grep")
MODEL = ModelFinished(agent_id="a", tokens_in=10, tokens_out=5)
BUILD = ToolStarted(agent_id="a", call_id="b", tool="build", bound=20 * MINUTE)


def at_work(*shown: Signal) -> Watch:
    watch = Watch()
    watch.beat()
    watch.hear(TaskAssigned(agent_id="a", task_id="t"))
    for signal in shown:
        watch.hear(signal)
    return watch


def cut_off(watch: Watch, how_long: float) -> None:
    """Nothing is heard for so long; then it beats again."""
    watch.beat(at=watch.now + how_long)


def found(watch: Watch) -> list[tuple[Kind, float]]:
    return [(fact.finding.kind, fact.at - START) for fact in watch.facts(FindingOpened)]


def test_who_comes_back_after_a_long_silence_is_well_at_once() -> None:
    watch = at_work(CHECKPOINT, TOOL, MODEL, BUILD)
    cut_off(watch, 60 * MINUTE)
    assert {kind for kind, _ in found(watch)} == {Kind.SILENCE}
    assert watch.health() is Health.HEALTHY
    assert watch.orders(SendNudge) == []


def test_a_call_that_was_heard_of_late_does_not_bring_the_silence_back_when_it_ends() -> None:
    """What it could not report while it was cut off comes with its return: here, the call that it is in."""
    watch = at_work(CHECKPOINT, TOOL, MODEL)
    cut_off(watch, 25 * MINUTE)
    watch.hear(BUILD)
    watch.live(watch.now + 2.5 * MINUTE)
    watch.hear(ToolFinished(agent_id="a", call_id="b", tool="build"))
    assert {kind for kind, _ in found(watch)} == {Kind.SILENCE}


@pytest.mark.parametrize(
    ("shown", "kind", "after"),
    [
        (CHECKPOINT, Kind.NO_CHECKPOINT, 10 * MINUTE),
        (TOOL, Kind.NO_TOOL_CALL, 15 * MINUTE),
        (MODEL, Kind.NO_TOKENS, 15 * MINUTE),
        (BUILD, Kind.LONG_CALL, 20 * MINUTE),
    ],
)
def test_the_time_before_and_after_a_silence_counts(shown: Signal, kind: Kind, after: float) -> None:
    """The look-alike: it stands still, and is cut off twice meanwhile."""
    watch = at_work(shown)
    watch.live(START + 4 * MINUTE)
    cut_off(watch, 30 * MINUTE)
    watch.live(watch.now + 3 * MINUTE)
    cut_off(watch, 10 * MINUTE)
    watch.forget()
    watch.live(START + after + 40 * MINUTE - 0.01)
    assert found(watch) == []
    watch.live(watch.now + 5)
    assert found(watch) == [(kind, after + 40 * MINUTE)]


def test_a_checkpoint_ends_what_a_silence_before_it_excuses() -> None:
    watch = at_work(CHECKPOINT)
    cut_off(watch, 30 * MINUTE)
    watch.hear(CHECKPOINT)
    watch.forget()
    watch.live(watch.now + 10 * MINUTE + 1)
    assert [kind for kind, _ in found(watch)] == [Kind.NO_CHECKPOINT]
