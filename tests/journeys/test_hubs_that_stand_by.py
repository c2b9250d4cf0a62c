"""Several hubs on one PostgreSQL: one judges, the others stand by, and one of them takes over when it is gone. Two hubs on
one SQLite file are refused."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from tests.journeys.hub_pair import hub_pair, readiness
from tests.journeys.outside import Hub, Refused, serving

TAKEOVER_FOR = 20.0
"""Seconds: 6 until the leader counts as gone, 1 until the next look, the rest for a busy machine."""

AGENT = """
import time
import lifesigns

with lifesigns.Sender("a", interval=1.0) as life:
    for step in range(10_000):
        life.checkpoint(f"cp-{step}")
        time.sleep(0.5)
"""


def status(hub: Hub, path: str, body: object = None) -> int:
    """Of its answer; 0 if there is none."""
    try:
        hub.get(path) if body is None else hub.post(path, body)
    except Refused as refused:
        return refused.status
    except OSError:
        return 0
    return 200


def judges(hub: Hub) -> bool:
    return readiness(hub) == "ok"


class Pair:
    """Two hubs on one store, and an agent that knows both."""

    def __init__(self, first: Hub, second: Hub) -> None:
        self.first, self.second = first, second
        self.both = f"{first.url},{second.url}"

    def beats_of(self, hub: Hub) -> int:
        return int(hub.get("/api/v1/agents/a")["metrics"]["total_heartbeats"])

    def heard_by(self, hub: Hub) -> None:
        """Wait until the agent speaks to this hub."""
        hub.until(lambda: judges(hub) and hub.health("a") == "healthy", "the hub judges, and knows the agent")
        beats = self.beats_of(hub)
        hub.until(lambda: self.beats_of(hub) > beats, "and hears it")

    def never_unwell(self, hub: Hub) -> None:
        flips = [event["data"]["to"] for event in hub.events("HEALTH_STATE_CHANGED", agent="a")]
        assert set(flips) <= {"healthy"}, "nobody found it unwell meanwhile"


@contextmanager
def pair(folder: Path) -> Iterator[Pair]:
    """The first judges, the second stands by, and both are known to an agent."""
    with hub_pair(folder) as (first, second):
        hubs = Pair(first, second)
        first.python("agent.py", AGENT, LIFESIGNS_HUB=hubs.both)
        hubs.heard_by(first)
        yield hubs


@pytest.mark.timeout(180)
def test_a_hub_that_is_killed_is_replaced_by_the_one_that_stands_by(tmp_path: Path) -> None:
    """Nobody is convicted for it; and the killed one, back again, stands by in its turn."""
    with pair(tmp_path) as hubs:
        first, second = hubs.first, hubs.second
        first.kill()
        with pytest.raises(Refused) as refused:
            second.get("/api/v1/agents")
        assert (refused.value.status, "stands by" in refused.value.body["detail"]) == (503, True)
        began_at = time.monotonic()
        second.until(lambda: judges(second), "the second one takes over", TAKEOVER_FOR)
        assert time.monotonic() - began_at > 3, "it waited until the first one was surely gone"
        hubs.heard_by(second)
        listed = json.loads(second.cli("hubs", "--json", check=False).stdout)["hubs"]
        assert {hub["url"]: hub["state"] for hub in listed}[second.url] == "judges"
        shown = second.cli("show", "a", "--json", LIFESIGNS_HUB=hubs.both)
        assert json.loads(shown.stdout)["agent"]["state"] == "healthy"
        first.launch()
        second.until(
            lambda: status(first, "/readyz") == 200 and not judges(first), "the first one stands by now"
        )
        assert judges(second)
        hubs.never_unwell(second)
        second.until(lambda: second.cli("hubs", check=False).returncode == 0, "none is lost any more")
        listed = second.cli("hubs")
        assert "judges" in listed.stdout
        assert "stands by" in listed.stdout
        assert second.cli("audit", "verify").returncode == 0


@contextmanager
def in_the_middle_of_a_commit(store: str) -> Iterator[None]:
    """Nobody else can commit, or take over: a hub was frozen while it did."""
    loop = asyncio.new_event_loop()
    connection = loop.run_until_complete(asyncpg.connect(store))
    try:
        loop.run_until_complete(connection.execute("BEGIN"))
        loop.run_until_complete(connection.execute("SELECT * FROM lifesigns.hub FOR UPDATE"))
        yield
    finally:
        loop.run_until_complete(connection.close())
        loop.close()


@pytest.mark.timeout(180)
def test_a_hub_whose_takeover_fails_stands_by_again(tmp_path: Path) -> None:
    """And takes over as soon as it can; it once ended."""
    with pair(tmp_path) as hubs:
        second = hubs.second
        with in_the_middle_of_a_commit(hubs.first.store):
            hubs.first.kill()
            second.until(lambda: "not taken over" in second.log.read_text(), "its takeover fails")
        second.until(lambda: judges(second), "it takes over", TAKEOVER_FOR)
        hubs.heard_by(second)
        hubs.never_unwell(second)


@pytest.mark.timeout(180)
def test_a_hub_that_stops_hands_over_at_once(tmp_path: Path) -> None:
    with pair(tmp_path) as hubs:
        hubs.first.stop()
        hubs.second.until(lambda: judges(hubs.second), "the second one takes over", 5.0)
        hubs.heard_by(hubs.second)
        hubs.never_unwell(hubs.second)


@pytest.mark.timeout(180)
def test_a_hub_that_is_drained_hands_over_and_rests(tmp_path: Path) -> None:
    """Its machine can be worked on: it stands by, and does not take over from one that is stopped; until it is resumed."""

    def states() -> dict[str, str]:
        return {hub["url"]: hub["state"] for hub in second.get("/api/v1/hubs")["hubs"]}

    with pair(tmp_path) as hubs:
        first, second = hubs.first, hubs.second
        names = {hub["url"]: hub["name"] for hub in first.get("/api/v1/hubs")["hubs"]}
        drained = first.cli("hubs", "drain", names[first.url])
        assert "is drained" in drained.stdout
        second.until(lambda: judges(second), "the second one takes over", 10.0)
        hubs.heard_by(second)
        second.until(lambda: states() == {first.url: "drained", second.url: "judges"}, "the first one rests")
        refused = second.cli("hubs", "drain", names[second.url], check=False)
        assert refused.returncode == 2
        assert "no other hub stands by" in refused.stderr
        assert "drained" in second.cli("hubs").stdout
        second.cli("hubs", "resume", names[first.url])
        second.stop()
        first.until(lambda: judges(first), "it is its turn", 10.0)
        hubs.heard_by(first)
        hubs.never_unwell(first)
        assert {event["type"] for event in first.events() if event["type"].startswith("HUB_")} >= {
            "HUB_DRAINED",
            "HUB_RESUMED",
        }
        assert first.cli("audit", "verify").returncode == 0


@pytest.mark.timeout(180)
def test_a_hub_that_was_frozen_stands_by_when_it_goes_on(tmp_path: Path) -> None:
    """It can store nothing more, and its agents have moved: it must not judge them."""
    with pair(tmp_path) as hubs:
        first, second = hubs.first, hubs.second
        first.signal(signal.SIGSTOP)
        second.until(lambda: judges(second), "the second one takes over", TAKEOVER_FOR)
        hubs.heard_by(second)
        first.signal(signal.SIGCONT)
        second.until(lambda: "standing by" in first.log.read_text(), "the first one stands by")
        assert not judges(first)
        second.post("/api/v1/agents/a/nudge", {"message": "Hello?"})
        second.until(
            lambda: (
                [one["rung"] for one in second.get("/api/v1/interventions")["interventions"]] == ["nudge"]
            ),
            "one nudge, by the hub that judges",
        )
        hubs.never_unwell(second)


def test_two_hubs_on_one_sqlite_file_are_refused(tmp_path: Path) -> None:
    """They took the file from each other, and one of them answered 503 for ever."""
    store = ("--store", f"sqlite://{tmp_path / 'shared.db'}")
    for name in ("first", "second"):
        (tmp_path / name / "state").mkdir(parents=True)
    with serving(tmp_path / "first", None, *store) as first:
        refused = first.cli(
            "serve", "--port", "0", "--state", str(tmp_path / "second" / "state"), *store, check=False
        )
        assert refused.returncode == 2
        assert f"uses the database {tmp_path / 'shared.db'} already" in refused.stderr
        assert f"process {first.process.pid}" in refused.stderr  # type: ignore[union-attr]
        assert status(first, "/api/v1/beats", {"agent_id": "a"}) == 200
