"""Interventions, flips and looks reach a collector as spans, at the times at which they happened."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import pytest

from lifesigns.adapters.observe.tracing import SPANS_PER_SECOND, STORIES_MAX, Attributes, Ids, Tracing, ids_of
from lifesigns.core.effects import Finding, Flip, Kind, Severity
from lifesigns.core.health import Health
from lifesigns.core.signals import (
    Answer,
    BeatReceived,
    NudgeAnswered,
    NudgeDelivered,
    NudgeRequested,
    NudgeSeen,
)
from lifesigns.errors import UsageError
from lifesigns.events import event_of
from lifesigns.ports import Event
from tests.adapters.observe.collector import Collector, collector, said
from tests.hub.ground import Ground

NANO = 1_000_000_000


@pytest.fixture
def received(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collector() as it:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", it.url)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=agents")
        yield it


@dataclass
class Added:
    """A span as `Tracing` made it."""

    name: str
    began_at: float
    ended_at: float
    attributes: Attributes
    own: Ids | None = None
    parent: Ids | None = None
    failed: str | None = None


class Kept:
    """Spans that stay here."""

    def __init__(self) -> None:
        self.spans: list[Added] = []

    def add(self, *args: Any, **fields: Any) -> None:
        self.spans.append(Added(*args, **fields))

    async def close(self) -> None:
        pass


def step(number: int, at: float, stage: str, **fields: Any) -> Event:
    data: dict[str, Any] = {
        "agent_id": "a",
        "id": "1-7",
        "rung": "nudge",
        "stage": stage,
        "attempt": 1,
        "text": "",
        "by": "",
    } | fields
    return Event(number, at, "INTERVENTION", data["agent_id"], json.dumps(data).encode())


def flip(number: int, at: float, to: str, agent_id: str = "a", since: float | None = None) -> Event:
    evidence = () if since is None else (Finding(Kind.SILENCE, since, Severity.DISCONNECTED, "silent"),)
    return event_of(number, Flip(at, agent_id, Health.HEALTHY, Health(to), "why", None, evidence))


# --- to a collector -------------------------------------------------------------------------------------


async def test_a_nudge_is_one_trace_from_order_to_answer(received: Collector) -> None:
    """Its times are those of the facts, its ids follow from the agent's and the intervention's."""
    async with Ground() as ground:
        ground.hub.hear([BeatReceived("a", 1, "one")])
        await ground.hub.store_reports([NudgeRequested(agent_id="a", by="me", message="how is it going?")])
        nudge_id, ordered_at = ground.orders[0].order_id, ground.now
        ground.now += 2
        await ground.hub.store_reports([NudgeDelivered(agent_id="a", order_id=nudge_id)])
        ground.now += 3
        await ground.hub.store_reports([NudgeSeen(agent_id="a", nudge_id=nudge_id)])
        ground.now += 5
        await ground.hub.store_reports(
            [NudgeAnswered(agent_id="a", nudge_id=nudge_id, answer=Answer.PROGRESS, note="fine")]
        )
        tracing = Tracing(ratio=0)
        tracing.tell(ground.events)
        await tracing.close()
    (root,) = received.named("lifesigns.nudge")
    digest = sha256(f"lifesigns intervention a {nudge_id}".encode()).digest()
    assert (root.trace_id, root.span_id, root.parent_span_id) == (digest[:16], digest[16:24], b"")
    assert (root.start_time_unix_nano, root.end_time_unix_nano) == (
        ordered_at * NANO,
        (ordered_at + 10) * NANO,
    )
    assert said(root)["outcome"] == "answered"
    stages = {}
    for span in received.spans:
        if span.name.startswith("lifesigns.nudge."):
            assert (span.trace_id, span.parent_span_id) == (root.trace_id, root.span_id)
            assert said(span)["agent_id"] == "a"
            stages[said(span)["stage"]] = (span.end_time_unix_nano - span.start_time_unix_nano) / NANO
    assert stages == {"ordered": 0, "delivered": 2, "seen": 3, "answered": 5}
    assert said(received.named("lifesigns.nudge.ordered")[0])["by"] == "me"
    assert received.services == {"lifesigns"}
    assert received.headers[0]["x-team"] == "agents"


async def test_the_environment_may_name_us_otherwise(
    received: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SERVICE_NAME", "night-watch")
    tracing = Tracing(ratio=1)
    tracing.looked(99.0, 100.0, 100.5, 3)
    await tracing.close()
    assert received.services == {"night-watch"}
    (look,) = received.named("lifesigns.health_check")
    assert said(look) == {"late_s": 1.0, "effects": 3}
    assert look.end_time_unix_nano - look.start_time_unix_nano == NANO / 2


async def test_a_collector_that_is_away_is_mentioned_once_and_holds_up_nobody(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with socket.socket() as nobody:  # bound and not listening: who calls is refused
        nobody.bind(("127.0.0.1", 0))
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{nobody.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        tracing = Tracing(ratio=1.0)
        began = time.monotonic()
        for number in range(50):
            tracing.looked(number, number, number, 0)
        assert time.monotonic() - began < 1
        await tracing.close()
    actions = [getattr(record, "action", record.name) for record in caplog.records]
    assert actions.count("spans_not_sent") == 1
    assert set(actions) <= {"spans_not_sent", "last_spans_lost"}
    assert logging.getLogger("opentelemetry").propagate


async def test_a_collector_that_never_answers_does_not_keep_the_hub_from_stopping(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("lifesigns.adapters.observe.otlp_spans.CLOSE_FOR", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as mute:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{mute.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
        tracing = Tracing(ratio=1.0)
        tracing.looked(1, 1, 1, 0)
        async with asyncio.timeout(10):
            await tracing.close()
        assert "last_spans_lost" in [getattr(record, "action", "") for record in caplog.records]
        for thread in threading.enumerate():
            if thread.name == "lifesigns spans":
                thread.join(30)


def test_opentelemetry_is_not_loaded_unless_it_is_used_and_a_missing_extra_is_named() -> None:
    code = """
