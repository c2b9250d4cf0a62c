"""An agent that lives but does not come forward; judged only while there is work."""

import pytest

from lifesigns.core.effects import FindingClosed, FindingOpened, Kind, Severity, Terminate
from lifesigns.core.health import Doing, Health
from lifesigns.core.policy import MINUTE, Policy
from lifesigns.core.signals import (
    ActivitySeen,
    CheckpointSaved,
    DoingChanged,
    Metrics,
    ModelFinished,
    ModelStarted,
    ProgressMade,
    Signal,
    TaskAssigned,
    TaskDone,
    ToolFinished,
    ToolStarted,
)
from tests.core.harness import START, Watch

CHECKPOINT = CheckpointSaved(agent_id="a", checkpoint_id="cp-1", task_id="t")
TOOL = ToolFinished(agent_id="a", call_id="c", tool="grep")
MODEL = ModelFinished(agent_id="a", tokens_in=10, tokens_out=5)


def at_work(*shown: Signal) -> Watch:
    """An agent with a task that has just shown these signs of coming forward."""
    watch = Watch()
    watch.beat()
    watch.hear(TaskAssigned(agent_id="a", task_id="t"))
    for signal in shown:
        watch.hear(signal)
    watch.forget()
    return watch


def opened(watch: Watch) -> list[tuple[Kind, float, Severity]]:
    return [(f.finding.kind, f.at - START, f.finding.severity) for f in watch.facts(FindingOpened)]


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        (CHECKPOINT, (Kind.NO_CHECKPOINT, 10 * MINUTE, Severity.DEGRADED)),
        (ProgressMade(agent_id="a"), (Kind.NO_CHECKPOINT, 10 * MINUTE, Severity.DEGRADED)),
        (TOOL, (Kind.NO_TOOL_CALL, 15 * MINUTE, Severity.STUCK)),
        (MODEL, (Kind.NO_TOKENS, 15 * MINUTE, Severity.STUCK)),
    ],
)
def test_a_sign_that_was_shown_and_stays_away_is_found_on_its_moment(
    shown: Signal, found: tuple[Kind, float, Severity]
) -> None:
    watch = at_work(shown)
    watch.live(START + found[1] - 0.01)
    assert opened(watch) == []
    watch.run_until(START + found[1])
    assert opened(watch) == [found]
    finding = watch.agent().findings[0]
    assert finding.since == START
    assert not finding.conclusive


def test_a_stale_checkpoint_is_degraded_first_and_stuck_later() -> None:
    watch = at_work(CHECKPOINT)
    watch.live(START + 30 * MINUTE - 0.01)
    assert watch.health() is Health.DEGRADED
    watch.run_until(START + 30 * MINUTE)
    assert watch.health() is Health.STUCK
    assert [severity for _, _, severity in opened(watch)] == [Severity.DEGRADED, Severity.STUCK]
    assert watch.agent().findings[0].text == "No checkpoint for 30 min."


def test_who_never_showed_a_sign_is_not_without_it() -> None:
    watch = at_work()
    watch.live(START + 60 * MINUTE)
    assert opened(watch) == []


def test_the_next_sign_ends_the_finding() -> None:
    watch = at_work(CHECKPOINT)
    watch.live(START + 11 * MINUTE)
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp-2", parent_id="cp-1"))
    assert watch.health() is Health.HEALTHY
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.NO_CHECKPOINT]


def test_the_next_tool_call_ends_its_finding_and_no_other() -> None:
    watch = at_work(CHECKPOINT, TOOL)
    watch.live(START + 16 * MINUTE)
    assert watch.health() is Health.STUCK
    watch.hear(TOOL)
    assert [finding.kind for finding in watch.agent().findings] == [Kind.NO_CHECKPOINT]


def test_without_work_nothing_stalls() -> None:
    watch = Watch()
    watch.beat()
    watch.hear(TOOL)
    watch.live(START + 60 * MINUTE)
    assert watch.health() is Health.HEALTHY


def test_the_word_working_is_work_enough() -> None:
    watch = Watch()
    watch.beat(doing=Doing.WORKING)
    watch.hear(TOOL)
    watch.live(START + 15 * MINUTE)
    assert watch.health() is Health.STUCK


@pytest.mark.parametrize("doing", [Doing.IDLE, Doing.WAITING_FOR_HUMAN])
def test_who_rests_or_waits_does_not_stall(doing: Doing) -> None:
    watch = at_work(CHECKPOINT, TOOL, MODEL)
    watch.hear(DoingChanged(agent_id="a", doing=doing))
    watch.live(START + 120 * MINUTE)
    assert watch.health() is Health.HEALTHY
    assert opened(watch) == []


