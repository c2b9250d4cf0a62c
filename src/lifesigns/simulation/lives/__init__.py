"""Lives: what agents go through. One idea each; most of it is healthy.

`healthy.py` has the chapters of a healthy life, `failing.py` the ways it fails. A biography is a sequence of
chapters, until a failure begins.
"""

from __future__ import annotations

from lifesigns.simulation.lives import failing, healthy, rounds
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent

CHAPTERS = (
    (healthy.steady, 50),
    (healthy.idle, 12),
    (healthy.long_model_call, 8),
    (healthy.long_tool_call, 6),
    (healthy.wait_for_human, 6),
    (healthy.be_rate_limited, 6),
    (healthy.poll, 4),
    (healthy.batch, 4),
    (healthy.leave_and_return, 2),
    (healthy.restart, 2),
    (healthy.wait_and_look, 3),
    (healthy.retry_and_succeed, 2),
    (healthy.use_long_tools, 2),
    (healthy.in_rounds(rounds.edit_and_test), 1),
    (healthy.in_rounds(rounds.browse), 1),
    (healthy.in_rounds(rounds.step_through_a_plan), 1),
    (healthy.in_rounds(rounds.remove), 1),
    (healthy.in_rounds(rounds.talk_and_act), 1),
    (healthy.in_rounds(rounds.talk_with_a_person), 1),
)
"""Chapters and how often each comes up."""


def biography(agent: SimulatedAgent, start_in: float | None = None) -> Life:
    """Start if necessary, then chapter after chapter; a failure that needs an agent at work begins between them."""
    if start_in is not None:
        yield start_in
        agent.speak_up()
        if agent.task_id is not None:
            yield from healthy.settle_in(agent)
    chapters, weights = zip(*CHAPTERS, strict=True)
    while True:
        if agent.task_id is None or agent.now - agent.task_at > healthy.TASK_MAX:
            agent.finish_task()
            agent.take_task()
            yield from healthy.steady(agent)
        (chapter,) = agent.chance.choices(chapters, weights)
        yield from chapter(agent)
        if agent.doom is not None and agent.task_id is not None:
            doom, agent.doom = agent.doom, None
            # An agent that has not begun yet cannot visibly stop.
            yield from healthy.settle_in(agent)
            yield from failing.FAILURES[doom](agent)


__all__ = ["biography"]
