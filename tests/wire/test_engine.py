"""What the engine makes of a beat does not depend on who made the object: the wire's are as good as the core's."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.beliefs import Beliefs
from lifesigns.core.effects import Effect, Finding, Kind
from lifesigns.core.engine import Engine
from lifesigns.core.health import Doing
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.core.signals import Beat, BeatReceived, Metrics
from lifesigns.wire import WireBeat, decode_beat, encode_beat, plain
from tests.core.harness import Watch
from tests.wire.test_dialects import CONTRACT, SENTINEL

moments = st.integers(0, 4_000_000_000_000).map(lambda ms: ms / 1000)
beats = st.builds(
    BeatReceived,
    agent_id=st.sampled_from(["a", "b"]),
    seq=st.none() | st.integers(0, 20) | st.just(2**62),
    incarnation=st.sampled_from([None, None, "one", "two"]),
    sent_at=st.none() | moments,
    status=st.none() | st.sampled_from(["busy", "idle", "healthy"]),
    doing=st.none() | st.sampled_from(Doing),
    until=st.none() | moments,
    load=st.none() | st.floats(0, 1),
    task_id=st.none() | st.sampled_from(["t", "u"]),
    tasks=st.lists(st.sampled_from(["t", "u", "v"]), max_size=2).map(tuple),
    token_count=st.none() | st.integers(0, 10**9),
    cost_usd=st.none() | st.floats(0, 1e6),
    error_count=st.none() | st.integers(0, 50),
    capacity_available=st.none() | st.integers(0, 9),
    loop_lag_ms=st.none() | st.floats(0, 1e6),
    metrics=st.none() | st.builds(Metrics, st.none() | st.floats(0, 100), st.none() | st.floats(0, 1e5)),
    host=st.none() | st.sampled_from(["h1", "h2"]),
    role=st.none() | st.sampled_from(["standby", "nobody"]),
    metadata=st.none() | st.just({"provider": "p", "tokens_in": "5"}),
)
bare = st.builds(BeatReceived, st.sampled_from(["a", "b"]), seq=st.none() | st.integers(0, 20))
"""Calm agents say little: the engine has a short way for these."""
waits = st.sampled_from([0.0, 1.0, 5.0, 5.0, 5.0, 30.0, 900.0])
lives = st.lists(st.tuples(waits, bare | beats), max_size=30)


def hear(
    history: Sequence[tuple[float, WireBeat]], made: Callable[[WireBeat], Beat]
) -> tuple[list[Effect], Beliefs]:
    watch = Watch(engine=Engine(PolicyBook(profile("swarm")), FleetPolicy(canary_every=0)))
    for wait, beat in history:
        watch.hear(made(beat), watch.now + wait)
    watch.run_until(watch.now + 600)
    return watch.effects, watch.engine.snapshot()


def as_it_is(beat: WireBeat) -> Beat:
    """That this is a `Beat` is also for the type checker to say."""
    return beat


@given(lives, st.booleans())
def test_the_engine_believes_the_same_of_either_kind(
    history: list[tuple[float, BeatReceived]], msgpack: bool
) -> None:
    read = [(wait, decode_beat(encode_beat(beat, msgpack=msgpack), source="door")) for wait, beat in history]
    assert hear(read, as_it_is) == hear(read, plain)


def test_that_can_fail() -> None:
    """A kind of beat that loses what it heard is caught by the comparison above."""
    read = [(5.0, decode_beat(b'{"agent_id": "a", "seq": %d, "load": 0.5}' % seq)) for seq in range(3)]
    assert hear(read, as_it_is) != hear(read, lambda beat: BeatReceived(beat.agent_id, seq=beat.seq))


@pytest.mark.parametrize("raw", [CONTRACT, SENTINEL])
def test_the_engine_asks_a_beat_for_nothing_that_it_does_not_have(raw: bytes) -> None:
    beat, asked = decode_beat(raw), [name for name in vars(Beat) if not name.startswith("_")]
    assert "agent_id" in asked
    assert [name for name in asked if not hasattr(beat, name)] == []


def test_what_a_beat_from_the_wire_says_is_found() -> None:
    watch = Watch(profile("swarm"))
    for seq in range(8):
        raw = b'{"agent_id": "a", "seq": %d, "metrics": {"cpu_percent": 99}}' % seq
        watch.hear(decode_beat(raw), watch.now + 5.0)
    found: Finding | None = watch.agent().finding(Kind.OVERLOAD)
    assert found is not None
    assert found.numbers["cpu_percent"] == 99.0
