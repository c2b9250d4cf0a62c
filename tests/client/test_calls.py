"""Every call of the API, by both clients, against a real hub."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta

import pytest

from lifesigns.client import AsyncClient
from lifesigns.core.health import Doing, Health
from lifesigns.core.signals import AgentRegistered, BeatReceived, Signal
from lifesigns.errors import HubError, UsageError
from tests.web.hub import RunningHub, running_hub


@pytest.fixture
async def hub() -> AsyncIterator[RunningHub]:
    async with running_hub() as running:
        yield running


@pytest.fixture
async def client(hub: RunningHub) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(hub.url, hub.token) as asking:
        yield asking


async def test_a_beat_is_taken_and_the_agent_is_known(client: AsyncClient) -> None:
    receipt = await client.beat("coder/7", status="busy", load=0.4, task_id="t-19", metadata={"k": "v"})
    assert (receipt.accepted, receipt.rejected, receipt.orders) == (1, [], {})
    agent = await client.agent("coder/7")
    assert (agent.agent_id, agent.state, agent.doing) == ("coder/7", Health.HEALTHY, Doing.WORKING)
    assert (agent.load, agent.task_id) == (0.4, "t-19")
    last = await client.heartbeat("coder/7")
    assert last.beat["metadata"] == {"k": "v"}


async def test_of_many_beats_the_bad_one_is_named_and_the_others_count(client: AsyncClient) -> None:
    receipt = await client.beats([{"agent_id": "a"}, {"agent_id": "b", "load": "x"}, {"agent_id": "c"}])
    assert receipt.accepted == 2
    assert [(bad.index, bad.field) for bad in receipt.rejected] == [(1, "load")]


async def test_signals_are_heard(client: AsyncClient) -> None:
    await client.beat("a")
    assert (await client.signal("doing", "a", doing="waiting_for_human")).accepted == 1
    assert (await client.agent("a")).doing is Doing.WAITING_FOR_HUMAN
    words = [{"type": "doing", "agent_id": "a", "doing": "idle"}, {"type": "nonsense", "agent_id": "a"}]
    receipt = await client.signals(words)
    assert (receipt.accepted, len(receipt.rejected)) == (1, 1)
    assert (await client.agent("a")).doing is Doing.IDLE


async def test_agents_are_asked_for_page_by_page(
    client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever iterates sees everybody once, however many pages that takes."""
    monkeypatch.setattr("lifesigns.client.parameters.PAGE_MAX", 7)
    names = [f"agent-{n:02}" for n in range(25)]
    await client.beats([{"agent_id": name, "host": "h"} for name in names])
    assert [agent.agent_id async for agent in client.agents()] == names
    assert [agent.agent_id async for agent in client.agents(limit=9)] == names[:9]
    assert [agent.agent_id async for agent in client.agents(host="h", q="-2")] == names[20:]
    assert [agent async for agent in client.agents(state=["stuck", "failing"])] == []
    assert [agent async for agent in client.agents(limit=0)] == []


async def test_the_neediest_come_first_and_changes_can_be_asked_for(client: AsyncClient) -> None:
    await client.beats([{"agent_id": name} for name in "abc"])
    await client.signal("doing", "b", doing="waiting_for_human")
    page = await client.agent_list(sort="need", limit=2)
    assert page.agents[0].agent_id == "b"
    await client.beat("c")
    changed = await client.agent_list(since=page.updated)
    assert "c" in [agent.agent_id for agent in changed.agents]


@pytest.mark.parametrize("said", [BeatReceived(agent_id="a"), AgentRegistered(agent_id="a", role="coder")])
async def test_what_waited_for_the_engine_is_a_change_when_it_is_heard(
    hub: RunningHub, client: AsyncClient, said: Signal
) -> None:
    """It came before somebody asked, and was heard after that: who asks again is told."""
    await client.beats([{"agent_id": name} for name in "ab"])
    came_at = hub.service.clock()
    await client.beat("b")
    page = await client.agent_list()
    hub.service.hub.hear([said], at=came_at)
    changed = await client.agent_list(since=page.updated)
    assert "a" in [agent.agent_id for agent in changed.agents]


