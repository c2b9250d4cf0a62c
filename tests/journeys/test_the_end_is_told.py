"""What an agent said before its end is told before its end, also if the hub is away at that moment."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.journeys.outside import serving
from tests.servers.nats import NatsServer
from tests.servers.valkey import ValkeyServer

QUICK = {"silence": {"interval": "1s", "timeout": "3s", "ping_wait": "0.4s"}}

ENDS = """
import time
import lifesigns

with lifesigns.Sender("ends", interval=1.0, close_for=1.0) as life:
    life.tokens(100, 0, 1.0)
    while life.stats.sent < 3:
        time.sleep(0.01)
    life.tokens(1000, 500, 5.0)
"""


@pytest.mark.timeout(120)
def test_tokens_that_are_told_just_before_the_end_are_counted(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        assert hub.python("ends.py", ENDS).wait(30) == 0
        agent = hub.agent("ends")
        assert agent is not None
        assert agent["state"] == "terminated"
        assert (agent["metrics"]["token_count"], agent["metrics"]["cost_usd"]) >= (1500, 5.0)


WAITS_FOR_FILE = """
import pathlib, time
import lifesigns

with lifesigns.Sender("ends", interval=1.0, close_for=1.0) as life:
    while not pathlib.Path("end").exists():
        time.sleep(0.05)
"""

STARTS_LATER = """
import time
import lifesigns

with lifesigns.Sender("later", interval=1.0) as life:
    while life.stats.sent < 3:
        time.sleep(0.01)
"""


@pytest.mark.timeout(120)
@pytest.mark.parametrize("bus", [None, NatsServer, ValkeyServer], ids=["HTTP", "NATS", "Redis"])
def test_a_good_bye_that_met_no_hub_is_told_by_the_next_process(
    tmp_path: Path, bus: type[NatsServer | ValkeyServer] | None
) -> None:
    """It ended well while the hub was away: nobody is asked about it. A bus takes every word, and that is no hub either."""
    with (
        bus() if bus else nullcontext() as server,
        serving(tmp_path, {"bus": server.url} if server else None) as hub,
    ):
        way = server.url if server else hub.url
        agent = hub.python("ends.py", WAITS_FOR_FILE, LIFESIGNS_HUB=way)
        hub.until(lambda: hub.events(agent="ends"), "it is healthy, and the store has it")
        hub.kill()
        (tmp_path / "end").touch()
        assert agent.wait(30) == 0
        assert list((hub.state / "farewells").rglob("*.ndjson")), "its good-bye lies in the state folder"
        hub.start()
        assert hub.python("later.py", STARTS_LATER, LIFESIGNS_HUB=way).wait(30) == 0
        hub.until(lambda: hub.health("ends") == "terminated", "its good-bye has arrived")
        assert not list((hub.state / "farewells").rglob("*.ndjson"))
        assert hub.disconnected() == set()
        assert not hub.events("ESCALATION_TRIGGERED", agent="ends")
