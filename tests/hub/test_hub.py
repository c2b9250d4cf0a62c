"""The hub's loop: what it hears is judged, what is judged is kept, what is kept is carried out."""

from __future__ import annotations

import asyncio
import json

import pytest
from msgspec.structs import replace

from lifesigns.core.effects import SendNudge, SendPing
from lifesigns.core.health import Health
from lifesigns.core.signals import (
    BeatReceived,
    CheckpointSaved,
    NudgeDelivered,
    NudgeRequested,
    Signal,
    TaskAssigned,
    ToolStarted,
)
from lifesigns.errors import AdapterError
from tests.hub.ground import Ground


def beat(seq: int = 1, agent_id: str = "a") -> BeatReceived:
    return BeatReceived(agent_id, seq, "one")


async def test_a_first_beat_is_told_as_a_change_of_health() -> None:
    async with Ground() as ground:
        assert ground.hub.hear([beat()])
        await ground.until(lambda: ground.told("HEALTH_STATE_CHANGED"))
        (event,) = ground.told("HEALTH_STATE_CHANGED")
        assert (event.id, event.agent_id, event.at) == (1, "a", ground.now)
        told = json.loads(event.data)
        assert (told["from"], told["to"]) == ("starting", "healthy")


async def test_who_falls_silent_is_asked_at_once_and_found() -> None:
    async with Ground() as ground:
        ground.hub.hear([beat(agent_id="a"), beat(agent_id="b")])
        for seq in range(2, 8):
            await ground.pass_time(2.0)
            ground.hub.hear([beat(seq, "b")])
        await ground.until(lambda: len(ground.told("HEALTH_STATE_CHANGED")) == 3)
        assert {order.agent_id for order in ground.orders if isinstance(order, SendPing)} == {"a"}
        lost = json.loads(ground.told("HEALTH_STATE_CHANGED")[-1].data)
        assert (lost["agent_id"], lost["to"]) == ("a", "disconnected")
        assert ground.hub.counters.flips[Health.DISCONNECTED] == 1


async def test_what_a_door_has_gathered_counts_before_anybody_is_judged() -> None:
    async def asked_at(beats_at: float | None) -> float:
        """When a silent agent is asked, if the door then has a beat of it which came just before."""

        def hand_over() -> None:
            ground.hub.end_gathering()
            ground.hub.hear_beats([beat(2)], b"", "bus", ground.now - 0.1)

        async with Ground() as ground:
            began_at = ground.now
            ground.hub.hear([beat(1)])
            while not ground.orders:
                ground.now += 0.25
                ground.hub.ask_turn()
                if ground.now == beats_at:
                    ground.hub.begin_gathering()
                    asyncio.get_running_loop().call_soon(hand_over)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                await asyncio.sleep(0)
                assert ground.now < began_at + 60.0
            return ground.now

    silent_until = await asked_at(None)
    assert await asked_at(silent_until) > silent_until


async def test_words_are_acknowledged_when_they_are_kept_and_survive_a_sudden_death() -> None:
    async with Ground() as ground:
        words: list[Signal] = [
            TaskAssigned(agent_id="a", incarnation="one", task_id="t", expected_for=600),
            ToolStarted(agent_id="a", incarnation="one", call_id="c", tool="grep"),
            CheckpointSaved(agent_id="a", incarnation="one", checkpoint_id="cp-1"),
        ]
        ground.hub.hear([beat()])
        assert await ground.hub.store_reports(words) is not None
        await ground.restart(cleanly=False)
        agent = ground.hub.engine.agent("a")
        assert agent is not None
        assert agent.work is not None
        assert (agent.task_id, list(agent.work.calls)) == ("t", ["c"])
        assert agent.work.checkpoint_id == "cp-1"
        assert list(ground.hub.engine.beliefs.tasks) == ["t"]


