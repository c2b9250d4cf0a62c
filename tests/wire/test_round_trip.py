"""Whatever we write, we read back as it was. Moments are on the wire in whole milliseconds."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core import effects, signals
from lifesigns.core.digests import digest
from lifesigns.core.health import Doing
from lifesigns.errors import UsageError
from lifesigns.wire import (
    WireBeat,
    WireMetrics,
    decode_beat,
    decode_beats,
    decode_order,
    decode_signal,
    encode_beat,
    encode_order,
    encode_signal,
    plain,
)
from lifesigns.wire.beats import FR_002

ids = st.text("ABZabz059._:@/-", min_size=1, max_size=128)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=60)
counts = st.integers(0, 2**63 - 1)
amounts = st.floats(0, allow_infinity=False)
moments = st.integers(-62_000_000_000_000, 250_000_000_000_000).map(lambda ms: ms / 1000)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.none() | strategy


def settled(beat: signals.BeatReceived) -> bool:
    """Nothing in the beat is left for the reader to conclude."""
    return not (
        (beat.doing is None and decode_beat(encode_beat(beat)).doing is not None)
        or (beat.task_id is None and beat.tasks)
    )


beats = st.builds(
    signals.BeatReceived,
    agent_id=ids,
    seq=maybe(counts),
    incarnation=maybe(texts),
    sent_at=maybe(moments),
    status=maybe(texts | st.sampled_from(["busy", "idle"])),
    doing=maybe(st.sampled_from(Doing)),
    until=maybe(moments),
    load=maybe(st.floats(0, 1)),
    task_id=maybe(names),
    tasks=st.lists(texts, max_size=3).map(tuple),
    phase=maybe(texts),
    progress=maybe(texts),
    last_tool_call=maybe(texts),
    last_checkpoint=maybe(texts),
    token_count=maybe(counts),
    cost_usd=maybe(amounts),
    error_count=maybe(counts),
    capacity_available=maybe(counts),
    loop_lag_ms=maybe(amounts),
    metrics=maybe(
        st.builds(
            signals.Metrics,
            cpu_percent=maybe(amounts),
            memory_mb=maybe(amounts),
            tasks_completed=maybe(counts),
            tasks_failed=maybe(counts),
            uptime_s=maybe(amounts),
        )
    ),
    host=maybe(texts),
    pid=maybe(counts),
    role=maybe(texts),
    metadata=maybe(st.dictionaries(texts, texts, max_size=4)),
    source=texts,
).filter(settled)


@given(beats, st.booleans())
def test_a_beat_is_read_as_it_was_written(beat: signals.BeatReceived, msgpack: bool) -> None:
    raw = encode_beat(beat, msgpack=msgpack)
    read = decode_beat(raw, source=beat.source)
    assert plain(read) == beat
    assert decode_beats(raw, source=beat.source).accepted == [read]


@given(beats, st.booleans())
def test_a_beat_that_was_read_is_written_as_it_was(beat: signals.BeatReceived, msgpack: bool) -> None:
    raw = encode_beat(beat, msgpack=msgpack)
    assert encode_beat(decode_beat(raw), msgpack=msgpack) == raw
    assert encode_signal(decode_beat(raw), msgpack=msgpack) == encode_signal(beat, msgpack=msgpack) == raw


def test_every_field_of_a_beat_is_read_and_written() -> None:
    """What the core knows of a beat is on the wire; only `timestamp` has another name there, and some have FR-002's too."""
    on_the_wire = set(WireBeat.__struct_fields__) - {"timestamp", *FR_002}
    assert set(signals.BeatReceived.__struct_fields__) - {"sent_at"} == on_the_wire
    assert set(signals.Metrics.__struct_fields__) == set(WireMetrics.__struct_fields__)


