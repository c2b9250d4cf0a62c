"""Spans to a collector by OTLP over HTTP, configured by the standard `OTEL_EXPORTER_OTLP_*`. Loads OpenTelemetry.

A thread of the SDK sends them. While the collector is away they are dropped, and we log that once a minute.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from typing import Final

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import SERVICE_NAME, OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.sdk.trace.id_generator import RandomIdGenerator
from opentelemetry.sdk.trace.sampling import ALWAYS_ON
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from lifesigns.adapters.observe.tracing import Attributes, Ids

CLOSE_FOR: Final = 3.0
"""Seconds to send the rest when the hub stops. We do not wait for an absent collector."""

COMPLAIN_EVERY: Final = 60.0

log: Final = logging.getLogger("lifesigns.observe")


class OtlpSpans:
    """Implements `tracing.Spans`."""

    def __init__(self) -> None:
        self._complaints = _Complaints()
        self._complaints.begin()
        self._ids = _GivenIds()
        self._exporter = OTLPSpanExporter()
        self._provider = TracerProvider(
            sampler=ALWAYS_ON,  # `Tracing` has sampled already.
            resource=_resource(),
            shutdown_on_exit=False,
            id_generator=self._ids,
        )
        self._provider.add_span_processor(BatchSpanProcessor(self._exporter))
        self._tracer = self._provider.get_tracer("lifesigns")

    def add(
        self,
        name: str,
        began_at: float,
        ended_at: float,
        attributes: Attributes,
        *,
        own: Ids | None = None,
        parent: Ids | None = None,
        failed: str | None = None,
    ) -> None:
        self._ids.given = own
        try:
            span = self._tracer.start_span(
                name, _context(parent), attributes=attributes, start_time=_nanoseconds(began_at)
            )
        finally:
            self._ids.given = None
        if failed is not None:
            span.set_status(Status(StatusCode.ERROR, failed))
        span.end(_nanoseconds(ended_at))

    async def close(self) -> None:
        """Send what is pending; what takes longer than a few seconds is lost."""
        loop, done = asyncio.get_running_loop(), asyncio.Event()

        def shut_down() -> None:
            self._provider.shutdown()
            with contextlib.suppress(RuntimeError):  # It took so long that the loop is closed.
                loop.call_soon_threadsafe(done.set)

        # The SDK waits for half a minute and cannot be configured; nothing has to wait for this thread.
        threading.Thread(target=shut_down, name="lifesigns spans", daemon=True).start()
        try:
            async with asyncio.timeout(CLOSE_FOR):
                await done.wait()
        except TimeoutError:
            self._exporter.shutdown()  # type: ignore[no-untyped-call]
            log.warning("the last spans did not reach the collector", extra={"action": "last_spans_lost"})
        self._complaints.end()


def _resource() -> Resource:
    """Our name, unless the environment gives another."""
    named = OTELResourceDetector().detect().attributes.get(SERVICE_NAME, "lifesigns")
    return Resource.create({SERVICE_NAME: named})


def _context(parent: Ids | None) -> Context:
    if parent is None:
        return Context()
    ids = SpanContext(parent.trace, parent.span, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(ids), Context())


def _nanoseconds(at: float) -> int:
    return round(at * 1e6) * 1000  # A float has no more than microseconds at this distance from 1970.


class _GivenIds(RandomIdGenerator):
    """Random ids, except for a root whose ids follow from its subject."""

    given: Ids | None = None

    def generate_trace_id(self) -> int:
        return super().generate_trace_id() if self.given is None else self.given.trace

    def generate_span_id(self) -> int:
        return super().generate_span_id() if self.given is None else self.given.span


class _Complaints(logging.Handler):
    """Takes the SDK's warnings about an absent collector, and logs one a minute."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self._logger = logging.getLogger("opentelemetry")
        self._propagated = self._logger.propagate
        self._said_at = -COMPLAIN_EVERY
        self._unsaid = 0

    def begin(self) -> None:
        self._logger.addHandler(self)
        self._logger.propagate = False

    def end(self) -> None:
        self._logger.removeHandler(self)
        self._logger.propagate = self._propagated

    def emit(self, record: logging.LogRecord) -> None:
        now = time.monotonic()
        if now - self._said_at < COMPLAIN_EVERY:
            self._unsaid += 1
            return
        self._said_at = now
        log.warning(
            "spans do not reach the collector: %s",
            record.getMessage(),
            extra={"action": "spans_not_sent", "unsaid": self._unsaid},
        )
        self._unsaid = 0
