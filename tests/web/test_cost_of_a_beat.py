"""What the web does for a single beat, in calls of functions: a count does not change with the load of the machine."""

from __future__ import annotations

import asyncio
import json
import sys
from types import FrameType
from typing import Any

import pytest
from uvicorn import Config
from uvicorn.server import ServerState

from lifesigns.hub.principals import Role
from lifesigns.web import beat_fast_path
from lifesigns.web.access import headers_of
from lifesigns.web.connection import Connection
from lifesigns.web.connections import Connections
from tests.web.hub import RunningHub
from tests.web.test_at_once import answer_on, beat, lines_to, request

CALLS_MAX = 42
"""Of Python and C together, for each of many beats in one round: 37, and 39 for an agent's token. It was 51 when each head was read and each exchange had an event of its own."""

LINES = 32


class Taken(asyncio.Transport):
    """Takes every answer at once."""

    def __init__(self) -> None:
        super().__init__({"sockname": ("127.0.0.1", 1), "peername": ("127.0.0.1", 2)})
        self.answers = 0

    def write(self, data: Any) -> None:
        assert data.startswith(b"HTTP/1.1 202 ")
        self.answers += 1

    def is_closing(self) -> bool:
        return False

    def get_write_buffer_size(self) -> int:
        return 0

    def close(self) -> None:
        pass


@pytest.mark.parametrize("role", [Role.ADMIN, Role.AGENT])
async def test_a_single_beat_takes_few_calls(hub: RunningHub, role: Role) -> None:
    token = await hub.token_for(role, "a-*" if role is Role.AGENT else "")
    hub.service.hub.shares.share = 1e6  # How long it takes is of no interest here, also on a busy machine.
    config = Config(hub.web, lifespan="off", log_config=None, ws="none", proxy_headers=False)
    others, state, loop = Connections(), ServerState(), asyncio.get_running_loop()
    connections = [Connection(others, config, state, {}, loop) for _ in range(LINES)]
    transports = [Taken() for _ in connections]
    for connection, transport in zip(connections, transports, strict=True):
        connection.connection_made(transport)

    async def one_round(seq: int) -> int:
        requests = [
            unnamed(
                request(token, json.dumps({"agent_id": f"a-{n}", "seq": seq, "incarnation": "one"}).encode())
            )
            for n in range(LINES)
        ]
        counted = 0

        def count(frame: FrameType, event: str, _arg: object) -> None:
            nonlocal counted
            counted += event in ("call", "c_call") and _is_web(frame.f_code.co_filename)

        sys.setprofile(count)
        try:
            for connection, wanted in zip(connections, requests, strict=True):
                connection.data_received(wanted)
            await asyncio.sleep(0)
        finally:
            sys.setprofile(None)
        return counted

    for seq in range(1, 20):  # Until their rhythm is known.
        await one_round(seq)
        await asyncio.sleep(0.002)
    least = min([await one_round(seq) for seq in range(20, 30)])
    assert [transport.answers for transport in transports] == [29] * LINES
    assert least / LINES <= CALLS_MAX


def unnamed(request: bytes) -> bytes:
    """As our senders send it: without an id of its own."""
    return request.replace(b"x-request-id: r-1\r\n", b"")


def _is_web(file: str) -> bool:
    """The engine, the journal and the loop are measured elsewhere."""
    return "/lifesigns/web/" in file or "/uvicorn/" in file


async def test_the_head_of_a_connection_is_read_once(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = 0

    def counted(scope: Any) -> Any:
        nonlocal read
        read += 1
        return headers_of(scope)

    monkeypatch.setattr(beat_fast_path, "headers_of", counted)
    async with lines_to(hub, 1) as (line,):
        for seq in (1, 10, 100, 1000):  # The length of the body changes, and that of its head with it.
            line.sendall(request(hub.token, beat("a" * seq.bit_length(), seq)))
            assert (await asyncio.to_thread(answer_on, line))[0] == 202
    assert read == 1