leaves = st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | texts | st.floats(-1e9, 1e9)
policies = st.dictionaries(
    texts, leaves | st.dictionaries(texts, leaves | st.lists(leaves, max_size=2), max_size=2)
)
fields: dict[type[Any], dict[str, st.SearchStrategy[Any]]] = {
    signals.AgentRegistered: {
        "role": maybe(texts),
        "host": maybe(texts),
        "task_id": maybe(texts),
        "grace": maybe(amounts),
        "policy": maybe(policies),
        "beats": st.booleans(),
        "follows_interval": st.booleans(),
    },
    signals.ActivitySeen: {"kind": texts, "note": texts},
    signals.ToolStarted: {"call_id": names, "tool": names, "args_digest": texts, "bound": maybe(amounts)},
    signals.ToolFinished: {
        "call_id": names,
        "tool": names,
        "args_digest": texts,
        "result_digest": texts,
        "ok": st.booleans(),
        "error": maybe(texts),
        "error_kind": maybe(texts),
        "duration_s": maybe(amounts),
        "ended_at": maybe(moments),
        "retry": st.booleans(),
    },
    signals.ModelStarted: {"call_id": texts, "bound": maybe(amounts)},
    signals.ModelFinished: {
        "call_id": texts,
        "tokens_in": counts,
        "tokens_out": counts,
        "cost_usd": amounts,
        "ok": st.booleans(),
        "error_kind": maybe(texts),
        "duration_s": maybe(amounts),
        "ended_at": maybe(moments),
        "context_tokens": counts,
        "context_window": counts,
    },
    signals.CheckpointSaved: {
        "checkpoint_id": names,
        "task_id": maybe(texts),
        "parent_id": maybe(texts),
        "digest": texts,
        "size": counts,
    },
    signals.ProgressMade: {"task_id": maybe(texts), "percent": maybe(amounts), "note": texts},
    signals.ErrorReported: {"message": texts, "recoverable": st.booleans()},
    signals.DoingChanged: {"doing": st.sampled_from(Doing), "until": maybe(moments), "note": texts},
    signals.PongReceived: {"seq": maybe(counts), "status": maybe(texts), "task_id": maybe(texts)},
    signals.NudgeSeen: {"nudge_id": names},
    signals.NudgeAnswered: {"nudge_id": names, "answer": st.sampled_from(signals.Answer), "note": texts},
    signals.TaskAssigned: {
        "task_id": names,
        "expected_for": maybe(amounts),
        "description": texts,
        "percent": maybe(amounts),
    },
    signals.TaskDone: {"task_id": names},
    signals.TaskFailed: {"task_id": names, "reason": texts},
    signals.TaskClaimed: {"task_id": names},
    signals.TaskReleased: {"task_id": names, "token": counts},
    signals.MessageSent: {"message_id": names, "to": ids, "priority": st.sampled_from(signals.Priority)},
    signals.MessageAcked: {"message_id": names},
    signals.MessageWithdrawn: {"message_id": names},
    signals.BreakerReported: {
        "name": names,
        "state": st.sampled_from(signals.BreakerState),
        "failures": counts,
        "until": maybe(moments),
    },
    signals.AgentLeft: {"reason": texts},
}
said = st.one_of(
    [st.builds(kind, agent_id=ids, incarnation=maybe(texts), **parts) for kind, parts in fields.items()]
)


@given(said, st.booleans())
def test_a_signal_is_read_as_it_was_written(signal: signals.Signal, msgpack: bool) -> None:
    assert decode_signal(encode_signal(signal, msgpack=msgpack), now=12.0) == signal


def test_every_field_of_every_signal_is_tried_here() -> None:
    """`source` and `bounded` are ours, the rest of each dataclass has a strategy above."""
    for kind, parts in fields.items():
        slots = {name for of in kind.__mro__ for name in getattr(of, "__slots__", ())}
        assert slots - {"source", "bounded", "agent_id", "incarnation"} == set(parts), kind


findings = st.builds(
    effects.Finding,
    kind=st.sampled_from(effects.Kind),
    since=moments,
    severity=st.sampled_from(effects.Severity),
    text=texts,
    numbers=st.dictionaries(texts, texts | st.floats(-1e9, 1e9), max_size=2),
    conclusive=st.booleans(),
)
shared = {
    "at": moments,
    "order_id": names,
    "epoch": counts,
    "agent_id": ids,
    "incarnation": maybe(texts),
}
orders = st.one_of(
    st.builds(effects.SendPing, **shared, seq=counts, suspicion=names),
    st.builds(effects.SendNudge, **shared, attempt=counts, text=texts),
    st.builds(
        effects.Terminate,
        **shared,
        reason=texts,
        save_for=amounts,
        findings=st.lists(findings, max_size=2).map(tuple),
        seq_seen=st.just(-1) | counts,
        by=texts,
    ),
    st.builds(effects.AskStatus, **shared, task_id=names, text=texts, answer_by=moments),
    st.builds(effects.OfferTask, **shared, task_id=names, giver=names, text=texts, answer_by=moments),
    st.builds(
        effects.AskBack, **shared, task_id=names, token=st.integers(0, 2**53), text=texts, answer_by=moments
    ),
    st.builds(effects.StopStranger, **shared, reason=texts, retired=texts),
)


@given(orders, st.booleans())
def test_an_order_is_read_as_it_was_written(order: effects.Order, msgpack: bool) -> None:
    assert decode_order(encode_order(order, msgpack=msgpack)) == order


