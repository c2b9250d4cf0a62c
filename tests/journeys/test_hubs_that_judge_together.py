"""Three hubs that judge at once, on one PostgreSQL and one NATS: each hears and judges its own slots, any of them answers for the
whole fleet, and when one of them dies no agent is convicted for it. The long version is `test_hubs_that_come_and_go.py`."""

from __future__ import annotations

import http.cookiejar
import itertools
import json
import re
import time
import urllib.parse
import urllib.request
from contextlib import suppress
from functools import partial
from pathlib import Path

import pytest

from tests.journeys.hub_pair import Line
from tests.journeys.outside import Hub, Refused
from tests.journeys.slot_hubs import (
    BUSY_FOR,
    BY_BUS,
    BY_HTTP,
    CREW,
    LOST,
    TAKEOVER_FOR,
    is_whole,
    judged,
    missing,
    names_at,
    nudged,
    states_at,
    three_hubs,
)
from tests.journeys.test_one_view import EventReader, beside, opened
from tests.servers.nats import NatsServer


@pytest.mark.timeout(240)
def test_any_hub_answers_for_all_and_one_that_dies_is_replaced(tmp_path: Path) -> None:
    with NatsServer() as nats, three_hubs(tmp_path, nats.url) as (one, two, three):
        takes_what_is_for_all(one, two, three)
        everybody = ",".join(hub.url for hub in (one, two, three))
        two.python("bus.py", CREW, *BY_BUS, LIFESIGNS_HUB=nats.url)
        two.python("many.py", CREW, *BY_HTTP[3:], LIFESIGNS_HUB=everybody)
        few = two.python("few.py", CREW, *BY_HTTP[:3], LIFESIGNS_HUB=everybody)
        alive, mortal = {*BY_BUS, *BY_HTTP[3:]}, {*BY_HTTP[:3]}
        for hub in (one, two, three):
            hub.until(partial(knows, hub, alive | mortal), "all are known, whichever hub is asked")
        reader = EventReader(three)
        with beside(reader.run):
            three.until(lambda: reader.times, "somebody listens")
            two.post("/api/v1/agents/bus-0/nudge", {"message": "Hello?"})
            three.until(lambda: "seen" in nudged(three, "bus-0"), "an agent on the bus gets its orders")
            before = {event["id"] for event in three.events()}
            slots, killed_at = judged(two)[one.url], time.monotonic()
            one.kill()
            two.until(lambda: missing(two) == slots, "what is not judged right now is said")
            two.until(lambda: is_whole(two), "others have taken over")
            assert time.monotonic() - killed_at < TAKEOVER_FOR + BUSY_FOR
            assert sorted(itertools.chain(*judged(two).values())) == [*range(8)]
            few.kill()
            three.until(lambda: mortal <= convicted(three), "those who died are found")
            three.until(lambda: is_whole(three) and is_whole(two), "they reach each other")
            assert not alive & three.disconnected(), "and nobody else is convicted"
            states = states_at(two)
            assert {states[name] for name in alive} == {"healthy"}
            known = {event["id"] for event in three.events()} - before
            three.until(lambda: known <= {*reader.ids}, "a listener has heard of all that")
            reader.over = True
            three.post("/api/v1/beats", {"agent_id": "last"})
        assert len(reader.ids) == len({*reader.ids}), "and of nothing twice"
        (two.folder / "enough").touch()


def convicted(hub: Hub) -> set[str]:
    """Nobody, while it does not reach all slots."""
    with suppress(*LOST):
        return hub.disconnected()
    return set()


def knows(hub: Hub, names: set[str]) -> bool:
    return names <= names_at(hub)


def takes_what_is_for_all(one: Hub, two: Hub, three: Hub) -> None:
    """Deliveries for agents of several slots, lists in pages, tokens, orders, and what needs one hub that judges all."""
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
    two.post("/api/v1/signals", [{"type": "left", "agent_id": name} for name in (*crew, "old-one")])


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
