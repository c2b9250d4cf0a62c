"""Stall: who lives and does not come forward, and who has every reason to take so long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.effects import Severity
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import FOREVER, begin, call, forever, tell, think, turn, work
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill

COLD: Final = 1.0
WARM: Final = 25.0
HOT: Final = 60.0

# --- sick: no checkpoint ----------------------------------------------------------------------------------


def _stale(pause: float, thought: float = 12.0, takes: float = 2.0) -> Callable[[Being], Life]:
    """One checkpoint, then calls like no other for hours, in this rhythm."""

    def life(being: Being) -> Life:
        yield from begin(being)
        being.save()
        being.fall_ill(Ill.STALE)
        while True:
            yield from turn(being, thought=thought, takes=takes)
            yield pause

    return life


def stale_and_unannounced(being: Being) -> Life:
    """Its calls are told when they are over, and none of them is long."""
    yield from begin(being)
    being.save()
    being.fall_ill(Ill.STALE)
    while True:
        yield 45.0
        being.work_a_little()


def stale_after_a_good_hour(being: Being) -> Life:
    """It saved as it should, and stopped doing so."""
    yield from begin(being)
    yield from work(being, HOUR)
    being.fall_ill(Ill.STALE)
    while True:
        yield from turn(being)
        yield 20.0


# --- healthy: no checkpoint ---------------------------------------------------------------------------------


def saves_as_it_should(being: Being) -> Life:
    """The same rhythm, and a checkpoint every five minutes."""
    yield from begin(being)
    while True:
        yield from work(being, HOUR)


def notes_instead(being: Being) -> Life:
    """One checkpoint; since then it says how far it is."""
    yield from begin(being)
    being.save()
    while True:
        for _ in range(6):
            yield from turn(being)
            yield 40.0
        tell(being, s.ProgressMade, note="one more file")


def waits_for_a_human(being: Being) -> Life:
    """It asked, and the person is at lunch."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    being.do(Doing.WAITING_FOR_HUMAN, note="which of the two?")
    yield FOREVER


def rests(being: Being) -> Life:
    """Its task is done, it has no other."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    being.finish_task()
    being.do(Doing.IDLE)
    yield FOREVER


def builds(being: Being) -> Life:
    """A build of most of an hour, as announced, and then the next."""
    yield from begin(being)
    while True:
        yield from work(being, 5 * MINUTE)
        yield from call(being, "build", takes=50 * MINUTE, bound=HOUR)


def is_rate_limited(being: Being) -> Life:
    """It waits, as its provider told it."""
    yield from begin(being)
    while True:
        yield from work(being, 5 * MINUTE)
        being.do(Doing.RATE_LIMITED, until=being.now + 50 * MINUTE)
        yield 50 * MINUTE + 2.0
        being.do(Doing.WORKING)


# --- sick: no tool call, no tokens -----------------------------------------------------------------------------


def stands_still(being: Being) -> Life:
    """It beats and does nothing more."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    yield from forever(being, Ill.HANG)


def stands_still_at_once(being: Being) -> Life:
    """After its very first call."""
    yield from begin(being)
    yield from turn(being)
    yield from forever(being, Ill.HANG)


def stands_still_after_a_rest(being: Being) -> Life:
    """It was idle, got work, began it, and stands still."""
    yield from begin(being)
    being.finish_task()
    being.do(Doing.IDLE)
    yield 30 * MINUTE
    being.take_task()
    yield from turn(being)
    being.save()
    yield from forever(being, Ill.HANG)


def its_tokens_stand_still(being: Being) -> Life:
    """Its beats carry a total that does not move any more."""
    yield from begin(being)
    being.beat.token_count = 0
    for _ in range(40):
        being.beat.token_count += 500
        yield 15.0
    yield from forever(being, Ill.HANG)


