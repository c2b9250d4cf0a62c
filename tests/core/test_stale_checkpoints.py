"""A checkpoint that is not followed by another one is found, however the agent calls its tools meanwhile."""

from collections.abc import Iterator

import pytest

from lifesigns.core.effects import FindingOpened, Kind, SendNudge, Severity
from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import HOUR, MINUTE, Policy
from lifesigns.core.signals import (
    AgentLeft,
    AgentRegistered,
    CheckpointSaved,
    ClearRequested,
    DoingChanged,
    ModelFinished,
    ModelStarted,
    Signal,
    ToolFinished,
    ToolStarted,
)
from tests.core.harness import START, Watch

DAY_END = START + 4 * HOUR
LONG_ENOUGH = 2 * MINUTE
"""What is left to the agent over the threshold: it is judged when a call ends."""

Timed = tuple[float, Signal]


def started(call: str, tool: str = "grep", bound: float | None = None) -> ToolStarted:
    return ToolStarted(agent_id="a", call_id=call, tool=tool, args_digest=call, bound=bound)


def finished(call: str, tool: str = "grep") -> ToolFinished:
    return ToolFinished(agent_id="a", call_id=call, tool=tool, args_digest=call, result_digest=call)


def saved(number: int) -> CheckpointSaved:
    return CheckpointSaved(agent_id="a", checkpoint_id=f"cp-{number}", task_id="t")


def calls(takes: float, pause: float, lanes: int = 1) -> Iterator[Timed]:
    """Calls that take so long with such a pause between them; with several lanes, at least one is always open."""
    for lane in range(lanes):
        at = START + 1 + lane * takes / lanes
        number = 0
        while at + takes <= DAY_END:
            call = f"{lane}-{number}"
            yield at, started(call)
            yield at + takes, finished(call)
            at, number = at + takes + pause, number + 1


def ends_only() -> Iterator[Timed]:
    for number in range(1, 240):
        yield START + number * MINUTE, finished(f"{number}")


def thinking_and_calling() -> Iterator[Timed]:
    for number in range(1, 400):
        at = START + number * 36
        yield at, ModelStarted(agent_id="a", call_id=f"m{number}")
        yield at + 25, ModelFinished(agent_id="a", call_id=f"m{number}", tokens_out=100)
        yield at + 25, started(f"{number}")
        yield at + 35.9, finished(f"{number}")


def lost_end() -> Iterator[Timed]:
    yield START + 1, started("lost")
    yield from ends_only()


PATTERNS = {
    "ends only": ends_only,
    "short calls now and then": lambda: calls(2, 30),
    "one call after the other": lambda: calls(50, 0),
    "long calls one after the other": lambda: calls(5 * MINUTE, 0),
    "always one open": lambda: calls(40, 0, lanes=3),
    "thinking and calling": thinking_and_calling,
    "the end of one was lost": lost_end,
}


def live(watch: Watch, signals: Iterator[Timed]) -> float:
    """The agent beats and says all this. For how long it was unwell."""
    beats = [(START + 5.0 * n, None) for n in range(1, int(4 * HOUR / 5))]
    unwell, last = 0.0, START
    for at, signal in sorted([*beats, *signals], key=lambda said: said[0]):
        watch.run_until(at)
        unwell += (at - last) * (watch.health() is not Health.HEALTHY)
        last = at
        if signal is None:
            watch.beat()
        else:
            watch.hear(signal)
    return unwell


def openings(watch: Watch) -> list[Severity]:
    return [f.finding.severity for f in watch.facts(FindingOpened) if f.finding.kind is Kind.NO_CHECKPOINT]


@pytest.mark.parametrize("work", ["task", "word", "neither"])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_one_checkpoint_and_calls_for_four_hours_is_stuck_for_nearly_all_of_them(
    pattern: str, work: str
) -> None:
    """It was unwell for 0 to 28 s of 14,400: the next call took the finding away, and it was not found again."""
    watch = Watch()
    watch.beat(task_id="t" if work == "task" else None, doing=Doing.WORKING if work == "word" else None)
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp-1"))
    unwell = live(watch, PATTERNS[pattern]())
    excuse = 5 * MINUTE if pattern == "long calls one after the other" else 0.0
    if pattern == "the end of one was lost":
        excuse = 20 * MINUTE  # The lost call may take half an hour by its bound.
    assert unwell > 4 * HOUR - 10 * MINUTE - excuse - LONG_ENOUGH
    found = [Severity.STUCK] if excuse == 20 * MINUTE else [Severity.DEGRADED, Severity.STUCK]
    assert openings(watch) == found
    assert watch.orders(SendNudge)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_who_saves_every_nine_minutes_is_well_whatever_it_calls(pattern: str) -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(saved(0))
    saves = [(START + number * 9 * MINUTE, saved(number)) for number in range(1, 27)]
    assert live(watch, iter([*PATTERNS[pattern](), *saves])) == 0
    assert openings(watch) == []


