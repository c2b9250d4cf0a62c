"""Connections: slow, silent, greedy and broken peers, over real sockets; and that nobody else is hurt by them."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import uvloop

from lifesigns.config.values import Limits
from lifesigns.hub.principals import Role
from lifesigns.web import connection as web_connection
from lifesigns.web import server
from lifesigns.web.connection import HEAD_MAX, PIPELINE_MAX
from lifesigns.web.connections import Connections, Patience
from lifesigns.web.rates import Rate
from lifesigns.web.server import allow_more_files, listen, served
from tests.web.hub import RunningHub, running_hub

SOON = 20.0
"""Seconds within which everything here has happened, however busy the machine is."""

SWIFT = Patience(head_for=0.4, body_for=0.4, idle_for=0.5, stalled_for=0.5, linger_for=0.4)
CALM = Patience()
PATIENT = Patience(head_for=60.0, stalled_for=60.0)


@asynccontextmanager
async def hub_with(
    patience: Patience = SWIFT, most: int = 10_000, unsent_max: int = 64 * 1024 * 1024
) -> AsyncIterator[tuple[RunningHub, Connections]]:
    connections = Connections(most, patience=patience, unsent_max=unsent_max)
    async with running_hub(connections=connections) as hub:
        yield hub, connections


class Peer:
    """Somebody at the other end of a connection who says exactly what we tell him to."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def hears(self) -> bytes:
        """Everything until the other side closes."""
        async with asyncio.timeout(SOON):
            try:
                return await self.reader.read()
            except ConnectionError:
                return b""

    async def answer(self) -> tuple[int, bytes]:
        """One answer: its status and its body."""
        async with asyncio.timeout(SOON):
            head = await self.reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            return int(head.split()[1]), await self.reader.readexactly(length)

    async def close(self) -> None:
        self.writer.close()
        with suppress(ConnectionError):
            await self.writer.wait_closed()


@asynccontextmanager
async def peer(hub: RunningHub) -> AsyncIterator[Peer]:
    one = await connect(hub)
    try:
        yield one
    finally:
        await one.close()


async def connect(hub: RunningHub) -> Peer:
    host, _, port = hub.url.removeprefix("http://").partition(":")
    return Peer(*await asyncio.open_connection(host, int(port)))


def head(hub: RunningHub, line: str = "GET /api/v1/me", **headers: str) -> bytes:
    names = {"Host": "127.0.0.1", "Authorization": f"Bearer {hub.token}", **headers}
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in names.items())
    return f"{line} HTTP/1.1\r\n{lines}\r\n".encode()


def beat(hub: RunningHub, agent_id: str = "a") -> bytes:
    body = json.dumps({"agent_id": agent_id}).encode()
    return head(hub, "POST /api/v1/beats", Content_Length=str(len(body))) + body


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(SOON):
        while not holds():  # noqa: ASYNC110 -- seen from outside
            await asyncio.sleep(0.01)


async def dribble(one: Peer, data: bytes, every: float = 0.03) -> None:
    """A byte now and then, for as long as somebody takes them."""
    try:
        for place in range(len(data)):
            await one.say(data[place : place + 1])
            await asyncio.sleep(every)
    except ConnectionError:
        pass


async def closed_while(one: Peer, what: Coroutine[Any, Any, None]) -> bytes:
    """What it hears until it is closed, while it does something."""
    task = asyncio.ensure_future(what)
    try:
        return await one.hears()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


# --- taking too long ----------------------------------------------------------------------------------


async def test_who_says_nothing_is_let_go() -> None:
    async with hub_with() as (hub, connections), peer(hub) as silent:
        assert await silent.hears() == b""
        await until(lambda: len(connections) == 0)


async def test_a_head_that_comes_byte_by_byte_is_given_up() -> None:
    """Every byte is progress, and yet it never arrives: what counts is when it began."""
    async with hub_with() as (hub, _), peer(hub) as slow:
        said = await closed_while(slow, dribble(slow, head(hub)))
        assert said.startswith(b"HTTP/1.1 408 ")
        assert b"application/problem+json" in said


