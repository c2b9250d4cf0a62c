"""Agents that send only what the documents behind lifesigns specify: no incarnation, no sequence, no other signal. The
engine must see what can be seen in so little, and read nothing more into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.lives import plain
from lifesigns.simulation.lives.habits import FOREVER
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness

SWARM: Final = 5.0
FLEET: Final = 5 * MINUTE


def _appear(agent: SimulatedAgent) -> None:
    """It exists, without an incarnation."""
    agent.start()
    agent.incarnation = None
    agent.speaking = True


def _say(agent: SimulatedAgent, **fields: Any) -> None:
    agent.world.carry_beat(agent, plain.beat(agent, **fields))


def _vanish(agent: SimulatedAgent) -> Life:
    agent.fall_ill(Illness.CRASH)
    agent.stop()
    yield FOREVER


# --- seed 001: agent, timestamp, status, load, metadata --------------------------------------------------------


def _swarm(agent: SimulatedAgent, how_long: float, doing: Doing, load: float) -> Life:
    end = agent.now + how_long
    while agent.now < end:
        _say(agent, status=str(doing), doing=doing, load=load, metadata={"version": "1.4"})
        yield SWARM


def swarm_dies(agent: SimulatedAgent) -> Life:
    """Its beats stop."""
    _appear(agent)
    yield from _swarm(agent, 20 * MINUTE, Doing.WORKING, 0.6)
    yield from _vanish(agent)


def swarm_idles(agent: SimulatedAgent) -> Life:
    """Beats that say idle, for hours."""
    _appear(agent)
    yield from _swarm(agent, 10 * HOUR, Doing.IDLE, 0.0)


def swarm_works(agent: SimulatedAgent) -> Life:
    """Busy all day, at full load: a beat proves that it lives, and promises nothing else."""
    _appear(agent)
    while True:
        yield from _swarm(agent, 20 * MINUTE, Doing.WORKING, 1.0)
        yield from _swarm(agent, 5 * MINUTE, Doing.IDLE, 0.1)


# --- seed 002: a heartbeat of seven fields, every five minutes ---------------------------------------------------


def _reports(agent: SimulatedAgent, beats: int, first: int = 1) -> Life:
    for number in range(first, first + beats):
        _say(agent, **plain.seven_fields(agent, number))
        yield FLEET


def _gets_stuck(
    agent: SimulatedAgent, illness: Illness, change: Callable[[SimulatedAgent, int, float], dict[str, Any]]
) -> Life:
    """Six good beats, then beats with this change in them for good."""
    _appear(agent)
    yield from _reports(agent, 6)
    agent.fall_ill(illness)
    since = agent.now
    for number in range(7, 1000):
        _say(agent, **plain.seven_fields(agent, number, **change(agent, number, since)))
        yield FLEET


def fleet_dies(agent: SimulatedAgent) -> Life:
    """Its beats stop."""
    _appear(agent)
    yield from _reports(agent, 6)
    yield from _vanish(agent)


def fleet_works(agent: SimulatedAgent) -> Life:
    """Every field as it should be."""
    _appear(agent)
    yield from _reports(agent, 1000)


# --- seed 003: a worker's beat --------------------------------------------------------------------------------


def _works_at(agent: SimulatedAgent, how_long: float, cpu: float, memory: float) -> Life:
    end, done = agent.now + how_long, 0
    while agent.now < end:
        done += 1
        _say(agent, **plain.metrics(agent, done, cpu, memory))
        yield FLEET


def worker_dies(agent: SimulatedAgent) -> Life:
    """Its beats stop."""
    _appear(agent)
    yield from _works_at(agent, HOUR, 45.2, 2048.0)
    yield from _vanish(agent)


def worker_is_overloaded(agent: SimulatedAgent) -> Life:
    """Its metrics are at their limit."""
    _appear(agent)
    yield from _works_at(agent, HOUR, 45.2, 2048.0)
    agent.fall_ill(Illness.OVERLOAD)
    yield from _works_at(agent, 10 * HOUR, 96.0, 2048.0)


def worker_works(agent: SimulatedAgent) -> Life:
    """Its metrics are those of the example."""
    _appear(agent)
    yield from _works_at(agent, 10 * HOUR, 45.2, 2048.0)


# --- seed 004: it answers pings only ------------------------------------------------------------------------


def _answers_only(agent: SimulatedAgent, role: str) -> None:
    """It never beats by itself: only a ping makes it answer."""
    agent.start()
    agent.incarnation = None
    agent.speaking = True
    agent.say(s.AgentRegistered(agent_id=agent.id, role=role))
    agent.say(s.PongReceived(agent_id=agent.id, seq=1, status="healthy", task_id="feature X"))


def answers(agent: SimulatedAgent) -> Life:
    """It answers every ping."""
    _answers_only(agent, "active-development")
    yield FOREVER


def answers_no_more(agent: SimulatedAgent) -> Life:
    """Half an hour of answers, then none."""
    _answers_only(agent, "active-development")
    yield 30 * MINUTE
    yield from _vanish(agent)


TRIALS = (
    sick("silence", "seed 001: its beats stop", swarm_dies, profile="swarm", hours=1),
    healthy("silence", "seed 001: idles for hours", swarm_idles, profile="swarm"),
    healthy("stall: tool call", "seed 001: busy all day", swarm_works, profile="swarm", hours=4),
    sick("silence", "seed 002: its beats stop", fleet_dies, profile="fleet", hours=3),
    sick(
        "stall: tool call",
        "seed 002: the same lastToolCall in every beat",
        _gets_stuck,
        Illness.HANG,
        lambda agent, _, since: {"last_tool_call": plain.moment(agent, since)},
        profile="fleet",
        hours=3,
    ),
    sick(
        "stall: tokens",
        "seed 002: the same tokenCount in every beat",
        _gets_stuck,
        Illness.HANG,
        lambda _, __, ___: {"token_count": 12_000},
        profile="fleet",
        hours=3,
    ),
    sick(
        "erring",
        "seed 002: a larger errorCount in every beat",
        _gets_stuck,
        Illness.ERRORS,
        lambda _, number, __: {"error_count": 3 * number},
        profile="fleet",
        hours=3,
    ),
    healthy(
        "stall: tool call",
        "seed 002: all seven fields, and it gets on",
        fleet_works,
        profile="fleet",
        hours=8,
    ),
    sick("silence", "seed 003: a worker's beats stop", worker_dies, profile="fleet", hours=3),
    sick("overload", "seed 003: a worker at 96 %", worker_is_overloaded, profile="fleet", hours=3),
    healthy("overload", "seed 003: a worker at 45 %", worker_works, profile="fleet", hours=8),
    sick("silence", "seed 004: answers no ping any more", answers_no_more, profile="swarm", hours=2),
    healthy("silence", "seed 004: never beats, and answers its pings", answers, profile="swarm", hours=4),
)
