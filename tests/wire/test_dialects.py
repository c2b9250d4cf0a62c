"""The four dialects of a beat, read as their senders write them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from lifesigns.core.health import Doing
from lifesigns.core.signals import BeatReceived, Metrics
from lifesigns.errors import WireError
from lifesigns.wire import WireBeat, WireMetrics, decode_beat, decode_beats, encode_beat, plain

CONTRACT = b"""{"agent_id": "coder-7", "timestamp": "2026-11-15T18:00:00.000Z", "seq": 42, "incarnation": "01JD",
 "status": "busy", "doing": "working", "until": null, "load": 0.4,
 "task_id": "t-19", "tasks": ["t-19"], "phase": "tests", "progress": "12/40 files",
 "last_tool_call": "2026-11-15T17:59:58Z", "last_checkpoint": "2026-11-15T17:55:00.500Z",
 "token_count": 18230, "cost_usd": 0.31, "error_count": 0, "capacity_available": 3, "loop_lag_ms": 1.8,
 "metrics": {"cpu_percent": 12.5, "memory_mb": 310, "tasks_completed": 4, "tasks_failed": 0, "uptime_s": 7200},
 "host": "ws-1", "pid": 4711, "role": "active-development", "metadata": {"any": "string"}}"""

CONTRACT_READ = BeatReceived(
    agent_id="coder-7",
    seq=42,
    incarnation="01JD",
    sent_at=1794765600.0,
    status="busy",
    doing=Doing.WORKING,
    load=0.4,
    task_id="t-19",
    tasks=("t-19",),
    phase="tests",
    progress="12/40 files",
    last_tool_call="2026-11-15T17:59:58Z",
    last_checkpoint="2026-11-15T17:55:00.500Z",
    token_count=18230,
    cost_usd=0.31,
    error_count=0,
    capacity_available=3,
    loop_lag_ms=1.8,
    metrics=Metrics(cpu_percent=12.5, memory_mb=310.0, tasks_completed=4, tasks_failed=0, uptime_s=7200.0),
    host="ws-1",
    pid=4711,
    role="active-development",
    metadata={"any": "string"},
    source="door",
)

SENTINEL = b"""{
  "worker_id": "worker-local-1",
  "timestamp": 1704067200000,
  "health_status": "healthy",
  "current_tasks": ["task-123", "task-456"],
  "capacity_available": 3,
  "metrics": {
    "cpu_usage": 45.2,
    "memory_usage": 2048,
    "tasks_completed": 42,
    "tasks_failed": 2,
    "uptime": 7200
  }
}"""

CAMEL = b"""{"agentId": "agent-1", "taskId": "task-9", "timestamp": "2026-01-24T12:00:00Z", "phase": "build",
 "lastToolCall": "2026-01-24T11:59:00Z", "tokenCount": 1234, "errorCount": 2, "progressIndicator": "3/7"}"""

AGENTKIT = b"""{"agent_id":"go-1","timestamp":"2026-11-15T18:00:00.123456789Z","status":"idle","load":0.25,
 "metadata":{"tokens_in":"1200","tokens_out":"34","llm_calls":"7"}}"""


def as_msgpack(raw: bytes) -> bytes:
    return msgspec.msgpack.encode(json.loads(raw))


def both(message: dict[str, Any]) -> tuple[bytes, bytes]:
    """The message as JSON and as MessagePack."""
    return json.dumps(message).encode(), msgspec.msgpack.encode(message)


@pytest.mark.parametrize("raw", [CONTRACT, as_msgpack(CONTRACT)], ids=["json", "msgpack"])
def test_the_contracts_example_is_read_field_by_field(raw: bytes) -> None:
    assert plain(decode_beat(raw, source="door")) == CONTRACT_READ


@pytest.mark.parametrize("raw", [SENTINEL, as_msgpack(SENTINEL)], ids=["json", "msgpack"])
def test_a_task_sentinel_beat_is_read_as_its_protocol_shows_it(raw: bytes) -> None:
    assert plain(decode_beat(raw)) == BeatReceived(
        agent_id="worker-local-1",
        sent_at=1704067200.0,
        status="healthy",
        tasks=("task-123", "task-456"),
        task_id="task-123",
        capacity_available=3,
        metrics=Metrics(
            cpu_percent=45.2, memory_mb=2048.0, tasks_completed=42, tasks_failed=2, uptime_s=7200.0
        ),
    )


@pytest.mark.parametrize("raw", [CAMEL, as_msgpack(CAMEL)], ids=["json", "msgpack"])
def test_a_heartbeat_payload_of_impl_req_003_is_read_in_camel_case(raw: bytes) -> None:
    assert plain(decode_beat(raw)) == BeatReceived(
        agent_id="agent-1",
        task_id="task-9",
        sent_at=1769256000.0,
        phase="build",
        last_tool_call="2026-01-24T11:59:00Z",
        token_count=1234,
        error_count=2,
        progress="3/7",
    )


@pytest.mark.parametrize("raw", [AGENTKIT, as_msgpack(AGENTKIT)], ids=["json", "msgpack"])
def test_an_agentkit_beat_of_five_fields_brings_its_tokens_in_the_metadata(raw: bytes) -> None:
    beat = decode_beat(raw)
    assert (beat.agent_id, beat.status, beat.doing, beat.load) == ("go-1", "idle", Doing.IDLE, 0.25)
    assert beat.sent_at == pytest.approx(1794765600.123456, abs=1e-6)
    assert beat.token_count == 1234
    assert beat.metadata == {"tokens_in": "1200", "tokens_out": "34", "llm_calls": "7"}


def test_dialects_may_be_mixed_in_one_batch() -> None:
    batch = decode_beats(b"[" + b",".join([CONTRACT, SENTINEL, CAMEL, AGENTKIT]) + b"]")
    assert [beat.agent_id for beat in batch.accepted] == ["coder-7", "worker-local-1", "agent-1", "go-1"]
    assert batch.rejected == []


def test_only_the_id_is_required() -> None:
    assert plain(decode_beat(b'{"agent_id": "a"}')) == BeatReceived("a")


@pytest.mark.parametrize("raw", [CONTRACT, AGENTKIT, b'{"agent_id": "a", "tasks": ["t"], "until": 5}'])
def test_the_careful_way_reads_what_the_fast_way_reads(raw: bytes) -> None:
    """`source` is unknown to a peer: a wrong type in it is ignored, but the fast way stumbles over it."""
    careful = decode_beat(raw[:-1] + b', "source": 5}', source="door", now=9.0)
    assert careful == decode_beat(raw, source="door", now=9.0)


@pytest.mark.parametrize("raw", [CONTRACT, SENTINEL, CAMEL, AGENTKIT])
def test_a_beat_of_any_dialect_is_the_same_kind_of_thing(raw: bytes) -> None:
    beat = decode_beat(raw)
    assert type(beat) is WireBeat
    assert type(beat.metrics) in (WireMetrics, type(None))


def test_null_is_the_default() -> None:
    message = dict.fromkeys(json.loads(CONTRACT)) | {"agent_id": "a"}
    assert plain(decode_beat(json.dumps(message).encode())) == BeatReceived("a")


def test_unknown_fields_are_ignored() -> None:
    beat = decode_beat(b'{"agent_id": "a", "x": {"y": [1, null]}, "metrics": {"z": 1}}')
    assert plain(beat) == BeatReceived("a", metrics=Metrics())


@pytest.mark.parametrize(
    ("metadata", "tokens"),
    [
        ({"tokens_in": "5"}, 5),
        ({"tokens_out": "5"}, 5),
        ({"tokens_in": "5", "tokens_out": "many"}, 5),
        ({"tokens_in": "", "tokens_out": "-3"}, None),
        ({"tokens_in": "9" * 18}, 10**18 - 1),
        ({"tokens_in": "9" * 19}, None),
        ({"tokens_in": "²"}, None),
        ({"tokens_in": 5, "tokens_out": 6}, 11),
        ({"other": "5"}, None),
    ],
)
def test_tokens_in_metadata_count_where_they_are_numbers(
    metadata: dict[str, Any], tokens: int | None
) -> None:
    raw = json.dumps({"agent_id": "a", "metadata": metadata}).encode()
    assert decode_beat(raw).token_count == tokens


def test_a_token_count_of_its_own_goes_before_the_metadata() -> None:
    raw = b'{"agent_id": "a", "token_count": 0, "metadata": {"tokens_in": "5"}}'
    assert decode_beat(raw).token_count == 0


@pytest.mark.parametrize(
    ("status", "doing"),
    [
        ("idle", Doing.IDLE),
        ("busy", Doing.WORKING),
        ("working", Doing.WORKING),
        ("waiting", Doing.WAITING_FOR_HUMAN),
        ("waiting_for_human", Doing.WAITING_FOR_HUMAN),
        ("draining", Doing.DRAINING),
        ("rate_limited", Doing.RATE_LIMITED),
        ("healthy", None),
        ("", None),
    ],
)
def test_status_says_what_the_agent_is_doing_if_it_does_not_say_so_itself(status: str, doing: Doing) -> None:
    assert decode_beat(json.dumps({"agent_id": "a", "status": status}).encode()).doing == doing
    said = json.dumps({"agent_id": "a", "status": status, "doing": "busy"}).encode()
    assert decode_beat(said).doing == Doing.BUSY


def test_metadata_that_is_no_text_is_spelled_as_json_spells_it() -> None:
    raw = b'{"agent_id": "a", "metadata": {"n": 5, "x": 1.5, "b": true, "none": null, "s": "t"}}'
    assert decode_beat(raw).metadata == {"n": "5", "x": "1.5", "b": "true", "s": "t"}


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-15T18:00:00Z", 1794765600.0),
        ("2026-11-15T20:00:00+02:00", 1794765600.0),
        ("2026-11-15T18:00:00.5Z", 1794765600.5),
        ("0001-01-01T00:00:00+23:59", -62135683140.0),
        ("9999-12-31T23:59:59-23:59", 253402387139.0),
        (1794765600, 1794765600.0),
        (1794765600.25, 1794765600.25),
        (1e11, 1e11),
        (100_000_000_001, 100_000_000.001),
        (1794765600250, 1794765600.25),
        (-5, -5.0),
        (1e300, 1e297),
    ],
)
def test_moments_are_rfc_3339_or_epoch_seconds_or_milliseconds(moment: Any, expected: float) -> None:
    for field, name in [("timestamp", "sent_at"), ("until", "until")]:
        for raw in both({"agent_id": "a", field: moment}):
            assert getattr(decode_beat(raw), name) == expected
            assert getattr(decode_beats(raw).accepted[0], name) == expected


@pytest.mark.parametrize(
    "moment", ["yesterday", "2026-11-15T18:00:00", "2026-13-01T00:00:00Z", True, [], 1e301]
)
def test_a_moment_that_cannot_be_read_is_named(moment: Any) -> None:
    for field in ("timestamp", "until"):
        for raw in both({"agent_id": "a", field: moment}):
            with pytest.raises(WireError) as caught:
                decode_beat(raw)
            assert caught.value.field == field


SHOWN = ["last_tool_call", "last_checkpoint"]


@pytest.mark.parametrize("field", SHOWN)
@pytest.mark.parametrize(
    ("moment", "shown"),
    [
        ("2026-11-15T20:00:00.123456+02:00", "2026-11-15T20:00:00.123456+02:00"),
        ("yesterday", "yesterday"),
        ("", ""),
        (1794765600, "2026-11-15T18:00:00.000Z"),
        (1794765600.25, "2026-11-15T18:00:00.250Z"),
        (1794765600250, "2026-11-15T18:00:00.250Z"),
        (-5, "1969-12-31T23:59:55.000Z"),
        (1e300, "1e+300"),
        (-1e300, "-1e+300"),
    ],
)
def test_a_moment_that_is_only_shown_is_the_agents_own_word(field: str, moment: Any, shown: str) -> None:
    """Nothing is concluded from it, so no text is wrong; numbers are written out as everywhere."""
    for raw in both({"agent_id": "a", field: moment}):
        assert getattr(decode_beat(raw), field) == shown


def test_a_timestamp_of_messagepacks_own_is_a_moment_too() -> None:
    at = datetime(2026, 11, 15, 18, tzinfo=UTC)
    packed = msgspec.msgpack.encode({"agent_id": "a", "last_tool_call": at, "timestamp": at, "until": at})
    beat = decode_beat(packed)
    assert (beat.sent_at, beat.until) == (1794765600.0, 1794765600.0)
    assert beat.last_tool_call == "2026-11-15T18:00:00.000Z"


@pytest.mark.parametrize(
    ("message", "field"),
    [({"agent_id": "a"}, field) for field in SHOWN] + [({"agentId": "a"}, "lastToolCall")],
)
@pytest.mark.parametrize("wrong", [True, [], {}, {"a": 1}, 1e301, 10**400, "x" * 1025])
def test_what_is_neither_text_nor_number_is_no_moment_to_show(
    message: dict[str, Any], field: str, wrong: Any
) -> None:
    with pytest.raises(WireError) as caught:
        decode_beat(json.dumps(message | {field: wrong}).encode())
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("now", "timestamp", "until"),
    [(1000.0, 5000, 1060.0), (None, 5000, 5060.0), (1000.0, None, 5060.0)],
)
def test_until_is_as_far_from_our_now_as_it_was_from_the_agents(
    now: float | None, timestamp: float | None, until: float
) -> None:
    raw = json.dumps({"agent_id": "a", "timestamp": timestamp, "until": 5060}).encode()
    assert decode_beat(raw, now=now).until == until
    assert decode_beats(b"[" + raw + b"]", now=now).accepted[0].until == until


@pytest.mark.parametrize(
    ("load", "read"), [(-0.1, 0.0), (0, 0.0), (0.5, 0.5), (1, 1.0), (1.01, 1.0), (9e99, 1.0)]
)
def test_load_is_clamped_to_0_and_1(load: float, read: float) -> None:
    for raw in both({"agent_id": "a", "load": load}):
        assert decode_beat(raw).load == read
        assert decode_beats(raw).accepted[0].load == read


FR_002 = {
    "agent_id": "agent-1",
    "task_id": "task-9",
    "current_phase": "build",
    "last_tool_call_timestamp": "2026-01-24T11:59:00Z",
    "token_count": 1234,
    "error_count": 2,
    "progress_indicator": "3/7",
}


def test_a_heartbeat_of_fr_002_is_read_under_its_own_names() -> None:
    """They were accepted and ignored: its phase, its last tool call and its progress were lost."""
    read = BeatReceived(
        agent_id="agent-1",
        task_id="task-9",
        phase="build",
        last_tool_call="2026-01-24T11:59:00Z",
        token_count=1234,
        error_count=2,
        progress="3/7",
    )
    for raw in both(FR_002):
        assert plain(decode_beat(raw)) == read
        assert [plain(beat) for beat in decode_beats(raw).accepted] == [read]
        assert plain(decode_beat(encode_beat(decode_beat(raw)))) == read
    together = json.dumps([FR_002, FR_002]).encode()
    assert [plain(beat) for beat in decode_beats(together).accepted] == [read, read]


def test_a_number_is_a_moment_in_fr_002_too_and_our_own_names_come_first() -> None:
    for raw in both(
        {"agent_id": "a", "last_tool_call_timestamp": 1769255940000, "phase": "ours", "current_phase": "x"}
    ):
        beat = decode_beat(raw)
        assert beat.last_tool_call is not None
        assert beat.last_tool_call.startswith("2026-01-24T11:59:00")
        assert beat.phase == "ours"
