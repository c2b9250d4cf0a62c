"""A hub with a large fleet: what it takes of a core and of memory, how late it finds a death, how soon it answers.

Everybody beats every ten seconds, in batches of a hundred, spread evenly. Some agents die at random moments; somebody
asks and posts all the while. First the fleet is met and heard once round, then it is measured.
"""

from __future__ import annotations

import random
import select
import socket
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from math import inf
from multiprocessing import get_context
from multiprocessing.connection import Connection

from benchmarks import hub_load
from benchmarks.hub import BATCH, EVERY_TEN_SECONDS
from benchmarks.hub_process import LOAD_CORE, ProcessOptions, Reading, UnderLoad
from lifesigns.hub.counters import LATE_UP_TO

INTERVAL = 10.0
MEET_FOR = 6.0
ASK_EVERY = 0.05
LINES = 8


@dataclass(frozen=True)
class Fleet:
    """Its size, its length, and how many agents die."""

    agents: int = 100_000
    seconds: float = 45.0
    deaths: int = 300


@dataclass
class AnswerTimes:
    """Seconds each answer took."""

    agents_page: list[float] = field(default_factory=list)
    one_agent: list[float] = field(default_factory=list)
    beat_answered: list[float] = field(default_factory=list)
    beat_visible: list[float] = field(default_factory=list)


@dataclass(frozen=True)
class Measured:
    """The results."""

    cpu_share: float
    rss_mb: float
    beats_per_second: float
    found_late: float
    """99 of 100 deaths were known no later than this many seconds after their verdict was due."""
    told_late: list[float]
    """Of each death: seconds from the moment its verdict was due until it was stored and published."""
    batches: list[float]
    """Seconds from posting a batch to its answer."""
    answers: AnswerTimes


