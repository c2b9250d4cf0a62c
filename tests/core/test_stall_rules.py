"""Each rule of `core/detectors/stall.py` on its boundary. `test_stall.py` has them in an agent's life."""

from typing import Any

import pytest
from msgspec.structs import replace

from lifesigns.core.agent import MODEL_CALL, NEVER, Agent, Call, CpuLevel, Work
from lifesigns.core.detectors import stall
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, StallPolicy
from lifesigns.core.signals import (
    AgentRegistered,
    DoingChanged,
    ErrorReported,
    ModelFinished,
    ToolFinished,
)
from tests.core.harness import START as BEGIN
from tests.core.harness import Watch

POLICY = StallPolicy()


def agent(doing: Doing = Doing.WORKING, task_id: str | None = None, **work: Any) -> Agent:
    """An agent whose work began at 0."""
    return Agent("a", 1, doing=doing, task_id=task_id, work=Work(since=0.0, **work))


def examine(one: Agent, now: float, policy: StallPolicy = POLICY) -> tuple[dict[Kind, Finding], float]:
    found, next_at = stall.examine(one, policy, lambda since, wait: since + wait, now)
    return {finding.kind: finding for finding in found}, next_at


def kinds(one: Agent, now: float, policy: StallPolicy = POLICY) -> set[Kind]:
    return set(examine(one, now, policy)[0])


# --- who has work ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("doing", "without_task", "with_task"),
    [
        (Doing.WORKING, True, True),
        (Doing.BUSY, True, True),
        (Doing.UNKNOWN, False, True),
        (Doing.DRAINING, False, True),
        (Doing.IDLE, False, False),
        (Doing.WAITING_FOR_HUMAN, False, False),
        (Doing.RATE_LIMITED, False, False),
    ],
)
def test_who_has_work(doing: Doing, without_task: bool, with_task: bool) -> None:
    assert stall.has_work(agent(doing)) is without_task
    assert stall.has_work(agent(doing, "t")) is with_task
    assert not stall.has_work(Agent("a", 1, doing=doing, task_id="t"))


def test_one_without_work_stalls_in_nothing() -> None:
    assert examine(Agent("a", 1, doing=Doing.WORKING), 1e6) == ({}, NEVER)


@pytest.mark.parametrize(
    "key",
    [
        "checkpoint_degraded_after",
        "tool_call_after",
        "tokens_after",
        "output_after",
        "spin_after",
        "repeat_after",
    ],
)
def test_the_soonest_stall_is_that_of_the_shortest_wait(key: str) -> None:
    assert stall.soonest(replace(POLICY, **{key: 7.0})) == 7.0


@pytest.mark.parametrize(
    ("cpu", "cpu_level"),
    [(4.9, CpuLevel.COLD), (5.0, CpuLevel.WARM), (49.9, CpuLevel.WARM), (50.0, CpuLevel.HOT)],
)
def test_how_much_of_a_core_is_how_hot(cpu: float, cpu_level: CpuLevel) -> None:
    assert stall.cpu_level_of(cpu, POLICY) is cpu_level


# --- checkpoints ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("now", "severity", "next_at"),
    [
        (599.9, None, 600.0),
        (600.0, Severity.DEGRADED, 1800.0),
        (1799.9, Severity.DEGRADED, 1800.0),
        (1800.0, Severity.STUCK, NEVER),
    ],
)
def test_a_stale_checkpoint(now: float, severity: Severity | None, next_at: float) -> None:
    found, at = examine(agent(checkpoint_at=0.0), now)
    assert at == next_at
    finding = found.get(Kind.NO_CHECKPOINT)
    assert (finding.severity if finding else None) is severity
    if finding is not None:
        assert (finding.since, finding.conclusive) == (0.0, False)
        assert finding.numbers == {"for_s": round(now, 1)}


def test_one_that_never_saved_is_judged_only_where_that_is_expected() -> None:
    expected = replace(POLICY, checkpoint_expected=True)
    assert kinds(agent(), 1e6) == set()
    assert kinds(agent(saves=True), 600.0) == kinds(agent(), 600.0, expected) == {Kind.NO_CHECKPOINT}
    assert examine(agent(saves=True), 600.0)[0][Kind.NO_CHECKPOINT].text.startswith(
        "No checkpoint since its work"
    )


