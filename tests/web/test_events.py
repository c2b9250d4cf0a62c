"""Live events: nothing is missed, nothing is told twice, nobody is hurt by others."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.errors import AdapterError
from lifesigns.hub import feed
from lifesigns.hub.principals import Role
from lifesigns.ports import Event
from lifesigns.web import events
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import Ear, listening, until


async def wait_for_human(hub: RunningHub, agent_id: str) -> None:
    """Something happens that people are told."""
    for doing in ("working", "waiting_for_human"):
        answer = await hub.post("/api/v1/signals", {"type": "doing", "agent_id": agent_id, "doing": doing})
        assert answer.status_code == 202, answer.text


async def newest(hub: RunningHub) -> int:
    return (await hub.service.store.events(newest_first=True, limit=1))[0].id


async def collect(ear: Ear, last: int) -> list[int]:
    """Ids up to this one."""
    ids: list[int] = []
    while not ids or ids[-1] < last:
        told = await ear.next()
        assert told is not None
        assert told.id is not None
        ids.append(told.id)
    return ids


async def test_what_happens_is_told_as_it_happens(hub: RunningHub) -> None:
    async with listening(hub.url, hub.token) as ear:
        assert ear.headers["content-type"] == "text/event-stream"
        assert ear.retry_after_ms == 2000
        await wait_for_human(hub, "coder-7")
        told = await ear.next()
        while told is not None and told.type != "NEEDS_HUMAN":
            told = await ear.next()
        assert told is not None
        assert told.id == told.event["id"] > 0
        assert told.event["agent_id"] == "coder-7"
        assert told.data["reason"] == "waiting_for_human"


async def test_without_an_id_it_begins_with_what_happens_from_now_on(hub: RunningHub) -> None:
    await wait_for_human(hub, "before")
    async with listening(hub.url, hub.token) as ear:
        await wait_for_human(hub, "after")
        told = await ear.next()
        assert told is not None
        assert told.event["agent_id"] == "after"


async def test_types_and_agent_choose(hub: RunningHub) -> None:
    async with (
        listening(hub.url, hub.token, "?types=NEEDS_HUMAN,HUB_BLIND") as by_type,
        listening(hub.url, hub.token, "?agent=b") as by_agent,
    ):
        await wait_for_human(hub, "a")
        await wait_for_human(hub, "b")
        told = [await by_type.next(), await by_type.next()]
        assert [one and (one.type, one.event["agent_id"]) for one in told] == [
            ("NEEDS_HUMAN", "a"),
            ("NEEDS_HUMAN", "b"),
        ]
        of_b = await by_agent.next()
        assert of_b is not None
        assert of_b.event["agent_id"] == "b"


@pytest.mark.parametrize("path", ["/api/v1/events", "/api/v1/events/list"])
async def test_a_type_that_does_not_exist_is_refused(hub: RunningHub, path: str) -> None:
    """Whoever misspells it would wait for it for ever."""
    refused = await hub.get(path, types="NEEDS_HUMAN,AGENT_TERMINATD")
    assert refused.status_code == 400
    assert (refused.json()["field"], refused.json()["detail"]) == (
        "types",
        "'AGENT_TERMINATD' is unknown; did you mean AGENT_TERMINATED?",
    )


async def test_beats_are_told_only_to_those_who_ask(hub: RunningHub) -> None:
    """There are as many as there are beats; and they have no id, because they are not kept."""
    async with listening(hub.url, hub.token, "?types=AGENT_HEARTBEAT") as ear:
        await hub.post("/api/v1/beats", {"agent_id": "a"})
        told = await ear.next()
        assert told is not None
        assert (told.id, told.type, told.event["agent_id"]) == (None, "AGENT_HEARTBEAT", "a")
        assert "source" not in told.event["data"]  # A token's id is nobody's business.


async def test_a_quiet_stream_says_that_it_lives(hub: RunningHub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(events, "KEEP_ALIVE_EVERY", 0.05)
    async with listening(hub.url, hub.token, "?agent=nobody") as ear:
        waiting = asyncio.create_task(ear.next())
        await until(lambda: ear.comments >= 2)
        waiting.cancel()


# --- coming again -------------------------------------------------------------------------------------


async def test_who_comes_again_gets_what_it_missed_across_a_restart(tmp_path: Path) -> None:
    """The law: every event once, in order, whatever ends in between."""
    path = tmp_path / "lifesigns.db"
    async with running_hub(SqliteStore(path)) as hub:
        async with listening(hub.url, hub.token, "?after=0") as ear:
            await wait_for_human(hub, "a")
            seen = await collect(ear, await newest(hub))
        await wait_for_human(hub, "missed")
    async with running_hub(SqliteStore(path)) as hub, listening(hub.url, hub.token, last=seen[-1]) as ear:
        await wait_for_human(hub, "b")
        seen += await collect(ear, await newest(hub))
    assert seen == list(range(1, seen[-1] + 1))


class Slow(MemoryStore):
    """Takes its time to read, as a disk does: meanwhile things happen."""

    async def events(self, **asked: Any) -> Sequence[Event]:
        await asyncio.sleep(0.01)
        found = await super().events(**asked)
        await asyncio.sleep(0.01)
        return found


async def test_nothing_is_lost_or_doubled_while_much_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listeners who come again in the middle of it, reading small pages while events pour in."""
    monkeypatch.setattr(events, "PAGE", 20)
    async with running_hub(Slow()) as hub:
        await wait_for_human(hub, "first")
        stop = asyncio.Event()

        async def pour() -> None:
            n = 0
            while not stop.is_set():
                n += 1
                await wait_for_human(hub, f"agent-{n % 50}")

        pouring = asyncio.create_task(pour())
        try:
            for _ in range(5):
                async with listening(hub.url, hub.token, last=1) as ear:
                    ids = await collect(ear, await newest(hub) + 50)
                    assert ids == list(range(2, ids[-1] + 1))
        finally:
            stop.set()
            await pouring


