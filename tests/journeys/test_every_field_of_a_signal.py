"""No field of a signal is accepted and ignored: another value changes something that its user sees over HTTP.

The fields are those of the hub's own description (`/openapi.json`), the values in `signal_fields.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, Json, serving, until
from tests.journeys.signal_fields import ELSEWHERE, ROWS, Row
from tests.journeys.test_every_field_of_a_beat import VOLATILE

CASES = [(kind, field, row) for kind, rows in ROWS.items() for row in rows for field in row.fields]
VARYING = VOLATILE | {"uptime_seconds", "id", "key", "token"}
ABOUT_NOW = 1.7e9
CONFIG = {
    "profile": "long_tasks",
    "policy": {"respawn": {"hesitate_for": 0.0, "backoff": [0.0], "jitter": 0.0}},
    "fleet": {
        "brake_count": 10_000,
        "respawns_per_minute": 10_000,
        "terminations_per_minute": 10_000,
        "acted_share": 1,
    },
}
"""Nobody falls silent while its story is read, and nobody has to wait for its turn."""


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    with serving(tmp_path_factory.mktemp("signals"), CONFIG) as running:
        running.post("/api/v1/beats", {"agent_id": "other"})
        yield running


def filled(template: Any, agent: str, value: Any, order: str) -> Any:
    """A signal as it is sent."""
    if isinstance(template, dict):
        return {name: filled(one, agent, value, order) for name, one in template.items()}
    if template == "{value}":
        return value
    if template == "{order}" and order.isdecimal():
        return int(order)
    return template.replace("{order}", order).replace("{}", agent) if isinstance(template, str) else template


def tell(hub: Hub, agent: str, kind: str, row: Row, field: str, value: Any) -> None:
    """Let an agent live through a row with this value of a field."""
    order = ""
    if row.beats:
        hub.post("/api/v1/beats", {"agent_id": agent, "incarnation": "1"})
    base = {name: known for name, known in row.base.items() if f"{name}_digest" != field}
    for step in (*row.before, {**base, "type": kind, field: value}, *row.after):
        if isinstance(step, dict):
            hub.post("/api/v1/signals", filled({"agent_id": agent, **step}, agent, value, order))
        else:
            order = step(hub, agent)


def story(hub: Hub, agent: str) -> Json:
    """All that is shown of an agent: itself, its calls, tasks, messages, breakers and orders, and what happened."""
    paths = [f"agents/{agent}/calls", f"agents/{agent}/orders", f"breakers?agent={agent}"]
    tasks, messages = (
        [row for row in hub.get(f"/api/v1/{rows}")[rows] if agent in str(row)]
        for rows in ("tasks", "messages")
    )
    paths += [f"tasks/{task['task_id']}/checkpoints" for task in tasks]
    shown = [hub.get(f"/api/v1/{path}") for path in paths]
    return lasting([hub.agent(agent), hub.events(agent=agent), tasks, messages, *shown], agent)


def lasting(view: Json, agent: str) -> Json:
    """Without what differs between two agents that say the same."""
    if isinstance(view, dict):
        return {key: lasting(value, agent) for key, value in view.items() if key not in VARYING}
    if isinstance(view, list):
        return [lasting(value, agent) for value in view]
    if isinstance(view, float) and view > ABOUT_NOW:
        return "about now"
    if isinstance(view, str):
        if re.fullmatch(r"\d{4}-\d\d-\d\dT.*Z", view):
            return view[:3] if not view.startswith("202") or view < "2025" else "about now"
        return re.sub(r"\b\d+(-\d+)?(\.\d+)?\b", "#", view.replace(agent, "{}"))
    return view


def test_every_documented_field_is_walked(hub: Hub) -> None:
    described = hub.get("/openapi.json")["components"]["schemas"]
    shapes = [described[ref["$ref"].rpartition("/")[2]] for ref in described["Signal"]["anyOf"]]
    documented = {
        (shape["properties"]["type"]["enum"][0], name)
        for shape in shapes
        for name in shape["properties"]
        if name not in ("type", "agent_id")
    }
    assert documented == {(kind, field) for kind, field, _ in CASES} | ELSEWHERE.keys()


@pytest.mark.parametrize(("kind", "field", "row"), CASES, ids=lambda one: one if isinstance(one, str) else "")
def test_another_value_is_another_story(hub: Hub, kind: str, field: str, row: Row) -> None:
    agents = [f"{kind}.{field}.{number}" for number in "ab"]
    for agent, value in zip(agents, row.fields[field], strict=True):
        tell(hub, agent, kind, row, field, filled(value, agent, None, "{order}"))
    until(lambda: story(hub, agents[0]) != story(hub, agents[1]), f"{kind}.{field} changes something", 10.0)


@pytest.mark.parametrize("kind", ROWS)
def test_the_same_values_are_the_same_story(hub: Hub, kind: str) -> None:
    """Else the test above could not fail. Between two looks a wait of theirs may end."""

    def are_equal(one: str, other: str) -> bool:
        return bool(story(hub, one) == story(hub, other))

    for number, row in enumerate(ROWS[kind]):
        for field, (value, _) in row.fields.items():
            same = [f"{kind}.{field}.{number}.{twin}" for twin in "xy"]
            for one in same:
                tell(hub, one, kind, row, field, filled(value, one, None, "{order}"))
            until(partial(are_equal, *same), f"{kind}.{field} is the same twice", 10.0)


def test_a_pong_settles_the_ping_that_it_answers_and_those_before(hub: Hub) -> None:
    def pings(agent: str) -> list[int]:
        """Those of one silence but the first."""
        orders = hub.get(f"/api/v1/agents/{agent}/orders")["orders"]
        return [order["seq"] for order in orders if order["type"] == "ping" and order["seq"] > 1]

    silence = {"interval": 0.5, "timeout": 6.0, "ping_wait": 2.0, "pings": 2}
    tried = (("pong.early", 1, True), ("pong.late", 9, False))
    for agent, _, _ in tried:
        said = {"type": "registered", "agent_id": agent, "policy": {"silence": silence}}
        hub.post("/api/v1/signals", said)
        hub.post("/api/v1/beats", {"agent_id": agent})
    for agent, answered, left in tried:
        until(partial(pings, agent), f"{agent} is asked a second time")
        hub.post("/api/v1/signals", {"type": "pong", "agent_id": agent, "seq": answered})
        assert bool(pings(agent)) is left


def test_what_is_shown_elsewhere_is_there() -> None:
    for named in ELSEWHERE.values():
        file, test = named.split("::")
        assert f"def {test}(" in (Path(__file__).parent / file).read_text()
