"""Overload: whose load is too much, and whose is a busy moment."""

from __future__ import annotations

from collections.abc import Callable

from lifesigns.core.policy import MINUTE
from lifesigns.core.signals import Metrics
from lifesigns.simulation.being import Being, Life
from lifesigns.simulation.lives.habits import begin, work
from lifesigns.simulation.trials.trial import healthy, sick
from lifesigns.simulation.truth import Ill


def _loaded(being: Being, cpu: float, memory: float) -> None:
    being.beat.metrics = Metrics(cpu_percent=cpu, memory_mb=memory)


def _for_good(cpu: float, memory: float) -> Callable[[Being], Life]:
    """Works for a while, then under this load for good."""

    def life(being: Being) -> Life:
        yield from begin(being)
        _loaded(being, 20.0, 500.0)
        yield from work(being, 5 * MINUTE)
        _loaded(being, cpu, memory)
        being.fall_ill(Ill.OVERLOAD)
        while True:
            yield from work(being, 10 * MINUTE)

    return life


def leaks(being: Being) -> Life:
    """Its memory grows by 100 MB a minute."""
    yield from begin(being)
    memory = 500.0
    while True:
        _loaded(being, 20.0, memory)
        if memory > being.policy.overload.memory_degraded_mb and being.failure is None:
            being.fall_ill(Ill.OVERLOAD)
        yield from work(being, MINUTE)
        memory += 100.0


def busy_moments(being: Being) -> Life:
    """Two beats in a row at full load, every few minutes."""
    yield from begin(being)
    while True:
        _loaded(being, 20.0, 500.0)
        yield from work(being, 3 * MINUTE)
        _loaded(being, 99.0, 500.0)
        yield (being.policy.overload.beats - 1) * being.interval
        _loaded(being, 20.0, 500.0)
        yield 2 * being.interval


def _steady(cpu: float, memory: float) -> Callable[[Being], Life]:
    def life(being: Being) -> Life:
        yield from begin(being)
        while True:
            _loaded(being, cpu, memory)
            yield from work(being, 10 * MINUTE)

    return life


TRIALS = (
    sick("overload", "all of its CPU, for good", _for_good(97.0, 500.0), hours=0.5),
    sick("overload", "9 GB of memory", _for_good(20.0, 9000.0), hours=0.5),
    sick("overload", "75 % of its CPU, for good", _for_good(75.0, 500.0), hours=0.5),
    sick("overload", "leaks 100 MB a minute", leaks, hours=2),
    healthy("overload", "busy moments", busy_moments, hours=1),
    healthy("overload", "65 % of its CPU, all day", _steady(65.0, 500.0), hours=1),
    healthy("overload", "4,000 MB, and no more", _steady(20.0, 4000.0), hours=1),
)
