"""An agent that leaks is told about before it is unwell, with the moment and the reason; nothing is done about it.

docs/explanation/forecasts.md, with windows of a second and a half.
"""

from __future__ import annotations

import time
from pathlib import Path

from tests.journeys.outside import Hub, Json, serving

CONFIG = {"policy": {"silence": {"interval": 0.3, "timeout": 600}, "forecast": {"window": 1.5}}}
RISES_BY = 40.0
"""MB a second: from 1200 to the line at 4096 in more than a minute."""


def forecasts(hub: Hub, agent_id: str) -> list[Json]:
    agent = hub.agent(agent_id)
    return [one for one in (agent or {"findings": []})["findings"] if one["kind"] == "forecast"]


def test_a_leak_is_foretold_with_its_moment_and_reason_and_nothing_is_done(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        began_at = time.monotonic()

        def beat() -> None:
            """`leaks` has more and more memory, `full` has much and no more, `saw` gives it back now and then."""
            passed = time.monotonic() - began_at
            memory = {
                "leaks": 1200 + RISES_BY * passed,
                "full": 2400.0,
                "saw": 1200 + RISES_BY * (passed % 6),
            }
            beats = [{"agent_id": name, "metrics": {"memory_mb": mb}} for name, mb in memory.items()]
            hub.post("/api/v1/beats", beats)

        def foretold() -> bool:
            beat()
            time.sleep(0.2)
            return bool(forecasts(hub, "leaks"))

        hub.until(foretold, "the leak is foretold")
        (found,) = forecasts(hub, "leaks")
        assert found["severity"] == "notice"
        assert "its memory reaches 4096 MB in about" in found["text"]
        assert hub.health("leaks") == "healthy"
        assert not forecasts(hub, "full")
        assert not forecasts(hub, "saw")
        assert "memory reaches 4096 MB" in hub.cli("show", "leaks").stdout
        beat()
        assert not hub.get("/api/v1/interventions")["interventions"]