async def test_history_has_what_happened(client: AsyncClient) -> None:
    await client.beat("a")
    await client.signal("left", "a", reason="done")
    history = await client.history("a", for_="10m")
    assert {point.to for point in history.points if hasattr(point, "to")} >= {Health.TERMINATED}
    now = datetime.now(UTC)
    earlier = await client.history("a", from_=now - timedelta(hours=3), to=now - timedelta(hours=2))
    assert earlier.points == ()
    with pytest.raises(UsageError, match="time zone"):
        await client.history("a", from_=now.replace(tzinfo=None))


async def test_an_agent_from_close_by_and_recoveries(client: AsyncClient) -> None:
    call = {"type": "tool_finished", "agent_id": "a", "tool": "grep", "args": "x", "result": "y"}
    await client.signals([{**call, "call_id": str(n)} for n in range(3)])
    assert [one.in_a_row for one in (await client.calls("a")).calls] == [1, 2, 3]
    assert (await client.rhythm("a")).beats == 0
    found = await client.recoveries(for_="1d", limit=5)
    assert (found.active, found.steps, found.success_rate) == ((), (), None)


async def test_orders_are_fetched_and_acknowledged(hub: RunningHub, client: AsyncClient) -> None:
    await client.beat("a")
    assert (await client.orders("a")).orders == []
    assert (await client.orders_of(["a", "b"], wait=0.05)).orders == {}
    with pytest.raises(HubError, match="no order 'o-1'") as refused:
        await client.ack_order("a", "o-1")
    assert (refused.value.status, refused.value.transient) == (404, False)


async def test_the_fleet_and_the_probes(client: AsyncClient) -> None:
    await client.beats([{"agent_id": "a"}, {"agent_id": "b", "doing": "idle"}])
    fleet = await client.fleet()
    assert (fleet.agents, fleet.states[Health.HEALTHY], fleet.doing[Doing.IDLE]) == (2, 2, 1)
    assert fleet.hub.store == "ok"
    assert (await client.health()).status == "ok"
    assert (await client.ready()).status == "ok"
    assert "lifesigns_agents" in await client.metrics()


async def test_breakers_are_listed(client: AsyncClient) -> None:
    await client.beat("a")
    await client.signal("breaker", "a", name="search-api", state="open")
    (breaker,) = (await client.breakers()).breakers
    assert (breaker.agent_id, breaker.name, breaker.state) == ("a", "search-api", "open")
    assert (await client.breakers(state=["closed"])).breakers == ()
    assert len((await client.breaker("search-api")).breakers) == 1


async def test_a_task_is_claimed_by_one_saved_and_given_back(client: AsyncClient) -> None:
    await client.beats([{"agent_id": "a", "incarnation": "1", "task_id": "t/1"}, {"agent_id": "b"}])
    mine = await client.claim("t/1", "a", incarnation="1")
    assert (mine.granted, mine.holder) == (True, "a")
    assert (await client.claim("t/1", "a", incarnation="1")).token == mine.token
    with pytest.raises(HubError, match="is held by 'a'") as refused:
        await client.claim("t/1", "b")
    assert refused.value.status == 409
    saved = await client.save_checkpoint("t/1", "a", "cp-1", digest="x", size=3, token=mine.token)
    assert saved.checkpoint_id == "cp-1"
    assert [one.checkpoint_id for one in (await client.checkpoints("t/1")).checkpoints] == ["cp-1"]
    task = await client.task("t/1")
    assert task.claim is not None
    assert task.claim.token == mine.token
    await client.release("t/1", "a", mine.token)
    assert [task.claim for task in (await client.tasks()).tasks] == [None]