def test_moments_are_written_as_rfc_3339_with_milliseconds() -> None:
    beat = signals.BeatReceived("a", sent_at=1794765600.1234)
    assert encode_beat(beat) == b'{"agent_id":"a","timestamp":"2026-11-15T18:00:00.123Z"}'


def test_a_moment_beyond_the_calendar_is_still_written() -> None:
    for moment in (1e15, -1e15):
        assert decode_beat(encode_beat(signals.BeatReceived("a", sent_at=moment))).sent_at == pytest.approx(
            moment
        )


def test_until_of_a_signal_is_translated_to_our_clock_if_it_says_when_it_was_sent() -> None:
    raw = b'{"type":"doing","agent_id":"a","doing":"rate_limited","timestamp":%s,"until":"1970-01-01T01:24:20Z"}'
    for timestamp, until in [(b"5000", 160.0), (b'"1970-01-01T01:23:20Z"', 160.0), (b"null", 5060.0)]:
        signal = decode_signal(raw % timestamp, now=100.0)
        assert isinstance(signal, signals.DoingChanged)
        assert signal.until == until


def test_a_sender_whose_clock_is_wrong_is_parked_for_as_long_as_it_asked() -> None:
    """Its clock is an hour ahead of ours: what counts is that it said "for a minute"."""
    word = signals.DoingChanged(agent_id="a", doing=Doing.RATE_LIMITED, until=8660.0)
    signal = decode_signal(encode_signal(word, sent_at=8600.0), now=5000.0)
    assert isinstance(signal, signals.DoingChanged)
    assert signal.until == 5060.0
    assert b"timestamp" not in encode_signal(signals.ActivitySeen(agent_id="a"), sent_at=8600.0)


def test_arguments_are_hashed_exactly_and_results_without_their_volatile_parts() -> None:
    raw = (
        b'{"type":"tool_finished","agent_id":"a","call_id":"c","tool":"t",'
        b'"args":{"id": "2026-11-15T18:00:00Z"},"result":["2026-11-15T18:00:00Z"]}'
    )
    signal = decode_signal(raw, now=0)
    assert isinstance(signal, signals.ToolFinished)
    assert signal.args_digest == digest({"id": "2026-11-15T18:00:00Z"}, exact=True)
    assert signal.result_digest == digest(["2030-01-01T00:00:00Z"])


def test_a_digest_made_by_the_sender_is_taken_as_it_is() -> None:
    raw = b'{"type":"tool_started","agent_id":"a","call_id":"c","tool":"t","args":[1],"args_digest":"d"}'
    assert decode_signal(raw, now=0) == signals.ToolStarted(
        agent_id="a", call_id="c", tool="t", args_digest="d"
    )


def test_the_contracts_short_words_are_read() -> None:
    pong = decode_signal(b'{"type":"pong","agent_id":"a","seq":1,"status":"busy","task":"t"}', now=0)
    assert pong == signals.PongReceived(agent_id="a", seq=1, status="busy", task_id="t")
    finished = decode_signal(b'{"type":"model_finished","agent_id":"a","cost":0.5}', now=0)
    assert finished == signals.ModelFinished(agent_id="a", cost_usd=0.5)


def test_source_is_set_by_us_and_not_believed() -> None:
    raw = b'{"type":"registered","agent_id":"a","source":"root"}'
    assert decode_signal(raw, now=0, source="door") == signals.AgentRegistered(agent_id="a", source="door")


@pytest.mark.parametrize("spoofed", ["root", "", "x" * 5000, "é" * 5000, 5, None, ["root"], {"a": 1}])
@pytest.mark.parametrize("id_name", ["agent_id", "worker_id", "agentId"])
@pytest.mark.parametrize("encode", [msgspec.json.encode, msgspec.msgpack.encode])
def test_no_beat_can_choose_its_source(spoofed: Any, id_name: str, encode: Any) -> None:
    """Neither at any door, nor in any dialect; to us the field is unknown, so it is no error either."""
    raw = encode({id_name: "a", "source": spoofed})
    batch = encode([{id_name: "a", "source": spoofed}] * 2)
    for source in ("door", ""):
        beats = [decode_beat(raw, source=source), *decode_beats(raw, source=source).accepted]
        beats += decode_beats(batch, source=source).accepted
        assert [beat.source for beat in beats] == [source] * 4


def test_what_no_agent_sends_is_not_written() -> None:
    with pytest.raises(UsageError, match="OpinionGiven"):
        encode_signal(signals.OpinionGiven(agent_id="a", zone="b", opinion=signals.Opinion.HEARD))
    with pytest.raises(UsageError, match="EscalateMessage"):
        encode_order(effects.EscalateMessage(0.0, "o", 1, "a", None, "m", "b", signals.Priority.LOW, "late"))
