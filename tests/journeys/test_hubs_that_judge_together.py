"""Three hubs that judge at once, on one PostgreSQL and one NATS: each hears and judges its own slots, any of them answers for the
whole fleet, and whatever happens to one of them, no agent is convicted for it."""

from __future__ import annotations

import http.client
import http.cookiejar
import itertools
import json
import re
import shutil
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.journeys.hub_pair import Line, readiness
from tests.journeys.outside import Hub, Json, Refused, serving
from tests.journeys.test_endings import IMPATIENT
from tests.journeys.test_one_view import EventReader, beside, opened
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer

LOST = (OSError, http.client.HTTPException, Refused)
TAKEOVER_FOR = 8.0
BUSY_FOR = 7.0
"""More, on a machine that is full of other tests."""

CREW = """
import os, sys, time, lifesigns

names = sys.argv[1:]
senders = [lifesigns.Sender(name, interval=0.5, on_nudge=print).__enter__() for name in names]
while not os.path.exists("enough"):
    time.sleep(0.1)
for sender in senders:
    sender.__exit__(None, None, None)
"""
BY_BUS = [f"bus-{n}" for n in range(12)]
BY_HTTP = [f"http-{n}" for n in range(12)]


@contextmanager
def three_hubs(folder: Path, bus: str | None = None) -> Iterator[list[Hub]]:
    """They are there, and have agreed on who judges what."""
    config: Json = {"hubs": {"judge": "all"}, **IMPATIENT}
    if bus is not None:
        config["bus"] = bus
    with PostgresServer() as server:
        names = ("one", "two", "three")
        for name in names:
            (folder / name / "state").mkdir(parents=True)
        env = {"LIFESIGNS_STORE": server.url}
        with serving(folder / "one", config, env=env) as first:
            hubs = [first]
            try:
                for name in names[1:]:
                    # Hubs on one store know each other's tokens by the key that they share.
                    for key in ("tokens.key", "audit.key"):
                        shutil.copy(folder / "one" / "state" / key, folder / name / "state")
                    hubs.append(Hub(folder / name, config, env=env))
                    hubs[-1].launch()
                first.until(lambda: {*map(readiness, hubs)} == {"ok"}, "they are ready")
                first.until(lambda: is_shared_out(first), "each judges some slots, and no more moves", 120)
                yield hubs
            finally:
                for hub in hubs[1:]:
                    hub.end()


def judged(hub: Hub) -> dict[str, list[int]]:
    """By address: the slots that each hub judges."""
    with suppress(*LOST):
        return {one["url"]: one["slots"] for one in hub.get("/api/v1/hubs")["hubs"]}
    return {}


def is_shared_out(hub: Hub) -> bool:
    """Whether everybody has some, and keeps them."""
    before = judged(hub)
    if len(before) < 3 or not all(before.values()):
        return False
    time.sleep(5)
    return judged(hub) == before


def is_whole(hub: Hub) -> bool:
    """Whether it can say something of every slot."""
    with suppress(*LOST):
        return bool(hub.get("/api/v1/fleet")["missing"] == [])
    return False


def names_at(hub: Hub) -> set[str]:
    return {one["agent_id"] for one in hub.get("/api/v1/agents?limit=1000")["agents"]}


def states_at(hub: Hub) -> dict[str, str]:
    return {one["agent_id"]: one["state"] for one in hub.get("/api/v1/agents?limit=1000")["agents"]}


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


def missing(hub: Hub) -> list[int] | None:
    with suppress(*LOST):
        slots: list[int] = hub.get("/api/v1/fleet")["missing"]
        return slots
    return None


def nudged(hub: Hub, agent_id: str) -> list[str]:
    """How far its nudges came."""
    found = hub.get("/api/v1/interventions")["interventions"]
    return [step["stage"] for one in found if one["agent_id"] == agent_id for step in one["stages"]]


