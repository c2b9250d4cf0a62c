"""The API described: OpenAPI 3.1, made from the table of routes and the types it names.

Made on the first request, in another thread, and then cached. `docs.py` makes the page for people from the same
description.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Final

import msgspec

from lifesigns import __version__
from lifesigns.views import ProblemDetails
from lifesigns.web import docs
from lifesigns.web.answers import Answer
from lifesigns.web.ids import IN_PATHS, Name
from lifesigns.web.routes import NO_TOKEN, NoQuery, Request, Route
from lifesigns.web.schemas import Schema, key_of, portable, schemas
from lifesigns.wire import WireBeat

CACHED: Final = ((b"cache-control", b"no-cache"),)

RESPONSES: Final[Mapping[int, str]] = {
    400: "The request cannot be read; `field` names what is wrong with it.",
    401: "There is no token, or it is unknown, revoked or too old.",
    403: "This token may not do that; or another page asks in the name of yours.",
    404: "There is nothing of this name.",
    408: "The body took too long, or nobody waits for the answer any more.",
    409: "That cannot be, as things stand; the detail says why.",
    413: "The body is too large.",
    415: "The body is packed in a way nobody here can unpack.",
    421: "The `Host` is no name of this hub.",
    429: "Too many wrong tokens, or too much at once: come again later.",
    431: "The headers are too large.",
    503: "The store or the inbox does not take it now: come again.",
}
_ALWAYS: Final = (400, 403, 421, 429, 431, 503)
_BODY: Final = (408, 413, 415)
_HEADERS: Final[Mapping[int, str]] = {401: "WWW-Authenticate", 429: "Retry-After", 503: "Retry-After"}

_ONE_BEAT: Final = {
    "agent_id": "coder-7",
    "timestamp": "2026-11-15T18:00:00.000Z",
    "seq": 42,
    "status": "busy",
    "task_id": "t-19",
    "progress": "12/40 files",
    "load": 0.4,
}
_ONE_SIGNAL: Final = {"type": "progress", "agent_id": "coder-7", "task_id": "t-19", "percent": 30}

ABOUT: Final = """Tells which of your agents are alive, frozen, stuck or looping, and gets them going again.