async def test_a_message_is_sent_once_and_acknowledged(client: AsyncClient) -> None:
    await client.beats([{"agent_id": "a"}, {"agent_id": "b"}])
    sent = await client.send_message("a", "b", priority="high")
    again = await client.send_message("a", "b", priority="high", message_id=sent.message_id)
    assert again.message_id == sent.message_id
    assert [one.message_id for one in (await client.messages(to="b")).messages] == [sent.message_id]
    await client.ack_message(sent.message_id, "b")
    assert (await client.messages()).messages == ()


async def test_what_people_should_know_and_who_did_what(client: AsyncClient) -> None:
    await client.beat("a")
    await client.signal("doing", "a", doing="waiting_for_human")
    alerts = await client.alerts(severity="warning")
    assert ("a", True) in [(alert.agent_id, alert.standing) for alert in alerts.alerts]
    assert (await client.alerts(severity="critical")).alerts == ()
    assert (await client.audit(agent="a", limit=5)).entries == ()


async def test_an_act_is_one_act_however_often_it_is_asked_for(client: AsyncClient) -> None:
    await client.beat("a", doing="working")
    first = await client.nudge("a", "How far are you?", key="k-1")
    again = await client.nudge("a", "How far are you?", key="k-1")
    assert (first.rung, first.id) == ("nudge", again.id)
    assert first.by.startswith("tests")
    assert (await client.intervention(first.id)).agent_id == "a"
    listed = await client.interventions(agent="a", only_open=True)
    assert [one.id for one in listed.interventions] == [first.id]
    assert (await client.pause("a", 60.0)).paused
    assert not (await client.resume("a")).paused
    assert (await client.clear("a")).intervention is None
    escalated = await client.escalate("a", "it says nothing")
    decided = await client.decide(escalated.id, "ignore", note="it thinks")
    assert decided.id == escalated.id
    ended = await client.terminate("a", "enough")
    assert ended.rung == "terminate"


async def test_tokens_are_made_listed_and_revoked(hub: RunningHub, client: AsyncClient) -> None:
    made = await client.create_token("agent", "coders", agents="coder-*", expires_after=3600)
    assert made.token
    async with AsyncClient(hub.url, made.token) as coder:
        me = await coder.me()
        assert (me.role, me.name, me.agents) == ("agent", "coders", ["coder-*"])
        assert (await coder.beat("coder-7")).accepted == 1
        with pytest.raises(HubError) as refused:
            await coder.fleet()
        assert refused.value.status == 403
        assert "coders" in refused.value.detail
        await client.revoke_token(made.id)
        with pytest.raises(HubError) as gone:
            await coder.me()
        assert (gone.value.status, gone.value.transient) == (401, False)
    assert made.id not in [token.id for token in (await client.tokens()).tokens]


async def test_a_sign_in_link_is_made(hub: RunningHub, client: AsyncClient) -> None:
    link = await client.sign_in_link()
    assert link.url.startswith(f"{hub.url}/sign-in?code=")


async def test_events_of_the_past_are_listed(client: AsyncClient) -> None:
    await client.beat("a")
    await client.signal("left", "a", reason="done")
    told = await client.event_list(agent="a", types=["HEALTH_STATE_CHANGED"])
    assert told.events[-1].data["to"] == "terminated"


# --- mistakes -----------------------------------------------------------------------------------------


async def test_a_wrong_beat_is_known_to_be_wrong_before_anybody_is_asked(client: AsyncClient) -> None:
    with pytest.raises(UsageError, match="load"):
        await client.beat("a", load="much")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="did you mean progress"):
        await client.beat("a", progres="half")  # type: ignore[call-arg]
    with pytest.raises(UsageError, match="an id is 1 to 128"):
        await client.beat("no spaces")
    with pytest.raises(UsageError, match="an id is 1 to 128"):
        await client.agent("../fleet?x")


async def test_what_the_hub_refuses_names_the_field(client: AsyncClient) -> None:
    with pytest.raises(HubError) as refused:
        await client.agent_list(state="merry")
    assert (refused.value.status, refused.value.field, refused.value.transient) == (400, "state[0]", False)
    with pytest.raises(HubError, match="no agent 'ghost'"):
        await client.agent("ghost")
