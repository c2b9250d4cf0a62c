"""Rounds: repeated activities, one round of each. The chapters of a fleet's lives and the trials use them.

Most are healthy and look like a loop: an agent that waits, retries, checks after each edit, browses, steps through a
plan or talks.
"""

from __future__ import annotations

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives.habits import call, tell, think, turn
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent

SLEEP_AND_CHECK = ("bash", "PENDING", 2.0, 290.0)
EMPTY_MAILBOX = ("fetch_mail", "[]", 295.0, 1.0)
CI = ("gh_run", "in progress", 55.0, 1.0)
"""Polls: the tool, its answer, the pause between two looks, and how long a look takes."""


def look(
    agent: SimulatedAgent, tool: str, result: str, pause: float, takes: float, thought: float = 4.0
) -> Life:
    """The same question and the same answer, with time between: it waits."""
    yield from turn(agent, tool, "the job", result, thought=thought, takes=takes)
    tell(agent, s.ProgressMade, note="still waiting")
    yield pause


def retry(agent: SimulatedAgent, tries: int, pause: float = 15.0) -> Life:
    """The same failing call, with a pause that doubles."""
    for _ in range(tries):
        yield from call(agent, "fetch", "report", error="the report is not ready")
        agent.save()
        yield pause
        pause = min(2 * pause, 15 * MINUTE)


def edit_and_test(agent: SimulatedAgent) -> Life:
    """Another edit each time, the same green test after it."""
    for _ in range(8):
        yield from turn(agent, "edit", "", "ok")
        yield from turn(agent, "pytest", "all", "14 passed")
    agent.save()


def browse(agent: SimulatedAgent) -> Life:
    """A link, a look, back to the list; then the next link."""
    for _ in range(8):
        yield from turn(agent, "click")
        yield from turn(agent, "read_page")
        yield from turn(agent, "go_back", "list", "the list")
    agent.save()


def step_through_a_plan(agent: SimulatedAgent) -> Life:
    """Work, and after each step the same tool with the same words."""
    for _ in range(3):
        yield from turn(agent, "edit")
        yield from turn(agent, "bash")
    yield from turn(agent, "complete_step", "done", "Step completed.")
    agent.save()


def remove(agent: SimulatedAgent) -> Life:
    """The same `rm` of its scratch folder before each run: it prints nothing, as it should."""
    for _ in range(5):
        yield from turn(agent, "bash", "rm -rf scratch", "")
        yield from turn(agent, "bash")
        yield from turn(agent, "edit")
        yield from turn(agent, "read")
    agent.save()


def talk_and_act(agent: SimulatedAgent, talks: int = 3) -> Life:
    """Some model calls, one tool call."""
    for _ in range(12):
        for _ in range(talks):
            yield from think(agent, 10.0)
        yield from call(agent, "edit")
    agent.save()


def talk_with_a_person(agent: SimulatedAgent) -> Life:
    """It answers, then it is the person's turn."""
    yield from think(agent, 15.0)
    agent.do(Doing.WAITING_FOR_HUMAN, note="and now?")
    yield agent.chance.uniform(20, 90)
    agent.do(Doing.WORKING)


def cancel_and_leave(agent: SimulatedAgent) -> None:
    """A stop cancels the open call; then a proper good-bye."""
    call_id = agent.start_tool("search", "x")
    agent.use_tool("search", "x", "", call_id=call_id)
    tell(agent, s.AgentLeft, reason="stopped")