Times are RFC 3339 in UTC with milliseconds, durations are seconds. Unknown fields are ignored; a wrong one is refused with
its name. Errors are problem details as RFC 9457 has them. An id in a path is percent-encoded: `team%2Fcoder-7`."""


def about(rows: Sequence[Route]) -> tuple[Route, ...]:
    """The routes that describe these routes, and themselves."""

    @cache
    def described() -> Schema:
        return document((*rows, *calls))

    @cache
    def as_json() -> bytes:
        return msgspec.json.encode(described())

    @cache
    def as_page() -> bytes:
        return docs.page(described()).encode()

    async def openapi_json(request: Request) -> Answer:
        """This API as OpenAPI 3.1 describes it."""
        return Answer(await asyncio.to_thread(as_json), headers=CACHED)

    async def docs_page(request: Request) -> Answer:
        """This API for people to read."""
        page = await asyncio.to_thread(as_page)
        return Answer(page, content_type=b"text/html; charset=utf-8", headers=(*CACHED, *docs.HEADERS))

    calls = (
        Route("GET", "/openapi.json", NO_TOKEN, openapi_json, dict[str, Any]),
        Route("GET", "/docs", NO_TOKEN, docs_page, str, content_types=("text/html",)),
    )
    return calls


def document(calls: Sequence[Route]) -> Schema:
    """These routes as OpenAPI 3.1."""
    types = [kind for call in calls for kind in (call.answers, call.body, call.query)]
    by_type, components = schemas(kind for kind in types if kind not in (None, bytes, NoQuery))
    paths: dict[str, Schema] = {}
    for call in calls:
        paths.setdefault(call.path, {})[call.method.lower()] = _operation(call, by_type, components)
    for call in calls:  # A query is not a component: its fields are parameters.
        components.pop(call.query.__name__, None)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "lifesigns",
            "version": __version__,
            "description": ABOUT,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {
            "schemas": components,
            "responses": {str(status): _problem(status, text) for status, text in RESPONSES.items()},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer", "description": "A token of this hub."}
            },
        },
    }


# --- one call -----------------------------------------------------------------------------------------


def _operation(call: Route, by_type: Mapping[Any, Schema], components: Mapping[str, Schema]) -> Schema:
    sentence, _, _ = _doc(call).partition(". ")
    operation: Schema = {
        "operationId": f"{call.handle.__module__.rpartition('.')[2]}_{call.handle.__name__}",
        "tags": [_tag(call)],
        "summary": sentence.rstrip("."),
        "description": f"{_doc(call)}\n\n{_who(call)}",
        "parameters": [*_in_path(call), *_in_query(call, components), *_in_headers(call)],
        "responses": _responses(call, by_type),
        "security": [] if call.who is NO_TOKEN else [{"token": []}],
    }
    if call.body is not None:
        operation["requestBody"] = _body(call, by_type)
    return operation


def _doc(call: Route) -> str:
    return " ".join((call.handle.__doc__ or "").split())


def _who(call: Route) -> str:
    if call.who is NO_TOKEN:
        return "Needs no token."
    return f"For the roles {', '.join(sorted(call.who))}."


def _tag(call: Route) -> str:
    parts = call.path.removeprefix("/api/v1").strip("/").split("/")
    return parts[0] if call.path.startswith("/api/") else "hub"


def _in_path(call: Route) -> list[Schema]:
    names = [part[1:-1] for part in call.path.split("/") if part.startswith("{")]
    return [
        {"name": name, "in": "path", "required": True, "schema": _plain(IN_PATHS.get(name, Name))}
        for name in names
    ]


def _in_query(call: Route, components: Mapping[str, Schema]) -> list[Schema]:
    if call.query is NoQuery:
        return []
    shape = components[call.query.__name__]
    return [
        {
            "name": name,
            "in": "query",
            "required": name in shape.get("required", ()),
            **({"description": schema["description"]} if "description" in schema else {}),
            "schema": _without_null(schema),
        }
        for name, schema in shape["properties"].items()
    ]


def _in_headers(call: Route) -> list[Schema]:
    if "text/event-stream" not in call.content_types:
        return []
    return [
        {
            "name": "Last-Event-ID",
            "in": "header",
            "description": "The id of the last event that was seen: what was told since comes first.",
            "schema": {"type": "string"},
        }
    ]


def _plain(kind: Any) -> Schema:
    schema: Schema = portable(msgspec.json.schema(kind))
    return schema


def _without_null(schema: Schema) -> Schema:
    """A parameter is omitted, never null."""
    some = [part for part in schema.get("anyOf", ()) if part != {"type": "null"}]
    plain = {name: value for name, value in schema.items() if name != "description"}
    if len(some) != 1:
        return plain
    del plain["anyOf"]
    plain.pop("default", None)
    return {**plain, **some[0]}


def _body(call: Route, by_type: Mapping[Any, Schema]) -> Schema:
    if call.body is not bytes:
        schema = by_type[key_of(call.body)]
        return {"required": "null" not in str(schema), "content": {"application/json": {"schema": schema}}}
    if call.method == "PUT":
        content = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
        return {"required": True, "description": "Any bytes; gzip is unpacked.", "content": content}
    beats = call.path.endswith("/beats")
    one = by_type[key_of(WireBeat)] if beats else {"$ref": "#/components/schemas/Signal"}
    example = _ONE_BEAT if beats else _ONE_SIGNAL
    many = {"type": "array", "items": one, "maxItems": 10_000}
    return {
        "required": True,
        "description": "JSON, NDJSON (one a line) or MessagePack, told apart by their first byte; gzip is read.",
        "content": {
            "application/json": {
                "schema": {"anyOf": [one, many]},
                "examples": {"one": {"value": example}, "several": {"value": [example]}},
            },
        },
    }


def _responses(call: Route, by_type: Mapping[Any, Schema]) -> Schema:
    responses: Schema = {str(call.status): _good(call, by_type, "As asked.")}
    statuses = {*_ALWAYS, *call.also}
    if call.who is not NO_TOKEN:
        statuses.add(401)
    if "{" in call.path:
        statuses.add(404)
    if call.body is not None:
        statuses.update(_BODY)
    for status in sorted(statuses):
        if status in call.also_at:
            responses[str(status)] = _good(call, by_type, call.also[status])
        elif status in call.also:
            responses[str(status)] = _problem(status, call.also[status])
        else:
            responses[str(status)] = {"$ref": f"#/components/responses/{status}"}
    return responses


def _good(call: Route, by_type: Mapping[Any, Schema], text: str) -> Schema:
    if call.answers is None:
        return {"description": text}
    schema = {"type": "string"} if call.answers is str else by_type[key_of(call.answers)]
    return {
        "description": text,
        "content": {content_type: {"schema": schema} for content_type in call.content_types},
    }


def _problem(status: int, text: str) -> Schema:
    response: Schema = {
        "description": text,
        "content": {
            "application/problem+json": {
                "schema": {"$ref": f"#/components/schemas/{ProblemDetails.__name__}"}
            }
        },
    }
    if status in _HEADERS:
        response["headers"] = {_HEADERS[status]: {"schema": {"type": "string"}}}
    return response
