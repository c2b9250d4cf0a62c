"""The law of the wire: a `WireError` is all that comes out of bytes that are not well meant."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.errors import WireError
from lifesigns.wire import beats, decode_beat, decode_beats, decode_order, decode_signal, decode_signals
from tests.wire.test_dialects import AGENTKIT, CAMEL, CONTRACT, SENTINEL

DOORS: list[Callable[[bytes], object]] = [
    decode_beat,
    decode_beats,
    lambda raw: decode_signal(raw, now=1.0),
    lambda raw: decode_signals(raw, now=1.0),
    decode_order,
]
SIGNAL_TYPES = ["registered", "activity", "tool_started", "tool_finished", "doing", "progress", "breaker"]
SIGNAL_FIELDS = "policy grace args result kind until call_id tool name state percent doing timestamp".split()
BEAT_FIELDS = [*json.loads(CONTRACT), *json.loads(SENTINEL), *json.loads(CAMEL)]

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.just("a"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
packed_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(max_size=9)
    | st.builds(msgspec.msgpack.Ext, st.integers(-128, 127), st.binary(max_size=12)),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.integers(-9, 9) | st.binary(max_size=3), inner, max_size=3)
    ),
    max_leaves=8,
)


def knock(raw: bytes) -> None:
    """At every door. What comes out is a value or a `WireError`; anything else fails the test."""
    for door in DOORS:
        with contextlib.suppress(WireError):
            door(raw)


@given(st.binary(max_size=200))
def test_random_bytes(raw: bytes) -> None:
    knock(raw)


@given(st.sampled_from(range(256)), st.binary(max_size=60))
def test_random_bytes_after_every_first_byte(first: int, rest: bytes) -> None:
    knock(bytes([first]) + rest)


@given(
    st.sampled_from([CONTRACT, SENTINEL, CAMEL, AGENTKIT]),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 10_000), st.integers(0, 255)), min_size=1, max_size=5),
    st.integers(0, 10_000),
)
def test_beats_with_bytes_changed_or_cut_off(
    raw: bytes, msgpack: bool, changes: list[tuple[int, int]], cut: int
) -> None:
    changed = bytearray(msgspec.msgpack.encode(json.loads(raw)) if msgpack else raw)
    for place, byte in changes:
        changed[place % len(changed)] = byte
    knock(bytes(changed))
    knock(bytes(changed[: cut % len(changed)]))


@given(st.dictionaries(st.sampled_from(BEAT_FIELDS), json_values, max_size=6))
def test_any_json_in_any_field_of_a_beat(message: dict[str, Any]) -> None:
    raw = json.dumps({"agent_id": "a"} | message).encode()
    knock(raw)
    knock(b"[" + raw + b"," + raw + b"]")


@given(st.dictionaries(st.sampled_from(BEAT_FIELDS), packed_values, max_size=6))
def test_any_messagepack_in_any_field_of_a_beat(message: dict[str, Any]) -> None:
    raw = msgspec.msgpack.encode({"agent_id": "a"} | message)
    knock(raw)
    knock(b"\x92" + raw + raw)


@given(
    st.sampled_from(SIGNAL_TYPES),
    st.dictionaries(st.sampled_from(SIGNAL_FIELDS), json_values | st.just("idle"), max_size=6),
)
def test_any_json_in_any_field_of_a_signal(kind: str, message: dict[str, Any]) -> None:
    needed = {"agent_id": "a", "call_id": "c", "tool": "t", "doing": "idle", "name": "n", "state": "open"}
    knock(json.dumps({"type": kind} | needed | message).encode())


@given(
    st.sampled_from(SIGNAL_TYPES), st.dictionaries(st.sampled_from(SIGNAL_FIELDS), packed_values, max_size=6)
)
def test_any_messagepack_in_any_field_of_a_signal(kind: str, message: dict[str, Any]) -> None:
    needed = {"agent_id": "a", "call_id": "c", "tool": "t", "doing": "idle", "name": "n", "state": "open"}
    knock(msgspec.msgpack.encode({"type": kind} | needed | message))


DEEP = 30_000
TOOL = b'{"type":"tool_started","agent_id":"a","call_id":"c","tool":"t","args":'
HOSTILE = {
    "nothing": b"",
    "deep arrays": b"[" * DEEP,
    "deep arrays, closed": b"[" * DEEP + b"]" * DEEP,
    "deep objects": b'{"a":' * 10_000 + b"1" + b"}" * 10_000,
    "deep unknown field": b'{"agent_id":"a","x":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep metadata": b'{"agent_id":"a","metadata":{"k":' + b"[" * DEEP + b"]" * DEEP + b"}}",
    "deep id": b'{"agent_id":' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep arguments": TOOL + b"[" * 900 + b"]" * 900 + b"}",
    "deeper arguments": TOOL + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep messagepack": b"\x81\xa1x" + b"\x91" * 60_000 + b"\x01",
    "deep policy": b'{"type":"registered","agent_id":"a","policy":' + b'{"a":' * 900 + b"1" + b"}" * 901,
    "huge integer": b'{"agent_id":"a","seq":' + b"9" * 60_000 + b"}",
    "huge integer as amount": b'{"agent_id":"a","cost_usd":' + b"9" * 60_000 + b"}",
    "huge integer in arguments": TOOL + b"9" * 60_000 + b"}",
    "huge integer in metadata": b'{"agent_id":"a","metadata":{"k":' + b"9" * 60_000 + b"}}",
    "huge exponent": b'{"agent_id":"a","load":1e999999999}',
    "NaN": b'{"agent_id":"a","load":NaN}',
    "Infinity": b'{"agent_id":"a","load":Infinity}',
    "invalid UTF-8": b'{"agent_id":"a","phase":"\xff\xfe"}',
    "invalid UTF-8 id": b'{"agent_id":"\xff"}',
    "invalid UTF-8 key": b'{"agent_id":"a","metadata":{"\xff":"v"}}',
    "overlong UTF-8": b'{"agent_id":"\xc0\xaf"}',
    "lone surrogate": b'{"agent_id":"a","phase":"\\ud800 and more text"}',
    "lone low surrogate": b'{"agent_id":"a","phase":"\\udc00 and more text"}',
    "encoded surrogate": b'{"agent_id":"a","phase":"\xed\xa0\x80"}',
    "duplicate keys": b'{"agent_id":"a","agent_id":5}',
    "byte order mark": b'\xef\xbb\xbf{"agent_id":"a"}',
    "UTF-16": '{"agent_id":"a"}'.encode("utf-16"),
    "array that is 4 billion long": b"\xdd\xff\xff\xff\xff",
    "map that is 4 billion long": b"\xdf\xff\xff\xff\xff",
    "tasks that are 4 billion": b"\x82\xa8agent_id\xa1a\xa5tasks\xdd\xff\xff\xff\xff",
    "text of 4 GB": b"\x81\xa8agent_id\xdb\xff\xff\xff\xff",
    "extension": b"\x82\xa8agent_id\xa1a\xa4load\xd4\x05\x00",
    "timestamp out of range": b"\x82\xa8agent_id\xa1a\xa9timestamp\xc7\x0c\xff" + b"\x7f" * 12,
    "reserved byte": b"\x81\xc1\xc1",
    "map as key": b"\x81\x80\x01",
    "number as key": b"\x81\x01\x01",
    "10 MB of metadata": b'{"agent_id":"a","metadata":{"k":"' + b"x" * 10_000_000 + b'"}}',
    "10 MB of brackets": b"[" * 10_000_000,
    "only newlines": b"\n" * 1000,
    "trailing": b'{"agent_id":"a"} {',
}


@pytest.mark.parametrize("raw", HOSTILE.values(), ids=HOSTILE)
def test_known_tricks(raw: bytes) -> None:
    knock(raw)


GOOD_BEATS = {"deep arguments", "huge integer in arguments", "deep policy"}
"""To a beat these are unknown fields, and not too deep to be skipped."""


@pytest.mark.parametrize("name", sorted(HOSTILE.keys() - GOOD_BEATS))
def test_known_tricks_do_not_pass_for_a_beat(name: str) -> None:
    with pytest.raises(WireError):
        decode_beat(HOSTILE[name])


def test_the_last_of_two_equal_keys_counts() -> None:
    assert decode_beat(b'{"agent_id":"a","agent_id":"b"}').agent_id == "b"


def test_inventing_ids_does_not_fill_our_memory() -> None:
    for n in range(beats._KNOWN_IDS_MAX + 10):
        decode_beat(b'{"agent_id":"stranger-%d"}' % n)
    assert len(beats._known_ids) <= beats._KNOWN_IDS_MAX
    with pytest.raises(WireError):
        decode_beat(b'{"agent_id":"stranger 1"}')
