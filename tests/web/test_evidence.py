"""The numbers of a finding are served in words, and the step an agent is on with what was decided about it."""

import ast
from pathlib import Path

import pytest

from lifesigns.views.builders import evidence
from lifesigns.views.evidence import Measure
from tests.tidy.source import PACKAGE
from tests.web.hub import RunningHub


def test_numbers_have_names_and_units_and_what_is_shown_elsewhere_is_left_out() -> None:
    assert evidence.evidence(
        {"silent_for": 12.4, "rate": 0.25, "stack": "a.py:1 in f", "something_new": 3}
    ) == (
        Measure("silent for", 12.4, "s"),
        Measure("of its calls failed", 0.25, "share"),
        Measure("something new", 3, ""),
    )
    assert evidence.evidence({"used": 0.9, "cap": 1, "unit": "USD"}) == (
        Measure("used", 0.9, "USD"),
        Measure("allowed", 1, "USD"),
    )


@pytest.mark.parametrize(
    "path", sorted((PACKAGE / "core" / "detectors").glob("*.py")), ids=lambda path: path.stem
)
def test_every_number_of_a_detector_has_words(path: Path) -> None:
    """Numbers are dicts with text as keys; a detector has no other ones."""
    keys = {
        key.value
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Dict)
        for key in node.keys
        if isinstance(key, ast.Constant) and isinstance(key.value, str)
    }
    assert keys - evidence._NAMES.keys() - evidence._ELSEWHERE == set()


async def test_a_step_says_what_was_decided_about_it(hub: RunningHub) -> None:
    await hub.post("/api/v1/beats", {"agent_id": "a"})
    asked = (await hub.post("/api/v1/agents/a/escalate", {"reason": "It burns money."})).json()
    step = (await hub.get("/api/v1/agents/a")).json()["intervention"]
    assert (step["id"], step["decided"]) == (asked["id"], "")
    place = f"/api/v1/escalations/{asked['id']}/decision"
    await hub.post(place, {"decision": "more_time", "note": "It compiles."})
    assert (await hub.get("/api/v1/agents/a")).json()["intervention"]["decided"] == "more_time: It compiles."