def p99(values: list[float]) -> float:
    """The value that 99 of 100 do not exceed."""
    return sorted(values)[max(0, -(-len(values) * 99 // 100) - 1)]


def _bound_of_99(counts: list[int]) -> float:
    """The same for values that were only counted: the bound they lie below."""
    wanted = sum(counts) * 99 / 100
    seen = accumulate(counts)
    return next(bound for bound, count in zip((*LATE_UP_TO, inf), seen, strict=True) if count >= wanted)


def live(fleet: Fleet) -> Measured:
    """Run it and measure."""
    hub_load.on_core(LOAD_CORE)
    with (
        tempfile.TemporaryDirectory() as folder,
        UnderLoad(ProcessOptions(folder=folder, policy=EVERY_TEN_SECONDS)) as hub,
    ):
        crowd = Crowd(fleet.agents, hub)
        crowd.beat_for(MEET_FOR, MEET_FOR)
        crowd.beat_for(INTERVAL, INTERVAL)
        before, crowd.took = hub.read(), []
        with _asking(hub, fleet.seconds) as collect:
            crowd.lose(fleet.deaths, max(1.0, fleet.seconds - 2.5 * INTERVAL - 5.0))
            crowd.beat_for(fleet.seconds, INTERVAL)
            answers = collect()
        after = hub.read()
        crowd.close()
    return _measured(before, after, crowd.took, answers)


@dataclass(frozen=True)
class Overloaded:
    """The result of more agents than a core may carry."""

    agents: int
    met_after: float
    """Seconds until all agents were known; infinite if not within `MEET_AT_MOST`."""
    wanted_per_second: float
    taken_per_second: float
    rss_mb: float
    rss_mb_later: float
    """At the end of the full load, and how it continued."""
    convicted: int
    """Of a fleet in which no agent died."""
    answered_again: float
    """p99 of the answers in seconds when the load had fallen to a tenth."""


MEET_AT_MOST = 180.0
FULL_LOAD_FOR = 40.0
RELIEF_FOR = 20.0


def overload(agents: int) -> Overloaded:
    """All beat every ten seconds, whatever the load; then one in ten of them continues."""
    hub_load.on_core(LOAD_CORE)
    with (
        tempfile.TemporaryDirectory() as folder,
        UnderLoad(ProcessOptions(folder=folder, policy=EVERY_TEN_SECONDS)) as hub,
    ):
        crowd = Crowd(agents, hub)
        began = time.monotonic()
        crowd.meet(until=began + MEET_AT_MOST)
        met_after = time.monotonic() - began if crowd.met_all else inf
        before = hub.read()
        crowd.beat_for(FULL_LOAD_FOR, INTERVAL, at_most=True)
        after = hub.read()
        crowd.shrink(10)
        crowd.beat_for(RELIEF_FOR / 2, INTERVAL, at_most=True)
        crowd.took = []
        crowd.beat_for(RELIEF_FOR / 2, INTERVAL, at_most=True)
        later = hub.read()
        crowd.close()
    return Overloaded(
        agents,
        met_after,
        agents / INTERVAL,
        (after.beats - before.beats) / (after.at - before.at),
        after.rss_mb,
        later.rss_mb,
        sum(after.found_late),
        p99(crowd.took),
    )


def _measured(before: Reading, after: Reading, took: list[float], answers: AnswerTimes) -> Measured:
    seconds = after.at - before.at
    return Measured(
        (after.cpu - before.cpu) / seconds,
        after.rss_mb,
        (after.beats - before.beats) / seconds,
        _bound_of_99([now - then for now, then in zip(after.found_late, before.found_late, strict=True)]),
        after.told_late[len(before.told_late) :],
        took,
        answers,
    )


class Crowd:
    """All agents: batch after batch over a few connections, each at its time."""

    def __init__(self, size: int, hub: UnderLoad) -> None:
        self._groups = [list(range(n, n + BATCH)) for n in range(0, size, BATCH)]
        self._token = hub.token
        self._messages = [self._message(group) for group in self._groups]
        self._lines = [socket.create_connection(("127.0.0.1", hub.port)) for _ in range(LINES)]
        self._poll = select.epoll()
        self._posted_at: dict[int, float] = {}
        for line in self._lines:
            self._poll.register(line.fileno(), select.EPOLLIN)
        self._by_number = {line.fileno(): line for line in self._lines}
        self._free = list(self._lines)
        self._sent = 0
        self._dying: list[tuple[float, int]] = []
        self.took: list[float] = []

    def lose(self, count: int, within: float) -> None:
        """Let so many die, each at some moment in this time."""
        chance = random.Random(4)
        agents = chance.sample(range(len(self._groups) * BATCH), count)
        now = time.monotonic()
        self._dying = sorted((now + chance.uniform(0, within), agent) for agent in agents)

    def meet(self, until: float) -> None:
        """All agents beat once, as fast as the hub takes it."""
        while not self.met_all and time.monotonic() < until:
            while not self._free:
                self._hear(1.0)
            self._post()
        while len(self._free) < LINES:
            self._hear(1.0)

    @property
    def met_all(self) -> bool:
        return self._sent >= len(self._groups)

    def shrink(self, by: int) -> None:
        """Continue with one batch in so many."""
        self._groups, self._messages = self._groups[::by], self._messages[::by]
        # Sequences continue from the highest sent, whoever comes next.
        self._sent = (self._sent // len(self._groups) + 1) * len(self._groups)

    def beat_for(self, seconds: float, every: float, *, at_most: bool = False) -> None:
        """Beat for so long, all agents once in `every` seconds. A slow hub makes it longer, unless it is `at_most`:
        then what it does not take in time is not sent."""
        step = every / len(self._groups)
        due_at = began = time.monotonic()
        while due_at < began + seconds and not (at_most and time.monotonic() > began + seconds):
            self._bury(time.monotonic())
            while not self._free:
                self._hear(1.0)
            self._post()
            due_at += step
            while (left := due_at - time.monotonic()) > 0:
                self._hear(left)
        while len(self._free) < LINES:
            self._hear(1.0)

    def close(self) -> None:
        self._poll.close()
        for line in self._lines:
            line.close()

    def _post(self) -> None:
        round_, place = divmod(self._sent, len(self._groups))
        self._sent += 1
        line = self._free.pop()
        self._posted_at[line.fileno()] = time.monotonic()
        line.sendall(self._messages[place].replace(hub_load.SEQ, b"%d" % (hub_load.SEQ_FROM + round_)))

    def _hear(self, wait_for: float) -> None:
        for number, _ in self._poll.poll(wait_for):
            answer = self._by_number[number].recv(65536)
            if not answer.startswith(b"HTTP/1.1 202 "):
                raise RuntimeError(f"not taken: {answer[:300]!r}")
            self.took.append(time.monotonic() - self._posted_at[number])
            self._free.append(self._by_number[number])

    def _bury(self, now: float) -> None:
        while self._dying and self._dying[0][0] <= now:
            _, agent = self._dying.pop(0)
            place = agent // BATCH
            self._groups[place].remove(agent)
            self._messages[place] = self._message(self._groups[place])

    def _message(self, group: list[int]) -> bytes:
        return hub_load.request(hub_load.array([hub_load.beat(n) for n in group]), self._token)


# --- queries, in a process of their own ---------------------------------------------------------------


class _asking:  # noqa: N801 -- used as a context
    """Sends queries for so long; `with _asking(hub, 45.0) as answers: ...; answers()`."""

    def __init__(self, hub: UnderLoad, seconds: float) -> None:
        self._pipe, other = get_context("spawn").Pipe()
        self._process = get_context("spawn").Process(
            target=_ask, args=(hub.port, hub.token, seconds - 3.0, other), daemon=True
        )

    def __enter__(self) -> _asking:
        self._process.start()
        return self

    def __call__(self) -> AnswerTimes:
        answers: AnswerTimes = self._pipe.recv()
        return answers

    def __exit__(self, *_: object) -> None:
        self._process.join(30)
        self._pipe.close()


def _ask(port: int, token: str, seconds: float, pipe: Connection) -> None:
    hub_load.on_core(LOAD_CORE)
    answers, until = AnswerTimes(), time.monotonic() + seconds
    with socket.create_connection(("127.0.0.1", port)) as line:
        line.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for seq in _paced(until):
            who = b"asker-%d" % (seq % 10)
            answers.agents_page.append(_timed(line, _get(b"/api/v1/agents?limit=100", token))[0])
            answers.one_agent.append(
                _timed(line, _get(b"/api/v1/agents/agent-%06d" % (seq * 37 % 1000), token))[0]
            )
            post = hub_load.request(b'{"agent_id":"%s","seq":%d}' % (who, seq), token)
            answered, _ = _timed(line, post)
            answers.beat_answered.append(answered)
            answers.beat_visible.append(answered + _seen(line, who, seq, token))
    pipe.send(answers)
    pipe.close()


def _paced(until: float) -> Iterator[int]:
    seq, due_at = 0, time.monotonic()
    while due_at < until:
        time.sleep(max(0.0, due_at - time.monotonic()))
        yield (seq := seq + 1)
        due_at = max(due_at + ASK_EVERY, time.monotonic())


def _seen(line: socket.socket, who: bytes, seq: int, token: str) -> float:
    """How long until this is the agent's last beat."""
    took = 0.0
    while True:
        each, answer = _timed(line, _get(b"/api/v1/agents/%s/heartbeat" % who, token))
        took += each
        if b'"seq":%d' % seq in answer:
            return took


def _get(path: bytes, token: str) -> bytes:
    return b"GET %s HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer %s\r\n\r\n" % (path, token.encode())


def _timed(line: socket.socket, request: bytes) -> tuple[float, bytes]:
    began = time.monotonic()
    line.sendall(request)
    answer = line.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += line.recv(262144)
    return time.monotonic() - began, body