def test_who_begins_to_wait_is_well_again() -> None:
    watch = at_work(TOOL)
    watch.live(START + 16 * MINUTE)
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN))
    assert watch.health() is Health.HEALTHY


def test_after_waiting_the_clock_starts_anew() -> None:
    watch = at_work(TOOL)
    watch.live(START + 14 * MINUTE)
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WAITING_FOR_HUMAN))
    watch.live(START + 60 * MINUTE)
    watch.hear(DoingChanged(agent_id="a", doing=Doing.WORKING))
    watch.live(START + 75 * MINUTE - 0.01)
    assert watch.health() is Health.HEALTHY
    watch.run_until(START + 75 * MINUTE)
    assert watch.health() is Health.STUCK


def test_a_rate_limited_agent_is_parked_until_its_reset() -> None:
    watch = at_work(TOOL)
    until = START + 60 * MINUTE
    watch.hear(DoingChanged(agent_id="a", doing=Doing.RATE_LIMITED, until=until))
    watch.live(until - 0.01)
    assert watch.agent().doing is Doing.RATE_LIMITED
    watch.live(until + 15 * MINUTE - 0.02)
    assert watch.agent().doing is Doing.WORKING
    assert watch.health() is Health.HEALTHY
    watch.live(until + 15 * MINUTE + 1)
    assert opened(watch) == [(Kind.NO_TOOL_CALL, 75 * MINUTE, Severity.STUCK)]


def test_a_rate_limit_without_an_end_is_parked_for_a_call_at_most() -> None:
    watch = at_work(TOOL)
    watch.hear(DoingChanged(agent_id="a", doing=Doing.RATE_LIMITED))
    watch.live(START + 30 * MINUTE + 1)
    assert watch.agent().doing is Doing.WORKING


@pytest.mark.parametrize(
    ("started", "finished"),
    [
        (
            ToolStarted(agent_id="a", call_id="x", tool="build"),
            ToolFinished(agent_id="a", call_id="x", tool="build"),
        ),
        (ModelStarted(agent_id="a"), MODEL),
        (DoingChanged(agent_id="a", doing=Doing.BUSY), DoingChanged(agent_id="a", doing=Doing.WORKING)),
    ],
)
def test_an_open_call_within_its_bound_is_no_stall_and_after_it_a_finding(
    started: Signal, finished: Signal
) -> None:
    watch = at_work(CHECKPOINT, TOOL)
    watch.hear(started)
    watch.live(START + 30 * MINUTE - 0.01)
    assert opened(watch) == []
    watch.run_until(START + 30 * MINUTE)
    assert opened(watch) == [(Kind.LONG_CALL, 30 * MINUTE, Severity.STUCK)]
    watch.hear(finished)
    assert watch.agent().finding(Kind.LONG_CALL) is None


@pytest.mark.parametrize(
    "started",
    [
        ToolStarted(agent_id="a", call_id="x", tool="build", bound=7200.0),
        ModelStarted(agent_id="a", bound=7200.0),
        DoingChanged(agent_id="a", doing=Doing.BUSY, until=START + 7200.0),
    ],
)
def test_a_call_may_declare_its_own_bound(started: Signal) -> None:
    watch = at_work(CHECKPOINT, TOOL)
    watch.hear(started)
    watch.live(START + 7199.99)
    assert opened(watch) == []
    watch.run_until(START + 7200)
    assert [kind for kind, _, _ in opened(watch)] == [Kind.LONG_CALL]


def test_what_we_missed_before_a_long_call_is_not_counted_after_it() -> None:
    """The clocks of an agent are set on by the time of a long call: they must not leave our own sleep behind."""
    watch = at_work(CHECKPOINT)
    watch.jump_to(START + 12 * MINUTE)
    watch.hear(ToolStarted(agent_id="a", call_id="c", tool="build", bound=60 * MINUTE))
    watch.live(START + 40 * MINUTE)
    watch.hear(ToolFinished(agent_id="a", call_id="c", tool="build"))
    watch.live(START + 50 * MINUTE - 1)
    assert opened(watch) == []
    watch.live(START + 50 * MINUTE)
    assert [kind for kind, _, _ in opened(watch)] == [Kind.NO_CHECKPOINT]


def test_a_long_call_counts_even_without_a_task() -> None:
    """A call is its own work: who hangs in one has something to come forward with."""
    watch = Watch()
    watch.beat()
    watch.hear(ModelStarted(agent_id="a"))
    watch.live(START + 30 * MINUTE + 1)
    assert [kind for kind, _, _ in opened(watch)] == [Kind.LONG_CALL]


