"""A delivery with agents of several slots: each hub takes its part, the sender gets one receipt, and nothing is lost or counted
twice while a slot is away."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest

from lifesigns.adapters.signing.agent_key import new_key, signer_of
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.hub.principals import Role
from lifesigns.hub.slots import SLOTS, slot_of
from lifesigns.wire.signed import Seal
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import until
from tests.web.slots_in_process import SlotsHub, hubs_in_slots

CREW = [f"w-{n}" for n in range(40)]
BEATS, SIGNALS = "/api/v1/beats", "/api/v1/signals"
AWAY = 5


@pytest.fixture
async def hubs(tmp_path: Path) -> AsyncIterator[list[SlotsHub]]:
    async with hubs_in_slots(tmp_path) as both:
        yield both


@pytest.fixture
async def alone() -> AsyncIterator[RunningHub]:
    async with running_hub() as one:
        yield one


def errors_of(hubs: Sequence[SlotsHub]) -> dict[str, int]:
    """By agent: the errors that its hub has heard of."""
    found: dict[str, int] = {}
    for hub in hubs:
        for slot, service in hub.services.items():
            for name, agent in service.engine.beliefs.agents.items():
                assert slot_of(name) == slot, "each is known in its own slot only"
                found[name] = 0 if agent.outcomes is None else agent.outcomes.errors
    return found


def an_error_each(crew: Sequence[str] = CREW) -> list[dict[str, Any]]:
    return [{"type": "error", "agent_id": name, "message": "it broke"} for name in crew]


MIXED: list[Any] = [
    *({"agent_id": name, "load": 0.5} for name in CREW[:5]),
    {"agent_id": "w-5", "load": "much"},
    {"load": 0.5},
    {"worker_id": "w-6", "health_status": "ok"},
    {"agentId": "w-7"},
    17,
    [{"agent_id": "w-8"}],
    {"agent_id": "what is this?"},
    {"agent_id": 5},
    {"agent_id": None, "worker_id": "w-9"},
    *({"agent_id": name} for name in CREW[10:]),
]


@pytest.mark.parametrize("form", ["array", "lines", "msgpack", "lines with a broken one"])
async def test_the_receipt_is_the_one_that_one_hub_gives(
    hubs: list[SlotsHub], alone: RunningHub, form: str
) -> None:
    """Whatever is wrong with some messages of it, and in whatever form they come."""
    encode = msgspec.msgpack.encode if form == "msgpack" else msgspec.json.encode
    if form.startswith("lines"):
        each = [encode(one) for one in MIXED]
        if form != "lines":
            each.insert(7, b'{"agent_id": "w-3", "load": ')
        body = b"\n".join(each)
    else:
        body = encode(MIXED)
    expected = (await alone.http.post(BEATS, content=body)).json()
    for hub in hubs:
        found = await hub.post(BEATS, body)
        assert (found.status_code, found.json()) == (202, expected)
    heard = errors_of(hubs)
    assert {*heard} == {*alone.service.engine.beliefs.agents}


async def test_what_one_may_not_say_is_rejected_in_its_place(hubs: list[SlotsHub]) -> None:
    token = await hubs[0].token_for(Role.AGENT, "some-*")
    body = [{"agent_id": name} for name in ("some-1", "w-1", "some-2", "w-2", "w-3", "some-3")]
    for hub in hubs:
        found = (await hub.post(BEATS, body, token)).json()
        assert (found["accepted"], [one["index"] for one in found["rejected"]]) == (3, [1, 3, 4])
        refused = await hub.post(BEATS, body[3:5], token)
        assert refused.status_code == 400
        assert refused.json()["detail"].endswith("so are 1 more: nothing was accepted")


async def test_a_whole_that_cannot_be_told_apart_is_refused_as_one_hub_refuses_it(
    hubs: list[SlotsHub], alone: RunningHub
) -> None:
    for body in (b"", b"[", b"[]", b"\xff\xff", b'[{"agent_id": "w-1"},', b"[" + b"1," * 10_001 + b"1]"):
        expected = await alone.http.post(BEATS, content=body)
        for hub in hubs:
            found = await hub.post(BEATS, body)
            assert (found.status_code, found.json().get("detail")) == (
                expected.status_code,
                expected.json().get("detail"),
            ), body[:30]


async def test_orders_for_all_of_them_come_with_the_receipt(hubs: list[SlotsHub]) -> None:
    await hubs[0].post(BEATS, [{"agent_id": name} for name in CREW])
    for name in CREW[:12]:
        assert (await hubs[1].post(f"/api/v1/agents/{name}/nudge", {"message": "?"})).status_code == 202
    found = (await hubs[0].post(BEATS, [{"agent_id": name} for name in CREW])).json()
    assert {*CREW[:12]} <= {*found["orders"]}


async def test_beats_are_heard_where_somebody_judges_and_come_again(hubs: list[SlotsHub]) -> None:
    hub = hubs[0]
    hub.site.sites[AWAY], there = None, hub.site.sites[AWAY]
    body = [{"agent_id": name} for name in CREW]
    found = await hub.post(BEATS, body)
    assert (found.status_code, found.headers["retry-after"]) == (503, "1")
    assert {*errors_of(hubs)} == {name for name in CREW if slot_of(name) != AWAY}
    hub.site.sites[AWAY] = there
    assert (await hub.post(BEATS, body)).json()["accepted"] == len(CREW)
    assert {*errors_of(hubs)} == {*CREW}


async def test_reports_with_a_key_count_once_however_often_they_come(hubs: list[SlotsHub]) -> None:
    hub = hubs[0]
    hub.site.sites[AWAY], there = None, hub.site.sites[AWAY]
    for _ in range(3):
        assert (await hub.post(SIGNALS, an_error_each(), Idempotency_Key="me/1")).status_code == 503
    hub.site.sites[AWAY] = there
    found = await hubs[1].post(SIGNALS, an_error_each(), Idempotency_Key="me/1")
    assert (found.status_code, found.json()["accepted"]) == (202, len(CREW))
    assert errors_of(hubs) == dict.fromkeys(CREW, 1)


async def test_a_key_is_one_of_the_whole_delivery(hubs: list[SlotsHub]) -> None:
    """Also of what nobody can read in it; with another delivery it is refused by every slot that has another part."""
    said = [*an_error_each(), {"type": "error"}, "?"]
    for hub in (*hubs, *hubs):
        found = await hub.post(SIGNALS, said, Idempotency_Key="me/1")
        assert (found.status_code, found.json()["accepted"]) == (202, len(CREW))
        assert [one["index"] for one in found.json()["rejected"]] == [len(CREW), len(CREW) + 1]
    assert errors_of(hubs) == dict.fromkeys(CREW, 1)
    assert (await hubs[1].post(SIGNALS, an_error_each(CREW[3:]), Idempotency_Key="me/1")).status_code == 422


async def test_reports_without_a_key_are_refused_before_anybody_has_taken_one(hubs: list[SlotsHub]) -> None:
    hub = hubs[0]
    hub.site.sites[AWAY], there = None, hub.site.sites[AWAY]
    found = await hub.post(SIGNALS, an_error_each())
    assert found.status_code == 503
    assert "none of this was taken" in found.json()["detail"]
    assert errors_of(hubs) == {}
    hub.site.sites[AWAY] = there
    assert (await hub.post(SIGNALS, an_error_each())).status_code == 202
    assert errors_of(hubs) == dict.fromkeys(CREW, 1)


@pytest.mark.parametrize("asked", [0, 1])
async def test_of_reports_without_a_key_those_that_nobody_takes_are_named(
    hubs: list[SlotsHub], asked: int
) -> None:
    """Another hub has taken over a slot, which the one that is asked does not know yet."""
    hub, judge = hubs[asked], hubs[1]
    await hub.post(BEATS, [{"agent_id": name} for name in CREW])
    await MemoryStore(judge.stores[AWAY]).open(epoch_min=2**50)
    deposed = judge.services[AWAY].hub
    deposed.committer.request_commit()
    await until(lambda: deposed.is_replaced)
    found = await hub.post(SIGNALS, an_error_each())
    assert found.status_code == 202
    not_heard = [n for n, name in enumerate(CREW) if slot_of(name) == AWAY]
    assert [one["index"] for one in found.json()["rejected"]] == not_heard
    assert all("send it again" in one["detail"] for one in found.json()["rejected"])
    assert found.json()["accepted"] == len(CREW) - len(not_heard)
    assert {name for name, errors in errors_of(hubs).items() if not errors} == {CREW[n] for n in not_heard}


async def test_a_part_for_the_wrong_slot_is_rejected_and_not_dropped(hubs: list[SlotsHub]) -> None:
    """Whoever names a slot by himself."""
    wrong = next(slot for slot in range(SLOTS) if slot != slot_of("w-1"))
    found = await hubs[0].post(BEATS, [{"agent_id": "w-1"}], lifesigns_slot=str(wrong))
    assert found.status_code == 400
    assert "another slot" in found.json()["detail"]
    for unknown in ("8", "-1", "x", "9" * 5000):
        taken = await hubs[0].post(BEATS, [{"agent_id": "w-1"}], lifesigns_slot=unknown)
        assert taken.status_code == 202


async def test_what_is_signed_goes_whole_to_each_hub_and_each_takes_its_own(hubs: list[SlotsHub]) -> None:
    """One signature is over all of it."""
    key = signer_of(new_key())
    about = {"public_key": key.public.hex(), "name": "k", "agents": "w-*"}
    assert (await hubs[0].post("/api/v1/keys", about)).status_code == 201
    for hub in hubs:
        await hub.access.tokens.load()
    seal = Seal(key)
    body = msgspec.json.encode([*({"agent_id": name} for name in CREW), {"agent_id": "x"}, {}])
    found = (await hubs[1].post(BEATS, seal.signed(body))).json()
    assert (found["accepted"], [one["index"] for one in found["rejected"]]) == (40, [40, 41])
    assert {*errors_of(hubs)} == {*CREW}
    changed = await hubs[0].post(BEATS, seal.signed(body).replace(b"w-1", b"w-9"))
    assert changed.status_code == 400
