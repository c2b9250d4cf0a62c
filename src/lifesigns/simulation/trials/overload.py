"""Overload: agents with too much load, and agents with a busy moment."""

from __future__ import annotations

from lifesigns.core.policy import MINUTE
from lifesigns.core.signals import Metrics
from lifesigns.simulation.lives.habits import begin, on_and_on, work
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Illness


def _loaded(agent: SimulatedAgent, cpu: float, memory: float) -> None:
    agent.beat.metrics = Metrics(cpu_percent=cpu, memory_mb=memory)


def _for_good(agent: SimulatedAgent, cpu: float, memory: float) -> Life:
    """Works for a while, then under this load for good."""
    yield from begin(agent)
    _loaded(agent, 20.0, 500.0)
    yield from work(agent, 5 * MINUTE)
    _loaded(agent, cpu, memory)
    agent.fall_ill(Illness.OVERLOAD)
    yield from on_and_on(agent)


def leaks(agent: SimulatedAgent) -> Life:
    """Its memory grows by 100 MB a minute."""
    yield from begin(agent)
    memory = 500.0
    while True:
        _loaded(agent, 20.0, memory)
        if memory > agent.policy.overload.memory_degraded_mb and agent.failure is None:
            agent.fall_ill(Illness.OVERLOAD)
        yield from work(agent, MINUTE)
        memory += 100.0


def busy_moments(agent: SimulatedAgent) -> Life:
    """Two beats in a row at full load, every few minutes."""
    yield from begin(agent)
    while True:
        _loaded(agent, 20.0, 500.0)
        yield from work(agent, 3 * MINUTE)
        _loaded(agent, 99.0, 500.0)
        yield (agent.policy.overload.beats - 1) * agent.interval
        _loaded(agent, 20.0, 500.0)
        yield 2 * agent.interval


def _steady(agent: SimulatedAgent, cpu: float, memory: float) -> Life:
    yield from begin(agent)
    while True:
        _loaded(agent, cpu, memory)
        yield from work(agent, 10 * MINUTE)


TRIALS = (
    sick("overload", "all of its CPU, for good", _for_good, 97.0, 500.0, hours=0.5),
    sick("overload", "9 GB of memory", _for_good, 20.0, 9000.0, hours=0.5),
    sick("overload", "75 % of its CPU, for good", _for_good, 75.0, 500.0, hours=0.5),
    sick("overload", "leaks 100 MB a minute", leaks, hours=2),
    healthy("overload", "busy moments", busy_moments, hours=1),
    healthy("overload", "65 % of its CPU, all day", _steady, 65.0, 500.0, hours=1),
    healthy("overload", "4,000 MB, and no more", _steady, 20.0, 4000.0, hours=1),
)
