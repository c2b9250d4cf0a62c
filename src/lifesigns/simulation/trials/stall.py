"""Stall: agents that live and make no progress, and agents with a good reason to take so long."""

from __future__ import annotations

from typing import Final

from lifesigns.core import signals as s
from lifesigns.core.effects import Severity
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.lives.habits import (
    FOREVER,
    begin,
    call,
    forever,
    on_and_on,
    tell,
    think,
    turn,
    work,
)
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

COLD: Final = 1.0
WARM: Final = 25.0
HOT: Final = 60.0

# --- sick: no checkpoint ----------------------------------------------------------------------------------


def _stale(agent: SimulatedAgent, pause: float, takes: float = 2.0) -> Life:
    """One checkpoint, then unique calls for hours, in this rhythm."""
    yield from begin(agent)
    agent.save()
    agent.fall_ill(Illness.STALE)
    while True:
        yield from turn(agent, takes=takes)
        yield pause


def stale_and_unannounced(agent: SimulatedAgent) -> Life:
    """It reports its calls at their end, and none of them is long."""
    yield from begin(agent)
    agent.save()
    agent.fall_ill(Illness.STALE)
    while True:
        yield 45.0
        agent.work_a_little()


def stale_after_a_good_hour(agent: SimulatedAgent) -> Life:
    """It saved regularly, and stopped doing so."""
    yield from begin(agent, works_for=HOUR)
    agent.fall_ill(Illness.STALE)
    while True:
        yield from turn(agent)
        yield 20.0


# --- healthy: no checkpoint ---------------------------------------------------------------------------------


def saves_as_it_should(agent: SimulatedAgent) -> Life:
    """The same rhythm, and a checkpoint every five minutes."""
    yield from begin(agent)
    while True:
        yield from work(agent, HOUR)


def notes_instead(agent: SimulatedAgent) -> Life:
    """One checkpoint; since then it reports its progress."""
    yield from begin(agent)
    agent.save()
    while True:
        for _ in range(6):
            yield from turn(agent)
            yield 40.0
        tell(agent, s.ProgressMade, note="one more file")


def waits_for_a_human(agent: SimulatedAgent) -> Life:
    """It asked, and the person is at lunch."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.do(Doing.WAITING_FOR_HUMAN, note="which of the two?")
    yield FOREVER


def rests(agent: SimulatedAgent) -> Life:
    """Its task is done, it has no other."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield FOREVER


def builds(agent: SimulatedAgent) -> Life:
    """A build of most of an hour, as announced, and then the next."""
    yield from begin(agent)
    while True:
        yield from work(agent, 5 * MINUTE)
        yield from call(agent, "build", takes=50 * MINUTE, bound=HOUR)


def is_rate_limited(agent: SimulatedAgent) -> Life:
    """It waits, as its provider asked."""
    yield from begin(agent)
    while True:
        yield from work(agent, 5 * MINUTE)
        agent.do(Doing.RATE_LIMITED, until=agent.now + 50 * MINUTE)
        yield 50 * MINUTE + 2.0
        agent.do(Doing.WORKING)


# --- sick: no tool call, no tokens -----------------------------------------------------------------------------


def stands_still(agent: SimulatedAgent) -> Life:
    """It beats and does nothing more."""
    yield from begin(agent, works_for=10 * MINUTE)
    yield from forever(agent, Illness.HANG)


def stands_still_at_once(agent: SimulatedAgent) -> Life:
    """Stops after its very first call."""
    yield from begin(agent)
    yield from turn(agent)
    yield from forever(agent, Illness.HANG)


def stands_still_after_a_rest(agent: SimulatedAgent) -> Life:
    """It was idle, got work, began it, and stands still."""
    yield from begin(agent)
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield 30 * MINUTE
    agent.take_task()
    yield from turn(agent)
    agent.save()
    yield from forever(agent, Illness.HANG)


