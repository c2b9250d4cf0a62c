"""Load for a hub, from another core: plain sockets and requests made beforehand, so that we measure the hub."""

from __future__ import annotations

import os
import select
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

SEQ = b"1000000"
"""The place of the sequence in every beat; with as many digits, so that lengths hold."""
SEQ_FROM = 1_000_001

UNDER_WAY_MAX = 20_000


def beat(n: int) -> bytes:
    """A beat as our sender makes it while its agent works."""
    return (
        b'{"agent_id":"agent-%06d","timestamp":"2026-11-15T18:00:00.000Z","seq":%s,'
        b'"incarnation":"01JD0F8Q3V9Z8M2K7T5N%06d","status":"working","load":0.4,"task_id":"t-%d",'
        b'"loop_lag_ms":1.8,"metrics":{"cpu_percent":12.5,"memory_mb":310.0},"host":"ws-%d","pid":4711}'
    ) % (n, SEQ, n, n, n // 100)


def array(beats: list[bytes]) -> bytes:
    """Beats as a JSON array."""
    return b"[" + b",".join(beats) + b"]"


def lines(beats: list[bytes]) -> bytes:
    """Beats as NDJSON."""
    return b"\n".join(beats) + b"\n"


def request(body: bytes, token: str) -> bytes:
    """A post of beats."""
    head = (
        f"POST /api/v1/beats HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n"
        f"content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


@dataclass(frozen=True)
class Rate:
    """The number of accepted beats, and their time."""

    beats: int
    seconds: float

    @property
    def per_second(self) -> float:
        return self.beats / self.seconds


def post(
    port: int, messages: list[bytes], beats_each: int, seconds: float, first: int, connections: int = 32
) -> Rate:
    """Post these requests round and round, each time with the next sequence, for so long."""
    upcoming = _rounds(messages, first)
    lines = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    by_number = {line.fileno(): line for line in lines}
    poll = select.epoll()
    for line in lines:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(line.fileno(), select.EPOLLIN)
        line.sendall(next(upcoming))
    answered, began = 0, time.monotonic()
    until = began + seconds
    try:
        while time.monotonic() < until:
            # Without sleeping: the measured process would pay for waking us.
            for number, _ in poll.poll(0):
                line = by_number[number]
                answer = line.recv(65536)
                if answer.startswith(b"HTTP/1.1 202 "):
                    answered += 1
                elif answer.startswith(b"HTTP/") or not answer:
                    raise RuntimeError(f"not taken: {answer[:300]!r}")
                if answer.endswith(b"}"):  # The body may come after the head.
                    line.sendall(next(upcoming))
        took = time.monotonic() - began
    finally:
        poll.close()
        for line in lines:
            line.close()
    return Rate(answered * beats_each, took)


def _subject(message: bytes, beats_each: int) -> bytes:
    """The subject of a sender: an agent's own id, or a relay for a process with many agents."""
    if beats_each > 1:
        return b"heartbeat.relay:bench"
    return b"heartbeat." + message.split(b'"agent_id":"', 1)[1].split(b'"', 1)[0]


def publish(
    port: int, messages: list[bytes], beats_each: int, seconds: float, heard: Callable[[], int], first: int
) -> Rate:
    """Publish these on a NATS server round and round, for so long, as fast as the hub reads them."""
    commands = [b"PUB %s %d\r\n%s\r\n" % (_subject(one, beats_each), len(one), one) for one in messages]
    upcoming = _rounds(commands, first)
    at_once = max(1, 500 // beats_each)
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.sendall(b'CONNECT {"verbose":false}\r\n')
        before = sent = heard()
        began = time.monotonic()
        until = began + seconds
        while time.monotonic() < until:
            if sent - heard() > UNDER_WAY_MAX:
                time.sleep(0.0005)
                continue
            line.sendall(b"".join(next(upcoming) for _ in range(at_once)))
            sent += at_once * beats_each
        taken, took = heard() - before, time.monotonic() - began
        _wait(lambda: heard() >= sent, 10.0)
    return Rate(taken, took)


def _rounds(messages: list[bytes], first: int) -> Iterator[bytes]:
    for seq in count(first):
        written = b"%d" % seq
        for message in messages:
            yield message.replace(SEQ, written)


def _wait(holds: Callable[[], bool], within: float) -> None:
    until = time.monotonic() + within
    while not holds():
        if time.monotonic() > until:
            raise RuntimeError("what was published was not heard")
        time.sleep(0.002)


def on_core(core: int) -> None:
    """Stay on this core, if there is one like it."""
    if core < (os.cpu_count() or 1):
        os.sched_setaffinity(0, {core})