async def test_a_body_that_never_comes_is_given_up() -> None:
    async with hub_with() as (hub, _), peer(hub) as slow:
        await slow.say(head(hub, "POST /api/v1/beats", Content_Length="100"))
        assert (await slow.hears()).startswith(b"HTTP/1.1 408 ")


async def test_a_body_nobody_reads_does_not_keep_a_connection() -> None:
    """A GET has no body we want: it is answered, and the bytes that dribble in after it buy no time."""
    async with hub_with() as (hub, connections), peer(hub) as slow:
        await slow.say(head(hub, Content_Length="10000"))
        assert (await slow.answer())[0] == 200
        await closed_while(slow, dribble(slow, b"x" * 10_000))
        await until(lambda: len(connections) == 0)


async def test_a_connection_is_kept_for_the_next_beat_and_not_for_ever() -> None:
    async with hub_with() as (hub, _), peer(hub) as agent:
        for _ in range(3):
            await agent.say(beat(hub))
            assert (await agent.answer())[0] == 202
            await asyncio.sleep(SWIFT.idle_for / 4)
        assert await agent.hears() == b""


async def test_a_long_poll_may_take_longer_than_any_of_these() -> None:
    """While we are the ones who take long, nobody is let go."""
    async with hub_with() as (hub, _), peer(hub) as waiting:
        await waiting.say(head(hub, "GET /api/v1/agents/a/orders?wait=2"))
        async with asyncio.timeout(SOON):
            assert (await waiting.reader.readline()).split()[1] in (b"200", b"204", b"404")


# --- saying too much, or nonsense ---------------------------------------------------------------------


