"""Looping: agents that do the same over and over, and agents that wait, retry, check or work through a list.

In a loop the agent calls its model each time, about nothing else; a waiting agent lets time pass. That separates most
of these pairs, so every life here shows how long its model calls and its tool calls take.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.effects import Severity
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives import rounds
from lifesigns.simulation.lives.habits import begin, call, on_and_on, tell, think, turn, work
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

NAMES: Final = (
    "read",
    "grep",
    "edit",
    "bash",
    "write",
    "list",
    "fetch",
    "diff",
    "plan",
    "test",
    "note",
    "view",
)


def _ill_after(agent: SimulatedAgent, illness: Illness = Illness.LOOP) -> Life:
    """A quarter of an hour of good work first."""
    yield from begin(agent, works_for=15 * MINUTE)
    agent.fall_ill(illness)


# --- the same in a row ------------------------------------------------------------------------------------


def _repeats(agent: SimulatedAgent, tool: str, thought: float, takes: float) -> Life:
    """The same call with the same result, at this pace."""
    yield from _ill_after(agent)
    while True:
        yield from turn(agent, tool, "x", "the same", thought=thought, takes=takes)


def repeats_fast(agent: SimulatedAgent) -> Life:
    """Ten times a second, and no model in between; saving all the while."""
    yield from _ill_after(agent)
    for number in range(1200):
        yield from call(agent, "grep", "x", "nothing", takes=0.1)
        if number % 400 == 0:
            agent.save()
    while True:
        yield from turn(agent, "grep", "x", "nothing")


def repeats_and_obeys(agent: SimulatedAgent) -> Life:
    """It loops, and saves. Told to stop, it ends by itself: that cancels its current or next call."""
    yield from _ill_after(agent)
    agent.last_words = lambda: rounds.cancel_and_leave(agent)
    while True:
        agent.save()
        yield from turn(agent, "search", "x", "nothing", thought=30.0, takes=25.0)


def _again(agent: SimulatedAgent, one: Callable[[SimulatedAgent], Life]) -> Life:
    """Round after round of this."""
    yield from begin(agent)
    while True:
        yield from one(agent)


def _polls(agent: SimulatedAgent, *how: Any) -> Life:
    """Good work, then one look after the other."""
    yield from begin(agent, works_for=10 * MINUTE)
    while True:
        yield from rounds.look(agent, *how)


def converts(agent: SimulatedAgent) -> Life:
    """The same tool, the same "ok", each time for another file."""
    yield from begin(agent)
    while True:
        for _ in range(20):
            yield from turn(agent, "convert", "", "ok", thought=3.0)
        agent.save()


# --- the same error ------------------------------------------------------------------------------------------


def _fails(agent: SimulatedAgent, pause: float) -> Life:
    """The same failing call, with a model call before each."""
    yield from _ill_after(agent)
    while True:
        yield from turn(agent, "bash", "make", error="no rule to make target")
        yield pause


def fails_between_looks(agent: SimulatedAgent) -> Life:
    """The same failing call, and in between it reads what it has read before."""
    yield from _ill_after(agent)
    while True:
        yield from turn(agent, "bash", "make", error="no rule to make target")
        for _ in range(2):
            yield from _looks_again(agent)


def _looks_again(agent: SimulatedAgent) -> Life:
    """One of five files it has read before, and nothing in them has changed."""
    what = f"file {agent.chance.randrange(5)}"
    yield from turn(agent, "read", what, what)


def gives_up_at_last(agent: SimulatedAgent) -> Life:
    """Its retries fail with growing pauses, and it reports that it gives up."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.fall_ill(Illness.LOOP)
    yield from rounds.retry(agent, 7)
    while True:
        yield from turn(agent, "deploy", "prod", error="the key was revoked")


def retries_and_succeeds(agent: SimulatedAgent) -> Life:
    """Twice as long a pause after each failure; then it works. Until then a question about it is excusable."""
    yield from begin(agent, works_for=10 * MINUTE)
    agent.fall_ill(Illness.ERRORS)
    yield from rounds.retry(agent, 10)
    yield from call(agent, "fetch", "report", "here it is")
    agent.recover()
    yield from on_and_on(agent)


def retries_twice(agent: SimulatedAgent) -> Life:
    """Two failures with a longer pause each, and it works."""
    yield from begin(agent)
    while True:
        yield from work(agent, 15 * MINUTE)
        yield from rounds.retry(agent, 2)
        yield from call(agent, "fetch", "report", f"here it is {agent.now}")


def retries_as_declared(agent: SimulatedAgent) -> Life:
    """Each try is declared as one."""
    yield from begin(agent)
    while True:
        yield from work(agent, 15 * MINUTE)
        for _ in range(4):
            yield from call(agent, "push", "main", error="the remote is ahead", error_kind="503", retry=True)
            yield 20.0
        yield from call(agent, "push", "main", f"pushed {agent.now}")


