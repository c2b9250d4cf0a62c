"""A sender whose answers are lost says everything again; what it says again has happened once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.journeys.cut_line import CutLine
from tests.journeys.outside import Refused, serving

AGENT = """
import time
from lifesigns import Sender

with Sender("coder") as life:
    for number in range(2):
        with life.tool("fetch", "the same page") as call:
            call.result("not there yet")
        life.error("the page is not there yet")
        time.sleep(1)
    life.checkpoint("end")
    time.sleep(60)
"""

SIGNALS = "/api/v1/signals"


def test_two_calls_and_errors_of_an_agent_whose_answers_are_lost_are_two(tmp_path: Path) -> None:
    """Two of three answers do not arrive, so each delivery comes three times."""
    with serving(tmp_path) as hub, CutLine(hub.port, b"POST /api/v1/signals", one_in=3) as line:
        hub.python("agent.py", AGENT, LIFESIGNS_HUB=line.url)
        hub.until(lambda: (hub.agent("coder") or {}).get("last_checkpoint"), "the last report was heard")
        hub.until(lambda: line.asked % 3 == 0, "and came again until it was answered")
        assert line.cut >= 4
        agent = hub.agent("coder")
        assert agent is not None
        metrics = agent["metrics"]
        assert (metrics["tool_call_count"], metrics["error_count"]) == (2, 2)
        assert (agent["state"], agent["findings"]) == ("healthy", [])


def test_who_writes_its_own_requests_can_repeat_them_by_a_key(tmp_path: Path) -> None:
    error: dict[str, Any] = {"type": "error", "agent_id": "foreign", "message": "no"}
    with serving(tmp_path) as hub:

        def errors() -> int:
            return int((hub.agent("foreign") or {})["metrics"]["error_count"])

        for _ in range(3):
            assert hub.post(SIGNALS, error, Idempotency_Key="one")["accepted"] == 1
        assert errors() == 1
        hub.post(SIGNALS, error, Idempotency_Key="two")
        assert errors() == 2
        for _ in range(2):
            hub.post(SIGNALS, error)  # Without a key each is another one.
        assert errors() == 4
        with pytest.raises(Refused) as refused:
            hub.post(SIGNALS, {**error, "message": "other"}, Idempotency_Key="one")
        assert (refused.value.status, errors()) == (422, 4)
        with pytest.raises(Refused) as refused:
            hub.post(SIGNALS, error, Idempotency_Key="k" * 201)
        assert (refused.value.status, errors()) == (400, 4)