def calls_without_a_thought(being: Being) -> Life:
    """Its calls go on, but no model is asked any more."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    being.fall_ill(Ill.HANG)
    while True:
        yield from call(being, "read")
        being.save()
        yield MINUTE


# --- healthy: no tool call, no tokens ----------------------------------------------------------------------------


def thinks_for_long(being: Being) -> Life:
    """A model call of almost half an hour, announced; then the next."""
    yield from begin(being)
    while True:
        yield from work(being, 2 * MINUTE)
        yield from think(being, 28 * MINUTE)


def has_no_tools(being: Being) -> Life:
    """It writes: a thought, a checkpoint, a thought."""
    yield from begin(being)
    while True:
        yield from think(being, 4 * MINUTE)
        being.save()


def thinks_nothing(being: Being) -> Life:
    """A worker without a model: calls and checkpoints only."""
    yield from begin(being)
    while True:
        for _ in range(5):
            yield from call(being, "convert")
            yield 30.0
        being.save()


def says_that_it_is_busy(being: Being) -> Life:
    """A long operation of its own, declared with its end."""
    yield from begin(being)
    while True:
        yield from work(being, 5 * MINUTE)
        being.do(Doing.BUSY, until=being.now + 40 * MINUTE, note="indexing")
        yield 39 * MINUTE
        being.do(Doing.WORKING)


# --- output, as a supervisor sees it -------------------------------------------------------------------------------


def _supervised(being: Being, cpu: float) -> Life:
    """A program that is watched from outside: a first line, and how much CPU it uses."""
    yield from begin(being)
    being.beat.metrics = s.Metrics(cpu_percent=cpu)
    _print(being)
    yield being.interval


def _print(being: Being) -> None:
    tell(being, s.ActivitySeen, kind="output")


def _prints_for(being: Being, how_long: float) -> Life:
    end = being.now + how_long
    while being.now < end:
        _print(being)
        yield 40.0


def _falls_silent(cpu: float, ill: Ill, prints_for: float) -> Callable[[Being], Life]:
    """It prints for a while, then nothing, and uses this much CPU."""

    def life(being: Being) -> Life:
        yield from _supervised(being, WARM)
        yield from _prints_for(being, prints_for)
        being.beat.metrics = s.Metrics(cpu_percent=cpu)
        yield from forever(being, ill)

    return life


def silent_outside_and_inside(being: Being) -> Life:
    """Its sender fell silent with it: only its beats go on."""
    yield from _supervised(being, COLD)
    for _ in range(10):
        yield from turn(being)
        _print(being)
        being.save()
    yield from forever(being, Ill.HANG)


def spins_after_its_calls(being: Being) -> Life:
    """Its sender fell silent too, and it burns a core."""
    yield from _supervised(being, WARM)
    for _ in range(10):
        yield from turn(being)
        _print(being)
        being.save()
    being.beat.metrics = s.Metrics(cpu_percent=HOT)
    yield from forever(being, Ill.SPIN)


def _busy_inside(cpu: float) -> Callable[[Being], Life]:
    """It prints nothing, but its own sender tells of calls, tokens and checkpoints."""

    def life(being: Being) -> Life:
        yield from _supervised(being, cpu)
        while True:
            yield from work(being, 10 * MINUTE)

    return life


def _prints(cpu: float, every: float) -> Callable[[Being], Life]:
    def life(being: Being) -> Life:
        yield from _supervised(being, cpu)
        while True:
            yield every
            _print(being)

    return life


def works_silently(being: Being) -> Life:
    """A compiler: nothing to say for an hour, and a quarter of a core."""
    yield from _supervised(being, WARM)
    yield FOREVER


def waits_at_its_prompt(being: Being) -> Life:
    """It asked a person, and says so."""
    yield from _supervised(being, COLD)
    yield 3 * MINUTE
    being.do(Doing.WAITING_FOR_HUMAN, note="Do you want to proceed?")
    yield FOREVER


def burns_inside_a_call(being: Being) -> Life:
    """It announced the computation it burns the core for."""
    yield from _supervised(being, HOT)
    while True:
        yield from call(being, "train", takes=50 * MINUTE, bound=HOUR)
        being.save()
        _print(being)


# --- long calls ---------------------------------------------------------------------------------------------------


def a_tool_hangs(being: Being) -> Life:
    """A tool call that was announced and never comes back."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    being.start_tool("fetch", "http://x")
    yield from forever(being, Ill.HUNG_CALL)


