"""Habits: the small steps of a life."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.truth import Illness

FOREVER: Final = 365 * 86_400.0
TOKENS: Final = 400
"""About the pace of the other chapters."""
SAVES_EVERY: Final = 5 * MINUTE


def begin(
    agent: SimulatedAgent,
    policy: Mapping[str, Any] | None = None,
    *,
    expected_for: float | None = None,
    works_for: float = 0.0,
) -> Life:
    """It starts, says so, takes up a task, and works on it as it should for so long."""
    agent.start()
    agent.say(
        s.AgentRegistered(
            agent_id=agent.id, incarnation=agent.incarnation, host=agent.host, policy=policy or None
        )
    )
    yield 2.0
    agent.speak_up()
    if expected_for is None:
        agent.take_task()
    else:
        agent.tasks += 1
        agent.task_id = f"{agent.id}/t{agent.tasks}"
        tell(agent, s.TaskAssigned, task_id=agent.task_id, expected_for=expected_for)
    yield 1.0
    if works_for:
        yield from work(agent, works_for)


def tell(agent: SimulatedAgent, word: Any, **values: Any) -> None:
    """Send a report of this agent's life."""
    agent.say(word(agent_id=agent.id, incarnation=agent.incarnation, **values))


def think(agent: SimulatedAgent, takes: float, tokens: int = TOKENS) -> Life:
    """A model call, from start to end."""
    agent.calls += 1
    agent.start_model_call(f"m{agent.calls}")
    yield takes
    agent.end_model_call(tokens, tokens // 4)


def call(
    agent: SimulatedAgent,
    tool: str,
    args: str = "",
    result: str = "",
    *,
    takes: float = 2.0,
    bound: float | None = None,
    **outcome: Any,
) -> Life:
    """A tool call, from start to end; unique unless arguments are given."""
    args = args or f"{agent.calls} {agent.now}"
    call_id = agent.start_tool(tool, args, bound)
    yield takes
    agent.use_tool(tool, args, result or args, call_id=call_id, **outcome)


def turn(agent: SimulatedAgent, tool: str = "bash", args: str = "", result: str = "", **more: Any) -> Life:
    """What a model-driven agent does all day: a model call, then a tool call."""
    yield from think(agent, more.pop("thought", 12.0))
    yield from call(agent, tool, args, result, **more)


def work(agent: SimulatedAgent, how_long: float, *, saves: bool = True, every: float = 20.0) -> Life:
    """Different turns, and a checkpoint every few minutes."""
    end, saved_at = agent.now + how_long, agent.now
    if saves:
        agent.save()
    while agent.now < end:
        yield from turn(agent)
        yield every
        if saves and agent.now - saved_at >= SAVES_EVERY:
            agent.save()
            saved_at = agent.now


def on_and_on(agent: SimulatedAgent) -> Life:
    """Good work, to the end of the trial."""
    while True:
        yield from work(agent, 10 * MINUTE)


def forever(agent: SimulatedAgent, illness: Illness) -> Life:
    """It falls ill with this, and does nothing more."""
    agent.fall_ill(illness)
    yield FOREVER
