"""The description of the API: complete, true to the types, and a page for people without anything from elsewhere."""

import re
from html.parser import HTMLParser
from typing import Any

import msgspec
import pytest
from jsonschema_rs import Draft202012Validator

from lifesigns.views.agents import AgentMetrics
from lifesigns.web.openapi import document
from lifesigns.web.routes import NO_TOKEN
from lifesigns.web.schemas import sentences
from lifesigns.web.table import CALLS
from tests.web.hub import RunningHub

API = document(CALLS)


def operations() -> list[tuple[str, str, dict[str, Any]]]:
    return [(method, path, op) for path, methods in API["paths"].items() for method, op in methods.items()]


def test_every_call_of_the_table_is_described() -> None:
    assert {(method.upper(), path) for method, path, _ in operations()} == {
        (call.method, call.path) for call in CALLS
    }


def test_every_description_says_what_the_call_does_and_who_may() -> None:
    for call in CALLS:
        operation = API["paths"][call.path][call.method.lower()]
        assert operation["summary"], call.path
        assert len(operation["summary"]) < 200, operation["summary"]
        said = "Needs no token." if call.who is NO_TOKEN else ", ".join(sorted(call.who))
        assert said in operation["description"]


def test_names_of_operations_are_unique() -> None:
    names = [op["operationId"] for _, _, op in operations()]
    assert len(names) == len(set(names))


def test_parameters_of_a_path_are_those_in_its_braces() -> None:
    for _, path, op in operations():
        named = {one["name"] for one in op["parameters"] if one["in"] == "path"}
        assert named == set(re.findall(r"{(\w+)}", path))


def test_every_reference_leads_somewhere() -> None:
    text = msgspec.json.encode(API).decode()
    for reference in set(re.findall(r'"\$ref":"#/components/([^"]+)"', text)):
        kind, name = reference.split("/")
        assert name in API["components"][kind]


def test_what_is_ours_alone_is_not_described() -> None:
    """Nobody is to send `source`: it says which token a beat came with."""
    assert "source" not in API["components"]["schemas"]["WireBeat"]["properties"]
    assert "\\Z" not in msgspec.json.encode(API).decode()


def test_the_sentences_under_the_fields_are_in_it() -> None:
    fields = API["components"]["schemas"]["ClaimView"]["properties"]
    assert fields["held_until"]["description"].startswith("At the earliest")
    assert sentences(AgentMetrics) == {}


def schema_of(name: str) -> Any:
    components = {"components": API["components"]}
    return Draft202012Validator({"$ref": f"#/components/schemas/{name}", **components})


@pytest.mark.parametrize(
    ("name", "message", "good"),
    [
        ("WireBeat", {"agent_id": "a", "load": 0.5, "timestamp": "2026-11-15T18:00:00.000Z"}, True),
        ("WireBeat", {"load": 0.5}, False),
        ("WireBeat", {"agent_id": "a", "load": "much"}, False),
        ("Signal", {"type": "progress", "agent_id": "a", "percent": 3}, True),
        ("Signal", {"type": "dancing", "agent_id": "a"}, False),
        ("Signal", {"type": "tool_started", "agent_id": "a", "call_id": "c", "tool": "grep"}, True),
    ],
)
def test_messages_of_the_wire_have_their_real_shape(name: str, message: Any, good: bool) -> None:
    assert schema_of(name).is_valid(message) is good


async def test_examples_are_what_they_say(hub: RunningHub) -> None:
    """Whoever copies them gets no error."""
    for path in ("/api/v1/beats", "/api/v1/signals"):
        content = API["paths"][path]["post"]["requestBody"]["content"]["application/json"]
        for example in content["examples"].values():
            answer = await hub.post(path, example["value"])
            assert (answer.status_code, answer.json()["rejected"]) == (202, [])


async def test_it_is_served_to_everybody_and_once_made(hub: RunningHub) -> None:
    async with hub.client(None) as anybody:
        first = await anybody.get("/openapi.json")
        assert first.json()["openapi"] == "3.1.0"
        assert first.content == (await anybody.get("/openapi.json")).content


class Page(HTMLParser):
    """What a page loads, where it leads and what can be led to."""

    def __init__(self) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.anchors: set[str] = set()
        self.links: set[str] = set()
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        if tag in ("script", "img", "iframe", "link", "object") or "src" in values:
            self.loads.append(tag)
        assert not any(name.startswith("on") or name == "style" for name in values)
        if "id" in values:
            assert values["id"] not in self.anchors
            self.anchors.add(values["id"])
        if "href" in values:
            self.links.add(values["href"])
        if tag not in ("meta", "br"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


async def test_the_page_for_people_needs_nothing_but_itself(hub: RunningHub) -> None:
    async with hub.client(None) as anybody:
        answer = await anybody.get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    page = Page()
    page.feed(answer.text)
    assert page.loads == []
    assert page.open == []
    assert {link for link in page.links if link[1:] not in page.anchors} == {"/openapi.json"}
    for call in CALLS:
        assert f"<code>{call.path}</code>" in answer.text