async def test_an_id_that_is_too_old_is_told_of_the_gap(hub: RunningHub) -> None:
    for agent_id in ("a", "b"):
        await wait_for_human(hub, agent_id)
    kept = (await hub.service.store.events(after=2))[0]
    await hub.service.store.forget(hub.service.clock(), keep_for=hub.service.clock() - kept.at)
    async with listening(hub.url, hub.token, last=1) as ear:
        gap, first = await ear.next(), await ear.next()
        assert gap is not None
        assert first is not None
        assert (gap.id, gap.type) == (None, "GAP")
        assert str(first.id) in gap.data["reason"]


@pytest.mark.parametrize("last", [10**9, "from-elsewhere", "-3", "9" * 40])
async def test_an_id_of_another_store_begins_anew_and_says_so(hub: RunningHub, last: str | int) -> None:
    """A browser that gets an error instead would never come again."""
    await wait_for_human(hub, "before")
    async with listening(hub.url, hub.token, last=last) as ear:
        gap = await ear.next()
        assert gap is not None
        assert gap.type == "GAP"
        await wait_for_human(hub, "after")
        told = await ear.next()
        assert told is not None
        assert told.event["agent_id"] == "after"


async def test_a_store_that_cannot_be_read_is_a_gap_and_the_stream_goes_on() -> None:
    class Broken(MemoryStore):
        async def events(self, **asked: Any) -> list[Event]:
            raise AdapterError("it is away")

    async with running_hub(Broken()) as hub, listening(hub.url, hub.token, last=1) as ear:
        gap = await ear.next()
        assert gap is not None
        assert gap.type == "GAP"
        await wait_for_human(hub, "a")
        assert await ear.next() is not None


# --- endings ------------------------------------------------------------------------------------------


async def test_who_hangs_up_is_forgotten_at_once(hub: RunningHub) -> None:
    async with listening(hub.url, hub.token):
        assert len(hub.service.feed) == 1
    await until(lambda: len(hub.service.feed) == 0)


