"""Batches: one bad message does not spoil the others."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.signals import AgentLeft, TaskDone
from lifesigns.errors import WireError
from lifesigns.wire import Batch, Rejected, decode_beat, decode_beats, decode_signals, pack, write_each
from lifesigns.wire.batches import split

GOOD, BAD, OTHER = b'{"agent_id": "a"}', b'{"agent_id": "b", "seq": "one"}', b'{"agent_id": "c", "seq": 1}'


@pytest.mark.parametrize(
    "raw",
    [
        b"[" + b",".join([GOOD, BAD, OTHER]) + b"]",
        b"\n".join([GOOD, BAD, OTHER]),
        b"\r\n".join([GOOD, BAD, OTHER, b""]),
        msgspec.msgpack.encode([msgspec.json.decode(item) for item in (GOOD, BAD, OTHER)]),
    ],
    ids=["array", "ndjson", "crlf", "msgpack"],
)
def test_the_bad_one_is_rejected_by_its_place_and_field(raw: bytes) -> None:
    batch = decode_beats(raw, source="door")
    assert [(beat.agent_id, beat.source) for beat in batch.accepted] == [("a", "door"), ("c", "door")]
    assert [(item.index, item.field) for item in batch.rejected] == [(1, "seq")]
    assert "int" in batch.rejected[0].detail


@pytest.mark.parametrize("bad", [b"[]", b"5", b"null", b'"text"', b"{}", b'{"agent_id": "no id"}'])
def test_whatever_the_bad_one_is(bad: bytes) -> None:
    batch = decode_beats(b"[" + GOOD + b"," + bad + b"]")
    assert [beat.agent_id for beat in batch.accepted] == ["a"]
    assert [item.index for item in batch.rejected] == [1]


def test_a_broken_line_is_rejected_alone() -> None:
    batch = decode_beats(GOOD + b'\n{"agent_id": "b", \n\n' + OTHER)
    assert [beat.agent_id for beat in batch.accepted] == ["a", "c"]
    assert [item.index for item in batch.rejected] == [1]


def test_one_beat_is_a_batch_of_one_however_it_is_laid_out() -> None:
    for raw in (GOOD, b' \n{\n "agent_id":\n "a"\n}\n', b"\x81\xa8agent_id\xa1a"):
        assert [beat.agent_id for beat in decode_beats(raw).accepted] == ["a"]
    assert [item.field for item in decode_beats(BAD).rejected] == ["seq"]


def test_an_empty_array_is_an_empty_batch() -> None:
    assert decode_beats(b"[]") == decode_beats(b" [ ] ") == decode_beats(b"\x90") == Batch([], [])


@pytest.mark.parametrize(
    "raw", [b"", b"[", b"[" + GOOD, b"[" + GOOD + b",]", b"\x92\x80", b"\xdd\xff\xff\xff\xff"]
)
def test_what_cannot_be_taken_apart_is_refused_as_a_whole(raw: bytes) -> None:
    with pytest.raises(WireError) as caught:
        decode_beats(raw)
    assert caught.value.field == ""


def test_fast_and_careful_read_the_same() -> None:
    """A batch over 64 KiB is read beat by beat; it is the same batch."""
    beats = [b'{"agent_id": "a%d", "load": 0.5, "seq": %d}' % (n, n) for n in range(3000)]
    raw = b"[" + b",".join(beats) + b"]"
    assert len(raw) > 65_536
    by_lines = [
        beat for n in range(0, 3000, 500) for beat in decode_beats(b"\n".join(beats[n : n + 500])).accepted
    ]
    assert decode_beats(raw).accepted == by_lines
    assert len(by_lines) == 3000


@given(
    st.fixed_dictionaries(
        {"agent_id": st.sampled_from(["a", "b", "no id"])},
        optional={
            "status": st.sampled_from(["busy", "idle", "healthy", ""]),
            "doing": st.sampled_from(["busy", None]),
            "timestamp": st.sampled_from([5000, "1970-01-01T01:23:20Z", None]),
            "until": st.sampled_from([5060, "1970-01-01T01:24:20Z", 1e12, None]),
            "load": st.sampled_from([-1, 0.5, 2]),
            "task_id": st.sampled_from(["t", "", None]),
            "tasks": st.sampled_from([["u", "v"], [], None]),
            "token_count": st.sampled_from([0, None]),
            "metadata": st.sampled_from(
                [{"tokens_in": "5"}, {"tokens_out": "x"}, {"k": "v"}, {}, {"k": 1}, None]
            ),
            "source": st.sampled_from(["root", 5]),
        },
    )
)
def test_a_beat_is_concluded_to_the_same_alone_and_in_a_batch(message: dict[str, Any]) -> None:
    """For speed these are two pieces of code."""
    raw = msgspec.json.encode(message)
    batch = decode_beats(b"[" + raw + b"]", source="door", now=100.0)
    if batch.rejected:
        with pytest.raises(WireError) as caught:
            decode_beat(raw, source="door", now=100.0)
        assert batch == Batch([], [Rejected(0, caught.value.field, caught.value.detail)])
    else:
        alone = decode_beat(raw, source="door", now=100.0)
        assert batch == Batch([alone], [])
        assert alone.task_id == (message.get("task_id") or next(iter(message.get("tasks") or ()), None))


def test_signals_come_in_batches_too() -> None:
    raw = (
        b'[{"type":"left","agent_id":"a"},{"type":"left"},{"type":"task_done","agent_id":"a","task_id":"t"}]'
    )
    batch = decode_signals(raw, now=0)
    assert batch.accepted == [AgentLeft(agent_id="a"), TaskDone(agent_id="a", task_id="t")]
    assert batch.rejected == [Rejected(1, "agent_id", "is missing")]
    assert decode_signals(raw[1:-1].replace(b"},{", b"}\n{"), now=0) == batch


@pytest.mark.parametrize("size_max", [20, 21, 64, 10_000])
def test_what_is_packed_is_read_back_in_order_and_no_parcel_is_too_large(size_max: int) -> None:
    parts = [f'{{"n":{n}}}'.encode() for n in range(200)]
    parcels = list(pack(parts, size_max))
    assert [part for parcel in parcels for part in split(parcel)] == parts
    assert max(map(len, parcels)) <= size_max


def test_what_is_too_large_for_any_parcel_is_left_out_alone(caplog: pytest.LogCaptureFixture) -> None:
    assert list(pack([b'"a"', b'"' + b"x" * 50 + b'"', b'"b"'], 20)) == [b'["a","b"]']
    assert "52 bytes is left out: the limit is 20" in caplog.text


def test_a_message_that_cannot_be_written_does_not_hold_up_the_others(
    caplog: pytest.LogCaptureFixture,
) -> None:
    assert list(write_each(["1", "two", "3"], lambda text: b"%d" % int(text))) == [b"1", b"3"]
    assert "str cannot be written" in caplog.text
