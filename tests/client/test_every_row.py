"""The client has a call for every row of the API, and asks for nothing that is not there."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

from lifesigns.client import AsyncClient, Client, parameters
from lifesigns.client.call import Call
from lifesigns.client.calls import Calls
from lifesigns.client.request import Request
from lifesigns.web.routes import RouteTable
from lifesigns.web.table import CALLS

NAMES = sorted(name for name in dir(Calls) if isinstance(getattr(Calls, name), Call))
ELSEWHERE = {
    *("/sign-in", "/sign-out", "/openapi.json", "/docs"),
    *("/v1/traces", "/v1/logs", "/v1/metrics"),
    *("/ping/{agent_id}", "/ping/{agent_id}/{result}", "/healthz/{agent_id}"),
    *(
        "/hooks/claude-code",
        "/hooks/codex",
        "/hooks/gemini",
        "/hooks/qwen",
        "/hooks/copilot",
        "/hooks/opencode",
    ),
}
"""For browsers, those who read, exporters of OpenTelemetry, cron, probes, and hooks, which have a client of their own."""


class Remembers(Calls):
    """A client that asks nobody."""

    def send(self, request: Request[Any]) -> Any:
        return request


LOOKS_LIKE: dict[str, Any] = {"beats": [], "signals": [], "agent_ids": ["a"], "token": 1, "content": b"x"}


def asked_for(name: str) -> Request[Any]:
    """The request a call makes, of arguments that look like some."""
    call = getattr(Remembers(), name)
    parameters = inspect.signature(call).parameters.values()
    needed = [one for one in parameters if one.default is one.empty and one.kind is not one.VAR_KEYWORD]
    request: Request[Any] = call(*(LOOKS_LIKE.get(one.name, "a") for one in needed))
    return request


@pytest.mark.parametrize("name", NAMES)
def test_what_it_asks_for_is_there(name: str) -> None:
    request = asked_for(name)
    RouteTable(CALLS).find(request.method, request.path.encode())


def test_every_row_has_its_call() -> None:
    table = RouteTable(CALLS)
    asked = [asked_for(name) for name in NAMES] + [parameters.events((), None, None)]
    covered = {
        (call.method, call.path)
        for call, _ in (table.find(request.method, request.path.encode()) for request in asked)
    }
    rows = {(call.method, call.path) for call in CALLS if call.path not in ELSEWHERE}
    assert rows - covered == set()


def test_only_what_changes_nothing_or_once_is_repeated() -> None:
    """Adding a call to this list is a decision: it must be harmless to be heard twice."""
    repeated = {name for name in NAMES if asked_for(name).method != "GET" and asked_for(name).repeatable}
    assert repeated == {
        "beat",
        "beats",
        "send_message",
        "read_message",
        "upload_checkpoint",
        "nudge",
        "escalate",
        "terminate",
        "reset_breaker",
        "open_breaker",
        "close_breaker",
    }
    assert all(asked_for(name).repeatable for name in NAMES if asked_for(name).method == "GET")


@pytest.mark.parametrize("kind", [Client, AsyncClient])
@pytest.mark.parametrize("name", NAMES)
def test_both_clients_have_it_with_its_words(kind: type[Client] | type[AsyncClient], name: str) -> None:
    assert getattr(kind, name).__doc__