async def test_a_listener_that_is_too_slow_is_cut_off_and_the_others_are_not(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed, "WAITING_MAX", 50)
    big = b'{"text":"' + b"x" * 100_000 + b'"}'
    async with listening(hub.url, hub.token) as slow, listening(hub.url, hub.token) as quick:
        for n in range(1, 400):
            hub.service.feed.publish([Event(n, 0.0, "BIG", "", big)])
            told = await quick.next()
            assert told is not None
            assert told.id == n
            if len(hub.service.feed) == 1:
                break
        ids = []
        while (told := await slow.next()) is not None:
            ids.append(told.id)
        assert ids == list(range(1, len(ids) + 1))
        assert len(ids) < 399
        await until(lambda: len(hub.service.feed) == 1)


async def test_the_stream_ends_when_the_hub_stops() -> None:
    async with AsyncExitStack() as stack:
        async with running_hub() as hub:
            ear = await stack.enter_async_context(listening(hub.url, hub.token))
            before = asyncio.get_running_loop().time()
        assert asyncio.get_running_loop().time() - before < 4
        assert await ear.next() is None


async def test_a_revoked_token_hears_no_more(hub: RunningHub) -> None:
    token = await hub.token_for(Role.VIEWER)
    async with listening(hub.url, token) as ear:
        (made,) = [kept for kept in hub.service.access.tokens.list() if kept.role == "viewer"]
        await hub.service.access.tokens.revoke(made.id, hub.service.clock())
        await wait_for_human(hub, "a")
        assert await ear.next() is None


async def test_a_thousand_listen_and_the_next_is_told_to_come_later(hub: RunningHub) -> None:
    async with AsyncExitStack() as stack:
        ears: list[Ear] = []
        tokens = [await hub.token_for(Role.VIEWER) for _ in range(5)]  # Each may have 200 of them.
        for n in range(feed.LISTENERS_MAX):
            address = f"127.0.0.{1 + n % 4}"
            ears.append(await stack.enter_async_context(listening(hub.url, tokens[n % 5], address=address)))
        async with listening(hub.url, hub.token, address="127.0.0.5") as late:
            assert late.status == 503
            assert late.headers["retry-after"] == "10"
        began_at = asyncio.get_running_loop().time()
        await wait_for_human(hub, "a")
        told = await asyncio.gather(*(ear.next() for ear in ears))
        assert {one.id for one in told if one} == {1}
        assert asyncio.get_running_loop().time() - began_at < 10
    await until(lambda: len(hub.service.feed) == 0)


async def test_to_ask_what_there_would_be_does_not_wait_for_it(hub: RunningHub) -> None:
    answer = await hub.http.head("/api/v1/events", timeout=10)
    assert answer.status_code == 200
    assert len(hub.service.feed) == 0


# --- pages --------------------------------------------------------------------------------------------


async def test_scripts_read_pages(hub: RunningHub) -> None:
    for agent_id in ("a", "b", "c"):
        await wait_for_human(hub, agent_id)
    last = await newest(hub)
    ids: list[int] = []
    after: int | None = 0
    while after is not None:
        page = (await hub.get("/api/v1/events/list", after=after, limit=2)).json()
        ids += [event["id"] for event in page["events"]]
        after = page["after"]
    assert ids == list(range(1, last + 1))
    only = (await hub.get("/api/v1/events/list", types="NEEDS_HUMAN", agent="b")).json()["events"]
    assert [(event["type"], event["agent_id"]) for event in only] == [("NEEDS_HUMAN", "b")]


async def test_a_bad_question_names_its_field(hub: RunningHub) -> None:
    for query, field in (("after=x", "after"), ("after=-1", "after"), ("agent=no%20spaces", "agent")):
        answer = await hub.http.get(f"/api/v1/events/list?{query}")
        assert (answer.status_code, answer.json()["field"]) == (400, field)
