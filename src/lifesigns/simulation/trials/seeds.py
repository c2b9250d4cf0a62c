"""Agents that send what the documents say that lifesigns grew from, and nothing else: no life of their own id, no count of
their beats, no word beside. What can be seen in so little must be seen, and nothing more be read into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import HOUR, MINUTE
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives import plain
from lifesigns.simulation.lives.habits import FOREVER
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill

SWARM: Final = 5.0
FLEET: Final = 5 * MINUTE


def _appear(being: Being) -> None:
    """It is there; it has no name for its life."""
    being.born()
    being.incarnation = None
    being.speaking = True


def _say(being: Being, **fields: Any) -> None:
    being.world.carry_beat(being, plain.beat(being, **fields))


def _vanish(being: Being) -> Life:
    being.fall_ill(Ill.CRASH)
    being.stop()
    yield FOREVER


# --- seed 001: agent, timestamp, status, load, metadata --------------------------------------------------------


def _swarm(being: Being, how_long: float, doing: Doing, load: float) -> Life:
    end = being.now + how_long
    while being.now < end:
        _say(being, status=str(doing), doing=doing, load=load, metadata={"version": "1.4"})
        yield SWARM


def swarm_dies(being: Being) -> Life:
    """Its beats stop."""
    _appear(being)
    yield from _swarm(being, 20 * MINUTE, Doing.WORKING, 0.6)
    yield from _vanish(being)


def swarm_idles(being: Being) -> Life:
    """Beats that say idle, for hours."""
    _appear(being)
    yield from _swarm(being, 10 * HOUR, Doing.IDLE, 0.0)


def swarm_works(being: Being) -> Life:
    """Busy all day, at full load: a beat proves that it lives, and nothing else was promised."""
    _appear(being)
    while True:
        yield from _swarm(being, 20 * MINUTE, Doing.WORKING, 1.0)
        yield from _swarm(being, 5 * MINUTE, Doing.IDLE, 0.1)


# --- seed 002: a heartbeat of seven fields, every five minutes ---------------------------------------------------


def _reports(being: Being, beats: int, first: int = 1) -> Life:
    for number in range(first, first + beats):
        _say(being, **plain.seven_fields(being, number))
        yield FLEET


def _gets_stuck(ill: Ill, change: Callable[[Being, int, float], dict[str, Any]]) -> Callable[[Being], Life]:
    """Six good beats, then beats with this change in them for good."""

    def life(being: Being) -> Life:
        _appear(being)
        yield from _reports(being, 6)
        being.fall_ill(ill)
        since = being.now
        for number in range(7, 1000):
            _say(being, **plain.seven_fields(being, number, **change(being, number, since)))
            yield FLEET

    return life


def fleet_dies(being: Being) -> Life:
    """Its beats stop."""
    _appear(being)
    yield from _reports(being, 6)
    yield from _vanish(being)


def fleet_works(being: Being) -> Life:
    """Every field as it should be."""
    _appear(being)
    yield from _reports(being, 1000)


# --- seed 003: a worker's beat --------------------------------------------------------------------------------


def _works_at(being: Being, how_long: float, cpu: float, memory: float) -> Life:
    end, done = being.now + how_long, 0
    while being.now < end:
        done += 1
        _say(being, **plain.metrics(being, done, cpu, memory))
        yield FLEET


def worker_dies(being: Being) -> Life:
    """Its beats stop."""
    _appear(being)
    yield from _works_at(being, HOUR, 45.2, 2048.0)
    yield from _vanish(being)


def worker_is_overloaded(being: Being) -> Life:
    """Its metrics say that it is at its limit."""
    _appear(being)
    yield from _works_at(being, HOUR, 45.2, 2048.0)
    being.fall_ill(Ill.OVERLOAD)
    yield from _works_at(being, 10 * HOUR, 96.0, 2048.0)


def worker_works(being: Being) -> Life:
    """Its metrics are those of the example."""
    _appear(being)
    yield from _works_at(being, 10 * HOUR, 45.2, 2048.0)


# --- seed 004: it is asked, and answers -------------------------------------------------------------------------


def _answers_only(being: Being, role: str) -> None:
    """It never beats by itself: a ping is what makes it speak."""
    being.born()
    being.incarnation = None
    being.speaking = True
    being.say(s.AgentRegistered(agent_id=being.id, role=role))
    being.say(s.PongReceived(agent_id=being.id, seq=1, status="healthy", task_id="feature X"))


def answers(being: Being) -> Life:
    """Whenever it is asked."""
    _answers_only(being, "active-development")
    yield FOREVER


def answers_no_more(being: Being) -> Life:
    """Half an hour of answers, then none."""
    _answers_only(being, "active-development")
    yield 30 * MINUTE
    yield from _vanish(being)


TRIALS = (
    sick("silence", "seed 001: its beats stop", swarm_dies, profile="swarm", hours=1),
    healthy("silence", "seed 001: idles for hours", swarm_idles, profile="swarm"),
    healthy("stall: tool call", "seed 001: busy all day", swarm_works, profile="swarm", hours=4),
    sick("silence", "seed 002: its beats stop", fleet_dies, profile="fleet", hours=3),
    sick(
        "stall: tool call",
        "seed 002: the same lastToolCall in every beat",
        _gets_stuck(Ill.HANG, lambda being, _, since: {"last_tool_call": plain.moment(being, since)}),
        profile="fleet",
        hours=3,
    ),
    sick(
        "stall: tokens",
        "seed 002: the same tokenCount in every beat",
        _gets_stuck(Ill.HANG, lambda _, __, ___: {"token_count": 12_000}),
        profile="fleet",
        hours=3,
    ),
    sick(
        "erring",
        "seed 002: a larger errorCount in every beat",
        _gets_stuck(Ill.ERRORS, lambda _, number, __: {"error_count": 3 * number}),
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
