"""OTLP over gRPC: the services to which exporters send traces, logs and metrics, on the hub's gRPC port. Needs the extra `grpc`.

The messages are those of OTLP over HTTP, so they are handed on as bytes and read by the same code; nothing of OpenTelemetry is
needed here. The token comes as metadata: `authorization: Bearer <token>`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Final

from lifesigns.adapters.observe import grpc_requests

REQUEST_MAX: Final = 4 * 1024 * 1024
"""Bytes; the default of gRPC, and more than an exporter's batch takes."""
OK: Final = "OK"

_SERVICES: Final = {
    "traces": "opentelemetry.proto.collector.trace.v1.TraceService",
    "logs": "opentelemetry.proto.collector.logs.v1.LogsService",
    "metrics": "opentelemetry.proto.collector.metrics.v1.MetricsService",
}

TakeBatch = Callable[[str, bytes, str], Awaitable[tuple[str, bytes]]]
"""Takes a batch: which of the three, its bytes, and who says so (`Bearer <token>`). Returns the name of a gRPC status, and the
answer or the reason."""


def handlers(grpc: Any, take: TakeBatch) -> tuple[Any, ...]:
    """The services, for a gRPC server."""
    return tuple(
        grpc.method_handlers_generic_handler(
            service, {"Export": grpc.unary_unary_rpc_method_handler(_export(grpc, take, kind))}
        )
        for kind, service in _SERVICES.items()
    )


def _export(grpc: Any, take: TakeBatch, kind: str) -> Callable[[bytes, Any], Awaitable[bytes]]:
    async def export(request: bytes, context: Any) -> bytes:
        said = grpc_requests.begin(context)
        status, answer = await take(kind, request, said.get("authorization", ""))
        if status != OK:
            await context.abort(grpc.StatusCode[status], answer.decode())
        return answer

    return export