@pytest.mark.timeout(240)
def test_any_hub_takes_what_is_for_all(tmp_path: Path) -> None:
    """Deliveries for agents of several slots, lists in pages, tokens, orders, and what needs one hub that judges all."""
    with three_hubs(tmp_path) as (one, two, three):
        crew = [f"w-{n}" for n in range(40)]
        assert two.post("/api/v1/beats", [{"agent_id": name} for name in crew])["accepted"] == 40
        lines = "\n".join(f'{{"agent_id": "{name}", "load": 0.5}}' for name in crew).encode()
        assert three.request("POST", "/api/v1/beats", lines)["accepted"] == 40
        said = [{"type": "progress", "agent_id": name, "percent": 5} for name in crew]
        key = {"Idempotency_Key": "delivery-1"}
        assert one.post("/api/v1/signals", [*said, {"type": "progress"}], **key)["accepted"] == 40
        again = two.post("/api/v1/signals", [*said, {"type": "progress"}], **key)
        assert [row["index"] for row in again["rejected"]] == [40]
        old = three.post("/api/v1/beats", {"worker_id": "old-one", "health_status": "ok"})
        assert old["accepted"] == 1, "in another dialect"

        pages, cursor = list[str](), ""
        while True:
            page = two.get(f"/api/v1/agents?limit=7{cursor}")
            pages += [agent["agent_id"] for agent in page["agents"]]
            if page["cursor"] is None:
                break
            cursor = f"&cursor={page['cursor']}"
        assert sorted(pages) == sorted([*crew, "old-one"])
        whole = one.get("/api/v1/agents?limit=1000")
        one.post("/api/v1/beats", {"agent_id": "w-3"})
        changes = one.get(f"/api/v1/agents?limit=1000&since={whole['updated']}")
        assert not changes["complete"]
        assert "w-3" in {agent["agent_id"] for agent in changes["agents"]}
        assert len(three.get("/api/v1/agents?sort=need&limit=5")["agents"]) == 5
        (fleet,) = [group for group in three.get("/api/v1/groups")["groups"] if group["name"] == "fleet"]
        assert fleet["members"] == 41

        line = Line(two)
        mine = "&".join(f"agent={name}" for name in crew[:10])

        def polls() -> None:
            status, orders = line.ask("GET", f"/api/v1/orders?wait=30&{mine}")
            assert (status, [*orders["orders"]]) == (200, ["w-4"])

        with beside(polls):
            time.sleep(1)
            three.post("/api/v1/agents/w-4/nudge", {"message": "Hello?"})
        line.close()

        made = two.post("/api/v1/tokens", {"role": "viewer", "name": "v"})["token"]
        assert one.request("GET", "/api/v1/fleet", token=made)["missing"] == []
        for hub in (one, two, three):
            with pytest.raises(Refused) as refused:
                hub.request("POST", "/api/v1/agents/w-1/nudge", {"message": "?"}, token=made)
            assert refused.value.status == 403, "no right is gained on the way"
            with pytest.raises(Refused) as refused:
                hub.request("GET", "/api/v1/fleet", token="nonsense")
            assert refused.value.status == 401
        sees_all_slots_in_a_browser(three)
        quiet = two.post("/api/v1/silences", {"agents": ["w-*"], "for": 3600, "reason": "maintenance"})["id"]
        assert [made["id"] for made in one.get("/api/v1/silences")["silences"]] == [quiet]
        three.request("DELETE", f"/api/v1/silences/{quiet}")
        assert one.get("/api/v1/silences")["silences"] == []
        two.get("/ping/nightly")
        assert one.health("nightly") is not None, "a job is an agent"
        with pytest.raises(Refused) as refused:
            one.get("/api/v1/messages")
        assert refused.value.status == 501
        with pytest.raises(Refused) as refused:
            one.post("/api/v1/signals", {"type": "claim", "agent_id": "w-1", "task_id": "t"})
        assert "hubs.judge" in str(refused.value.body)
        assert "w-7" in two.cli("agents", "--all", check=False).stdout
        assert "judges" in two.cli("hubs").stdout


def sees_all_slots_in_a_browser(hub: Hub) -> None:
    """Its session is of this hub, and most slots are judged by others."""
    link = hub.post("/api/v1/sign-in-links", {})["url"]
    jar = http.cookiejar.CookieJar()
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
    form = dict(re.findall(r'name="(code|nonce)" value="([^"]+)"', opened(browser, link)[1].decode()))
    button = urllib.request.Request(f"{hub.url}/sign-in", urllib.parse.urlencode(form).encode())
    button.add_header("Origin", hub.url)
    opened(browser, button)
    status, fleet = opened(browser, f"{hub.url}/api/v1/fleet")
    assert (status, json.loads(fleet)["missing"], json.loads(fleet)["agents"]) == (200, [], 41)
    for name in (f"w-{n}" for n in range(8)):
        assert opened(browser, f"{hub.url}/api/v1/agents/{name}")[0] == 200
    for origin, allowed in (("http://evil.example", False), (hub.url, True)):
        act = urllib.request.Request(f"{hub.url}/api/v1/agents/w-5/pause", b"{}", method="POST")
        act.add_header("Origin", origin)
        assert (opened(browser, act)[0] == 202) is allowed
    out = urllib.request.Request(f"{hub.url}/sign-out", b"", method="POST")
    out.add_header("Origin", hub.url)
    assert opened(browser, out)[0] == 204
    assert opened(browser, f"{hub.url}/api/v1/fleet")[0] == 401


@pytest.mark.timeout(180)
def test_a_hub_that_judges_alone_and_hubs_that_judge_together_share_no_database(tmp_path: Path) -> None:
    with PostgresServer() as server:
        (tmp_path / "alone" / "state").mkdir(parents=True)
        (tmp_path / "many" / "state").mkdir(parents=True)
        env = {"LIFESIGNS_STORE": server.url}
        with serving(tmp_path / "alone", {}, env=env) as alone:
            alone.post("/api/v1/beats", {"agent_id": "a"})
            alone.until(lambda: alone.health("a") == "healthy", "it is well")
            for key in ("tokens.key", "audit.key"):
                shutil.copy(tmp_path / "alone" / "state" / key, tmp_path / "many" / "state")
            many = Hub(tmp_path / "many", {"hubs": {"judge": "all"}}, env=env)
            many.launch()
            assert many.process is not None
            assert many.process.wait(60) != 0
            assert "one of its own" in many.log.read_text()
            assert alone.health("a") == "healthy", "and the other one judges on"