def test_a_build_of_most_of_an_hour_is_no_stall_and_neither_is_the_work_right_after_it() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(saved(0))
    build: list[Timed] = [
        (START + 9 * MINUTE, started("b", "build", HOUR)),
        (START + 64 * MINUTE, finished("b", "build")),
    ]
    after = [(at, signal) for at, signal in ends_only() if at > START + 65 * MINUTE]
    assert live(watch, iter([*build, (START + 64.5 * MINUTE, saved(1)), *after, *_saving_from(70)])) == 0


def test_a_parallel_call_within_its_bound_excuses_while_others_go_on() -> None:
    """A helper that works for 40 min, and short calls beside it."""
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(saved(0))
    helper: list[Timed] = [
        (START + 1, started("h", "subagent", HOUR)),
        (START + 40 * MINUTE, finished("h", "subagent")),
    ]
    after = [(START + 40 * MINUTE, saved(1)), *_saving_from(45)]
    assert live(watch, iter([*helper, *ends_only(), *after])) == 0


def test_who_says_that_it_waits_or_rests_need_not_save() -> None:
    for doing in (Doing.IDLE, Doing.WAITING_FOR_HUMAN):
        watch = Watch()
        watch.beat(task_id="t")
        watch.hear(saved(0))
        watch.hear(DoingChanged(agent_id="a", doing=doing))
        assert live(watch, iter(())) == 0


def test_a_checkpoint_without_a_task_binds_only_as_long_as_tools_are_called() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp-1"))
    unwell = live(watch, iter([(at, s) for at, s in ends_only() if at <= START + 20 * MINUTE]))
    assert 10 * MINUTE <= unwell <= 26 * MINUTE
    assert watch.health() is Health.HEALTHY


def _saving_from(minute: float) -> list[Timed]:
    return [(START + m * MINUTE, saved(int(m))) for m in range(int(minute), 240, 8)]


# --- who never saved one -----------------------------------------------------------------------------------------


def test_who_never_saved_a_checkpoint_is_not_asked_for_one() -> None:
    """Many agents save none."""
    watch = Watch()
    watch.beat(task_id="t")
    assert live(watch, ends_only()) == 0


def test_where_the_policy_says_that_everybody_saves_the_clock_starts_with_the_work() -> None:
    watch = Watch(Policy().with_changes({"stall": {"checkpoint_expected": True}}))
    watch.beat(task_id="t")
    assert live(watch, ends_only()) > 4 * HOUR - 10 * MINUTE - LONG_ENOUGH
    assert openings(watch) == [Severity.DEGRADED, Severity.STUCK]
    assert watch.agent().findings[0].text.startswith("No checkpoint since its work began ")


def test_a_new_life_with_the_same_task_is_expected_to_save_as_the_last_one_did() -> None:
    watch = Watch()
    watch.beat(task_id="t", incarnation="1")
    watch.hear(saved(0))
    watch.hear(AgentLeft(agent_id="a", incarnation="1"))
    watch.hear(AgentRegistered(agent_id="a", incarnation="2", task_id="t"))
    watch.beat(seq=1, incarnation="2")
    watch.live(START + 10 * MINUTE - 1, incarnation="2")
    assert watch.health() is Health.HEALTHY
    watch.live(START + 10 * MINUTE + 5, incarnation="2")
    assert openings(watch) == [Severity.DEGRADED]


def test_a_new_life_with_another_task_is_not() -> None:
    watch = Watch()
    watch.beat(task_id="t", incarnation="1")
    watch.hear(saved(0))
    watch.hear(AgentLeft(agent_id="a", incarnation="1"))
    watch.hear(AgentRegistered(agent_id="a", incarnation="2", task_id="another"))
    watch.beat(seq=1, incarnation="2")
    watch.live(START + HOUR, incarnation="2")
    assert openings(watch) == []


def test_who_was_cleared_owes_nothing_before_it_saves_again() -> None:
    """A person began anew with it; whether it goes on with the same work nobody knows (chaos seed 486)."""
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    watch.hear(saved(1))
    watch.hear(ClearRequested(agent_id="a", by="eva"))
    watch.live(START + 2 * HOUR)
    assert watch.agent().finding(Kind.NO_CHECKPOINT) is None
