"""Habits: the small steps that lives are made of."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.policy import MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.truth import Ill

FOREVER: Final = 365 * 86_400.0
TOKENS: Final = 400
"""About the pace of the other chapters. At ten times its own pace an agent is `degraded`, a token anomaly, and that is as the
policy has it: what is well about that, nobody can tell from tokens alone."""
SAVES_EVERY: Final = 5 * MINUTE


def begin(
    being: Being, policy: Mapping[str, Any] | None = None, *, expected_for: float | None = None
) -> Life:
    """It starts, says so, and takes up a task."""
    being.born()
    being.say(
        s.AgentRegistered(
            agent_id=being.id, incarnation=being.incarnation, host=being.host, policy=policy or None
        )
    )
    yield 2.0
    being.speak_up()
    if expected_for is None:
        being.take_task()
    else:
        being.tasks += 1
        being.task_id = f"{being.id}/t{being.tasks}"
        tell(being, s.TaskAssigned, task_id=being.task_id, expected_for=expected_for)
    yield 1.0


def tell(being: Being, word: Any, **values: Any) -> None:
    """Say a word of this agent's life."""
    being.say(word(agent_id=being.id, incarnation=being.incarnation, **values))


def think(being: Being, takes: float, tokens: int = TOKENS) -> Life:
    """A model call, from its begin to its end."""
    being.calls += 1
    being.start_model_call(f"m{being.calls}")
    yield takes
    being.end_model_call(tokens, tokens // 4)


def call(
    being: Being,
    tool: str,
    args: str = "",
    result: str = "",
    *,
    takes: float = 2.0,
    bound: float | None = None,
    **outcome: Any,
) -> Life:
    """A tool call, from its begin to its end; like no other if nothing is said about its arguments."""
    args = args or f"{being.calls} {being.now}"
    call_id = being.start_tool(tool, args, bound)
    yield takes
    being.use_tool(tool, args, result or args, call_id=call_id, **outcome)


def turn(being: Being, tool: str = "bash", args: str = "", result: str = "", **more: Any) -> Life:
    """What a model-driven agent does all day: it thinks, then it calls."""
    yield from think(being, more.pop("thought", 12.0))
    yield from call(being, tool, args, result, **more)


def work(being: Being, how_long: float, *, saves: bool = True, every: float = 20.0) -> Life:
    """Turns like no other, and a checkpoint every few minutes."""
    end, saved_at = being.now + how_long, being.now
    if saves:
        being.save()
    while being.now < end:
        yield from turn(being)
        yield every
        if saves and being.now - saved_at >= SAVES_EVERY:
            being.save()
            saved_at = being.now


def on_and_on(being: Being) -> Life:
    """Good work, to the end of the trial."""
    while True:
        yield from work(being, 10 * MINUTE)


def forever(being: Being, ill: Ill) -> Life:
    """It falls ill of this, and that is it."""
    being.fall_ill(ill)
    yield FOREVER