def its_tokens_stand_still(agent: SimulatedAgent) -> Life:
    """Its beats carry a total that no longer moves."""
    yield from begin(agent)
    agent.beat.token_count = 0
    for _ in range(40):
        agent.beat.token_count += 500
        yield 15.0
    yield from forever(agent, Illness.HANG)


def thought_once(agent: SimulatedAgent) -> Life:
    """It has no tools and saves nothing: one model call, and then only beats."""
    yield from begin(agent)
    yield from think(agent, 10.0)
    yield from forever(agent, Illness.HANG)


def calls_without_a_thought(agent: SimulatedAgent) -> Life:
    """Its calls continue, but without a model."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.fall_ill(Illness.HANG)
    while True:
        yield from call(agent, "read")
        agent.save()
        yield MINUTE


# --- healthy: no tool call, no tokens ----------------------------------------------------------------------------


def thinks_for_long(agent: SimulatedAgent) -> Life:
    """A model call of almost half an hour, announced; then the next."""
    yield from begin(agent)
    while True:
        yield from work(agent, 2 * MINUTE)
        yield from think(agent, 28 * MINUTE)


def has_no_tools(agent: SimulatedAgent) -> Life:
    """It writes: a thought, a checkpoint, a thought."""
    yield from begin(agent)
    while True:
        yield from think(agent, 4 * MINUTE)
        agent.save()


def converts_for_an_hour(agent: SimulatedAgent) -> Life:
    """One thought, then an hour of different calls and checkpoints without a model: at most a warning."""
    yield from begin(agent)
    while True:
        yield from think(agent, 10.0)
        until = agent.now + HOUR
        while agent.now < until:
            yield from call(agent, "convert")
            agent.save()
            yield MINUTE


def thinks_nothing(agent: SimulatedAgent) -> Life:
    """A worker without a model: calls and checkpoints only."""
    yield from begin(agent)
    while True:
        for _ in range(5):
            yield from call(agent, "convert")
            yield 30.0
        agent.save()


def says_that_it_is_busy(agent: SimulatedAgent) -> Life:
    """A long operation of its own, declared with its end."""
    yield from begin(agent)
    while True:
        yield from work(agent, 5 * MINUTE)
        agent.do(Doing.BUSY, until=agent.now + 40 * MINUTE, note="indexing")
        yield 39 * MINUTE
        agent.do(Doing.WORKING)


# --- output, as a supervisor sees it -------------------------------------------------------------------------------


def _supervised(agent: SimulatedAgent, cpu: float) -> Life:
    """A program watched from outside: a first line, and its CPU."""
    yield from begin(agent)
    agent.beat.metrics = s.Metrics(cpu_percent=cpu)
    _print(agent)
    yield agent.interval


def _print(agent: SimulatedAgent) -> None:
    tell(agent, s.ActivitySeen, kind="output")


def _prints_for(agent: SimulatedAgent, how_long: float) -> Life:
    end = agent.now + how_long
    while agent.now < end:
        _print(agent)
        yield 40.0


def _falls_silent(agent: SimulatedAgent, cpu: float, illness: Illness, prints_for: float) -> Life:
    """It prints for a while, then nothing, and uses this much CPU."""
    yield from _supervised(agent, WARM)
    yield from _prints_for(agent, prints_for)
    agent.beat.metrics = s.Metrics(cpu_percent=cpu)
    yield from forever(agent, illness)


def silent_outside_and_inside(agent: SimulatedAgent) -> Life:
    """Its sender fell silent with it: only its beats continue."""
    yield from _supervised(agent, COLD)
    for _ in range(10):
        yield from turn(agent)
        _print(agent)
        agent.save()
    yield from forever(agent, Illness.HANG)


def spins_after_its_calls(agent: SimulatedAgent) -> Life:
    """Its sender fell silent too, and it burns a core."""
    yield from _supervised(agent, WARM)
    for _ in range(10):
        yield from turn(agent)
        _print(agent)
        agent.save()
    agent.beat.metrics = s.Metrics(cpu_percent=HOT)
    yield from forever(agent, Illness.SPIN)


def _busy_inside(agent: SimulatedAgent, cpu: float) -> Life:
    """It prints nothing, but its own sender reports calls, tokens and checkpoints."""
    yield from _supervised(agent, cpu)
    yield from on_and_on(agent)


def _prints(agent: SimulatedAgent, cpu: float, every: float) -> Life:
    yield from _supervised(agent, cpu)
    while True:
        yield every
        _print(agent)


def _repeats(agent: SimulatedAgent, kind: str, every: float, prints_for: float) -> Life:
    """Real output for a while; then it says the same over and over, and its own sender nothing."""
    yield from _supervised(agent, COLD)
    yield from _prints_for(agent, prints_for)
    agent.fall_ill(Illness.HANG)
    while True:
        tell(agent, s.ActivitySeen, kind=kind, note="Error: no route")
        yield every


def _spins_between(agent: SimulatedAgent, every: float) -> Life:
    """A spinner most of the time, and a line of its own now and then."""
    yield from _supervised(agent, COLD)
    while True:
        end = agent.now + every
        while agent.now < end:
            tell(agent, s.ActivitySeen, kind="repetition", note="Waiting")
            yield 10.0
        _print(agent)


def _spins_over_its_calls(agent: SimulatedAgent) -> Life:
    """A spinner, while its own sender reports calls and checkpoints."""
    yield from _supervised(agent, COLD)
    while True:
        tell(agent, s.ActivitySeen, kind="repetition", note="Thinking")
        yield from work(agent, 2 * MINUTE)


def asks_below_a_spinner(agent: SimulatedAgent) -> Life:
    """It asked a person, and its screen goes on to turn."""
    yield from _supervised(agent, COLD)
    agent.do(Doing.WAITING_FOR_HUMAN, note="Do you want to proceed?")
    while True:
        tell(agent, s.ActivitySeen, kind="repeated_error", note="Error: no answer")
        yield 10.0


def works_silently(agent: SimulatedAgent) -> Life:
    """A compiler: no output for an hour, and a quarter of a core."""
    yield from _supervised(agent, WARM)
    yield FOREVER


def waits_at_its_prompt(agent: SimulatedAgent) -> Life:
    """It asked a person, and says so."""
    yield from _supervised(agent, COLD)
    yield 3 * MINUTE
    agent.do(Doing.WAITING_FOR_HUMAN, note="Do you want to proceed?")
    yield FOREVER


def burns_inside_a_call(agent: SimulatedAgent) -> Life:
    """It announced the computation that burns the core."""
    yield from _supervised(agent, HOT)
    while True:
        yield from call(agent, "train", takes=50 * MINUTE, bound=HOUR)
        agent.save()
        _print(agent)


# --- long calls ---------------------------------------------------------------------------------------------------


def a_tool_hangs(agent: SimulatedAgent) -> Life:
    """An announced tool call that never returns."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.start_tool("fetch", "http://x")
    yield from forever(agent, Illness.HUNG_CALL)


