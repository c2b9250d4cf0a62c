"""Somebody sets the wall clock, while no hub runs (a dead battery, a machine restored from a picture) or while one does: whoever
lives stays well, and who dies is found at once."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, serving

HOUR = 3600.0

SITE = """
import time
real = time.time

def ahead():
    try:
        with open("clock") as file:
            return float(file.read())
    except OSError:
        return 0.0

time.time = lambda: real() + ahead()
print(f"this clock is {ahead():.0f} s ahead", flush=True)
"""
"""What Python reads first: the wall clock of this process, as it was set by the file `clock`."""

pytestmark = pytest.mark.timeout(180)


class Watched:
    """A hub whose clock can be set, and two agents: `alive` beats whenever we look, and so does `dead` until it dies."""

    def __init__(self, hub: Hub) -> None:
        self.hub = hub
        self._seq = 0

    def set_clock(self, ahead: float) -> None:
        written = self.hub.folder / "clock.new"
        written.write_text(str(ahead))
        written.rename(self.hub.folder / "clock")

    def beat(self, *names: str) -> None:
        self._seq += 1
        self.hub.post("/api/v1/beats", [{"agent_id": name, "seq": self._seq} for name in names])

    def live_for(self, seconds: float) -> None:
        """Both beat, by the hub's own time."""
        began_at = self._hub_time()

        def is_over() -> bool:
            self.beat("alive", "dead")
            return self._hub_time() - began_at > seconds

        self.hub.until(is_over, "time goes on")

    def find_the_dead(self) -> None:
        """Only `alive` beats now."""

        def is_found() -> bool:
            self.beat("alive")
            return "dead" in self.hub.disconnected()  # As stored, which is a moment after it is known.

        self.hub.until(is_found, "who died is found")
        assert self.hub.health("alive") == "healthy"
        assert self.hub.disconnected() == {"dead"}
        times = [event["at"] for event in self.hub.events()]
        assert times == sorted(times), "time does not run backwards on record"

    def _hub_time(self) -> float:
        return datetime.fromisoformat(self.hub.get("/api/v1/fleet")["hub"]["at"]).timestamp()


@pytest.fixture
def watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Watched]:
    (tmp_path / "sitecustomize.py").write_text(SITE)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=":")
    with serving(tmp_path, {"profile": "swift"}, fresh=True) as hub:
        watched = Watched(hub)
        watched.beat("alive", "dead")
        yield watched


def test_who_dies_after_the_clock_was_set_back_between_two_hubs_is_found(watched: Watched) -> None:
    """Nobody was judged for as long as the step, while everything said that it was ready."""
    watched.hub.stop()
    watched.set_clock(-HOUR)
    watched.hub.start()
    assert "this clock is -3600 s ahead" in watched.hub.log.read_text()
    watched.find_the_dead()


def test_who_dies_after_the_clock_was_set_while_the_hub_runs_is_found(watched: Watched) -> None:
    """Neither an hour that never was nor one that comes twice is anybody's silence."""
    for ahead in (HOUR, -HOUR):
        watched.set_clock(ahead)
        watched.live_for(4.0)
    assert watched.hub.disconnected() == set()
    watched.find_the_dead()
