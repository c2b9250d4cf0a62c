"""Acting on agents over HTTP: once, on record, by name."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import uuid4

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.core.effects import Effect, Intervention, Rung, Stage
from lifesigns.core.signals import Signal
from lifesigns.events import event_of
from lifesigns.hub.feed import Feed
from lifesigns.hub.hub import Hub
from lifesigns.hub.principals import Role
from lifesigns.ports import Commit, Event
from lifesigns.web import history_reader
from lifesigns.web.history_reader import HistoryReader, Interventions
from tests.web.hub import RunningHub, running_hub


async def beating(hub: RunningHub, agent_id: str = "coder-7") -> None:
    await hub.post("/api/v1/beats", {"agent_id": agent_id, "incarnation": "one"})


async def orders(hub: RunningHub, agent_id: str = "coder-7") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = (await hub.get(f"/api/v1/agents/{agent_id}/orders")).json()["orders"]
    return found


async def test_a_nudge_reaches_the_agent_and_says_who_sent_it(hub: RunningHub) -> None:
    await beating(hub)
    answer = await hub.post("/api/v1/agents/coder-7/nudge", {"message": "Are you there?"})
    assert answer.status_code == 202
    record = answer.json()
    assert (record["rung"], record["stage"]) == ("nudge", "ordered")
    assert record["by"] == f"tests ({hub.token.split('_')[1]})"
    (order,) = await orders(hub)
    assert (order["type"], order["order_id"], order["text"]) == ("nudge", record["id"], "Are you there?")


async def test_the_same_key_is_the_same_act(hub: RunningHub) -> None:
    await beating(hub)
    key = {"Idempotency-Key": "k1"}
    first = await hub.post("/api/v1/agents/coder-7/nudge", {"message": "x"}, headers=key)
    await hub.post("/api/v1/agents/coder-7/clear")
    again = await hub.post("/api/v1/agents/coder-7/nudge", {"message": "x"}, headers=key)
    assert again.json()["id"] == first.json()["id"]
    other = await hub.post(
        "/api/v1/agents/coder-7/nudge", {"message": "x"}, headers={"Idempotency-Key": "k2"}
    )
    assert other.json()["id"] != first.json()["id"]


async def test_the_same_key_with_another_body_is_refused(hub: RunningHub) -> None:
    """To answer it with the old act would hide that the new one was never done."""
    await beating(hub)
    path, key = "/api/v1/agents/coder-7/nudge", {"Idempotency-Key": "k #1"}
    first = await hub.post(path, {"message": "x"}, headers=key)
    refused = await hub.post(path, {"message": "y"}, headers=key)
    assert (refused.status_code, refused.json()["field"]) == (422, "Idempotency-Key")
    assert (await hub.post(path, {"message": "x"}, headers=key)).json()["id"] == first.json()["id"]


async def test_the_same_key_is_the_same_act_when_it_is_over_and_for_another_hub() -> None:
    """Whoever did not get the answer asks again, perhaps much later: nobody is stopped twice, and the receipt is the same."""
    store, key = f"acts-{uuid4()}", {"Idempotency-Key": "k1"}
    path, body = "/api/v1/agents/coder-7/terminate", {"reason": "enough"}
    async with running_hub(MemoryStore(store)) as hub:
        await beating(hub)
        record = (await hub.post(path, body, headers=key)).json()
        done = {"type": "stopped", "agent_id": "coder-7", "incarnation": "one", "order_id": record["id"]}
        await hub.post("/api/v1/signals", done)
        again = await hub.post(path, body, headers=key)
        assert (again.status_code, again.json()["id"], again.json()["stage"]) == (202, record["id"], "done")
        token = hub.token
    async with running_hub(MemoryStore(store)) as hub, hub.client(token) as same:
        assert (await same.post(path, json=body, headers=key)).json()["id"] == record["id"]
        assert (await hub.post(path, body, headers=key)).status_code == 409  # Another's key is another key.


async def test_a_termination_is_asked_for_and_its_outcome_is_on_record(hub: RunningHub) -> None:
    await beating(hub)
    record = (await hub.post("/api/v1/agents/coder-7/terminate", {"reason": "enough"})).json()
    (order,) = await orders(hub)
    assert (order["type"], order["reason"]) == ("stop", "enough")
    done = {"type": "stopped", "agent_id": "coder-7", "incarnation": "one", "order_id": record["id"]}
    assert (await hub.post("/api/v1/signals", done)).json()["accepted"] == 1
    record = (await hub.get(f"/api/v1/interventions/{record['id']}")).json()
    assert (record["stage"], record["open"]) == ("done", False)
    assert [stage["stage"] for stage in record["stages"]] == ["ordered", "done"]
    assert (await hub.get("/api/v1/agents/coder-7")).json()["state"] == "terminated"
    refused = await hub.post("/api/v1/agents/coder-7/terminate", {"reason": "again"})
    assert refused.status_code == 409


async def test_the_first_decision_about_an_escalation_counts(hub: RunningHub) -> None:
    """Two people who answer the same question must not override each other unseen. The same one again is the same one."""
    await beating(hub)
    record = (await hub.post("/api/v1/agents/coder-7/escalate", {"reason": "odd"})).json()
    listed = (await hub.get("/api/v1/interventions", rung="escalate", open=True)).json()["interventions"]
    assert [one["id"] for one in listed] == [record["id"]]
    path = f"/api/v1/escalations/{record['id']}/decision"
    assert (await hub.post(path, {"decision": "perhaps"})).status_code == 400
    decided = await hub.post(path, {"decision": "ignore", "note": "it is fine"})
    assert decided.json()["stage"] == "answered"
    again = await hub.post(path, {"decision": "ignore", "note": "it is fine"})
    assert (again.status_code, len(again.json()["stages"])) == (202, 2)
    refused = await hub.post(path, {"decision": "terminate"})
    assert refused.status_code == 409
    assert "decided 'ignore'" in refused.json()["detail"]


async def test_pause_resume_and_clear_are_on_record(hub: RunningHub) -> None:
    await beating(hub)
    paused = await hub.post("/api/v1/agents/coder-7/pause", {"for": 600})
    assert paused.json()["paused"] is True
    assert (await hub.post("/api/v1/agents/coder-7/resume")).json()["paused"] is False
    await hub.post("/api/v1/agents/coder-7/clear")
    await hub.service.hub.committer.wait_until_stored()
    events = await hub.service.store.events(types=("AGENT_PAUSED", "AGENT_RESUMED", "AGENT_CLEARED"))
    assert [event.type for event in events] == ["AGENT_PAUSED", "AGENT_RESUMED", "AGENT_CLEARED"]
    assert all(b'"by":"tests (' in event.data for event in events)


async def test_a_viewer_cannot_act_and_nobody_acts_on_the_unknown(hub: RunningHub) -> None:
    await beating(hub)
    async with hub.client(await hub.token_for(Role.VIEWER)) as viewer:
        answer = await viewer.post("/api/v1/agents/coder-7/terminate", json={"reason": "x"})
        assert answer.status_code == 403
    assert (await hub.post("/api/v1/agents/nobody/nudge")).status_code == 404
    assert (await hub.post("/api/v1/agents/coder-7/terminate", {})).json()["field"] == "reason"


async def test_an_agent_that_answers_at_once_does_not_take_the_receipt_away(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The act was kept and carried out, and its outcome heard before its request was answered: the person gets its record,
    not a refusal."""
    receiver, keep = hub.service.http_receiver, hub.service.http_receiver.store_reports

    async def keep_and_hear_back(words: Sequence[Signal]) -> Sequence[Effect]:
        led_to = await keep(words)
        monkeypatch.undo()
        order = (await orders(hub))[-1]
        outcome = {"nudge": "nudge_answered", "stop": "stopped"}[order["type"]]
        said = {"nudge_id": order["order_id"], "order_id": order["order_id"], "answer": "progress"}
        await hub.post(
            "/api/v1/signals", {"type": outcome, "agent_id": "coder-7", "incarnation": "one", **said}
        )
        return led_to

    await beating(hub)
    for act, body, stage in (
        ("nudge", {"message": "Yes."}, "answered"),
        ("terminate", {"reason": "enough"}, "done"),
    ):
        monkeypatch.setattr(receiver, "store_reports", keep_and_hear_back)
        answer = await hub.post(f"/api/v1/agents/coder-7/{act}", body)
        assert (answer.status_code, answer.json().get("stage")) == (202, stage), answer.json()


