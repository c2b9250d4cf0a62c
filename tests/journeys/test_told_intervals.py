"""A hub that tells its senders how often to beat: more rarely while they are calm, oftener while they are unwell."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from tests.journeys.outside import Hub, serving

AGENT = """
import pathlib, sys, time
import lifesigns

with lifesigns.Sender("worker", interval=1.0) as life:
    while not pathlib.Path(sys.argv[1]).exists():
        time.sleep(0.05)
    life.status("degraded")
    time.sleep(600)
"""
TELLING = {"policy": {"silence": {"tell_interval": True, "calm_after": "2s", "unwell_factor": 0.25}}}


def pace(hub: Hub) -> float:
    """Seconds between two beats, over six of them."""
    first = hub.get("/api/v1/agents/worker/rhythm")
    hub.until(
        lambda: hub.get("/api/v1/agents/worker/rhythm")["beats"] >= first["beats"] + 6, "six more beats came"
    )
    last = hub.get("/api/v1/agents/worker/rhythm")
    began, ended = (datetime.fromisoformat(one["last_at"]) for one in (first, last))
    return (ended - began).total_seconds() / float(last["beats"] - first["beats"])


def test_a_sender_follows_and_is_never_lost(tmp_path: Path) -> None:
    unwell = tmp_path / "unwell"
    with serving(tmp_path, TELLING) as hub:
        hub.python("agent.py", AGENT, str(unwell))
        hub.until(lambda: hub.health("worker") == "healthy", "it is there")
        hub.until(lambda: pace(hub) > 1.2, "it beats more rarely than every second, as it promised")
        assert 1.2 < hub.get("/api/v1/agents/worker/rhythm")["told_s"] < 1.5
        unwell.touch()
        hub.until(lambda: hub.health("worker") == "degraded", "it says that it is unwell")
        hub.until(lambda: pace(hub) < 0.6, "it beats oftener")
        assert hub.get("/api/v1/agents/worker/rhythm")["told_s"] == 0.25
        assert "worker" not in hub.disconnected()
