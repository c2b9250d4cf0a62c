"""The wall clock is set back while no hub runs (a dead battery, a machine restored from a picture): the next hub judges at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving

BACK = 3600.0

SITE = """
import os, time
if (back := float(os.environ.get("CLOCK_SET_BACK", "0"))):
    real = time.time
    time.time = lambda: real() - back
"""
"""What Python reads first: the wall clock of this process, as if it had been set back."""


@pytest.mark.timeout(180)
def test_who_dies_after_the_clock_was_set_back_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody was judged for as long as the step, while everything said that it was ready."""
    (tmp_path / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    with serving(tmp_path, {"profile": "swift"}) as hub:
        beat(hub, 1)
        hub.stop()
        monkeypatch.setenv("CLOCK_SET_BACK", str(BACK))
        hub.start()
        seq = 1

        def dead_is_found() -> bool:
            nonlocal seq
            seq += 1
            hub.post("/api/v1/beats", {"agent_id": "alive", "seq": seq})
            return hub.health("dead") == "disconnected"

        hub.until(dead_is_found, "who died is found")
        assert hub.health("alive") == "healthy"
        times = [event["at"] for event in hub.events()]
        assert times == sorted(times), "time does not run backwards on record"


def beat(hub: Hub, seq: int) -> None:
    hub.post("/api/v1/beats", [{"agent_id": name, "seq": seq} for name in ("alive", "dead")])
