"""Batches: one bad message does not spoil the others."""

from __future__ import annotations

import msgspec
import pytest

from lifesigns.core.signals import AgentLeft, TaskDone
from lifesigns.errors import WireError
from lifesigns.wire import Batch, Rejected, decode_beats, decode_signals

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


def test_signals_come_in_batches_too() -> None:
    raw = (
        b'[{"type":"left","agent_id":"a"},{"type":"left"},{"type":"task_done","agent_id":"a","task_id":"t"}]'
    )
    batch = decode_signals(raw, now=0)
    assert batch.accepted == [AgentLeft(agent_id="a"), TaskDone(agent_id="a", task_id="t")]
    assert batch.rejected == [Rejected(1, "agent_id", "is missing")]
    assert decode_signals(raw[1:-1].replace(b"},{", b"}\n{"), now=0) == batch