def a_model_hangs(being: Being) -> Life:
    """A model call that was announced and never comes back."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    tell(being, s.ModelStarted, call_id="m")
    yield from forever(being, Ill.HUNG_CALL)


def busy_beyond_its_word(being: Being) -> Life:
    """It said until when it is busy, and that was an hour ago."""
    yield from begin(being)
    yield from work(being, 10 * MINUTE)
    being.do(Doing.BUSY, until=being.now + 10 * MINUTE, note="indexing")
    yield from forever(being, Ill.HUNG_CALL)


def an_end_is_lost(being: Being) -> Life:
    """The end of one call never came; it got on with others."""
    yield from begin(being)
    being.start_tool("read", "lost")
    while True:
        yield from work(being, 10 * MINUTE)


# --- tasks ------------------------------------------------------------------------------------------------------


def _late(expected_for: float) -> Callable[[Being], Life]:
    """Its task should be over, and it says nothing about it; its calls go on."""

    def life(being: Being) -> Life:
        yield from begin(being, expected_for=expected_for)
        yield expected_for - 10.0
        being.fall_ill(Ill.LATE)
        while True:
            yield from turn(being)
            yield 20.0

    return life


def late_and_still(being: Being) -> Life:
    """Its task should be over, and nothing happens any more."""
    yield from begin(being, expected_for=20 * MINUTE)
    yield from turn(being)
    being.fall_ill(Ill.LATE)
    yield FOREVER


def late_and_says_why(being: Being) -> Life:
    """It takes three times as long, and says how far it is."""
    yield from begin(being, expected_for=20 * MINUTE)
    for percent in range(12):
        for _ in range(8):
            yield from turn(being)
            yield 20.0
        tell(being, s.ProgressMade, task_id=being.task_id, percent=8.0 * percent, note="larger than thought")
    being.finish_task()
    being.do(Doing.IDLE)
    yield FOREVER


def in_time(being: Being) -> Life:
    """Task after task, each within its time."""
    yield from begin(being, expected_for=30 * MINUTE)
    while True:
        yield from work(being, 20 * MINUTE)
        being.finish_task()
        yield 5.0
        being.tasks += 1
        being.task_id = f"{being.id}/t{being.tasks}"
        tell(being, s.TaskAssigned, task_id=being.task_id, expected_for=30 * MINUTE)


def answers_when_asked(being: Being) -> Life:
    """Nothing to be said, it thought; asked, it answers."""
    yield from begin(being, expected_for=20 * MINUTE)
    while True:
        yield from work(being, 10 * MINUTE)


CHECKPOINT, TOOL, TOKENS, OUTPUT = "stall: checkpoint", "stall: tool call", "stall: tokens", "stall: output"
SPIN, LONG, TASK = "stall: spinning", "stall: long call", "stall: task"

TRIALS = (
    sick(
        CHECKPOINT, "saves nothing, a call every half minute", _stale(15.0), severity=Severity.STUCK, hours=2
    ),
    sick(
        CHECKPOINT, "saves nothing, a call every six minutes", _stale(345.0), severity=Severity.STUCK, hours=2
    ),
    sick(
        CHECKPOINT, "saves nothing, calls of 40 s", _stale(2.0, takes=40.0), severity=Severity.STUCK, hours=2
    ),
    sick(
        CHECKPOINT,
        "saves nothing, calls unannounced",
        stale_and_unannounced,
        severity=Severity.STUCK,
        hours=2,
    ),
    sick(
        CHECKPOINT,
        "saves no more after a good hour",
        stale_after_a_good_hour,
        severity=Severity.STUCK,
        hours=2,
    ),
    healthy(CHECKPOINT, "saves as it should", saves_as_it_should, hours=4),
    healthy(CHECKPOINT, "says how far it is instead", notes_instead, hours=4),
    healthy(CHECKPOINT, "waits for a human", waits_for_a_human),
    healthy(CHECKPOINT, "is done", rests),
    healthy(CHECKPOINT, "builds, as announced", builds, hours=2),
    healthy(CHECKPOINT, "is rate-limited", is_rate_limited, hours=2),
    sick(TOOL, "stands still at work", stands_still, hours=1, severity=Severity.STUCK),
    sick(TOOL, "stands still after its first call", stands_still_at_once, hours=1, severity=Severity.STUCK),
    sick(TOOL, "stands still after a rest", stands_still_after_a_rest, severity=Severity.STUCK, hours=2),
    healthy(TOOL, "thinks for long", thinks_for_long, hours=2),
    healthy(TOOL, "has no tools", has_no_tools),
    healthy(TOOL, "says that it is busy", says_that_it_is_busy),
    healthy(TOOL, "waits for a human", waits_for_a_human),
    sick(TOKENS, "stands still at work", stands_still, hours=1),
    sick(TOKENS, "the total in its beats stands still", its_tokens_stand_still, hours=1),
    sick(TOKENS, "calls, and asks no model any more", calls_without_a_thought, hours=1),
    healthy(TOKENS, "has no model", thinks_nothing),
    healthy(TOKENS, "builds, as announced", builds, hours=2),
    healthy(TOKENS, "thinks for long", thinks_for_long, hours=2),
    sick(OUTPUT, "one line, then nothing", _falls_silent(COLD, Ill.HANG, 0.0), hours=1),
    sick(OUTPUT, "half an hour of lines, then nothing", _falls_silent(COLD, Ill.HANG, 30 * MINUTE), hours=1),
    sick(OUTPUT, "its own sender silent too", silent_outside_and_inside, hours=1),
    healthy(OUTPUT, "silent outside, its own sender busy", _busy_inside(COLD)),
    healthy(OUTPUT, "a line every nine minutes", _prints(COLD, 9 * MINUTE)),
    healthy(OUTPUT, "silent, and works", works_silently),
    healthy(OUTPUT, "waits at its prompt", waits_at_its_prompt),
    sick(SPIN, "one line, then it burns", _falls_silent(HOT, Ill.SPIN, 0.0), hours=1),
    sick(SPIN, "half an hour of lines, then it burns", _falls_silent(HOT, Ill.SPIN, 30 * MINUTE), hours=1),
    sick(SPIN, "its own sender silent, and it burns", spins_after_its_calls, hours=1),
    healthy(SPIN, "burns, its own sender busy", _busy_inside(HOT)),
    healthy(SPIN, "burns, and prints", _prints(HOT, 5 * MINUTE)),
    healthy(SPIN, "burns inside a call", burns_inside_a_call),
    sick(LONG, "a tool hangs", a_tool_hangs, severity=Severity.STUCK, hours=2),
    sick(LONG, "a model hangs", a_model_hangs, severity=Severity.STUCK, hours=2),
    sick(LONG, "busy beyond its word", busy_beyond_its_word, severity=Severity.STUCK, hours=2),
    healthy(LONG, "builds, as announced", builds, hours=2),
    healthy(LONG, "thinks for long", thinks_for_long, hours=2),
    healthy(LONG, "the end of one call was lost", an_end_is_lost),
    sick(TASK, "an hour late, and calls", _late(HOUR), hours=3),
    sick(TASK, "late by the hour for a task of ten minutes", _late(10 * MINUTE), hours=2),
    sick(TASK, "late and still", late_and_still, hours=2),
    healthy(TASK, "late, and says how far it is", late_and_says_why, hours=2),
    healthy(TASK, "in time", in_time),
    healthy(TASK, "late, and saves", answers_when_asked, hours=2),
)
