"""Messages between agents over HTTP: sent, listed, acknowledged."""

import httpx2
import pytest

from lifesigns.config.load import defaults
from lifesigns.hub.principals import Role
from lifesigns.web.ai_maestro.door import answering
from tests.hub.faulty_store import FaultyStore
from tests.web.hub import RunningHub, running_hub
from tests.web.listening import until

PLACE = "/api/v1/messages"


@pytest.fixture(autouse=True)
async def _recipients(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", [{"agent_id": name} for name in "bc"])


async def test_a_message_waits_for_its_acknowledgement(hub: RunningHub) -> None:
    sent = await hub.post(PLACE, {"message_id": "m-1", "agent_id": "a", "to": "b", "priority": "urgent"})
    assert sent.status_code == 202
    assert sent.json()["due_at"] > sent.json()["sent_at"]
    (listed,) = (await hub.get(PLACE)).json()["messages"]
    assert (listed["message_id"], listed["agent_id"], listed["to"]) == ("m-1", "a", "b")
    assert (await hub.post(f"{PLACE}/m-1/ack", {"agent_id": "b"})).status_code == 204
    assert (await hub.get(PLACE)).json()["messages"] == []
    assert (await hub.post(f"{PLACE}/m-1/ack", {"agent_id": "b"})).status_code == 404


async def test_a_message_to_nobody_is_refused(hub: RunningHub) -> None:
    answer = await hub.post(PLACE, {"agent_id": "a", "to": "nobody"})
    assert (answer.status_code, answer.json()["field"]) == (404, "to")
    assert (await hub.get(PLACE)).json()["messages"] == []


async def test_its_sender_may_withdraw_a_message(hub: RunningHub) -> None:
    await hub.post(PLACE, {"message_id": "m-1", "agent_id": "a", "to": "b"})
    async with hub.client(await hub.token_for(Role.AGENT, "b")) as recipient:
        assert (await recipient.delete(f"{PLACE}/m-1")).status_code == 403
    assert (await hub.http.delete(f"{PLACE}/m-1")).status_code == 204
    assert (await hub.get(PLACE)).json()["messages"] == []
    assert (await hub.http.delete(f"{PLACE}/m-1")).status_code == 404


async def test_an_id_is_made_if_there_is_none(hub: RunningHub) -> None:
    ids = {(await hub.post(PLACE, {"agent_id": "a", "to": "b"})).json()["message_id"] for _ in range(2)}
    assert len(ids) == 2


async def test_the_same_message_twice_is_one_and_another_of_its_id_is_refused(hub: RunningHub) -> None:
    first = await hub.post(PLACE, {"message_id": "m-1", "agent_id": "a", "to": "b"})
    again = await hub.post(PLACE, {"message_id": "m-1", "agent_id": "a", "to": "b"})
    assert again.json() == first.json()
    other = await hub.post(PLACE, {"message_id": "m-1", "agent_id": "c", "to": "b"})
    assert (other.status_code, other.json()["field"]) == (409, "message_id")


async def test_only_its_recipient_acknowledges(hub: RunningHub) -> None:
    await hub.post(PLACE, {"message_id": "m-1", "agent_id": "a", "to": "b"})
    answer = await hub.post(f"{PLACE}/m-1/ack", {"agent_id": "c"})
    assert (answer.status_code, answer.json()["field"]) == (409, "agent_id")
    async with hub.client(await hub.token_for(Role.AGENT, "c")) as other:
        assert (await other.post(f"{PLACE}/m-1/ack", json={"agent_id": "b"})).status_code == 403
        assert (await other.post(PLACE, json={"agent_id": "a", "to": "b"})).status_code == 403
    async with hub.client(await hub.token_for(Role.AGENT, "b")) as recipient:
        assert (await recipient.post(f"{PLACE}/m-1/ack", json={"agent_id": "b"})).status_code == 204


async def test_filters_choose(hub: RunningHub) -> None:
    for sender, to, priority in (("a", "b", "low"), ("a", "c", "high"), ("b", "c", "low")):
        await hub.post(PLACE, {"agent_id": sender, "to": to, "priority": priority})
    for query, count in (({"agent": "a"}, 2), ({"to": "c"}, 2), ({"priority": "low"}, 2), ({"limit": 1}, 1)):
        assert len((await hub.get(PLACE, **query)).json()["messages"]) == count


async def test_too_many_open_messages_are_refused(hub: RunningHub) -> None:
    many = [{"type": "message_sent", "agent_id": "a", "message_id": f"m-{n}", "to": "b"} for n in range(1000)]
    await hub.post("/api/v1/signals", many)
    assert (await hub.post(PLACE, {"agent_id": "a", "to": "b"})).status_code == 409


async def test_a_bad_body_names_its_field(hub: RunningHub) -> None:
    for body, field in (
        ({"to": "b"}, "agent_id"),
        ({"agent_id": "a", "to": "b", "priority": "soon"}, "priority"),
        ({"agent_id": "a", "to": 3}, "to"),
    ):
        answer = await hub.post(PLACE, body)
        assert (answer.status_code, answer.json()["field"]) == (400, field)


async def test_what_cannot_be_stored_is_a_timeout() -> None:
    """Over the REST API and at AI Maestro's door: the document's code, and nothing is kept of it."""
    store = FaultyStore()
    async with running_hub(store) as hub, answering(hub.service, defaults(), "127.0.0.1:0") as door:
        await hub.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "b"}])
        store.fail()
        await hub.post("/api/v1/beats", [{"agent_id": "c"}])
        await until(lambda: not hub.service.http_receiver.can_store)
        answer = await hub.post(PLACE, {"agent_id": "a", "to": "b", "content": {"message": "x"}})
        assert (answer.status_code, answer.json()["code"]) == (503, "timeout")
        async with httpx2.AsyncClient(base_url=f"http://{door}", trust_env=False) as maestro:
            message = {"from": "a", "to": "b", "subject": "x", "content": {"type": "task", "message": "x"}}
            refused = await maestro.post("/api/messages", json=message)
            assert (refused.status_code, refused.json()["error"]) == (504, "timeout")
        assert len(hub.service.mailbox) == 0
        store.heal()


async def test_a_content_is_bounded_and_only_its_recipient_may_open_it(hub: RunningHub) -> None:
    much = {"agent_id": "a", "to": "b", "content": {"message": "x" * 70_000}}
    answer = await hub.post(PLACE, much)
    assert (answer.status_code, answer.json()["field"]) == (400, "content")
    await hub.post(PLACE, {"agent_id": "a", "to": "b", "message_id": "m-1", "content": {"message": "secret"}})
    async with hub.client(await hub.token_for(Role.AGENT, "c")) as other:
        assert (await other.get("/api/v1/agents/b/messages")).status_code == 403
        assert (await other.post(f"{PLACE}/m-1/read", json={"agent_id": "c"})).status_code == 404
        assert (await other.post(f"{PLACE}/m-1/read", json={"agent_id": "b"})).status_code == 403
    async with hub.client(await hub.token_for(Role.AGENT, "b")) as recipient:
        opened = await recipient.post(f"{PLACE}/m-1/read", json={"agent_id": "b"})
        assert opened.json()["content"] == {"message": "secret"}
