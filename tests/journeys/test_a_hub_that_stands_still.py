"""A hub that stood still convicts nobody for what it did not hear, says for how long it waits, and finds who died meanwhile."""

from __future__ import annotations

import signal
import time
from datetime import datetime
from pathlib import Path

import pytest

from tests.journeys.outside import serving

STANDS_FOR = 12.0
"""Four times as long as an agent of the profile `swift` may be silent."""

AGENT = """
import sys, time
from lifesigns import Sender

with Sender(sys.argv[1], profile="swift"):
    time.sleep(600)
"""

LONG_PAUSE = 300.0
TRUCE_MAX = 30.0

SITE = """
import os, threading, time
real, paused = time.monotonic, 0.0
time.monotonic = lambda: real() + paused

def look():
    global paused
    while not os.path.exists("paused"):
        time.sleep(0.05)
    paused = float(open("paused").read())

threading.Thread(target=look, daemon=True).start()
"""
"""What Python reads first: the clock of this process goes on without it, as in a machine that was paused for minutes."""


@pytest.mark.timeout(240)
def test_who_died_while_the_hub_stood_still_is_found_after_its_truce_and_nobody_else(tmp_path: Path) -> None:
    names = ["a", "b", "c", "dies"]
    with serving(tmp_path) as hub:
        agents = {name: hub.python("agent.py", AGENT, name) for name in names}
        hub.until(lambda: all(hub.health(name) == "healthy" for name in names), "all are heard")
        hub.signal(signal.SIGSTOP)
        agents["dies"].kill()
        time.sleep(STANDS_FOR)  # The pause itself.
        hub.signal(signal.SIGCONT)
        woken_at = time.monotonic()
        hub.until(lambda: hub.get("/api/v1/fleet")["hub"]["truce_until"], "the hub says that it waits")
        assert hub.disconnected() == set()
        hub.until(lambda: "dies" in hub.disconnected(), "who died meanwhile is found", 2 * STANDS_FOR + 20)
        assert time.monotonic() - woken_at > STANDS_FOR - 1.0, "nobody is convicted in a truce"
        assert hub.get("/api/v1/fleet")["hub"]["truce_until"] is None
        hub.until(lambda: all(hub.health(name) == "healthy" for name in names[:-1]), "the others are well")
        assert hub.disconnected() == {"dies"}


def test_a_hub_that_stood_still_for_minutes_waits_for_half_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It convicted nobody for as long again, and said that it was ready."""
    (tmp_path / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    with serving(tmp_path, fresh=True) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder"})
        before = datetime.fromisoformat(hub.get("/api/v1/fleet")["hub"]["at"])
        (tmp_path / "paused.new").write_text(str(LONG_PAUSE))
        (tmp_path / "paused.new").rename(tmp_path / "paused")
        hub.until(lambda: hub.get("/api/v1/fleet")["hub"]["truce_until"], "the hub says that it waits")
        said = hub.get("/api/v1/fleet")["hub"]
        now, until = (datetime.fromisoformat(said[name]) for name in ("at", "truce_until"))
        assert (now - before).total_seconds() > LONG_PAUSE
        assert 0.0 < (until - now).total_seconds() <= TRUCE_MAX