@pytest.mark.parametrize("endless", [b"GET /" + b"x" * 1000, b"GET / HTTP/1.1\r\nX: " + b"x" * 1000])
async def test_a_head_without_end_is_refused(endless: bytes) -> None:
    async with hub_with(CALM) as (hub, _), peer(hub) as greedy:
        await greedy.say(endless)

        async def more() -> None:
            for _ in range(HEAD_MAX // 1000 + 100):
                await greedy.say(b"x" * 1000)

        assert (await closed_while(greedy, more())).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize(
    "nonsense", [b"\x16\x03\x01\x02\x00\x01", b"hello\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
async def test_what_is_not_http_is_told_so(nonsense: bytes) -> None:
    async with hub_with(CALM) as (hub, _), peer(hub) as stranger:
        await stranger.say(nonsense)
        stranger.writer.write_eof()
        said = await stranger.hears()
        assert said.startswith(b"HTTP/1.1 400 ")
        assert json.loads(said.partition(b"\r\n\r\n")[2])["status"] == 400


async def test_who_is_refused_while_still_speaking_hears_why() -> None:
    """To close at once would have the kernel cut the connection, and the answer with it."""
    async with hub_with(CALM) as (hub, _), peer(hub) as greedy:
        await greedy.say(head(hub, "POST /api/v1/beats", Content_Length=str(64 * 1024 * 1024)))

        async def more() -> None:
            for _ in range(200):
                await greedy.say(b" " * 65536)

        assert (await closed_while(greedy, more())).startswith(b"HTTP/1.1 413 ")


async def test_requests_sent_ahead_are_answered_in_their_order() -> None:
    async with hub_with() as (hub, _), peer(hub) as eager:
        wanted = [head(hub), beat(hub), head(hub, "GET /nowhere"), beat(hub)]
        await eager.say(b"".join(wanted))
        assert [(await eager.answer())[0] for _ in wanted] == [200, 202, 404, 202]


async def test_too_many_requests_sent_ahead_are_cut_off() -> None:
    async with hub_with(CALM) as (hub, connections), peer(hub) as eager:
        await eager.say(head(hub) * (PIPELINE_MAX + 50))
        said = await eager.hears()
        assert said.count(b"HTTP/1.1 200 ") <= PIPELINE_MAX + 1
        await until(lambda: len(connections) == 0)


async def test_an_upgrade_is_not_known_here_and_its_request_is_the_last() -> None:
    async with hub_with(CALM) as (hub, _), peer(hub) as curious:
        await curious.say(head(hub, Connection="Upgrade", Upgrade="websocket"))
        said = await curious.hears()
        assert said.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in said


async def test_an_old_client_is_answered_and_let_go() -> None:
    async with hub_with(CALM) as (hub, _), peer(hub) as old:
        await old.say(head(hub).replace(b"HTTP/1.1", b"HTTP/1.0"))
        assert b"connection: close" in await old.hears()


# --- too many -----------------------------------------------------------------------------------------


async def test_who_is_one_too_many_is_told_and_may_come_when_another_is_gone() -> None:
    async with hub_with(CALM, most=4) as (hub, connections):
        await hub.http.aclose()
        others = [await connect(hub) for _ in range(4)]
        await until(lambda: len(connections) == 4)
        async with peer(hub) as late:
            assert (await late.hears()).startswith(b"HTTP/1.1 503 ")
        assert connections.turned_away == 1
        await others.pop().close()
        await until(lambda: len(connections) == 3)
        async with peer(hub) as again:
            await again.say(beat(hub))
            assert (await again.answer())[0] == 202
        for one in others:
            await one.close()


async def test_one_address_cannot_take_all_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine's own are not counted, so here they are made to be somebody else's."""
    monkeypatch.setattr(web_connection, "_counted", lambda client: client[0])
    connections = Connections(100, 3, patience=CALM)
    async with running_hub(connections=connections) as hub:
        peers = [await connect(hub) for _ in range(3)]
        await until(lambda: len(connections) == 3)
        async with peer(hub) as fourth:
            assert (await fourth.hears()).startswith(b"HTTP/1.1 503 ")
        for one in peers:
            await one.close()
        await until(lambda: not len(connections))
        async with peer(hub) as free:
            await free.say(beat(hub))
            assert (await free.answer())[0] == 202


# --- slow readers -------------------------------------------------------------------------------------


async def large_answer(hub: RunningHub) -> None:
    """See to it that `GET /api/v1/agents?limit=1000` is some hundred kilobytes."""
    beats = [{"agent_id": f"agent-{n}", "task_id": "t" * 100, "host": "h" * 100} for n in range(1000)]
    assert (await hub.post("/api/v1/beats", beats)).status_code == 202


async def ask_without_reading(hub: RunningHub, times: int) -> socket.socket:
    """More answers than the kernel holds, to somebody who takes none of them."""
    line = socket.socket()
    line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    line.setblocking(False)
    loop = asyncio.get_running_loop()
    host, _, port = hub.url.removeprefix("http://").partition(":")
    await loop.sock_connect(line, (host, int(port)))
    await loop.sock_sendall(line, head(hub, "GET /api/v1/agents?limit=1000") * times)
    return line


async def test_who_does_not_read_its_answer_is_let_go() -> None:
    async with hub_with() as (hub, connections):
        await large_answer(hub)
        await hub.http.aclose()
        line = await ask_without_reading(hub, 30)
        await until(lambda: connections.unsent > 0)
        await until(lambda: len(connections) == 0)
        assert connections.unsent == 0
        line.close()


async def test_answers_that_nobody_reads_hold_no_more_memory_than_allowed() -> None:
    async with hub_with(CALM, unsent_max=1_500_000) as (hub, connections):
        await large_answer(hub)
        lines = [await ask_without_reading(hub, 30) for _ in range(6)]
        await until(lambda: connections.cut_off > 0)
        assert connections.unsent <= 1_500_000
        async with peer(hub) as healthy:
            await healthy.say(beat(hub))
            assert (await healthy.answer())[0] == 202
        for line in lines:
            line.close()


async def test_who_reads_slowly_but_reads_gets_it_all() -> None:
    async with hub_with(Patience(stalled_for=5.0)) as (hub, connections):
        await large_answer(hub)
        line = await ask_without_reading(hub, 6)
        loop, read = asyncio.get_running_loop(), 0
        async with asyncio.timeout(100):
            answered = 0
            while answered < 6:
                piece = await loop.sock_recv(line, 65536)
                assert piece, "it was cut off"
                answered += piece.count(b"HTTP/1.1 200 ")
                read += len(piece)
                await asyncio.sleep(0.002)
        assert connections.cut_off == 0
        line.close()


async def test_the_hub_ends_even_if_somebody_does_not_read() -> None:
    async with hub_with(CALM) as (hub, _):
        await large_answer(hub)
        line = await ask_without_reading(hub, 30)
        began = time.monotonic()
    assert time.monotonic() - began < SOON
    line.close()


async def test_a_hub_that_has_nothing_to_answer_ends_at_once() -> None:
    """uvicorn's server takes a tenth of a second, and looks ten times a second whether it shall end."""
    took = []
    async with hub_with(CALM) as (hub, _):
        for _ in range(3):  # One of them while the machine has time for it.
            listener = listen("127.0.0.1", 0)
            async with served(hub.web, listener, Connections(10)):
                reader, writer = await asyncio.open_connection(*listener.getsockname())
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n")
                await reader.readuntil(b'{"status":"ok"}')
                began = time.monotonic()
            took.append(time.monotonic() - began)
            assert await reader.read() == b""
            writer.close()
    assert min(took) < 0.1


async def test_who_is_accepted_in_the_last_moment_is_not_left_open() -> None:
    """asyncio knows a connection two turns before we do."""
    async with hub_with(CALM) as (hub, _):
        for turns in range(6):
            listener = listen("127.0.0.1", 0)
            async with served(hub.web, listener, Connections(10)):
                line = socket.create_connection(listener.getsockname())
                for _ in range(turns):
                    await asyncio.sleep(0)
            line.settimeout(SOON)
            try:
                assert line.recv(1) == b""
            except ConnectionResetError:  # It was never accepted.
                pass
            finally:
                line.close()


async def test_who_never_finishes_its_request_does_not_keep_the_hub(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(server, "FINISH_FOR", 0.2)
    async with hub_with(CALM) as (hub, _):
        slow = await connect(hub)
        await slow.say(head(hub, "POST /api/v1/signals", Content_Length="5000") + b"[")
        async with peer(hub) as quick:
            await quick.say(beat(hub))
            assert (await quick.answer())[0] == 202
        began = time.monotonic()
    assert 0.2 <= time.monotonic() - began < SOON
    assert "requests that did not end within 0.2 s are cut off: 1" in caplog.text
    assert await slow.hears() == b""
    await slow.close()


# --- and nobody else is hurt --------------------------------------------------------------------------


async def slow_and_half_open_peers_do_not_hurt_a_healthy_one() -> None:
    """500 who never finish their head, 200 whose body does not come, 20 who do not read."""
    allow_more_files()
    async with hub_with(PATIENT) as (hub, connections):
        await large_answer(hub)
        half_open = [await connect(hub) for _ in range(500)]
        for one in half_open:
            await one.say(b"POST /api/v1/beats HTTP/1.1\r\nHost: 127")
        slow = [await connect(hub) for _ in range(200)]
        for one in slow:
            await one.say(head(hub, "POST /api/v1/beats", Content_Length="5000") + b"[")
        unread = [await ask_without_reading(hub, 30) for _ in range(20)]
        await until(lambda: len(connections) >= 720)
        took = []
        async with peer(hub) as healthy:
            for _ in range(200):
                began = time.monotonic()
                await healthy.say(beat(hub))
                assert (await healthy.answer())[0] == 202
                took.append(time.monotonic() - began)
        assert sorted(took)[197] < 0.25
        for one in half_open + slow:
            await one.close()
        for line in unread:
            line.close()
        await until(lambda: len(connections) < 10)


@pytest.mark.parametrize(
    "law",
    [
        test_a_head_that_comes_byte_by_byte_is_given_up,
        test_a_body_nobody_reads_does_not_keep_a_connection,
        test_who_is_refused_while_still_speaking_hears_why,
        test_too_many_requests_sent_ahead_are_cut_off,
        test_who_does_not_read_its_answer_is_let_go,
        test_answers_that_nobody_reads_hold_no_more_memory_than_allowed,
        test_who_reads_slowly_but_reads_gets_it_all,
        test_the_hub_ends_even_if_somebody_does_not_read,
        test_a_hub_that_has_nothing_to_answer_ends_at_once,
        test_who_is_accepted_in_the_last_moment_is_not_left_open,
        slow_and_half_open_peers_do_not_hurt_a_healthy_one,
    ],
)
def test_it_is_the_same_on_the_loop_that_serves(law: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """A hub runs on uvloop where there is one, and these two differ in just such corners."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(law())


CHILD = Path(__file__).parent / "few_files.py"


async def test_a_hub_without_files_left_lives_does_not_spin_and_recovers() -> None:
    child = await asyncio.create_subprocess_exec(
        sys.executable, str(CHILD), stdout=subprocess.PIPE, cwd=Path(__file__).parents[2], env=os.environ
    )
    assert child.stdout is not None
    try:
        async with asyncio.timeout(60):
            port = int(await child.stdout.readline())
            crowd = [await asyncio.open_connection("127.0.0.1", port) for _ in range(150)]
            await asyncio.sleep(0.3)
            before = _cpu_seconds(child.pid)
            await asyncio.sleep(1.0)
            assert _cpu_seconds(child.pid) - before < 0.6, "it spins"
            for _, writer in crowd:
                writer.close()
            while True:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                writer.write(b"GET /healthz HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n")
                try:
                    answer = await reader.read()
                except ConnectionError:
                    answer = b""
                writer.close()
                if answer.startswith(b"HTTP/1.1 200 "):
                    break
                await asyncio.sleep(0.05)
    finally:
        child.kill()
        await child.wait()
        child._transport.close()  # type: ignore[attr-defined]


def _cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- rates --------------------------------------------------------------------------------------------


async def test_an_agent_that_runs_wild_is_asked_to_wait_and_others_are_not() -> None:
    async with running_hub(limits=Limits(requests_per_second=10)) as hub:
        token = await hub.token_for(Role.AGENT, "a")
        async with hub.client(token) as wild:
            answers = [await wild.post("/api/v1/beats", json={"agent_id": "a"}) for _ in range(60)]
            refused = [answer for answer in answers if answer.status_code == 429]
            assert refused
            assert answers[0].status_code == 202
            assert int(refused[0].headers["retry-after"]) >= 1
        for _ in range(60):
            assert (await hub.get("/api/v1/me")).status_code == 200


def test_a_rate_is_kept_over_time_with_a_burst_at_the_beginning() -> None:
    rates = Rate(10)
    passed = [now for now in (n / 1000 for n in range(10_000)) if not rates.wait_for("t", 1000.0 + now)]
    assert 10 <= sum(1 for now in passed if now < 0.001 * 20) <= 11
    assert len(passed) == pytest.approx(110, abs=2)
    assert rates.wait_for("another", 1000.0) == 0.0


def test_who_has_to_wait_is_told_how_long() -> None:
    rates = Rate(2)
    while not (wait_for := rates.wait_for("t", 50.0)):
        pass
    assert rates.wait_for("t", 50.0 + wait_for) == 0.0
