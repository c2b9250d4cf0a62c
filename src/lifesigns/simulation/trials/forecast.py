"""Forecast: agents that are on their way to trouble, and agents that only look like it.

A forecast is a notice, so these are judged by notices: the sick must have one before they cross the line.
"""

from __future__ import annotations

from collections.abc import Callable
from math import exp

from lifesigns.core.effects import Severity
from lifesigns.core.policy import MINUTE
from lifesigns.core.signals import Metrics
from lifesigns.simulation.lives.habits import begin
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick

STEP = 20.0
Memory = Callable[[SimulatedAgent, float], float]
Rate = Callable[[float], float]


def _uses(agent: SimulatedAgent, memory: Memory, until: float) -> Life:
    """Works, with so much memory after so many minutes."""
    yield from begin(agent)
    agent.take_task()
    began, saved = agent.now, 0.0
    while (passed := (agent.now - began) / MINUTE) < until:
        agent.beat.metrics = Metrics(cpu_percent=20.0, memory_mb=memory(agent, passed))
        agent.work_a_little()
        agent.think(1000)
        if passed - saved >= 4:
            agent.save()
            saved = passed
        yield STEP


def _fails(agent: SimulatedAgent, rate: Rate, until: float) -> Life:
    """Works, and so large a part of its calls fails after so many minutes, evenly spread."""
    yield from begin(agent)
    agent.take_task()
    began, saved, owed = agent.now, 0.0, 0.0
    while (passed := (agent.now - began) / MINUTE) < until:
        owed += rate(passed)
        what = str(agent.chance.random())
        if owed >= 1.0:
            owed -= 1.0
            agent.use_tool("fetch", what, "", error=f"HTTP 502 for {what}", error_kind="tool")
        else:
            agent.use_tool("fetch", what, what)
        if passed - saved >= 4:
            agent.think(1000)
            agent.save()
            saved = passed
        yield 1.0


def _slows(agent: SimulatedAgent, gap: Callable[[SimulatedAgent, float], float], until: float) -> Life:
    """Its beats come so far apart after so many minutes; it beats itself."""
    yield from begin(agent)
    agent.world.bulk_beats.leave(agent.index, agent.now)
    agent._beat_no += 1
    began, seq = agent.now, int(agent.now // agent.interval) + 1
    while (passed := (agent.now - began) / MINUTE) < until:
        yield gap(agent, passed)
        seq += 1
        agent.send_beat(seq)


def _leak(per_minute: float, noise: float = 0.0, bend: float = 0.0) -> Memory:
    return lambda agent, t: 1200 + per_minute * t + bend * t * t + noise * agent.chance.uniform(-1, 1)


TRIALS = (
    sick("forecast", "leaks 45 MB a minute", _uses, _leak(45.0), 60.0, severity=Severity.NOTICE, hours=1.0),
    sick("forecast", "leaks, under noise", _uses, _leak(60.0, 60.0), 50.0, severity=Severity.NOTICE, hours=0.8),
    sick("forecast", "leaks faster and faster", _uses, _leak(10.0, 20.0, 0.8), 55.0, severity=Severity.NOTICE, hours=0.85),
    sick(
        "forecast", "ever more of its calls fail", _fails, lambda t: 0.004 * t, 55.0, severity=Severity.NOTICE
    ),
    sick(
        "forecast",
        "its beats come later and later",
        _slows,
        lambda _, t: 5.0 + 0.1 * t,
        55.0,
        severity=Severity.NOTICE,
    ),
    healthy("forecast", "a large heap that is collected now and then", _uses,
            lambda _, t: 1500 + 200 * (t % 11), 180.0, severity=Severity.NOTICE, hours=3),
    healthy("forecast", "a cache that fills up", _uses,
            lambda _, t: 1200 + 2400 * (1 - exp(-t / 12)), 180.0, severity=Severity.NOTICE, hours=3),
    healthy("forecast", "loads a model, and keeps it", _uses,
            lambda _, t: 1200 if t < 40 else 3800, 180.0, severity=Severity.NOTICE, hours=3),
    healthy("forecast", "noise", _uses,
            lambda a, _: 3000 + 900 * a.chance.uniform(-1, 1), 180.0, severity=Severity.NOTICE, hours=3),
    healthy("forecast", "a steady part of its calls fails", _fails, lambda _: 0.1, 180.0,
            severity=Severity.NOTICE, hours=3),
    healthy("forecast", "beats that vary", _slows, lambda a, _: 5.0 + a.chance.uniform(-1, 2), 180.0,
            severity=Severity.NOTICE, hours=3),
)  # fmt: skip
