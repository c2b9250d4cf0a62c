"""Of every agent the last beat is there, as it came and when it came, whatever came with it and after it."""

from __future__ import annotations

import json
from typing import Any

from lifesigns import wire
from lifesigns.core.signals import ActivitySeen, BeatReceived
from lifesigns.hub.last_beats import BATCH_MAX, EncodedBatch, LastBeats, ReceivedBeat, SingleBeat
from tests.hub.ground import Ground


def message(*beats: dict[str, Any]) -> bytes:
    return json.dumps(beats[0] if len(beats) == 1 else beats).encode()


def deliver(ground: Ground, *beats: dict[str, Any]) -> None:
    """As a door does it."""
    raw, now = message(*beats), ground.now
    if len(beats) == 1:
        assert ground.hub.hear_beats([wire.decode_beat(raw, "t", now)], raw, "t", now)
    else:
        assert ground.hub.hear_beats(wire.decode_beats(raw, "t", now).accepted, raw, "t", now)


def test_of_two_beats_in_one_message_the_later_one_is_the_last() -> None:
    raw = message({"agent_id": "a", "seq": 1}, {"agent_id": "b", "seq": 7}, {"agent_id": "a", "seq": 2})
    parcel = EncodedBatch(raw, "t", 5.0)
    last = LastBeats({"a": parcel, "b": parcel})
    assert {
        agent_id: (received.beat.seq, received.at) for agent_id, received in last.of_all(("a", "b", "c"))
    } == {
        "a": (2, 5.0),
        "b": (7, 5.0),
    }


def test_what_is_read_again_says_what_it_said_the_first_time() -> None:
    """Moments of its own clock are translated by when it came, not by when somebody asks; and it knows its source."""
    raw = message({"agent_id": "a", "timestamp": 1000.0, "until": 1060.0, "status": "idle"})
    first = wire.decode_beat(raw, "t", 5000.0)
    assert LastBeats({"a": EncodedBatch(raw, "t", 5000.0)}).of("a") == ReceivedBeat(first, 5000.0)
    assert first.until == 5060.0


def test_a_beat_that_came_in_no_message_is_kept_itself() -> None:
    beat = BeatReceived("a", 3)
    assert LastBeats({"a": SingleBeat(beat, 5.0)}).of("a") == ReceivedBeat(beat, 5.0)
    assert LastBeats().of("a") is None


async def test_a_word_does_not_move_the_moment_of_the_last_beat() -> None:
    async with Ground() as ground:
        came_at = ground.now
        deliver(ground, {"agent_id": "a", "seq": 1}, {"agent_id": "b", "seq": 1})
        await ground.pass_time(1.0)
        ground.hub.hear([ActivitySeen(agent_id="a", kind="any")])
        await ground.until(lambda: not ground.hub.inbox.waiting)
        agent = ground.hub.engine.agent("a")
        assert agent is not None
        assert agent.heard_at > came_at
        last = ground.hub.last_beats.of("a")
        assert last is not None
        assert (last.beat.seq, last.at) == (1, came_at)


async def test_a_single_beat_is_heard_before_what_comes_after_it() -> None:
    """Singles are collected for a round of the loop; a batch and a word that come meanwhile are later all the same."""
    async with Ground() as ground:
        deliver(ground, {"agent_id": "a", "seq": 1, "incarnation": "one"})
        deliver(ground, {"agent_id": "a", "seq": 2, "incarnation": "one"}, {"agent_id": "b", "seq": 1})
        deliver(ground, {"agent_id": "a", "seq": 3, "incarnation": "one"})
        deliver(ground, {"agent_id": "a", "seq": 4, "incarnation": "one"})
        ground.hub.hear([ActivitySeen(agent_id="a", incarnation="one", kind="any")])
        deliver(ground, {"agent_id": "a", "seq": 5, "incarnation": "one"})
        await ground.until(lambda: ground.hub.counters.beats == 6)
        agent, last = ground.hub.engine.agent("a"), ground.hub.last_beats.of("a")
        assert agent is not None
        assert last is not None
        assert (agent.seq, agent.beats, last.beat.seq) == (5, 5, 5)
        assert not ground.told("REFUSAL")


async def test_what_was_said_alone_is_heard_before_the_hub_ends() -> None:
    async with Ground() as ground:
        deliver(ground, {"agent_id": "a", "seq": 1})
        await ground.hub.stop()
        assert ground.hub.engine.agent("a") is not None


async def test_of_a_large_message_each_beat_is_kept_by_itself() -> None:
    """One agent that falls silent must not hold what a thousand others said."""
    async with Ground() as ground:
        beats = [{"agent_id": f"agent-{n:05}", "seq": 1, "host": "h" * 40} for n in range(1000)]
        assert len(message(*beats)) > BATCH_MAX
        deliver(ground, *beats)
        await ground.until(lambda: ground.hub.counters.beats == 1000)
        assert all(isinstance(kept, SingleBeat) for kept in ground.hub.last_beats.values())
        last = ground.hub.last_beats.of("agent-00999")
        assert last is not None
        assert last.beat.host == "h" * 40
