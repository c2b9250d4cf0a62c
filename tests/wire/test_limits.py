"""Limits: on the limit is in, one beyond is out, and the reason names the field."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest

from lifesigns.errors import WireError
from lifesigns.wire import decode_beat, decode_beats, decode_order, decode_signal


def beat(**fields: Any) -> bytes:
    return json.dumps({"agent_id": "a"} | fields).encode()


def refused(raw: bytes) -> WireError:
    with pytest.raises(WireError) as caught:
        decode_beat(raw)
    return caught.value


@pytest.mark.parametrize("agent_id", ["a", "A-Z.a_z:0@9/-", "a" * 128])
def test_an_id_is_1_to_128_of_its_characters(agent_id: str) -> None:
    assert decode_beat(beat(agent_id=agent_id)).agent_id == agent_id


@pytest.mark.parametrize(
    "agent_id", ["", "a" * 129, "a\n", "\na", "a b", "é", "a\x00", "a*", "a" * 60_000, 5, [], {}]
)
@pytest.mark.parametrize("name", ["agent_id", "worker_id", "agentId"])
def test_what_is_no_id_is_refused_under_the_name_it_came_with(name: str, agent_id: Any) -> None:
    error = refused(json.dumps({name: agent_id}).encode())
    assert error.field == name
    assert len(error.detail) < 400


@pytest.mark.parametrize("raw", [b"{}", b'{"agent_id": null}', b'{"type": "beat"}', b"\x80"])
def test_a_beat_without_an_id_says_so(raw: bytes) -> None:
    assert refused(raw).field == "agent_id"


def test_a_beat_has_at_most_64_kib() -> None:
    raw = beat(unknown="")
    padded = beat(unknown="x" * (65_536 - len(raw)))
    assert len(padded) == 65_536
    assert decode_beat(padded).agent_id == "a"
    error = refused(padded + b" ")
    assert error.field == ""
    assert "over the limit of 65536 bytes" in error.detail


def test_a_beat_over_the_limit_is_refused_in_a_batch_too() -> None:
    batch = decode_beats(b"[" + beat(unknown="x" * 65_536) + b"," + beat() + b"]")
    assert [beat.agent_id for beat in batch.accepted] == ["a"]
    assert [item.index for item in batch.rejected] == [0]


def test_metadata_has_at_most_64_keys() -> None:
    keys = {f"k{n}": "v" for n in range(64)}
    assert decode_beat(beat(metadata=keys)).metadata == keys
    assert refused(beat(metadata=keys | {"one": "more"})).field == "metadata"


@pytest.mark.parametrize("letter", ["x", "é", "😀"])
@pytest.mark.parametrize("ascii_only", [True, False])
@pytest.mark.parametrize("as_batch", [True, False])
def test_keys_and_values_of_metadata_have_at_most_1_kib_of_utf_8(
    letter: str, ascii_only: bool, as_batch: bool
) -> None:
    on_the_limit = letter * (1024 // len(letter.encode()))
    over = on_the_limit + "x"
    for metadata, accepted in [
        ({on_the_limit: on_the_limit}, True),
        ({over: "v"}, False),
        ({"k": over}, False),
    ]:
        message = {"agent_id": "a", "metadata": metadata}
        raw = json.dumps(message, ensure_ascii=ascii_only).encode()
        packed = msgspec.msgpack.encode(message)
        if as_batch:
            for batch in (decode_beats(b"[" + raw + b"]"), decode_beats(b"\x91" + packed), decode_beats(raw)):
                assert bool(batch.accepted) is accepted
                assert [item.field for item in batch.rejected] == ([] if accepted else ["metadata"])
        elif accepted:
            assert decode_beat(raw).metadata == decode_beat(packed).metadata == metadata
        else:
            assert refused(raw).field == refused(packed).field == "metadata"


TEXTS = "phase progress status host role task_id incarnation last_tool_call last_checkpoint".split()


@pytest.mark.parametrize("field", TEXTS)
@pytest.mark.parametrize("letter", ["x", "é"])
def test_a_text_has_at_most_1_kib_of_utf_8(field: str, letter: str) -> None:
    text = letter * (1024 // len(letter.encode()))
    assert getattr(decode_beat(beat(**{field: text})), field) == text
    assert refused(beat(**{field: text + "x"})).field == field


def test_there_are_at_most_256_tasks_of_1_kib() -> None:
    assert len(decode_beat(beat(tasks=["t"] * 256)).tasks) == 256
    assert refused(beat(tasks=["t"] * 257)).field == "tasks"
    assert decode_beat(beat(tasks=["é" * 512])).tasks == ("é" * 512,)
    assert refused(beat(tasks=["é" * 513])).field.startswith("tasks")


@pytest.mark.parametrize("field", ["seq", "token_count", "error_count", "capacity_available", "pid"])
def test_a_count_fits_64_bits_and_is_not_negative(field: str) -> None:
    for count in (0, 2**63 - 1):
        assert getattr(decode_beat(beat(**{field: count})), field) == count
    for wrong in (-1, 2**63, 10**4000, 1.5, True, "1", [1], {"a": 1}):
        assert refused(beat(**{field: wrong})).field == field


AMOUNTS = ["cost_usd", "loop_lag_ms", "metrics.cpu_percent", "metrics.memory_mb", "metrics.uptime_s"]


def nested(field: str, value: Any) -> dict[str, Any]:
    outer, _, inner = field.partition(".")
    return {"agent_id": "a", outer: {inner: value} if inner else value}


@pytest.mark.parametrize("field", AMOUNTS)
def test_an_amount_is_finite_and_not_negative(field: str) -> None:
    for amount in (0, 0.5, 1e300):
        decode_beat(json.dumps(nested(field, amount)).encode())
    for wrong in (-1e-9, -1, "1", True, [1.0]):
        assert refused(json.dumps(nested(field, wrong)).encode()).field == field
    for wrong in (math.nan, math.inf, -math.inf, -0.1):
        assert refused(msgspec.msgpack.encode(nested(field, wrong))).field == field


@pytest.mark.parametrize("field", ["load", "timestamp", "until", "last_tool_call", "last_checkpoint"])
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_finite_is_refused_even_where_the_sign_does_not_matter(field: str, value: float) -> None:
    assert refused(msgspec.msgpack.encode(nested(field, value))).field == field


@pytest.mark.parametrize(
    ("message", "field"),
    [
        (b'{"worker_id": "w", "metrics": {"cpu_usage": "a lot"}}', "metrics.cpu_usage"),
        (b'{"worker_id": "w", "current_tasks": ["t", 5]}', "current_tasks[1]"),
        (b'{"agentId": "a", "tokenCount": "many"}', "tokenCount"),
        (b'{"agent_id": "a", "metadata": {"k": [1]}}', "metadata"),
        (b'{"agent_id": "a", "metadata": [1]}', "metadata"),
        (b'{"agent_id": "a", "doing": "dreaming"}', "doing"),
    ],
)
def test_a_wrong_type_is_refused_under_the_name_its_sender_knows(message: bytes, field: str) -> None:
    assert refused(message).field == field


def test_a_detail_does_not_quote_the_peer_without_end() -> None:
    assert len(refused(beat(doing="x" * 60_000)).detail) <= 200


def test_a_batch_has_at_most_8_mib() -> None:
    raw = b"[" + b" " * (8 * 1024 * 1024 - 2) + b"]"
    assert decode_beats(raw).accepted == []
    with pytest.raises(WireError, match="over the limit of 8388608 bytes"):
        decode_beats(raw + b" ")


@pytest.mark.parametrize("packed", [True, False])
def test_a_batch_has_at_most_10_000_items(packed: bool) -> None:
    encode = msgspec.msgpack.encode if packed else msgspec.json.encode
    items = [{"agent_id": "a"}] * 10_000
    assert len(decode_beats(encode(items)).accepted) == 10_000
    with pytest.raises(WireError) as caught:
        decode_beats(encode([*items, {"agent_id": "a"}]))
    assert caught.value.field == ""
    assert "10000" in caught.value.detail


def test_ndjson_has_at_most_10_000_lines() -> None:
    assert len(decode_beats(beat() + b"\n" + (beat() + b"\n") * 9_999).accepted) == 10_000
    with pytest.raises(WireError, match="over the limit of 10000"):
        decode_beats((beat() + b"\n") * 10_001)


def test_a_signal_may_have_1_mib_because_its_arguments_may_be_large() -> None:
    head = b'{"type":"tool_started","agent_id":"a","call_id":"c","tool":"t","args":"'
    large = head + b"x" * (1024 * 1024 - len(head) - 2) + b'"}'
    assert len(large) == 1024 * 1024
    signal = decode_signal(large, now=0)
    assert len(getattr(signal, "args_digest", "")) == 16
    with pytest.raises(WireError, match="over the limit of 1048576 bytes"):
        decode_signal(large + b" ", now=0)


def test_prose_is_cut_and_not_refused() -> None:
    raw = json.dumps({"type": "error", "agent_id": "a", "message": "é" * 10_001}).encode()
    assert getattr(decode_signal(raw, now=0), "message", "") == "é" * 10_000


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"type": "progress", "percent": -1}, "percent"),
        ({"type": "progress", "task_id": "é" * 600}, "task_id"),
        ({"type": "message_sent", "message_id": "m", "to": "no id"}, "to"),
        ({"type": "message_sent", "message_id": "", "to": "b"}, "message_id"),
        ({"type": "tool_started", "tool": "t"}, "call_id"),
        ({"type": "nudge_answered", "nudge_id": "n", "answer": "maybe"}, "answer"),
        ({"type": "doing", "doing": "idle", "until": "soon"}, "until"),
        ({"type": "registered", "policy": {"a": {"b": {"c": {"d": 1}}}}}, "policy"),
        ({"type": "registered", "grace": "long"}, "grace"),
        ({"type": "release", "task_id": "t", "token": -1}, "token"),
        ({"type": "nonsense"}, "type"),
        ({}, "type"),
        ({"type": "left", "agent_id": "a\n"}, "agent_id"),
        ({"type": "left", "agent_id": None}, "agent_id"),
    ],
)
def test_a_wrong_signal_is_refused_with_the_field_named(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(WireError) as caught:
        decode_signal(json.dumps({"agent_id": "a"} | fields).encode(), now=0)
    assert caught.value.field == field


def test_a_wrong_order_is_refused_with_the_field_named() -> None:
    raw = b'{"type": "ping", "at": 0, "order_id": "o", "epoch": -1, "agent_id": "a", "seq": 1, "suspicion": "s"}'
    with pytest.raises(WireError) as caught:
        decode_order(raw)
    assert caught.value.field == "epoch"