def test_one_that_has_not_said_that_it_works_is_judged_while_it_calls_tools() -> None:
    """A finding about it ends when it has called none for as long as one at work may."""
    quiet = agent(Doing.UNKNOWN, checkpoint_at=0.0, tool_at=500.0)
    assert examine(quiet, 599.9) == ({}, 600.0)
    found, next_at = examine(quiet, 700.0)
    assert (set(found), next_at) == ({Kind.NO_CHECKPOINT}, 1400.0)
    assert kinds(quiet, 1399.9) == {Kind.NO_CHECKPOINT}
    assert examine(quiet, 1400.0) == ({}, NEVER)


@pytest.mark.parametrize(("tool_at", "next_at"), [(500.0, NEVER), (700.0, NEVER), (700.1, 1600.0)])
def test_what_would_be_due_only_after_that_is_never_due(tool_at: float, next_at: float) -> None:
    quiet = agent(Doing.UNKNOWN, checkpoint_at=1000.0, tool_at=tool_at)
    assert examine(quiet, 1200.0) == ({}, next_at)


def test_one_that_has_not_said_that_it_works_and_saved_nothing_is_not_judged() -> None:
    assert kinds(agent(Doing.UNKNOWN, tool_at=0.0, saves=True), 700.0) == set()


# --- calls that are open ---------------------------------------------------------------------------------------


def test_a_call_over_its_bound_is_found_on_its_moment() -> None:
    one = agent(calls={"c": Call("make", 100.0, 50.0)})
    assert examine(one, 149.9) == ({}, 150.0)
    finding = examine(one, 150.0)[0][Kind.LONG_CALL]
    assert (finding.since, finding.severity) == (100.0, Severity.STUCK)
    assert finding.text == "make has been running for 50 s, longer than its bound of 50 s."
    assert finding.numbers == {"for_s": 50.0}


@pytest.mark.parametrize("got_on", ["tool_at", "checkpoint_at"])
def test_one_that_got_on_with_other_things_hangs_from_there(got_on: str) -> None:
    one = agent(calls={"c": Call("make", 100.0, 50.0)})
    assert one.work is not None
    setattr(one.work, got_on, 120.0)
    assert stall.calls_end_at(one.work) == 170.0
    assert Kind.LONG_CALL not in kinds(one, 169.9)
    finding = examine(one, 170.0)[0][Kind.LONG_CALL]
    assert finding.since == 120.0
    assert finding.text.startswith("make has not ended, and nothing else was done for 50 s")


def test_the_call_that_may_take_longest_counts() -> None:
    calls = {"b": Call("short", 100.0, 10.0), "c": Call("long", 50.0, 500.0), "d": Call("new", 120.0, 10.0)}
    one = agent(calls=calls)
    assert one.work is not None
    assert stall.calls_end_at(one.work) == 550.0
    assert kinds(one, 549.9) == set()
    assert examine(one, 550.0)[0][Kind.LONG_CALL].text.startswith("long has been running")


def test_a_call_at_the_very_beginning_has_its_whole_bound() -> None:
    assert stall.calls_end_at(Work(since=0.0, calls={"c": Call("make", 0.0, 10.0)})) == 10.0


@pytest.mark.parametrize(("started_at", "found"), [(599.9, False), (600.0, True), (700.0, True)])
def test_what_was_due_before_a_call_began_stays_found_and_what_came_after_follows_from_it(
    started_at: float, found: bool
) -> None:
    one = agent(checkpoint_at=0.0, calls={"c": Call("make", started_at, 100.0)})
    held = examine(one, 900.0)[0]
    assert Kind.LONG_CALL in held
    assert (Kind.NO_CHECKPOINT in held) is found


def test_open_calls_excuse_no_longer_than_the_longest_of_them_may_take() -> None:
    """The second began within the bound of the first: together they would excuse for 250 s."""
    calls = {"d": Call("make", 650.0, 200.0), "c": Call("make", 500.0, 200.0)}
    one = agent(checkpoint_at=0.0, calls=calls)
    assert examine(one, 799.9) == ({}, 800.0)
    assert kinds(one, 800.0) == {Kind.NO_CHECKPOINT}


def test_a_call_that_begins_when_something_is_due_does_not_excuse_it() -> None:
    one = agent(checkpoint_at=0.0, calls={"c": Call("make", 600.0, 1000.0)})
    assert kinds(one, 700.0) == {Kind.NO_CHECKPOINT}


