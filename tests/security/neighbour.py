"""A neighbour of one hostile agent's token: how long its beats take, when its death is found, and what the attack leaves behind.

The hub is `lifesigns serve` with its usual limits, and has a processor to itself: who attacks it, and the server of a bus, would be
on other machines. The neighbour is one line that beats twenty times a second with two agents, of
which one dies after a while; times are those of the hub's own events.
"""

from __future__ import annotations

import json
import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from tests.journeys.outside import Hub, serving
from tests.security.hostile import FLOODS, GREETINGS, NICE, REDIS_FLOODS, attacking
from tests.servers.nats import NatsServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer

LOAD_FOR = 8.0
FOUND_FOR = 20.0
ATTACKED_WITHIN = 30.0
EVERY = 0.05
ON_BUS, ALIVE_ON_BUS = "good.bus", "good.alive"


@dataclass
class Neighbour:
    """What became of it."""

    found_after: float = float("inf")
    """Seconds from its last beat to the verdict."""
    found_on_bus_after: float = float("inf")
    """The same for its companion that beats over the bus."""
    harmed: list[str] = field(default_factory=list)
    """Those that lived and were taken for dead."""
    waits: list[float] = field(default_factory=list)
    memory_mb: float = 0.0
    disk_mb: float = 0.0
    busy: float = 0.0
    """Which share of the time the hub's thread ran."""
    starved: float = 0.0
    """And for which share it waited for a processor: it is behind then, whoever attacks it."""
    answers: dict[str, int] = field(default_factory=dict)
    """How who attacked was answered; and what it `published`."""
    heard: int = 0
    """Beats and reports that the hub has heard, of whomever."""
    skipped: int = 0
    """Messages of the bus that it did not read, because their sender had used up its share."""

    def quantile(self, part: float) -> float:
        return sorted(self.waits)[max(0, -int(-len(self.waits) * part // 1) - 1)]

    def __str__(self) -> str:
        p50, p99 = 1000 * self.quantile(0.5), 1000 * self.quantile(0.99)
        return (
            f"found after {self.found_after:.2f} s (on the bus {self.found_on_bus_after:.2f} s); beats p50 {p50:.1f} ms, p99 {p99:.1f} ms of {len(self.waits)}; "
            f"memory +{self.memory_mb:.0f} MB, disk +{self.disk_mb:.0f} MB, the hub ran for {self.busy:.0%} of the time "
            f"and waited for a processor for {self.starved:.0%}; harmed: {self.harmed or 'no one'}; "
            f"{self.heard} signals heard, {self.skipped} messages skipped; {self.answers}"
        )


class Line:
    """A neighbour's connection."""

    def __init__(self, port: int, token: str) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port), timeout=30)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._token = token

    def close(self) -> None:
        self._socket.close()

    def beat(self, name: str) -> float:
        """Seconds until it was answered."""
        body = json.dumps({"agent_id": name, "host": "h"}).encode()
        head = (
            f"POST /api/v1/beats HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {self._token}\r\n"
            f"content-length: {len(body)}\r\n\r\n"
        )
        began = time.monotonic()
        self._socket.sendall(head.encode() + body)
        answer = self._socket.recv(65536)
        assert answer.startswith(b"HTTP/1.1 202 "), answer
        return time.monotonic() - began


class BusLine:
    """The same on the server of a bus, for an agent that speaks under its own subject."""

    def __init__(self, server: Server) -> None:
        self._socket = socket.create_connection(("127.0.0.1", server.port), timeout=30)
        self._is_nats = isinstance(server, NatsServer)
        self._socket.sendall(GREETINGS["bus" if self._is_nats else "redis"])

    def close(self) -> None:
        self._socket.close()

    def beat(self, name: str) -> None:
        body, subject = json.dumps({"agent_id": name}).encode(), f"heartbeat.{name}".encode()
        if self._is_nats:
            self._socket.sendall(b"PUB %s %d\r\n%s\r\n" % (subject, len(body), body))
        else:
            head = b"*3\r\n$7\r\nPUBLISH\r\n$%d\r\n%s\r\n" % (len(subject), subject)
            self._socket.sendall(head + b"$%d\r\n%s\r\n" % (len(body), body))


@contextmanager
def leaving_a_processor() -> Iterator[None]:
    """Keep this thread, and what it starts from now on, off one processor if there are two: the hub may run on all."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, set(sorted(all_of_them)[1:]) or all_of_them)
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def processor_seconds(hub: Hub) -> tuple[float, float]:
    """For how long its thread ran, and waited for a processor."""
    assert hub.process is not None
    ran, waited, _ = Path(f"/proc/{hub.process.pid}/schedstat").read_text().split()
    return int(ran) / 1e9, int(waited) / 1e9


def resident_mb(hub: Hub) -> float:
    assert hub.process is not None
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def disk_mb(hub: Hub) -> float:
    sizes = []
    for file in hub.state.rglob("*"):
        try:
            sizes.append(file.stat().st_size)
        except FileNotFoundError:
            continue
    return sum(sizes) / 2**20


def counted(hub: Hub, name: str) -> int:
    """A counter of the hub's own."""
    return int(float(hub.get("/metrics").partition(f"\nlifesigns_{name} ")[2].split()[0]))


def beside(
    names: tuple[str, ...],
    *,
    tokens: int = 1,
    load_for: float = LOAD_FOR,
    found_for: float = FOUND_FOR,
    attacked: Callable[[dict[str, int]], bool] = lambda _: True,
) -> Neighbour:
    """A neighbour's life and death beside these attacks, by each of so many tokens, and floods of one kind of bus. It lives for this
    long, and until its hub is `attacked`, by how the attack was answered: who attacks may wait for a processor, too."""
    found = Neighbour()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bus: Server | None = None
        if not FLOODS.keys().isdisjoint(names):
            bus = stack.enter_context(NatsServer())
        elif not REDIS_FLOODS.keys().isdisjoint(names):
            bus = stack.enter_context(ValkeyServer())
        config = {"profile": "swift", **({} if bus is None else {"bus": {"url": bus.url}})}
        hub = stack.enter_context(serving(folder, config))
        good, *evil = (
            str(hub.post("/api/v1/tokens", {"role": "agent", "name": name, "agents": f"{name}-*"})["token"])
            for name in ("good", *(f"evi{n}" for n in range(tokens)))
        )
        stack.enter_context(leaving_a_processor())
        memory, disk, line = resident_mb(hub), disk_mb(hub), Line(hub.port, good)
        stack.callback(line.close)
        on_bus = None
        if bus is not None:
            _make_way(bus.pid)
            on_bus = BusLine(bus)
            stack.callback(on_bus.close)
        attack = None
        if names:
            port = 0 if bus is None else bus.port
            attack = stack.enter_context(attacking(folder, hub.port, evil, *names, bus=port))
        died_at = _live(
            line, on_bus, found, load_for, hub, lambda: attack is None or attacked(attack.answers)
        )
        dead = {"good-1", *([] if on_bus is None else [ON_BUS])}
        _find(hub, line, on_bus, found, died_at, found_for, dead)
        found.harmed = [name for name in ("good-2", ALIVE_ON_BUS) if _losses(hub, name)]
        found.answers = {} if attack is None else attack.answers
        found.heard = counted(hub, "beats_total") + counted(hub, "reports_total")
        found.skipped = counted(hub, "bus_messages_over_share_total")
        found.memory_mb, found.disk_mb = resident_mb(hub) - memory, disk_mb(hub) - disk
    return found


def _make_way(pid: int) -> None:
    """A server has a machine of its own elsewhere. Here it would take the hub's processor, before the hub sees any flood."""
    for thread in Path(f"/proc/{pid}/task").iterdir():
        os.sched_setaffinity(int(thread.name), os.sched_getaffinity(0))
        os.setpriority(os.PRIO_PROCESS, int(thread.name), os.getpriority(os.PRIO_PROCESS, 0) + NICE)


def _live(
    line: Line,
    on_bus: BusLine | None,
    found: Neighbour,
    load_for: float,
    hub: Hub,
    is_attacked: Callable[[], bool],
) -> float:
    began, (ran, waited) = time.monotonic(), processor_seconds(hub)
    ends_at, died_at = began + load_for, 0.0
    while time.monotonic() < ends_at or not (is_attacked() or time.monotonic() > ends_at + ATTACKED_WITHIN):
        for name in ("good-1", "good-2"):
            found.waits.append(line.beat(name))
        if on_bus is not None:
            on_bus.beat(ON_BUS)
            on_bus.beat(ALIVE_ON_BUS)
        died_at = time.time()
        time.sleep(EVERY)
    (ran_then, waited_then), took = processor_seconds(hub), time.monotonic() - began
    found.busy, found.starved = (ran_then - ran) / took, (waited_then - waited) / took
    return died_at


def _losses(hub: Hub, name: str) -> list[str]:
    """When the hub took it for dead."""
    flips = hub.events("HEALTH_STATE_CHANGED", agent=name)
    return [str(one["at"]) for one in flips if one["data"]["to"] == "disconnected"]


def _find(
    hub: Hub,
    line: Line,
    on_bus: BusLine | None,
    found: Neighbour,
    died_at: float,
    within: float,
    dead: set[str],
) -> None:
    """Wait until these deaths are found; the hub's own events say when that was."""
    until, turn = time.monotonic() + within, 0
    while dead and time.monotonic() < until:
        turn += 1
        found.waits.append(line.beat("good-2"))
        if on_bus is not None:
            on_bus.beat(ALIVE_ON_BUS)
        time.sleep(EVERY)
        for name in [one for one in dead if turn % 10 == 0 and hub.health(one) == "disconnected"]:
            if not (losses := _losses(hub, name)):
                continue  # Not stored yet.
            dead.discard(name)
            after = datetime.fromisoformat(losses[0]).timestamp() - died_at
            if name == ON_BUS:
                found.found_on_bus_after = after
            else:
                found.found_after = after
