"""OTLP is read by hand: as the official reader reads it, from either form, whatever the bytes are."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from lifesigns.errors import WireError
from lifesigns.wire.otlp import Batch, Kind, Record, read_json, read_protobuf
from lifesigns.wire.otlp.records import DEPTH_MAX, RECORDS_MAX
from tests.wire import otlp_requests as r

Reader = Callable[[bytes, Kind], Batch]

texts = st.text(max_size=40)
leaves = st.one_of(
    texts,
    st.booleans(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.binary(max_size=20),
)
values = st.recursive(
    leaves, lambda of: st.lists(of, max_size=3) | st.dictionaries(texts, of, max_size=3), max_leaves=6
)
attributes = st.dictionaries(texts, values, max_size=5)
spans = st.builds(
    r.span,
    attributes,
    name=texts,
    at=st.integers(1, 2**33),
    took=st.just(0.5),
    number=st.integers(1, 2**64 - 1),
    trace=st.integers(1, 2**128 - 1),
    parent=st.integers(0, 2**64 - 1),
    error=st.none() | texts,
    exception=st.none() | st.fixed_dictionaries({"exception.type": texts, "exception.message": texts}),
)


def official(request: ExportTraceServiceRequest) -> list[tuple[Any, ...]]:
    """What the official messages say, as far as we read it."""
    found = []
    for source in request.resource_spans:
        resource = {pair.key: plain(pair.value) for pair in source.resource.attributes}
        for span in (span for scope in source.scope_spans for span in scope.spans):
            said = {pair.key: plain(pair.value) for pair in span.attributes}
            ids = (span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex())
            times = (span.start_time_unix_nano * 1e-9, span.end_time_unix_nano * 1e-9)
            found.append((span.name, said, resource, *times, *ids, span.status.code == 2))
    return found


def plain(value: Any) -> Any:
    which = value.WhichOneof("value")
    if which == "array_value":
        return [plain(item) for item in value.array_value.values]
    if which == "kvlist_value":
        return {pair.key: plain(pair.value) for pair in value.kvlist_value.values}
    return None if which is None else getattr(value, which)


def ids_of(record: Record) -> tuple[str, str, str]:
    return record.trace_id, record.span_id, record.parent_id


def ours(batch: Batch) -> list[tuple[Any, ...]]:
    return [
        (one.name, one.attributes, one.resource, *(one.started, one.ended), *ids_of(one), one.failed)
        for one in batch.records
    ]


@example([], {"0": -2.161727821137797e17})  # Each of its eight bytes looks as if a number went on after it.
@given(st.lists(spans, max_size=5), st.dictionaries(texts, values, min_size=1, max_size=4))
def test_both_forms_are_read_as_the_official_reader_does(
    many: list[dict[str, Any]], resource: dict[str, Any]
) -> None:
    request = r.traces(many, resource)
    expected = official(request)
    assert ours(read_protobuf(request.SerializeToString(), Kind.TRACES)) == expected
    assert ours(read_json(r.as_json(request), Kind.TRACES)) == expected


def test_the_exception_of_a_failed_span_is_read_from_its_events() -> None:
    thrown = {"exception.type": "builtins.ValueError", "exception.message": "no such file"}
    request = r.traces([r.span({}, error="", exception=thrown), r.span({}, exception=thrown)])
    for batch in both(request):
        failed, fine = batch.records
        assert (failed.failed, failed.error_type, failed.message) == (
            True,
            "builtins.ValueError",
            "no such file",
        )
        assert (fine.failed, fine.error_type, fine.message) == (False, "", "")


def test_a_log_record_has_a_time_a_body_and_attributes() -> None:
    request = r.logs(
        [{"event.name": "tool_result"}], {"service.name": "claude-code"}, body="claude_code.tool_result"
    )
    read = read_protobuf(request.SerializeToString(), Kind.LOGS), read_json(r.as_json(request), Kind.LOGS)
    for batch in read:
        (record,) = batch.records
        assert (record.ended, record.message) == (r.EPOCH, "claude_code.tool_result")
        assert (record.attributes, record.resource) == (
            {"event.name": "tool_result"},
            {"service.name": "claude-code"},
        )


@pytest.mark.parametrize("never", ['"0"', "0"])
def test_a_log_record_without_a_time_has_that_of_its_observation(never: str) -> None:
    """Codex writes the time it does not know as "0"."""
    record = f'{{"timeUnixNano": {never}, "observedTimeUnixNano": "{r.nano(r.EPOCH)}", "body": null}}'
    raw = f'{{"resourceLogs": [{{"scopeLogs": [{{"logRecords": [{record}]}}]}}]}}'
    assert read_json(raw.encode(), Kind.LOGS).records[0].ended == r.EPOCH
    unseen = r.logs([{}], {"service.name": "codex-cli"}, at=0)
    unseen.resource_logs[0].scope_logs[0].log_records[0].observed_time_unix_nano = r.nano(r.EPOCH)
    assert read_protobuf(unseen.SerializeToString(), Kind.LOGS).records[0].ended == r.EPOCH


def both(request: ExportTraceServiceRequest) -> tuple[Batch, Batch]:
    return (
        read_protobuf(request.SerializeToString(), Kind.TRACES),
        read_json(r.as_json(request), Kind.TRACES),
    )


@given(st.binary(max_size=200), st.sampled_from(Kind))
def test_no_bytes_raise_anything_but_a_wire_error(raw: bytes, kind: Kind) -> None:
    for read in (read_protobuf, read_json):
        with suppress(WireError):
            read(raw, kind)


@given(st.data())
def test_a_request_that_was_cut_or_changed_raises_nothing_else_either(data: st.DataObject) -> None:
    whole = r.traces([r.tool(1, error="no"), r.tool(2)]).SerializeToString()
    cut = bytearray(whole[: data.draw(st.integers(0, len(whole)))])
    for _ in range(data.draw(st.integers(0, 3))):
        if cut:
            cut[data.draw(st.integers(0, len(cut) - 1))] = data.draw(st.integers(0, 255))
    with suppress(WireError):
        read_protobuf(bytes(cut), Kind.TRACES)


def nested(depth: int) -> bytes:
    """A request with an attribute of so many arrays in each other; the official classes refuse to make it."""

    def field(number: int, body: bytes) -> bytes:
        size, more = bytearray(), len(body)
        while more >= 0x80:
            size.append(more & 0x7F | 0x80)
            more >>= 7
        size.append(more)
        return bytes([number << 3 | 2]) + bytes(size) + body

    value = field(1, b"x")
    for _ in range(depth):
        value = field(5, field(1, value))
    return field(1, field(2, field(2, field(9, field(1, b"a") + field(2, value)))))


def test_an_attribute_may_be_nested_so_deep_and_no_deeper() -> None:
    assert read_protobuf(nested(DEPTH_MAX), Kind.TRACES).records
    for depth in (DEPTH_MAX + 1, 5_000):
        with pytest.raises(WireError, match="nested too deeply"):
            read_protobuf(nested(depth), Kind.TRACES)


def test_json_may_be_nested_no_deeper_either() -> None:
    def deep(depth: int) -> bytes:
        value = '{"arrayValue": {"values": [' * depth + '{"stringValue": "x"}' + "]}}" * depth
        spans = '{"attributes": [{"key": "a", "value": ' + value + "}]}"
        return ('{"resourceSpans": [{"scopeSpans": [{"spans": [' + spans + "]}]}]}").encode()

    assert read_json(deep(DEPTH_MAX), Kind.TRACES).records
    for depth in (DEPTH_MAX + 2, 100_000):
        with pytest.raises(WireError, match="nested too deeply"):
            read_json(deep(depth), Kind.TRACES)


def test_a_delivery_has_a_limit_of_records() -> None:
    """Two bytes each: the limit of a body alone would let four million through."""
    scope = b"\x12\x00" * (RECORDS_MAX + 1)
    length = bytes([len(scope) & 0x7F | 0x80, len(scope) >> 7 & 0x7F | 0x80, len(scope) >> 14])
    source = b"\x12" + length + scope
    whole = len(source)
    raw = b"\x0a" + bytes([whole & 0x7F | 0x80, whole >> 7 & 0x7F | 0x80, whole >> 14]) + source
    with pytest.raises(WireError, match=f"over {RECORDS_MAX} records"):
        read_protobuf(raw, Kind.TRACES)


@pytest.mark.parametrize("read", [read_protobuf, read_json])
@pytest.mark.parametrize("kind", Kind)
def test_an_empty_request_says_nothing(read: Reader, kind: Kind) -> None:
    raw = b"" if read is read_protobuf else b"{}"
    assert read(raw, kind) == Batch()
