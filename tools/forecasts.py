"""How good the forecasts are: lives of chance that go wrong or only look like it, judged by the real engine.

    python -m tools.forecasts --lives 300

A life is sick if it would cross the line of its policy within the time it is watched. A forecast is right if it does, whatever the
forecast's own moment; a sick life counts as foretold if its forecast came before the line was crossed. Precision is of all lives with a
forecast those that were sick, recall of all sick lives those that were foretold.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Iterator
from math import exp
from random import Random
from statistics import median
from typing import Final

from lifesigns.core.effects import FindingOpened, Kind
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import Beat, BeatReceived, Metrics, ToolFinished

MINUTE: Final = 60.0
WATCHED_FOR: Final = 180.0
"""Minutes."""
AFTERWARDS: Final = 60.0
"""A forecast near the end may come true after it."""
Value = Callable[[float], float]


def memory(chance: Random) -> tuple[str, Value]:
    """A course of memory use in MB by minutes."""
    base, noise = chance.uniform(400, 2200), chance.uniform(0, 80)
    jitter: dict[int, float] = {}

    def noisy(course: Value) -> Value:
        return lambda t: max(50.0, course(t) + jitter.setdefault(int(3 * t), chance.uniform(-noise, noise)))

    begins, slope = chance.uniform(0, 60), chance.uniform(8, 120)
    shape = chance.choice(("leak", "bend", "teeth", "rising teeth", "cache", "step", "steady", "task"))
    height, period = chance.uniform(300, 1600), chance.uniform(3, 25)
    courses: dict[str, Value] = {
        "leak": lambda t: base + slope * max(0.0, t - begins),
        "bend": lambda t: base + slope / 60 * max(0.0, t - begins) ** 2,
        "teeth": lambda t: base + height * (t % period) / period,
        "rising teeth": lambda t: base + height * (t % period) / period + slope / 2 * t,
        "cache": lambda t: base + height * (1 - exp(-max(0.0, t - begins) / period)),
        "step": lambda t: base + (height if t > begins else 0.0),
        "steady": lambda _: base,
        "task": lambda t: base + height * min(1.0, (t % (4 * period)) / (3 * period)),
    }
    return f"memory: {shape}", noisy(courses[shape])


def errors(chance: Random) -> tuple[str, Value]:
    """A part of calls that fail, by minutes."""
    rate, begins, slope = chance.uniform(0, 0.12), chance.uniform(0, 60), chance.uniform(0.001, 0.008)
    shape = chance.choice(("rises", "steady", "burst"))
    courses: dict[str, Value] = {
        "rises": lambda t: min(0.9, rate / 3 + slope * max(0.0, t - begins)),
        "steady": lambda _: rate,
        "burst": lambda t: 0.2 if begins < t < begins + 6 else 0.02,
    }
    return f"errors: {shape}", courses[shape]


def gaps(chance: Random) -> tuple[str, Value]:
    """Seconds between two beats, by minutes."""
    jitter, begins, slope = chance.uniform(0, 0.4), chance.uniform(0, 60), chance.uniform(0.03, 0.25)
    shape = chance.choice(("slows", "varies", "idles"))
    courses: dict[str, Value] = {
        "slows": lambda t: 5.0 + slope * max(0.0, t - begins),
        "varies": lambda _: 5.0,
        "idles": lambda t: 5.0 if t < begins else 7.3,
    }
    return f"beats: {shape}", lambda t: max(1.0, courses[shape](t) + chance.uniform(-jitter, jitter))


def signals(kind: str, course: Value, chance: Random) -> Iterator[tuple[float, Beat | ToolFinished]]:
    """What an agent with this course says: beats, and calls every two seconds if it is about calls."""
    at, seq, called = 0.0, 0, 0
    while at < WATCHED_FOR * MINUTE:
        seq += 1
        metrics = Metrics(memory_mb=course(at / MINUTE)) if kind.startswith("memory") else None
        yield at, BeatReceived("a", seq, "i", metrics=metrics)
        gap = course(at / MINUTE) if kind.startswith("beats") else 5.0
        if kind.startswith("errors"):
            for n in range(2):
                called += 1
                ok = chance.random() >= course(at / MINUTE)
                call = ToolFinished(agent_id="a", incarnation="i", call_id=str(called), tool="t", ok=ok,
                                    args_digest=str(called), result_digest=str(called),
                                    error=None if ok else f"e{called}")  # fmt: skip
                yield at + 1.0 + 2 * n, call
        at += gap


def crosses_at(kind: str, course: Value, policy: Policy) -> float | None:
    """When the course itself crosses the line of the policy, in seconds."""
    limit = {
        "memory": policy.overload.memory_degraded_mb,
        "errors": policy.erring.rate_max,
        "beats:": policy.silence.suspect_after,
    }[kind[:6]]
    return next((t * MINUTE for t in range(int(WATCHED_FOR + AFTERWARDS)) if course(t) >= limit), None)


def foretold_at(kind: str, course: Value, policy: Policy, chance: Random) -> float | None:
    """When the engine first has a forecast."""
    engine = Engine(PolicyBook(policy), FleetPolicy(canary_every=0, tick_late_after=60.0))
    for at, signal in signals(kind, course, chance):
        for effect in (*engine.advance(at), *engine.hear(signal, at)):
            if isinstance(effect, FindingOpened) and effect.finding.kind is Kind.FORECAST:
                return at
    return None


def measure(lives: int, seed: int = 0) -> tuple[float, float, float, Counter[str]]:
    """Precision, recall, the median of how many minutes before the line, and the lives by shape and outcome."""
    policy, outcomes, leads = Policy(), Counter[str](), []
    for n in range(lives):
        chance = Random(f"{seed}/{n}")
        kind, course = (memory, memory, errors, gaps)[n % 4](chance)
        crossed, told = crosses_at(kind, course, policy), foretold_at(kind, course, policy, chance)
        if crossed is None:
            outcome = "spared" if told is None else "false"
        elif told is None or told >= crossed:
            outcome = "missed"
        else:
            outcome = "foretold"
            leads.append((crossed - told) / MINUTE)
        outcomes[outcome] += 1
        outcomes[f"{kind}: {outcome}"] += 1
    right, false, missed = outcomes["foretold"], outcomes["false"], outcomes["missed"]
    precision = right / (right + false) if right + false else 1.0
    return precision, right / max(1, right + missed), median(leads) if leads else 0.0, outcomes


def main() -> None:
    """Measure, and print every shape."""
    parser = argparse.ArgumentParser(description="Measure the forecasts.")
    parser.add_argument("--lives", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    precision, recall, lead, outcomes = measure(asked.lives, asked.seed)
    for name, count in sorted(outcomes.items()):
        print(f"{count:6}  {name}")
    print(f"precision {precision:.3f}, recall {recall:.3f}, half of them {lead:.0f} min before or earlier")


if __name__ == "__main__":
    main()