async def test_an_order_without_an_outcome_is_given_again_and_one_with_is_not() -> None:
    async with Ground() as ground:
        ground.hub.hear([beat()])
        await ground.hub.store_reports([NudgeRequested(agent_id="a", by="me", message="hello")])
        await ground.until(lambda: ground.orders)
        (nudge,) = ground.orders
        assert isinstance(nudge, SendNudge)
        await ground.restart(cleanly=False)
        assert ground.orders == [replace(nudge, epoch=nudge.epoch + 1)]
        await ground.hub.store_reports([NudgeDelivered(agent_id="a", order_id=nudge.order_id)])
        await ground.restart(cleanly=False)
        assert ground.orders == []


async def test_a_hub_from_an_old_copy_is_newer_than_all_before_it_however_quickly_they_came() -> None:
    """An agent that has heard them would take the orders of an epoch it knows for old ones."""
    async with Ground() as ground, Ground() as copy:
        await copy.hub.stop()
        for _ in range(5):
            ground.now += 0.2
            await ground.restart(cleanly=True)
        copy.now = ground.now + 0.2
        await copy.restart(cleanly=False)
        assert copy.hub.epoch > ground.hub.epoch


async def test_downtime_is_nobodys_death() -> None:
    async with Ground() as ground:
        ground.hub.hear([beat(agent_id="a"), beat(agent_id="b")])
        await ground.hub.store_reports([])
        ground.now += 600
        await ground.restart(cleanly=False)
        await ground.pass_time(2.0)
        assert {agent.health for agent in ground.hub.engine.agents()} == {Health.HEALTHY}


@pytest.mark.parametrize("cleanly", [True, False])
async def test_a_clock_that_was_set_back_between_two_hubs_does_not_stop_judging(cleanly: bool) -> None:
    """The second one goes on from where the first was; it does not stand still until the wall is as late again."""
    async with Ground() as ground:
        ground.hub.hear([beat(agent_id="dead"), beat(agent_id="alive")])
        await ground.hub.store_reports([])
        ground.now -= 3600
        await ground.restart(cleanly=cleanly)
        for seq in range(2, 40):
            ground.hub.hear([beat(seq, "alive")])
            await ground.pass_time(1.0)
        found = {agent.id: agent.health for agent in ground.hub.engine.agents()}
        assert found == {"dead": Health.DISCONNECTED, "alive": Health.HEALTHY}


async def test_a_clean_end_keeps_what_beats_said() -> None:
    async with Ground() as ground:
        ground.hub.hear([beat(seq) for seq in range(1, 40)])
        await ground.restart(cleanly=True)
        agent = ground.hub.engine.agent("a")
        assert agent is not None
        assert (agent.beats, agent.seq) == (39, 39)


async def test_a_full_inbox_turns_away_and_takes_nothing_of_it() -> None:
    ground = Ground()
    ground.hub = ground.hub.__class__(
        ground.hub.store,
        inbox_max=10,
    )
    async with ground:
        assert ground.hub.hear([beat(seq) for seq in range(10)])
        assert not ground.hub.hear([beat(11)])
        assert ground.hub.counters.turned_away == 1
        await ground.until(lambda: not ground.hub.inbox.waiting)
        assert ground.hub.hear([beat(12)])


async def test_others_get_their_turn_while_a_flood_is_heard() -> None:
    async with Ground() as ground:
        assert ground.hub.hear([beat(seq) for seq in range(50_000)])
        turns = 0
        while ground.hub.inbox.waiting:
            await asyncio.sleep(0)
            turns += 1
        assert turns > 5


async def test_a_hub_that_was_replaced_says_so_instead_of_keeping_people_waiting() -> None:
    """It goes on watching, and acknowledges nothing: what it hears now is another hub's to keep."""
    async with Ground() as ground:
        ground.hub.hear([beat()])
        await ground.hub.store_reports([])
        await ground.another_store().open()
        for _ in range(2):
            with pytest.raises(AdapterError):
                await asyncio.wait_for(ground.hub.store_reports([NudgeRequested(agent_id="a", by="me")]), 5)
        assert ground.orders == []
        ground.hub.hear([beat(2)])
        await ground.until(lambda: not ground.hub.inbox.waiting)
