"""Freeze: agents whose loop stands still, and agents whose loop is only late, or blocked as announced."""

from __future__ import annotations

from lifesigns.core.policy import MINUTE
from lifesigns.simulation.lives.habits import FOREVER, begin, on_and_on, think, work
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness


def _freeze(agent: SimulatedAgent) -> Life:
    agent.fall_ill(Illness.FREEZE)
    agent.frozen_at = agent.now
    agent.keep_beating()
    yield FOREVER


def freezes_at_work(agent: SimulatedAgent) -> Life:
    """Freezes in the middle of good work."""
    yield from begin(agent, works_for=15 * MINUTE)
    yield from _freeze(agent)


def freezes_at_once(agent: SimulatedAgent) -> Life:
    """Freezes with its first beat."""
    yield from begin(agent)
    yield from _freeze(agent)


def freezes_after_a_call(agent: SimulatedAgent) -> Life:
    """The call that excused it is over."""
    yield from begin(agent)
    call = agent.start_tool("parse", "huge.json")
    yield 5 * MINUTE
    agent.use_tool("parse", "huge.json", "ok", call_id=call)
    yield from _freeze(agent)


def _lags(agent: SimulatedAgent, lag: float) -> None:
    """Its beats say that its loop is this late."""
    agent.beat.loop_lag_ms = 1000.0 * lag


def lags_a_little(agent: SimulatedAgent) -> Life:
    """Lags all the time, always just below the limit."""
    yield from begin(agent)
    while True:
        _lags(agent, 0.9 * agent.policy.freeze.after)
        yield from work(agent, 5 * MINUTE)


def blocks_inside_a_call(agent: SimulatedAgent) -> Life:
    """An announced call that blocks its loop."""
    yield from begin(agent, works_for=5 * MINUTE)
    call = agent.start_tool("compress", "archive")
    agent.frozen_at = agent.now + 1.0
    yield 1.0
    agent.keep_beating()
    yield 10 * MINUTE
    agent.frozen_at = None
    agent.send_beat()
    agent.keep_beating()
    yield 1.0
    agent.use_tool("compress", "archive", "ok", call_id=call)
    yield from on_and_on(agent)


def blocks_inside_a_model_call(agent: SimulatedAgent) -> Life:
    """A model in its own process, which blocks the loop while it thinks."""
    yield from begin(agent)
    for _ in range(4):
        agent.save()
        calls = think(agent, 6 * MINUTE)
        wait = next(calls)
        yield 1.0
        agent.frozen_at = agent.now
        agent.keep_beating()
        yield wait
        agent.frozen_at = None
        agent.send_beat()
        agent.keep_beating()
        yield 1.0
        for _ in calls:
            pass
        yield from work(agent, 2 * MINUTE)


def pauses_now_and_then(agent: SimulatedAgent) -> Life:
    """A garbage collection: one beat in twenty shows half the lag that counts."""
    yield from begin(agent)
    while True:
        _lags(agent, 0.5 * agent.policy.freeze.after)
        yield agent.interval
        _lags(agent, 0.002)
        yield 19 * agent.interval


TRIALS = (
    sick("freeze", "freezes at work", freezes_at_work, hours=1.5, ended=True),
    sick("freeze", "frozen from its first beat", freezes_at_once, hours=1),
    sick("freeze", "freezes when a call is over", freezes_after_a_call, hours=1),
    healthy("freeze", "lags, below the line", lags_a_little, hours=1),
    healthy("freeze", "blocks its loop inside a call", blocks_inside_a_call),
    healthy("freeze", "blocks its loop inside model calls", blocks_inside_a_model_call, hours=0.6),
    healthy("freeze", "pauses now and then", pauses_now_and_then, hours=1),
)
