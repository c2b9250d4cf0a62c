"""What it costs to send beats to a hub that stands by: two hubs on one PostgreSQL, the same load to each in turns.

The hub that stands by forwards to the one that judges. Counted is the time of the processor that each of the two spends
on a beat, which does not depend on the neighbours on a shared machine; and how long one post takes, one after the other.
"""

from __future__ import annotations

import shutil
import socket
import statistics
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from benchmarks import hub_load
from benchmarks.real_hub import RealHub, served
from tests.servers.postgres import PostgresServer

AGENTS: Final = 2_000
TURNS: Final = 5
SECONDS: Final = 2.0
LATENCIES: Final = 1_000
STANDS_BY_WITHIN: Final = 30.0


@dataclass(frozen=True)
class Cost:
    """Of one beat, in microseconds."""

    judge_us: float
    standby_us: float
    per_second: float


@dataclass(frozen=True)
class Forwarded:
    """Beats posted to the hub that judges, and the same posted to the one that stands by."""

    direct: Cost
    through: Cost


@dataclass(frozen=True)
class Latency:
    """Of one post, one after the other, in milliseconds."""

    p50_ms: float
    p99_ms: float


class Pair:
    """A hub that judges, and one that stands by."""

    def __init__(self, stack: ExitStack) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lifesigns-forwarding-")))
        store = stack.enter_context(PostgresServer()).url
        config = folder / "lifesigns.yaml"
        config.write_text('{"policy": {"silence": {"interval": 300.0, "timeout": 900.0, "ping_wait": 30.0}}}')
        for name in ("judge", "standby"):
            (folder / name / "state").mkdir(mode=0o700, parents=True)
        options = ("--store", store, "--config", str(config))
        self.judge = stack.enter_context(served(folder / "judge", *options))
        for key in ("tokens.key", "audit.key"):
            shutil.copy(folder / "judge" / "state" / key, folder / "standby" / "state")
        self.standby = stack.enter_context(served(folder / "standby", *options))
        ends_at = time.monotonic() + STANDS_BY_WITHIN
        post = hub_load.request(hub_load.beat(0), self.judge.token)
        while not _answer(self.standby, post).startswith(b"HTTP/1.1 202"):
            assert time.monotonic() < ends_at, "the hub that stands by forwards nothing"
            time.sleep(0.2)

    def cost(self, to: RealHub, requests: list[bytes], beats_each: int, first: int) -> Cost:
        """Of the beats of one turn."""
        before = self.judge.cpu(), self.standby.cpu()
        rate = hub_load.post(_port(to), requests, beats_each, SECONDS, first)
        spent = self.judge.cpu() - before[0], self.standby.cpu() - before[1]
        return Cost(spent[0] / rate.beats * 1e6, spent[1] / rate.beats * 1e6, rate.per_second)

    def latency(self, to: RealHub) -> Latency:
        """Of single posts."""
        took: list[float] = []
        with socket.create_connection(("127.0.0.1", _port(to))) as line:
            line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for n in range(LATENCIES):
                post = hub_load.request(hub_load.beat(n % AGENTS), self.judge.token)
                began = time.perf_counter()
                line.sendall(post)
                while not line.recv(65536).endswith(b"}"):
                    pass
                took.append((time.perf_counter() - began) * 1e3)
        return Latency(statistics.median(took), statistics.quantiles(took, n=100)[98])


def cost(batch: int) -> Forwarded:
    """Of a beat, in posts of so many: the medians of the turns."""
    with ExitStack() as stack:
        pair = Pair(stack)
        beats = [hub_load.beat(n) for n in range(AGENTS)]
        if batch > 1:
            beats = [hub_load.array(beats[n : n + batch]) for n in range(0, AGENTS, batch)]
        requests = [hub_load.request(message, pair.judge.token) for message in beats]
        first, turns = hub_load.SEQ_FROM, []
        for _ in range(TURNS + 1):
            turn = []
            for hub in (pair.judge, pair.standby):
                turn.append(pair.cost(hub, requests, batch, first))
                first += 10_000
            turns.append(turn)
        return Forwarded(*(_median([turn[n] for turn in turns[1:]]) for n in (0, 1)))


def latencies() -> tuple[Latency, Latency]:
    """Directly, and through the hub that stands by: the medians of the turns."""
    with ExitStack() as stack:
        pair = Pair(stack)
        turns = [(pair.latency(pair.judge), pair.latency(pair.standby)) for _ in range(TURNS)]
        direct, through = zip(*turns, strict=True)
        return _middle(direct), _middle(through)


def _middle(seen: tuple[Latency, ...]) -> Latency:
    return Latency(
        statistics.median(one.p50_ms for one in seen), statistics.median(one.p99_ms for one in seen)
    )


def _median(costs: list[Cost]) -> Cost:
    return Cost(
        statistics.median(one.judge_us for one in costs),
        statistics.median(one.standby_us for one in costs),
        statistics.median(one.per_second for one in costs),
    )


def _port(hub: RealHub) -> int:
    port = urlsplit(hub.url).port
    assert port is not None
    return port


def _answer(hub: RealHub, request: bytes) -> bytes:
    with socket.create_connection(("127.0.0.1", _port(hub))) as line:
        line.sendall(request)
        return line.recv(65536)