def test_a_finished_task_leaves_no_stall_behind() -> None:
    watch = at_work(CHECKPOINT)
    watch.live(START + 31 * MINUTE)
    assert watch.health() is Health.STUCK
    watch.hear(TaskDone(agent_id="a", task_id="t"))
    assert watch.health() is Health.HEALTHY
    watch.live(START + 120 * MINUTE)
    assert watch.health() is Health.HEALTHY


def test_a_new_task_starts_its_own_clock() -> None:
    watch = at_work(CHECKPOINT)
    watch.live(START + 9 * MINUTE)
    watch.hear(TaskAssigned(agent_id="a", task_id="t-2"))
    watch.hear(CheckpointSaved(agent_id="a", checkpoint_id="cp-1", task_id="t-2"))
    watch.live(START + 19 * MINUTE - 1)
    assert watch.health() is Health.HEALTHY
    watch.live(START + 19 * MINUTE + 5)
    assert watch.health() is Health.DEGRADED


def test_our_own_sleep_is_nobodys_stall() -> None:
    watch = at_work(CHECKPOINT)
    watch.live(START + 300)
    watch.jump_to(START + 300 + 600)
    watch.live(START + 1200 - 0.01)
    assert watch.health() is Health.HEALTHY
    watch.live(START + 1200 + 5)
    assert watch.health() is Health.DEGRADED


def test_every_threshold_is_policy() -> None:
    policy = {
        "checkpoint_degraded_after": 60,
        "checkpoint_stuck_after": 120,
        "tool_call_after": 90,
        "call_max": 30,
    }
    watch = Watch(Policy().with_changes({"stall": policy}))
    watch.beat()
    watch.hear(CHECKPOINT)
    watch.hear(TOOL)
    watch.live(START + 121)
    assert opened(watch) == [
        (Kind.NO_CHECKPOINT, 60, Severity.DEGRADED),
        (Kind.NO_TOOL_CALL, 90, Severity.STUCK),
        (Kind.NO_CHECKPOINT, 120, Severity.STUCK),
    ]


# --- programs watched from outside: output and CPU are all they show ------------------------------------

OUTPUT = ActivitySeen(agent_id="a", kind="output")


def running(cpu: float, until: float, watch: Watch | None = None) -> Watch:
    """A supervised program that put something out at the start, and has used this much CPU since."""
    if watch is None:
        watch = at_work(OUTPUT)
        watch.beat(metrics=Metrics(cpu_percent=cpu))
    watch.live(until, metrics=Metrics(cpu_percent=cpu))
    return watch


@pytest.mark.parametrize(
    ("cpu", "kind"), [(0.0, Kind.NO_OUTPUT), (4.9, Kind.NO_OUTPUT), (50.0, Kind.SPINNING)]
)
def test_a_program_without_output_is_found_by_what_its_cpu_says(cpu: float, kind: Kind) -> None:
    watch = running(cpu, START + 10 * MINUTE - 0.01)
    assert opened(watch) == []
    watch.run_until(START + 10 * MINUTE)
    assert opened(watch) == [(kind, 10 * MINUTE, Severity.STUCK)]
    assert not watch.agent().findings[0].conclusive


@pytest.mark.parametrize("cpu", [5.0, 49.9])
def test_a_program_that_works_quietly_is_left_alone(cpu: float) -> None:
    assert opened(running(cpu, START + 60 * MINUTE)) == []


def repeating(kind: str, until: float, watch: Watch | None = None) -> Watch:
    """A supervised program whose output only repeats itself, seen at each beat."""
    watch = watch or at_work(OUTPUT)
    while watch.now + 10 <= until:
        watch.live(watch.now + 10, metrics=Metrics(cpu_percent=3.0))
        watch.hear(ActivitySeen(agent_id="a", kind=kind, note="{Error}: no route\x1b[2J"))
    return watch


@pytest.mark.parametrize(
    ("kind", "severity"), [("repetition", Severity.DEGRADED), ("repeated_error", Severity.STUCK)]
)
def test_output_that_only_repeats_itself_is_found(kind: str, severity: Severity) -> None:
    watch = repeating(kind, START + 9.9 * MINUTE)
    assert opened(watch) == []
    repeating(kind, START + 10.2 * MINUTE, watch)
    assert [(kind, severity) for kind, _, severity in opened(watch)] == [(Kind.REPEATED_OUTPUT, severity)]
    (found,) = watch.agent().findings
    assert found.text == "Its output has only repeated itself for 10 min: {Error}: no route[2J"
    assert not found.conclusive


