"""How many beats a hub takes on one core, beside what it rests on; and where the time goes.

Hub and ceiling (`hub_process.py`) run at once on one core and get the same load in turns, from the other core. First they
meet the fleet, and hear it until the rhythm of its agents is learned: what is measured is how a hub lives, not how it
begins. What is counted is beats per second of that core's time which the process had: on a machine of one's own that is the same as
beats per second, and on a shared one it does not depend on the neighbours.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any, Protocol

from benchmarks import hub_load
from benchmarks.hub_load import Rate
from benchmarks.hub_process import LOAD_CORE, ProcessOptions, Reading, UnderLoad
from lifesigns.core.detectors.silence import MEMORY
from tests.servers.nats import NatsServer

AGENTS = 10_000
BATCH = 100
SETTLE_MAX = 12.0
NOBODY_DIES: dict[str, Any] = {"silence": {"interval": 300.0, "timeout": 900.0, "ping_wait": 30.0}}
"""While the other one has its turn there are no beats here, and on a busy machine fewer in ours: that must not be what
we measure."""
EVERY_TEN_SECONDS: dict[str, Any] = {"silence": {"interval": 10.0, "timeout": 25.0, "ping_wait": 2.0}}


@dataclass(frozen=True)
class Way:
    """A way for beats to arrive."""

    name: str
    by_bus: bool
    batch: int
    pack: Callable[[list[bytes]], bytes] = hub_load.array

    def load(self, agents: int) -> Load:
        beats = [hub_load.beat(n) for n in range(agents)]
        if self.batch > 1:
            beats = [self.pack(beats[n : n + self.batch]) for n in range(0, agents, self.batch)]
        return Load(beats, self.batch)


WAYS = (
    Way("single posts", False, 1),
    Way("posts of 100, JSON array", False, BATCH),
    Way("posts of 100, NDJSON", False, BATCH, hub_load.lines),
    Way("NATS, one a message", True, 1),
    Way("NATS, batches of 100", True, BATCH),
)


class Load:
    """Messages of a fleet, with sequences that continue from turn to turn."""

    def __init__(self, messages: list[bytes], beats_each: int) -> None:
        self._messages, self._beats_each = messages, beats_each
        self._seq = hub_load.SEQ_FROM

    def bring(self, to: Subject, seconds: float) -> Rate:
        """Send them for so long."""
        first = self._seq
        self._seq += int(seconds * 1000) + 1  # No round of all messages takes less than a millisecond.
        if to.bus is not None:
            heard = lambda: to.process.beats  # noqa: E731
            return hub_load.publish(to.bus, self._messages, self._beats_each, seconds, heard, first)
        requests = [hub_load.request(message, to.process.token) for message in self._messages]
        return hub_load.post(to.process.port, requests, self._beats_each, seconds, first)


class LoadedProcess(Protocol):
    """What can be loaded with beats."""

    port: int
    token: str

    @property
    def beats(self) -> int:
        """Beats taken so far, some milliseconds ago."""
        ...

    def read(self) -> Reading: ...


@dataclass(frozen=True)
class Subject:
    """The measured process, and the port of its bus."""

    process: LoadedProcess
    bus: int | None


@dataclass(frozen=True)
class Taken:
    """The result of one turn."""

    per_second: float
    """By the wall clock."""
    per_core_second: float


@dataclass(frozen=True)
class Throughput:
    """The hub's rate, and its ceiling."""

    hub: Taken
    bare: Taken
    ratio: float
    shares: dict[str, float]
    """Shares of the hub's time, by room."""


def throughput(way: Way, agents: int = AGENTS, turns: int = 5, seconds: float = 1.5) -> Throughput:
    """Medians over the turns; the ratio is the median of the ratios within one turn each."""
    hub_load.on_core(LOAD_CORE)
    load = way.load(agents)
    with ExitStack() as stack:
        hub, bare = _start(way, stack, bare=False), _start(way, stack, bare=True)
        for to in (hub, bare):
            settle_in(load, to, agents)
        rounds = [(_turn(load, hub, seconds), _turn(load, bare, seconds)) for _ in range(turns)]
        assert isinstance(hub.process, UnderLoad)
        hub.process.profile(begin=True)
        load.bring(hub, seconds)
        shares = hub.process.profile(begin=False)
    return Throughput(
        _median([ours for ours, _ in rounds]),
        _median([theirs for _, theirs in rounds]),
        statistics.median(ours.per_core_second / theirs.per_core_second for ours, theirs in rounds),
        shares,
    )


def _start(way: Way, stack: ExitStack, *, bare: bool) -> Subject:
    """Each with its own bus: on one they would receive each other's beats."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    bus = stack.enter_context(NatsServer()) if way.by_bus else None
    options = ProcessOptions(bare, folder, None if bus is None else bus.url, NOBODY_DIES)
    return Subject(stack.enter_context(UnderLoad(options)), None if bus is None else bus.port)


def settle_in(load: Load, to: Subject, agents: int) -> None:
    """Until the engine has learnt every agent's rhythm. By single posts that would take a minute, and learning is
    cheap."""
    until = time.monotonic() + SETTLE_MAX
    while to.process.beats < agents * (MEMORY + 1) and time.monotonic() < until:
        load.bring(to, 1.0)


def _turn(load: Load, to: Subject, seconds: float) -> Taken:
    before = to.process.read()
    rate = load.bring(to, seconds)
    after = to.process.read()
    return Taken(rate.per_second, (after.beats - before.beats) / (after.cpu - before.cpu))


def _median(taken: list[Taken]) -> Taken:
    return Taken(
        statistics.median(one.per_second for one in taken),
        statistics.median(one.per_core_second for one in taken),
    )
