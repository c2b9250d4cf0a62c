"""Hubs that judge together are killed, stopped and left alone, one after the other: minutes, so `make chaos-hubs` runs it."""

from __future__ import annotations

import itertools
import os
import time
from pathlib import Path

import pytest

from tests.journeys.outside import Hub
from tests.journeys.slot_hubs import (
    BUSY_FOR,
    BY_BUS,
    BY_HTTP,
    CREW,
    TAKEOVER_FOR,
    is_whole,
    judged,
    missing,
    names_at,
    nudged,
    states_at,
    three_hubs,
)
from tests.journeys.test_one_view import EventReader, beside
from tests.servers.nats import NatsServer

pytestmark = pytest.mark.skipif(
    "HUBS_COME_AND_GO" not in os.environ, reason="takes minutes; HUBS_COME_AND_GO=1 or make chaos-hubs"
)


@pytest.mark.timeout(300)
def test_hubs_come_and_go_and_no_agent_is_convicted_for_it(tmp_path: Path) -> None:
    """One is killed, one is stopped, one is left: each slot is judged within a takeover, and who dies then is found."""
    with NatsServer() as nats, three_hubs(tmp_path, nats.url) as (one, two, three):
        everybody = ",".join(hub.url for hub in (one, two, three))
        one.python("bus.py", CREW, *BY_BUS, LIFESIGNS_HUB=nats.url)
        many = one.python("many.py", CREW, *BY_HTTP[3:], LIFESIGNS_HUB=everybody)
        few = one.python("few.py", CREW, *BY_HTTP[:3], LIFESIGNS_HUB=everybody)
        all_of_them = {*BY_BUS, *BY_HTTP}
        three.until(lambda: names_at(three) == all_of_them, "all are known")
        for hub in (one, two, three):
            assert names_at(hub) == all_of_them, "whichever hub is asked"
            assert hub.get("/api/v1/fleet")["agents"] == len(all_of_them)
            assert all(hub.agent(name) is not None for name in all_of_them)
        reader = EventReader(three)
        with beside(reader.run):
            three.until(lambda: reader.times, "somebody listens")
            before = {event["id"] for event in three.events()}
            two.post("/api/v1/agents/bus-0/nudge", {"message": "Hello?"})
            three.until(lambda: "seen" in nudged(three, "bus-0"), "an agent on the bus gets its orders")

            slots = judged(two)[one.url]
            killed_at = time.monotonic()
            one.kill()
            two.until(lambda: missing(two) == slots, "what is not judged right now is said")
            two.until(lambda: is_whole(two), "others have taken over")
            assert time.monotonic() - killed_at < TAKEOVER_FOR + BUSY_FOR
            assert sorted(itertools.chain(*judged(two).values())) == [*range(8)]
            time.sleep(20)  # Their silence would be found by now.

            stopped_at = time.monotonic()
            two.stop()
            three.until(lambda: is_whole(three), "it has handed over")
            assert time.monotonic() - stopped_at < TAKEOVER_FOR + BUSY_FOR
            assert judged(three)[three.url] == [*range(8)]
            time.sleep(20)
            assert {*states_at(three).values()} == {"healthy"}
            assert three.disconnected() == set(), "nobody was convicted for it"

            few.kill()
            three.until(lambda: {*BY_HTTP[:3]} <= three.disconnected(), "those who died are found")
            assert three.disconnected() == {*BY_HTTP[:3]}
            three.until(lambda: ended(three), "one of them is to be ended: it is known how all others are")
            assert ended(three) <= {*BY_HTTP[:3]}
            many.kill()
            three.until(
                lambda: "fleet" in three.get("/api/v1/fleet")["braked"], "too many at once, in all slots"
            )
            assert ended(three) <= {*BY_HTTP[:3]}
            known = {event["id"] for event in three.events()} - before
            three.until(lambda: known <= {*reader.ids}, "a listener has heard of all that")
            reader.over = True
            three.post("/api/v1/beats", {"agent_id": "last"})
        assert len(reader.ids) == len({*reader.ids}), "and of nothing twice"
        (one.folder / "enough").touch()


def ended(hub: Hub) -> set[str]:
    """The agents that somebody was told to end."""
    found = hub.events("INTERVENTION")
    return {
        one["agent_id"]
        for one in found
        if (one["data"]["rung"], one["data"]["stage"]) == ("terminate", "ordered")
    }
