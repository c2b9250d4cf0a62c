"""Agents of real frameworks that import nothing of ours, watched by their traces alone. `make integrations` runs this."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from tests.integrations.frameworks import PROGRAMS, scripts
from tests.integrations.scripted_model import TOKENS_IN, TOKENS_OUT, Say, scripted_model
from tests.journeys.outside import Hub, Json, environment, serving
from tools.frameworks import FOLDER

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("LIFESIGNS_INTEGRATIONS"), reason="with the real frameworks: make integrations"
    ),
    pytest.mark.timeout(1200),
]
CONFIG = {"otlp": {"reorder_for": "1s"}}
LOOPS_AT = {"pydantic_ai": 3, "openai_agents": 3, "langchain": 4}


@pytest.fixture(params=list(LOOPS_AT))
def way(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def traced(hub: Hub, way: str, script: str) -> Json:
    """What the hub knows of an agent when its program has ended and everything that it exported is heard."""
    name = f"traced-{way}"
    with scripted_model(scripts((Say("done"),))) as model:
        env = environment(
            WAY=way,
            MODEL_URL=model.url,
            OTEL_SERVICE_NAME=name,
            OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT="10000",  # As the page says: a long conversation loses its tokens.
            OTEL_EXPORTER_OTLP_ENDPOINT=hub.url,
            OTEL_EXPORTER_OTLP_HEADERS=f"Authorization=Bearer%20{hub.token}",
        )
        command = [str(FOLDER / "traced/bin/python"), str(PROGRAMS / "traced_agent.py"), script]
        done = subprocess.run(command, env=env, cwd=hub.folder, capture_output=True, text=True, check=False)
        assert "ended: done" in done.stdout, done.stderr[-3000:]
    calls = {"work": 20, "loop": 8}[script]

    def heard() -> bool:
        metrics = (hub.agent(name) or {}).get("metrics", {})
        return (metrics.get("tool_call_count"), metrics.get("token_count")) == (calls, used(calls))

    hub.until(heard, f"{calls} calls and their tokens are heard")
    return hub.agent(name)


def used(calls: int) -> int:
    """Tokens: one answer of the model for each call, and the last one."""
    return (calls + 1) * (TOKENS_IN + TOKENS_OUT)


def test_a_healthy_run_of_twenty_calls_has_no_finding(way: str, tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        agent = traced(hub, way, "work")
        assert (agent["state"], agent["findings"]) == ("healthy", [])
        assert hub.events("FINDING_OPENED") == []


def test_the_same_failing_call_eight_times_is_a_loop(way: str, tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        traced(hub, way, "loop")
        found = [one["data"]["finding"] for one in hub.events("FINDING_OPENED")]
        loops = [one["text"] for one in found if one["kind"] == "looping"]
        assert f"{LOOPS_AT[way]} times" in loops[0]
