"""Single beats of one round are answered together: each gets the answer it would get alone, whatever the others are."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from lifesigns.config.values import Limits
from lifesigns.core.signals import NudgeRequested
from lifesigns.hub.principals import Role
from lifesigns.wire import TOGETHER_MAX
from tests.web.hub import RunningHub, running_hub

TAKEN = {"accepted": 1, "rejected": [], "orders": {}}


def request(token: str | None, body: bytes, *more: str, length: int | None = None) -> bytes:
    own = ["x-request-id: r-1"] + ([] if token is None else [f"authorization: Bearer {token}"])
    size = len(body) if length is None else length
    head = ["POST /api/v1/beats HTTP/1.1", "host: 127.0.0.1", f"content-length: {size}", *own, *more]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def beat(agent_id: str, seq: int = 1) -> bytes:
    return json.dumps({"agent_id": agent_id, "seq": seq, "incarnation": "one"}).encode()


def line_to(hub: RunningHub) -> socket.socket:
    line = socket.create_connection(("127.0.0.1", urlsplit(hub.url).port or 0), 10)
    line.settimeout(10)
    return line


@asynccontextmanager
async def lines_to(hub: RunningHub, count: int) -> AsyncIterator[list[socket.socket]]:
    lines = [await asyncio.to_thread(line_to, hub) for _ in range(count)]
    yield lines
    for line in lines:
        line.close()


def answer_on(line: socket.socket) -> tuple[int, Any]:
    """The status and body of the next answer; blocks."""
    status = int(_until(line, b"\r\n").split()[1])
    length = 0
    while field := _until(line, b"\r\n").strip():
        if field.lower().startswith(b"content-length:"):
            length = int(field.partition(b":")[2])
    return status, json.loads(line.recv(length, socket.MSG_WAITALL))


def _until(line: socket.socket, end: bytes) -> bytes:
    """One byte at a time: the next answer may be here already."""
    heard = b""
    while not heard.endswith(end):
        heard += line.recv(1) or pytest.fail(f"closed after {heard!r}")
    return heard


async def in_one_round(hub: RunningHub, requests: Sequence[bytes]) -> list[tuple[int, Any]]:
    """Send them before the hub's loop, which is ours too, gets its next turn; each on a connection of its own."""
    async with lines_to(hub, len(requests)) as lines:
        for line, wanted in zip(lines, requests, strict=True):
            line.sendall(wanted)
        return [await asyncio.to_thread(answer_on, line) for line in lines]


async def test_many_in_one_round_are_all_heard_and_answered(hub: RunningHub) -> None:
    count = 2 * TOGETHER_MAX + 5
    answers = await in_one_round(hub, [request(hub.token, beat(f"a-{n}", n + 1)) for n in range(count)])
    assert answers == [(202, TAKEN)] * count
    for n in (0, TOGETHER_MAX, count - 1):
        shown = (await hub.get(f"/api/v1/agents/a-{n}/heartbeat")).json()
        assert (shown["beat"]["agent_id"], shown["beat"]["seq"]) == (f"a-{n}", n + 1)


async def test_each_gets_the_answer_it_would_get_alone(hub: RunningHub) -> None:
    viewer, agent = await hub.token_for(Role.VIEWER), await hub.token_for(Role.AGENT, "mine-*")
    requests = [
        request(hub.token, beat("before")),
        request(agent, beat("mine-1")),
        request(agent, beat("others")),
        request(viewer, beat("seen")),
        request(None, beat("unknown")),
        request("ls_wrong", beat("guessed")),
        request(hub.token, b'{"agent_id":"broken","x":[1'),
        request(hub.token, b"{}]}"),
        request(hub.token, b'{"agent_id":"no spaces please"}'),
        request(hub.token, beat("one") + b"\n" + beat("two")),
        request(hub.token, beat("page"), "origin: http://evil.example"),
        request(hub.token, beat("rebound"), "host: evil.example"),
        request(hub.token, beat("packed"), "content-encoding: gzip"),
        request(hub.token, beat("after")),
    ]
    together = await in_one_round(hub, requests)
    heard = {agent.id for agent in hub.service.engine.agents()}
    assert heard == {"before", "mine-1", "one", "two", "after"}
    alone = [(await in_one_round(hub, [one]))[0] for one in requests]
    assert together == alone
    assert [status for status, _ in together] == [
        *(202, 202, 400, 403, 401, 401, 400, 400, 400, 202, 403, 400, 400, 202)
    ]