def test_a_call_excuses_until_its_bound() -> None:
    one = agent(checkpoint_at=0.0, calls={"c": Call("make", 590.0, 200.0)})
    assert examine(one, 700.0) == ({}, 790.0)


# --- tools, tokens, output -------------------------------------------------------------------------------------


@pytest.mark.parametrize(("what", "found"), [(MODEL_CALL, True), ("grep", False)])
def test_an_open_tool_call_is_one_that_is_made_and_a_model_call_is_none(what: str, found: bool) -> None:
    one = agent(tool_at=0.0, calls={"c": Call(what, 950.0, 1000.0)})
    assert (Kind.NO_TOOL_CALL in kinds(one, 1000.0)) is found


def test_no_tool_call_names_the_last_one_if_it_is_known() -> None:
    named, nameless = agent(tool_at=0.0, last_tool="grep"), agent(tool_at=0.0)
    text = "No tool call for 15 min"
    assert examine(named, 900.0)[0][Kind.NO_TOOL_CALL].text == f"{text}; the last was grep."
    assert examine(nameless, 900.0)[0][Kind.NO_TOOL_CALL].text == f"{text}."
    assert kinds(nameless, 899.9) == set()


def test_no_tokens_are_a_warning_and_with_nothing_else_done_it_is_stuck() -> None:
    """FR-002: zero consumption is stuck. Calls without a model may be work: then it is a warning."""
    one = agent(tokens_at=0.0)
    assert kinds(one, 899.9) == set()
    assert examine(one, 900.0)[0][Kind.NO_TOKENS].severity is Severity.STUCK
    calls = agent(tokens_at=0.0, tool_at=600.0)
    assert examine(calls, 1499.9)[0][Kind.NO_TOKENS].severity is Severity.DEGRADED
    found = examine(calls, 1500.0)[0][Kind.NO_TOKENS]
    assert (found.severity, found.since) == (Severity.STUCK, 600.0)


@pytest.mark.parametrize(
    ("cpu_level", "found"),
    [(CpuLevel.COLD, Kind.NO_OUTPUT), (CpuLevel.HOT, Kind.SPINNING), (CpuLevel.WARM, None)],
)
def test_no_output_is_judged_by_the_cpu_that_is_used(cpu_level: CpuLevel, found: Kind | None) -> None:
    one = agent(output_at=0.0, cpu_level=cpu_level)
    assert kinds(one, 599.9) == set()
    assert kinds(one, 600.0) == ({found} if found else set())


def test_no_output_is_not_judged_while_a_call_is_open() -> None:
    one = agent(output_at=0.0, cpu_level=CpuLevel.COLD)
    assert kinds(one, 700.0) == {Kind.NO_OUTPUT}
    assert one.work is not None
    one.work.calls["c"] = Call("make", 650.0, 1000.0)
    assert kinds(one, 700.0) == set()


@pytest.mark.parametrize("activity", ["tool_at", "tokens_at", "checkpoint_at", "cpu_level_at", "clocks_from"])
def test_activity_of_any_kind_overrules_no_output(activity: str) -> None:
    one = agent(output_at=0.0, cpu_level=CpuLevel.COLD)
    setattr(one.work, activity, 300.0)
    assert Kind.NO_OUTPUT not in kinds(one, 899.9)
    assert Kind.NO_OUTPUT in kinds(one, 900.0)


def test_who_does_nothing_at_all_is_told_so() -> None:
    watch = Watch()
    watch.beat(task_id="t")
    watch.hear(ModelFinished(agent_id="a", tokens_out=5))
    watch.live(BEGIN + 2 * HOUR)
    (found,) = watch.agent().findings
    assert (found.severity, found.text) == (Severity.STUCK, "No tokens used and nothing else done for 2 h.")


@pytest.mark.parametrize("errors", [0, 5])
def test_who_never_beats_is_not_missed_at_its_work(errors: int) -> None:
    """It may have ended hours ago: nobody would know. That it did something wrong before says nothing about that either."""
    watch = Watch()
    watch.hear(AgentRegistered(agent_id="a", beats=False))
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WORKING))
    watch.hear(ToolFinished(agent_id="a", call_id="c", tool="ls"))
    for n in range(errors):
        watch.hear(ErrorReported(agent_id="a", message=f"try {n}"))
    found = {Kind.ERRORS} if errors else set()
    assert {finding.kind for finding in watch.agent().findings} == found
    watch.run_until(BEGIN + 4 * HOUR)
    assert {finding.kind for finding in watch.agent().findings} == found