def a_model_hangs(agent: SimulatedAgent) -> Life:
    """An announced model call that never returns."""
    yield from begin(agent, works_for=10 * MINUTE)
    tell(agent, s.ModelStarted, call_id="m")
    yield from forever(agent, Illness.HUNG_CALL)


def busy_beyond_its_word(agent: SimulatedAgent) -> Life:
    """It said until when it is busy, and that was an hour ago."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.do(Doing.BUSY, until=agent.now + 10 * MINUTE, note="indexing")
    yield from forever(agent, Illness.HUNG_CALL)


def an_end_is_lost(agent: SimulatedAgent) -> Life:
    """The end of one call never came; it continued with others."""
    yield from begin(agent)
    agent.start_tool("read", "lost")
    yield from on_and_on(agent)


# --- tasks ------------------------------------------------------------------------------------------------------


def _late(agent: SimulatedAgent, expected_for: float) -> Life:
    """Its task is overdue, and it reports nothing about it; its calls continue."""
    yield from begin(agent, expected_for=expected_for)
    yield expected_for - 10.0
    agent.fall_ill(Illness.LATE)
    while True:
        yield from turn(agent)
        yield 20.0


def late_and_still(agent: SimulatedAgent) -> Life:
    """Its task is overdue, and nothing happens any more."""
    yield from begin(agent, expected_for=20 * MINUTE)
    yield from turn(agent)
    agent.fall_ill(Illness.LATE)
    yield FOREVER


def late_and_says_why(agent: SimulatedAgent) -> Life:
    """It takes three times as long, and reports its progress."""
    yield from begin(agent, expected_for=20 * MINUTE)
    for percent in range(12):
        for _ in range(8):
            yield from turn(agent)
            yield 20.0
        tell(agent, s.ProgressMade, task_id=agent.task_id, percent=8.0 * percent, note="larger than thought")
    agent.finish_task()
    agent.do(Doing.IDLE)
    yield FOREVER


def in_time(agent: SimulatedAgent) -> Life:
    """Task after task, each within its time."""
    yield from begin(agent, expected_for=30 * MINUTE)
    while True:
        yield from work(agent, 20 * MINUTE)
        agent.finish_task()
        yield 5.0
        agent.tasks += 1
        agent.task_id = f"{agent.id}/t{agent.tasks}"
        tell(agent, s.TaskAssigned, task_id=agent.task_id, expected_for=30 * MINUTE)


def answers_when_asked(agent: SimulatedAgent) -> Life:
    """It reports nothing until asked; then it answers."""
    yield from begin(agent, expected_for=20 * MINUTE)
    yield from on_and_on(agent)


CHECKPOINT, TOOL, TOKENS, OUTPUT = "stall: checkpoint", "stall: tool call", "stall: tokens", "stall: output"
REPEAT = "stall: repeated output"
SPIN, LONG, TASK = "stall: spinning", "stall: long call", "stall: task"

STUCK = Severity.STUCK

TRIALS = (
    sick(CHECKPOINT, "saves nothing, a call every half minute", _stale, 15.0, severity=STUCK, hours=2),
    sick(CHECKPOINT, "saves nothing, a call every six minutes", _stale, 345.0, severity=STUCK, hours=2),
    sick(CHECKPOINT, "saves nothing, calls of 40 s", _stale, 2.0, 40.0, severity=STUCK, hours=2),
    sick(
        CHECKPOINT,
        "saves nothing, calls unannounced",
        stale_and_unannounced,
        severity=STUCK,
        hours=2,
    ),
    sick(
        CHECKPOINT,
        "saves no more after a good hour",
        stale_after_a_good_hour,
        severity=STUCK,
        hours=2,
    ),
    healthy(CHECKPOINT, "saves as it should", saves_as_it_should, hours=4),
    healthy(CHECKPOINT, "says how far it is instead", notes_instead, hours=4),
    healthy(CHECKPOINT, "waits for a human", waits_for_a_human),
    healthy(CHECKPOINT, "is done", rests),
    healthy(CHECKPOINT, "builds, as announced", builds, hours=2),
    healthy(CHECKPOINT, "is rate-limited", is_rate_limited, hours=2),
    sick(TOOL, "stands still at work", stands_still, hours=1, severity=STUCK),
    sick(TOOL, "stands still after its first call", stands_still_at_once, hours=1, severity=STUCK),
    sick(TOOL, "stands still after a rest", stands_still_after_a_rest, severity=STUCK, hours=2),
    healthy(TOOL, "thinks for long", thinks_for_long, hours=2),
    healthy(TOOL, "has no tools", has_no_tools),
    healthy(TOOL, "says that it is busy", says_that_it_is_busy),
    healthy(TOOL, "waits for a human", waits_for_a_human),
    sick(TOKENS, "stands still at work", stands_still, hours=1, severity=STUCK),
    sick(TOKENS, "the total in its beats stands still", its_tokens_stand_still, hours=1, severity=STUCK),
    sick(TOKENS, "thought once, and nothing since", thought_once, hours=1, severity=STUCK),
    sick(TOKENS, "calls, and asks no model any more", calls_without_a_thought, hours=1),
    healthy(TOKENS, "converts for an hour between two thoughts", converts_for_an_hour, severity=STUCK),
    healthy(TOKENS, "has no model", thinks_nothing),
    healthy(TOKENS, "builds, as announced", builds, hours=2),
    healthy(TOKENS, "thinks for long", thinks_for_long, hours=2),
    sick(OUTPUT, "one line, then nothing", _falls_silent, COLD, Illness.HANG, 0.0, hours=1),
    sick(
        OUTPUT, "half an hour of lines, then nothing", _falls_silent, COLD, Illness.HANG, 30 * MINUTE, hours=1
    ),
    sick(OUTPUT, "its own sender silent too", silent_outside_and_inside, hours=1),
    healthy(OUTPUT, "silent outside, its own sender busy", _busy_inside, COLD),
    healthy(OUTPUT, "a line every nine minutes", _prints, COLD, 9 * MINUTE),
    healthy(OUTPUT, "silent, and works", works_silently),
    healthy(OUTPUT, "waits at its prompt", waits_at_its_prompt),
    sick(REPEAT, "the same error, every ten seconds", _repeats, "repeated_error", 10.0, 0.0, severity=STUCK),
    sick(
        REPEAT, "the same error, every four minutes", _repeats, "repeated_error", 240.0, 0.0, severity=STUCK
    ),
    sick(REPEAT, "lines for half an hour, then a circle", _repeats, "repetition", 10.0, 30 * MINUTE),
    healthy(REPEAT, "a spinner, and a line every nine minutes", _spins_between, 9 * MINUTE),
    healthy(REPEAT, "a spinner, its own sender busy", _spins_over_its_calls, hours=2),
    healthy(REPEAT, "asks a person below its spinner", asks_below_a_spinner),
    sick(SPIN, "one line, then it burns", _falls_silent, HOT, Illness.SPIN, 0.0, hours=1),
    sick(
        SPIN, "half an hour of lines, then it burns", _falls_silent, HOT, Illness.SPIN, 30 * MINUTE, hours=1
    ),
    sick(SPIN, "its own sender silent, and it burns", spins_after_its_calls, hours=1),
    healthy(SPIN, "burns, its own sender busy", _busy_inside, HOT),
    healthy(SPIN, "burns, and prints", _prints, HOT, 5 * MINUTE),
    healthy(SPIN, "burns inside a call", burns_inside_a_call),
    sick(LONG, "a tool hangs", a_tool_hangs, severity=STUCK, hours=2),
    sick(LONG, "a model hangs", a_model_hangs, severity=STUCK, hours=2),
    sick(LONG, "busy beyond its word", busy_beyond_its_word, severity=STUCK, hours=2),
    healthy(LONG, "builds, as announced", builds, hours=2),
    healthy(LONG, "thinks for long", thinks_for_long, hours=2),
    healthy(LONG, "the end of one call was lost", an_end_is_lost),
    sick(TASK, "an hour late, and calls", _late, HOUR, hours=3),
    sick(TASK, "late by the hour for a task of ten minutes", _late, 10 * MINUTE, hours=2),
    sick(TASK, "late and still", late_and_still, hours=2),
    healthy(TASK, "late, and says how far it is", late_and_says_why, hours=2),
    healthy(TASK, "in time", in_time),
    healthy(TASK, "late, and saves", answers_when_asked, hours=2),
)