@pytest.mark.parametrize("first", ["x-first: 1", "content-encoding: identity"])
async def test_another_head_on_the_same_connection_is_checked_anew(hub: RunningHub, first: str) -> None:
    """The hub compares heads with the last one that it found good: whatever is different makes it read the whole."""
    viewer, agent = await hub.token_for(Role.VIEWER), await hub.token_for(Role.AGENT, "mine-*")
    good = request(hub.token, beat("good"))
    others = [
        request(viewer, beat("seen")),
        request(agent, beat("others")),
        request(agent, beat("mine-1")),
        request(None, beat("unknown")),
        request("ls_wrong", beat("guessed")),
        request(hub.token[:-1], beat("guessed")),
        request(hub.token, beat("page"), "origin: http://evil.example"),
        request(hub.token, beat("page"), "sec-fetch-site: cross-site"),
        request(hub.token, beat("rebound"), "host: evil.example"),
        request(hub.token, beat("packed"), "content-encoding: gzip"),
        request(hub.token, beat("twice"), f"authorization: Bearer {hub.token}"),
        good.replace(b"host: 127.0.0.1", b"host: evil.example"),
        good.replace(b"host: 127.0.0.1\r\n", b""),
        good.replace(b"authorization: Bearer", b"authorization: Basic"),
    ]
    before = request(hub.token, beat("good"), first)
    for other in others:
        alone = (await in_one_round(hub, [other]))[0]
        async with lines_to(hub, 1) as (line,):
            for good_head in (before, good, good):
                line.sendall(good_head)
                await asyncio.to_thread(answer_on, line)
            line.sendall(other)
            assert await asyncio.to_thread(answer_on, line) == alone, other


async def test_a_token_that_is_revoked_is_refused_on_the_connection_where_it_was_good(
    hub: RunningHub,
) -> None:
    agent = await hub.token_for(Role.AGENT, "a")
    async with lines_to(hub, 1) as (line,):
        for seq in (1, 2):
            line.sendall(request(agent, beat("a", seq)))
            assert await asyncio.to_thread(answer_on, line) == (202, TAKEN)
        await hub.service.access.tokens.revoke(agent.split("_")[1], hub.service.clock())
        line.sendall(request(agent, beat("a", 3)))
        assert (await asyncio.to_thread(answer_on, line))[0] == 401


async def test_a_forged_beat_is_not_shown_as_the_last_one_of_its_victim(hub: RunningHub) -> None:
    agent = await hub.token_for(Role.AGENT, "mine-*")
    answers = await in_one_round(
        hub, [request(hub.token, beat("victim", 7)), request(agent, beat("victim", 666))]
    )
    assert answers[0] == (202, TAKEN)
    assert (answers[1][0], answers[1][1]["field"]) == (400, "agent_id")
    assert (await hub.get("/api/v1/agents/victim/heartbeat")).json()["beat"]["seq"] == 7


async def test_orders_ride_back_to_their_agent_and_to_nobody_else(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "b"}])
    await hub.service.http_receiver.store_reports([NudgeRequested(agent_id="a", by="me", message="hello")])
    answers = await in_one_round(hub, [request(hub.token, beat(name, 2)) for name in ("b", "a", "c")])
    assert [list(body["orders"]) for _, body in answers] == [[], ["a"], []]


async def test_a_request_that_comes_in_pieces_is_answered_as_one_that_does_not(hub: RunningHub) -> None:
    whole = request(hub.token, beat("a"))
    async with lines_to(hub, 1) as (line,):
        for cut in (10, len(whole) - 20, len(whole) - 1):
            line.sendall(whole[:cut])
            await asyncio.sleep(0.05)
            line.sendall(whole[cut:])
            assert await asyncio.to_thread(answer_on, line) == (202, TAKEN)


async def test_requests_sent_ahead_are_answered_in_their_order(hub: RunningHub) -> None:
    async with lines_to(hub, 1) as (line,):
        for n in range(20):
            line.sendall(request(hub.token, beat("a", n + 1)) + request(hub.token, b"["))
            assert (await asyncio.to_thread(answer_on, line))[0] == 202
            assert (await asyncio.to_thread(answer_on, line))[0] == 400


async def test_who_hangs_up_before_its_answer_was_heard_and_hurts_nobody(hub: RunningHub) -> None:
    async with lines_to(hub, 3) as lines:
        for n, line in enumerate(lines):
            line.sendall(request(hub.token, beat(f"a-{n}")))
        lines[1].close()
        assert await asyncio.to_thread(answer_on, lines[0]) == (202, TAKEN)
        assert await asyncio.to_thread(answer_on, lines[2]) == (202, TAKEN)


async def test_an_agent_that_runs_wild_is_asked_to_wait() -> None:
    async with running_hub(limits=Limits(requests_per_second=5)) as hub:
        agent = await hub.token_for(Role.AGENT, "a")
        answers = await in_one_round(hub, [request(agent, beat("a", n + 1)) for n in range(12)])
        assert {status for status, _ in answers} == {202, 429}
        assert sum(status == 202 for status, _ in answers) in (5, 6)


async def test_what_is_answered_at_once_is_counted_as_what_is_not(hub: RunningHub) -> None:
    before = hub.web.site.answered.get(202, 0)
    await in_one_round(hub, [request(hub.token, beat(f"a-{n}")) for n in range(7)])
    assert hub.web.site.answered[202] == before + 7