def the_world_is_down(agent: SimulatedAgent) -> Life:
    """A server's 503, again and again, until it is back."""
    yield from begin(agent)
    while True:
        yield from work(agent, 20 * MINUTE)
        for number in range(3):
            yield from call(agent, "search", "x", error="unavailable", error_kind="503")
            yield 10.0 * 2**number
        yield from call(agent, "search", "x", f"found {agent.now}")


# --- cycles --------------------------------------------------------------------------------------------------------


def _goes_round(agent: SimulatedAgent, period: int) -> Life:
    """So many calls, over and over, with the same results."""
    yield from _ill_after(agent)
    while True:
        for tool in NAMES[:period]:
            yield from turn(agent, tool, "x", "the same")


# --- the same call, other results -----------------------------------------------------------------------------------


def _asks_again(agent: SimulatedAgent, thought: float, what: str) -> Life:
    """The same question over and over; the answer differs, and it learns nothing from it."""
    yield from _ill_after(agent)
    while True:
        yield from turn(agent, "roll", what, f"{agent.now}", thought=thought)


def asks_again_and_saves(agent: SimulatedAgent) -> Life:
    """The same question over and over, and a checkpoint now and then: of what?"""
    yield from _ill_after(agent)
    while True:
        for _ in range(10):
            yield from turn(agent, "search", "x", f"{agent.now}")
        agent.save()


def _watches(agent: SimulatedAgent, pause: float) -> Life:
    """A job that makes progress: another percentage each time."""
    yield from begin(agent, works_for=10 * MINUTE)
    while True:
        yield from turn(agent, "squeue", "job 7", f"{agent.now} done", thought=4.0)
        tell(agent, s.ProgressMade, note="getting on")
        yield pause


def turns_pages(agent: SimulatedAgent) -> Life:
    """The same tool, another page each time."""
    yield from begin(agent)
    while True:
        for _ in range(15):
            yield from turn(agent, "search")
        agent.save()


def measures(agent: SimulatedAgent) -> Life:
    """The same benchmark after each of its edits, another number each time."""
    yield from begin(agent)
    while True:
        for _ in range(6):
            yield from turn(agent, "edit")
            yield from turn(agent, "bench", "all", f"{agent.now} ms")
        agent.save()


# --- the same among the last ----------------------------------------------------------------------------------------


def _returns_to(agent: SimulatedAgent, share: int, error: str | None = None) -> Life:
    """Every so many calls the same one again, with the same outcome; in between it reads what it has read before."""
    yield from _ill_after(agent)
    while True:
        for _ in range(agent.chance.randint(1, share)):
            yield from _looks_again(agent)
        yield from turn(agent, "grep", "main", "the same", error=error)


def looks_where_it_is(agent: SimulatedAgent) -> Life:
    """`git status` after every few edits, mostly with the same words."""
    yield from begin(agent)
    while True:
        for _ in range(6):
            yield from turn(agent, "edit")
        yield from turn(agent, "bash", "git status", "nothing to commit")
        agent.save()


# --- talk -----------------------------------------------------------------------------------------------------------


def _talks(agent: SimulatedAgent, thought: float) -> Life:
    """Model call after model call, and never an act."""
    yield from _ill_after(agent, Illness.TALK)
    while True:
        yield from think(agent, thought)


def talks_between_rare_deeds(agent: SimulatedAgent) -> Life:
    """Two hundred model calls, one look at a file, two hundred more."""
    yield from _ill_after(agent, Illness.TALK)
    while True:
        for _ in range(200):
            yield from think(agent, 10.0)
        yield from call(agent, "read")


def writes(agent: SimulatedAgent) -> Life:
    """A text, chapter by chapter: each call ends with something to keep."""
    yield from begin(agent)
    while True:
        for _ in range(4):
            yield from think(agent, 40.0)
        tell(agent, s.ProgressMade, note="one more chapter")


def summarises(agent: SimulatedAgent) -> Life:
    """A model call for each document, and nothing else: it has no tools and reports no progress."""
    yield from begin(agent)
    while True:
        yield from think(agent, 8.0)


def summarises_and_saves(agent: SimulatedAgent) -> Life:
    """The same, with a checkpoint after every twenty."""
    yield from begin(agent)
    while True:
        for _ in range(20):
            yield from think(agent, 8.0)
        agent.save()


def chats(agent: SimulatedAgent) -> Life:
    """It answers messages without saying whose turn it is; now and then it looks something up."""
    yield from begin(agent)
    while True:
        for _ in range(25):
            yield from think(agent, 5.0)
            yield agent.chance.uniform(6, 40)
        yield from call(agent, "search")


