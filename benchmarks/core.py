"""What a beat costs the engine, beside what it would cost to re-arm a timer for it.

The engine is measured in its steady state: every agent has a history, deadlines come up and are moved on, time
passes as it would. The alternative is what most people write first: one asyncio timer per agent, cancelled and
armed again with each beat. Both get the same agents in the same random order, in turns, in one run.
"""

from __future__ import annotations

import asyncio
import gc
import random
import statistics
import time
from pathlib import Path

from msgspec.structs import replace

from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import BeatReceived

INTERVAL = Policy().silence.interval
WARM_UP = 34
"""Beats before measuring: more than the engine needs to learn."""

UNLIMITED = FleetPolicy(canary_every=0, agents_per_source=10**7, agents_max=10**7)


class Fleet:
    """An engine with agents that beat every interval, in a fixed random order."""

    def __init__(self, size: int, policy: Policy | None = None) -> None:
        self.engine = Engine(PolicyBook(policy or Policy()), UNLIMITED)
        self.beats = [BeatReceived(f"agent-{n}", incarnation=f"life-{n}", load=0.4) for n in range(size)]
        random.Random(1).shuffle(self.beats)
        self.rounds = 0

    def round(self, together: int = 1) -> float:
        """All agents beat once, so many at a time. Seconds of work per beat, with deadlines."""
        start, step = self.rounds * INTERVAL, INTERVAL / len(self.beats)
        for beat in self.beats:
            beat.seq = self.rounds
        self.rounds += 1
        began = time.process_time()
        if together == 1:
            hear = self.engine.hear
            for n, beat in enumerate(self.beats):
                hear(beat, start + n * step)
        else:
            for n in range(0, len(self.beats), together):
                self.engine.hear_beats(self.beats[n : n + together], start + n * step)
        return (time.process_time() - began) / len(self.beats)


class Timers:
    """The alternative: one asyncio timer per agent, re-armed with each beat."""

    def __init__(self, size: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.ids = [f"agent-{n}" for n in range(size)]
        random.Random(1).shuffle(self.ids)
        self.timers = {agent: self.loop.call_later(3600, self.loop.stop) for agent in self.ids}

    def round(self) -> float:
        """All agents beat once. Seconds of work per beat."""
        return self.loop.run_until_complete(self._round())

    async def _round(self) -> float:
        timers, call_later = self.timers, self.loop.call_later
        began = time.process_time()
        for n, agent in enumerate(self.ids):
            timers[agent].cancel()
            timers[agent] = call_later(3600, self.loop.stop)
            if n % 100 == 0:
                await asyncio.sleep(0)  # the loop has to see its timers now and then, as it would
        return (time.process_time() - began) / len(self.ids)

    def close(self) -> None:
        for timer in self.timers.values():
            timer.cancel()
        self.loop.close()


def cost_of_a_beat(size: int, together: int, rounds: int = 16) -> dict[str, float]:
    """Median nanoseconds per beat of both, with their spread, and the ratio.

    Two rounds of ours count as one: deadlines are due about every second round.
    """
    fleet, timers = Fleet(size), Timers(size)
    for _ in range(WARM_UP):
        fleet.round(together)
    timers.round()
    gc.collect()
    ours, theirs = [], []
    for _ in range(rounds):
        ours.append((fleet.round(together) + fleet.round(together)) / 2)
        theirs.append(timers.round())
    timers.close()
    return {
        "ns": statistics.median(ours) * 1e9,
        "spread": _spread(ours),
        "asyncio_ns": statistics.median(theirs) * 1e9,
        "asyncio_spread": _spread(theirs),
        "ratio": statistics.median(theirs) / statistics.median(ours),
    }


def cost_of_looking(size: int, looks: int = 20_000, repeats: int = 9) -> float:
    """Median nanoseconds of `advance` with nothing due."""
    fleet = Fleet(size)
    fleet.round()
    now = fleet.rounds * INTERVAL
    fleet.engine.advance(now)
    step = (fleet.engine.wake_at() - now) / (looks * (repeats + 1))
    taken = []
    for repeat in range(repeats):
        began = time.process_time()
        for n in range(looks):
            fleet.engine.advance(now + (repeat * looks + n) * step)
        taken.append((time.process_time() - began) / looks)
    return statistics.median(taken) * 1e9


def bytes_per_agent(size: int) -> float:
    """Resident memory per agent with everything a beating agent has, its fitted margin included."""
    adaptive = replace(Policy(), silence=replace(Policy().silence, adaptive_from=2))
    gc.collect()
    before = _resident()
    fleet = Fleet(size, adaptive)
    sent = _resident()
    for _ in range(4):
        fleet.round()
    gc.collect()
    assert sent >= before
    return (_resident() - sent) / size


def _resident() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096


def _spread(times: list[float]) -> float:
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle
