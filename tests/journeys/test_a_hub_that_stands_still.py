"""A hub that stood still convicts nobody for what it did not hear, says for how long it waits, and finds who died meanwhile."""

from __future__ import annotations

import signal
import time
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
