"""OTLP over HTTP: exporters of OpenTelemetry point at a hub, and what their agents did is heard."""

from __future__ import annotations

from typing import Any, Final

from msgspec import Struct

from lifesigns.hub.principals import Principal
from lifesigns.hub.service import Service
from lifesigns.web.answers import Answer, Problem
from lifesigns.web.routes import SPEAKERS, Request, Route
from lifesigns.wire.otlp import Form, Kind, encode_answer


class PartialSuccess(Struct, rename="camel", omit_defaults=True):
    """How many records were rejected, as a text, and why."""

    rejected_spans: str = ""
    rejected_log_records: str = ""
    rejected_data_points: str = ""
    error_message: str = ""


class OtlpAnswer(Struct, rename="camel", omit_defaults=True):
    """`{}` if everything counts. In protobuf if the request was."""

    partial_success: PartialSuccess | None = None


async def traces(request: Request) -> Answer:
    """Spans that ended: tool calls, model calls and runs, by the GenAI conventions or OpenInference. Each counts once and in
    the order of their ends, however late and shuffled they come."""
    return await _take(request, Kind.TRACES)


async def logs(request: Request) -> Answer:
    """Log events of coding agents: those of Claude Code and Codex."""
    return await _take(request, Kind.LOGS)


async def metrics(request: Request) -> Answer:
    """Metrics, so that an exporter of all three has where to send them: a sign of life of agents known by spans or events."""
    return await _take(request, Kind.METRICS)


async def _take(request: Request, kind: Kind) -> Answer:
    form = _form(request)
    body = await take_batch(request.service, request.site, request.body, form, kind, request.principal)
    # In protobuf "everything counts" is written in no bytes at all, and has a type nevertheless.
    headers = () if body else ((b"content-type", form.encode()),)
    return Answer(body, 200, form.encode(), headers)


async def take_batch(
    service: Service, site: Any, raw: bytes, form: Form, kind: Kind, who: Principal
) -> bytes:
    """Hear a batch of somebody's; the answer to its exporter. Raises a `Problem` if nothing of it counts."""
    result = await service.otlp_receiver.take(raw, form, kind, who)
    site.rates.signals.charge(who.token_id, service.clock(), result.records)
    if result.rejected and not result.taken:
        raise Problem(403 if result.forbidden else 400, f"nothing was accepted: {result.reason}")
    return encode_answer(form, kind, result.rejected, result.reason)


def _form(request: Request) -> Form:
    said = (request.header(b"content-type") or "").partition(";")[0].strip().lower()
    try:
        return Form(said)
    except ValueError:
        forms = " or ".join(Form)
        raise Problem(415, f"content-type is {said[:100]!r}, but OTLP is {forms}") from None


_UNREAD: Final = {
    400: "it cannot be read, or nothing in it names its agent",
    403: "it is about agents for which the token may not speak",
    415: "it is neither protobuf nor JSON",
}


def _route(path: str, handle: Any) -> Route:
    return Route(
        "POST", path, SPEAKERS, handle, OtlpAnswer, body=bytes, content_types=tuple(Form), also=_UNREAD
    )


CALLS: Final = (_route("/v1/traces", traces), _route("/v1/logs", logs), _route("/v1/metrics", metrics))