@pytest.mark.parametrize("sign", [OUTPUT, TOOL, CHECKPOINT], ids=lambda sign: type(sign).__name__)
def test_anything_new_ends_a_repetition_and_begins_its_wait_anew(sign: Signal) -> None:
    watch = repeating("repeated_error", START + 11 * MINUTE)
    watch.hear(sign)
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.REPEATED_OUTPUT]
    watch.forget()
    repeating("repeated_error", START + 20.5 * MINUTE, watch)
    assert Kind.REPEATED_OUTPUT not in {kind for kind, _, _ in opened(watch)}


def test_output_that_only_repeats_itself_is_never_a_reason_to_end_it() -> None:
    """However long, unanswered by everybody, and together with its other lack of activity."""
    watch = repeating("repeated_error", START + 3 * 60 * MINUTE, at_work(OUTPUT, TOOL, MODEL))
    assert Kind.REPEATED_OUTPUT in {kind for kind, _, _ in opened(watch)}
    assert not watch.orders(Terminate)


def test_output_ends_the_stall_and_begins_its_wait_anew() -> None:
    watch = running(0.0, START + 11 * MINUTE)
    watch.hear(OUTPUT)
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.NO_OUTPUT]
    assert watch.health() is Health.HEALTHY
    watch.forget()
    running(0.0, START + 20 * MINUTE, watch)
    assert opened(watch) == []


def test_a_program_that_worked_a_little_begins_its_wait_anew() -> None:
    watch = running(0.0, START + 9 * MINUTE)
    running(20.0, START + 9.5 * MINUTE, watch)
    running(0.0, START + 19 * MINUTE, watch)
    assert opened(watch) == []
    running(0.0, START + 20 * MINUTE, watch)
    assert [kind for kind, _, _ in opened(watch)] == [Kind.NO_OUTPUT]


def test_from_idle_to_burning_the_finding_changes_its_name_only_after_its_own_wait() -> None:
    watch = running(0.0, START + 11 * MINUTE)
    running(60.0, START + 12 * MINUTE, watch)
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.NO_OUTPUT]
    running(60.0, START + 22 * MINUTE, watch)
    assert [kind for kind, _, _ in opened(watch)] == [Kind.NO_OUTPUT, Kind.SPINNING]


@pytest.mark.parametrize("cpu", [0.0, 99.0])
@pytest.mark.parametrize(
    "sign",
    [
        TOOL,
        MODEL,
        pytest.param(ModelFinished(agent_id="a", call_id="m"), id="ModelFinishedWithoutTokens"),
        CHECKPOINT,
        ProgressMade(agent_id="a"),
        ActivitySeen(agent_id="a", kind="message"),
    ],
    ids=lambda sign: type(sign).__name__,
)
def test_activity_of_any_kind_overrules_that_nothing_is_put_out(sign: Signal, cpu: float) -> None:
    """`lifesigns run` counts output; the sender inside reports what the agent does. Evidence is joined."""
    watch = at_work(OUTPUT)
    for minute in range(1, 61):
        running(cpu, START + minute * MINUTE, watch)
        watch.hear(sign)
    assert not {Kind.NO_OUTPUT, Kind.SPINNING} & {kind for kind, _, _ in opened(watch)}


@pytest.mark.parametrize(
    "sign", [TOOL, CHECKPOINT, ProgressMade(agent_id="a")], ids=lambda s: type(s).__name__
)
def test_a_program_is_quiet_from_its_last_activity_on(sign: Signal) -> None:
    watch = running(0.0, START + 9 * MINUTE, at_work(OUTPUT))
    watch.hear(sign)
    running(0.0, START + 19 * MINUTE - 0.01, watch)
    assert Kind.NO_OUTPUT not in {kind for kind, _, _ in opened(watch)}
    watch.run_until(START + 19 * MINUTE)
    assert (Kind.NO_OUTPUT, 19 * MINUTE, Severity.STUCK) in opened(watch)


def test_tokens_that_a_beat_reports_end_that_nothing_is_put_out() -> None:
    watch = running(0.0, START + 11 * MINUTE, at_work(OUTPUT))
    watch.beat(token_count=100, metrics=Metrics(cpu_percent=0.0))
    watch.beat(token_count=200, metrics=Metrics(cpu_percent=0.0), at=watch.now + 5)
    assert [fact.kind for fact in watch.facts(FindingClosed)] == [Kind.NO_OUTPUT]


def test_who_never_showed_output_is_not_without_it() -> None:
    watch = at_work(MODEL)
    watch.live(START + 14 * MINUTE, metrics=Metrics(cpu_percent=0.0))
    assert opened(watch) == []