async def test_what_a_request_became_is_known_without_reading_the_events(
    hub: RunningHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are read once; from then on what is kept is told, and a request's key is looked up."""
    await beating(hub)
    assert (await hub.get("/api/v1/interventions")).json() == {"interventions": []}

    async def no_events(**_: object) -> Sequence[Event]:
        raise AssertionError("the event log was read")

    monkeypatch.setattr(hub.service.store, "events", no_events)
    sent = [
        hub.http.post("/api/v1/agents/coder-7/nudge", headers={"Idempotency-Key": "k-1"}) for _ in range(2)
    ]
    first, second = await asyncio.gather(*sent)
    again = await hub.http.post("/api/v1/agents/coder-7/nudge", headers={"Idempotency-Key": "k-1"})
    assert [one.status_code for one in (first, second, again)] == [202, 202, 202]
    assert {one.json()["id"] for one in (first, second, again)} == {first.json()["id"]}
    shown = (await hub.get("/api/v1/interventions")).json()["interventions"]
    assert [one["id"] for one in shown] == [first.json()["id"]]


class SlowStore(MemoryStore):
    """Events that are read are on their way until they are let go."""

    def __init__(self) -> None:
        super().__init__()
        self.asked, self.let_go = asyncio.Event(), asyncio.Event()

    async def events(self, **which: Any) -> Sequence[Event]:
        found = await super().events(**which)
        self.asked.set()
        await self.let_go.wait()
        return found


async def test_what_happens_while_the_past_is_read_is_in_it_once() -> None:
    store, feed = SlowStore(), Feed()
    past = HistoryReader(Hub(store), feed)
    await store.open()
    ordered = [event_of(n, Intervention(1.0, "a", f"1-{n}", Rung.NUDGE, Stage.ORDERED, 1)) for n in (1, 2, 3)]
    await store.commit(Commit(1, events=ordered[:2]))
    feed.publish(ordered[:1])
    reading = asyncio.create_task(past.interventions())
    await store.asked.wait()
    feed.publish(ordered[1:])
    store.let_go.set()
    register = await reading
    assert [(one.id, len(one.stages)) for one in register.newest(9)] == [("1-3", 1), ("1-2", 1), ("1-1", 1)]


def test_of_old_requests_nothing_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """A request may have become several interventions, and an intervention several steps."""
    monkeypatch.setattr(history_reader, "REMEMBERED_MAX", 3)
    register = Interventions()
    for n, (agent_id, key) in enumerate([("a", "k1"), ("b", "k2"), ("b", "k1"), ("b", "k1"), ("c", "")]):
        fact = Intervention(1.0, agent_id, f"1-{n}", Rung.BREAKER, Stage.ORDERED, 1, by="eva", key=key)
        register.note([event_of(n, fact)])
    assert [record.id for record in register.newest(9)] == ["1-4", "1-3", "1-2"]
    assert {who: record.id for who, record in register.asked_for(Rung.BREAKER, "eva", "k1").items()} == {
        "b": "1-2"
    }
    assert not register.asked_for(Rung.BREAKER, "eva", "k2")
    assert (len(register._by_request), len(register._requests)) == (1, 1)