def a_task_for_each_document(agent: SimulatedAgent) -> Life:
    """It looks each document up, and asks its model seven times about it: each is a task."""
    yield from begin(agent)
    while True:
        yield from call(agent, "fetch")
        for _ in range(7):
            yield from think(agent, 8.0)
        agent.finish_task()
        agent.take_task()


SAME, ERROR, CYCLE, CHANGING = "looping: same", "looping: error", "looping: cycle", "looping: changing"
RECENT, TALK = "looping: recent", "looping: talk"
STUCK = Severity.STUCK

TRIALS = (
    sick(
        SAME,
        "the same call, thought about each time",
        _repeats,
        "grep",
        12.0,
        2.0,
        severity=STUCK,
        ended=True,
        hours=1.5,
    ),
    sick(SAME, "the same slow call, thought about each time", _repeats, "grep", 60.0, 5.0, severity=STUCK),
    sick(SAME, "ten times a second", repeats_fast, severity=STUCK),
    sick(SAME, "a stop cancels its open call", repeats_and_obeys, severity=STUCK, ended=True, hours=1.5),
    sick(SAME, "a tight loop of check_ci", _repeats, "check_ci", 2.0, 0.5, hours=1.5, severity=STUCK),
    healthy(SAME, "sleeps and checks, every 5 min", _polls, *rounds.SLEEP_AND_CHECK, hours=4, severity=STUCK),
    healthy(SAME, "an empty mailbox, every 5 min", _polls, *rounds.EMPTY_MAILBOX, hours=4, severity=STUCK),
    healthy(SAME, "CI, every minute", _polls, *rounds.CI, severity=STUCK),
    healthy(SAME, "other files, the same ok", converts),
    sick(ERROR, "the same failing call", _fails, 0.0, severity=STUCK),
    sick(ERROR, "the same failing call, slowly", _fails, 20.0),
    sick(ERROR, "the same failing call between other looks", fails_between_looks),
    sick(ERROR, "retries, and in the end only fails", gives_up_at_last, hours=3, severity=STUCK),
    healthy(ERROR, "retries with growing pauses, and succeeds", retries_and_succeeds, hours=3, asked=True),
    healthy(ERROR, "retries twice, and succeeds", retries_twice),
    healthy(ERROR, "retries, as declared", retries_as_declared),
    healthy(ERROR, "the world is down now and then", the_world_is_down),
    sick(CYCLE, "two calls, over and over", _goes_round, 2, severity=STUCK),
    sick(CYCLE, "three calls, over and over", _goes_round, 3, severity=STUCK),
    sick(CYCLE, "five calls, over and over", _goes_round, 5, severity=STUCK),
    sick(CYCLE, "twelve calls, over and over", _goes_round, 12),
    healthy(CYCLE, "a green test after each edit", _again, rounds.edit_and_test),
    healthy(CYCLE, "browses, and goes back", _again, rounds.browse),
    healthy(CYCLE, "ends each step of its plan alike", _again, rounds.step_through_a_plan),
    sick(CHANGING, "asks the same again and again", _asks_again, 12.0, "dice"),
    sick(CHANGING, "asks the same slowly", _asks_again, 25.0, "dice"),
    sick(CHANGING, "asks the same, and saves", asks_again_and_saves),
    healthy(CHANGING, "watches a job, every minute", _watches, MINUTE, hours=2, severity=STUCK),
    healthy(CHANGING, "turns pages", turns_pages),
    healthy(CHANGING, "measures after each edit", measures),
    sick(RECENT, "the same again and again, between old looks", _returns_to, 2),
    sick(RECENT, "the same now and then, between old looks", _returns_to, 3),
    sick(RECENT, "the same failure, between old looks", _returns_to, 3, "not found"),
    healthy(RECENT, "removes its scratch folder each time", _again, rounds.remove),
    healthy(RECENT, "looks where it is", looks_where_it_is),
    healthy(RECENT, "a green test after each edit", _again, rounds.edit_and_test),
    sick(TALK, "talks, and never acts", _talks, 10.0),
    sick(TALK, "talks slowly, and never acts", _talks, 45.0),
    sick(TALK, "talks between rare deeds", talks_between_rare_deeds),
    healthy(TALK, "three thoughts, one deed", _again, rounds.talk_and_act),
    healthy(TALK, "talks with a person", _again, rounds.talk_with_a_person),
    healthy(TALK, "writes", writes),
    healthy(TALK, "summarises, without a tool", summarises, hours=2),
    healthy(TALK, "summarises, and saves now and then", summarises_and_saves),
    healthy(TALK, "chats, and does not say whose turn it is", chats, hours=2),
    healthy(TALK, "a task for each document", a_task_for_each_document),
)
