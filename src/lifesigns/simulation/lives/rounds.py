"""Rounds: what agents do again and again, one round of each. Chapters of a fleet's lives and the trials are made of them.

Most are healthy and look like a loop: who waits, retries, checks after each edit, browses, steps through a plan or talks.
"""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import call, tell, think, turn

SLEEP_AND_CHECK = ("bash", "PENDING", 2.0, 290.0)
EMPTY_MAILBOX = ("fetch_mail", "[]", 295.0, 1.0)
CI = ("gh_run", "in progress", 55.0, 1.0)
"""Polls: the tool, its answer, the pause between two looks, and how long a look takes."""


def look(being: Being, tool: str, result: str, pause: float, takes: float, thought: float = 4.0) -> Life:
    """The same question and the same answer, with time between: it waits."""
    yield from turn(being, tool, "the job", result, thought=thought, takes=takes)
    tell(being, s.ProgressMade, note="still waiting")
    yield pause


def retry(being: Being, tries: int, pause: float = 15.0) -> Life:
    """The same failing call, twice as long a pause after each."""
    for _ in range(tries):
        yield from call(being, "fetch", "report", error="the report is not ready")
        being.save()
        yield pause
        pause = min(2 * pause, 15 * MINUTE)


def edit_and_test(being: Being) -> Life:
    """Another edit each time, the same green test after it."""
    for _ in range(8):
        yield from turn(being, "edit", "", "ok")
        yield from turn(being, "pytest", "all", "14 passed")
    being.save()


def browse(being: Being) -> Life:
    """A link, a look, back to the list; then the next link."""
    for _ in range(8):
        yield from turn(being, "click")
        yield from turn(being, "read_page")
        yield from turn(being, "go_back", "list", "the list")
    being.save()


def step_through_a_plan(being: Being) -> Life:
    """Work, and after each step the same tool with the same words."""
    for _ in range(3):
        yield from turn(being, "edit")
        yield from turn(being, "bash")
    yield from turn(being, "complete_step", "done", "Step completed.")
    being.save()


def remove(being: Being) -> Life:
    """The same `rm` of its scratch folder before each run: it says nothing, as it should."""
    for _ in range(5):
        yield from turn(being, "bash", "rm -rf scratch", "")
        yield from turn(being, "bash")
        yield from turn(being, "edit")
        yield from turn(being, "read")
    being.save()


def talk_and_act(being: Being, talks: int = 3) -> Life:
    """Some thoughts, one deed."""
    for _ in range(12):
        for _ in range(talks):
            yield from think(being, 10.0)
        yield from call(being, "edit")
    being.save()


def talk_with_a_person(being: Being) -> Life:
    """It answers, then it is the person's turn."""
    yield from think(being, 15.0)
    being.do(Doing.WAITING_FOR_HUMAN, note="and now?")
    yield being.chance.uniform(20, 90)
    being.do(Doing.WORKING)


def cancel_and_leave(being: Being) -> None:
    """What a stop makes of an open call, and a proper good-bye."""
    call_id = being.start_tool("search", "x")
    being.use_tool("search", "x", "", call_id=call_id)
    tell(being, s.AgentLeft, reason="stopped")
