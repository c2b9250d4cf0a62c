"""What a link makes of a server's answers."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from lifesigns.adapters.link import http
from lifesigns.adapters.link.http_connection import HttpConnection, Target
from lifesigns.core.signals import BeatReceived
from lifesigns.errors import AdapterError


@asynccontextmanager
async def answering(answer: Callable[[int], bytes]) -> AsyncIterator[tuple[str, list[int]]]:
    """A server that reads one request of each connection, answers with `answer` of its number, and then reads nothing
    more, but does not hang up. Its address, and the numbers of the connections so far."""
    connections: list[int] = []
    over = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connections.append(len(connections) + 1)
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            (line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), b":0"
        )
        await reader.readexactly(int(length.partition(b":")[2]))
        writer.write(answer(connections[-1]))
        await writer.drain()
        await over.wait()
        writer.transport.abort()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", connections
    finally:
        over.set()
        server.close()


@pytest.mark.parametrize("connection", ["close", "Keep-Alive, Close", "upgrade,close"])
async def test_a_connection_that_the_server_will_close_is_not_used_again(connection: str) -> None:
    reply = f"HTTP/1.1 200 OK\r\nConnection: {connection}\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    async with answering(lambda _: reply) as (url, connections):
        http = HttpConnection(Target.of(url), None)
        try:
            for _ in range(2):
                assert (await http.ask("GET", "/", answer_for=2.0)).status == 200
        finally:
            http.close()
        assert connections == [1, 2]


async def test_the_log_of_refusals_has_an_end(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A hub that gives another reason every time must not fill the agent's log."""
    monkeypatch.setattr(http, "COMPLAINTS_MAX", 3)

    def refusal(number: int) -> bytes:
        body = f'{{"detail": "reason {number}"}}'
        head = f"HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: {len(body)}\r\n\r\n"
        return f"{head}{body}".encode()

    async with answering(refusal) as (url, _):
        link = http.HttpLink(url)
        with caplog.at_level(logging.ERROR, "lifesigns"):
            for _ in range(8):
                with pytest.raises(AdapterError):
                    await link.carry_beats([BeatReceived("a", seq=1, sent_at=1.0)])
        await link.close()
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 4
    assert all(f"reason {number}" in line for number, line in enumerate(lines[:3], 1))
    assert lines[3].endswith("further new refusals are not logged")