import sys
sys.modules["opentelemetry.sdk"] = None
from lifesigns.adapters.observe.tracing import Tracing
from lifesigns.errors import UsageError
assert not [name for name in sys.modules if name.startswith("opentelemetry.") and sys.modules[name]]
try:
    Tracing()
except UsageError as error:
    print(error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert "pip install 'lifesigns[otel]'" in ran.stdout


# --- which spans, and when ------------------------------------------------------------------------------


def test_a_termination_that_failed_and_is_tried_again_is_one_trace() -> None:
    spans = Kept()
    tracing = Tracing(spans=spans)
    for number, (at, stage) in enumerate([(10, "ordered"), (40, "failed"), (50, "ordered"), (60, "done")]):
        tracing.tell([step(number, at, stage, rung="terminate", text="why")])
    (root,) = [span for span in spans.spans if span.own is not None]
    assert (root.name, root.began_at, root.ended_at) == ("lifesigns.terminate", 10, 60)
    assert root.failed is None
    failed = [span for span in spans.spans if span.name == "lifesigns.terminate.failed"]
    assert [span.failed for span in failed] == ["why"]


def test_a_nudge_that_is_followed_by_another_was_not_answered_and_a_late_answer_still_belongs_to_it() -> None:
    spans = Kept()
    tracing = Tracing(spans=spans)
    tracing.tell([step(1, 10, "ordered", id="1-1"), step(2, 610, "ordered", id="1-2", attempt=2)])
    (root,) = [span for span in spans.spans if span.own is not None]
    assert (root.own, root.ended_at, root.attributes["lifesigns.outcome"]) == (
        ids_of("a", "1-1"),
        610,
        "unanswered",
    )
    tracing.tell([step(3, 620, "answered", id="1-1")])
    assert [span.own for span in spans.spans if span.own is not None] == [root.own]
    assert spans.spans[-1].parent == root.own


def test_a_hub_that_takes_over_goes_on_with_the_same_trace() -> None:
    spans = Kept()
    Tracing(spans=spans).tell([step(1, 10, "ordered")])
    Tracing(spans=spans).tell([step(2, 20, "answered")])
    assert {span.parent or span.own for span in spans.spans} == {ids_of("a", "1-7")}
    assert [span.name for span in spans.spans if span.own] == ["lifesigns.nudge"]


def test_a_step_that_was_held_before_it_was_ordered_is_no_trace_yet() -> None:
    spans = Kept()
    Tracing(spans=spans).tell([step(1, 10, "held", id="")])
    assert spans.spans == []


def test_a_flip_lasts_from_its_oldest_evidence_and_belongs_to_the_agents_intervention() -> None:
    spans = Kept()
    tracing = Tracing(spans=spans)
    tracing.tell([flip(1, 100, "stuck", since=40.0), step(2, 101, "ordered"), flip(3, 110, "failing")])
    first, _, second = spans.spans
    assert (first.began_at, first.ended_at, first.parent) == (40, 100, None)
    assert (second.began_at, second.ended_at, second.parent) == (110, 110, ids_of("a", "1-7"))


def test_what_calls_nobody_is_sampled_evenly() -> None:
    spans = Kept()
    tracing = Tracing(ratio=0.1, spans=spans)
    tracing.tell([flip(n, n, "healthy") for n in range(100)])
    assert len(spans.spans) == 10
    for n in range(100):
        tracing.looked(n, n, n, 0)
    assert len(spans.spans) == 20
    silent = Tracing(ratio=0, spans=spans)
    silent.tell([flip(1, 1, "healthy")])
    silent.looked(1, 1, 1, 1)
    assert len(spans.spans) == 20


def test_a_fleet_that_falls_over_is_not_held_up_by_its_traces() -> None:
    """100,000 flips at once become as many spans as a second may have; samples leave room for what matters."""
    spans = Kept()
    tracing = Tracing(ratio=1.0, spans=spans)
    for n in range(10 * SPANS_PER_SECOND):
        tracing.looked(n, n, n, 0)
    looks = len(spans.spans)
    assert looks < 0.8 * SPANS_PER_SECOND
    began = time.monotonic()
    tracing.tell([flip(n, n, "disconnected", f"a-{n}") for n in range(100_000)])
    took = time.monotonic() - began
    assert len(spans.spans) - looks <= SPANS_PER_SECOND * (1 + took)
    assert len(spans.spans) - looks >= 0.3 * SPANS_PER_SECOND


def test_what_is_remembered_is_bounded() -> None:
    tracing = Tracing(spans=Kept())
    for n in range(STORIES_MAX + 100):
        tracing.tell([step(n, n, "ordered", id=f"1-{n}", agent_id=f"a-{n}")])
    assert len(tracing._stories) == len(tracing._of_agent) == STORIES_MAX


def test_an_event_that_cannot_be_read_is_not_traced() -> None:
    spans = Kept()
    Tracing(spans=spans).tell([Event(1, 1.0, "INTERVENTION", "a", b"{}"), flip(2, 2, "stuck")])
    assert [span.name for span in spans.spans] == ["lifesigns.flip"]


def test_a_span_that_cannot_be_added_disturbs_nobody(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Kept):
        def add(self, *args: Any, **fields: Any) -> None:
            raise RuntimeError("full")

    Tracing(spans=Broken()).tell([flip(1, 1, "stuck"), flip(2, 2, "failing")])
    assert [getattr(record, "action", "") for record in caplog.records] == ["span_failed", "span_failed"]


@pytest.mark.parametrize("ratio", [-0.1, 1.1, float("nan")])
def test_a_ratio_that_is_none_is_refused(ratio: float) -> None:
    with pytest.raises(UsageError, match="from 0 to 1"):
        Tracing(ratio, Kept())
