"""Three hubs that judge together, and what they say of themselves."""

from __future__ import annotations

import http.client
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.journeys.hub_pair import readiness
from tests.journeys.outside import Hub, Json, Refused, until
from tests.journeys.test_endings import IMPATIENT
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
    """They are started together, and have shared the slots out."""
    config: Json = {"hubs": {"judge": "all"}, **IMPATIENT}
    if bus is not None:
        config["bus"] = bus
    with PostgresServer() as server:
        names = ("one", "two", "three")
        env = {"LIFESIGNS_STORE": server.url}
        for name in names:
            (folder / name / "state").mkdir(parents=True)
        hubs = [Hub(folder / name, config, env=env) for name in names]
        first = hubs[0]
        try:
            first.launch()
            keys = [first.state / key for key in ("tokens.key", "audit.key")]
            until(lambda: all(key.exists() for key in keys), "the first hub has keys")
            for hub in hubs[1:]:
                # Hubs on one store know each other's tokens by the key that they share.
                for key in keys:
                    shutil.copy(key, hub.state)
                hub.launch()
            until(lambda: {*map(readiness, hubs)} == {"ok"}, "they are ready")
            until(lambda: is_shared_out(first), "each judges some slots, and no more moves", 120)
            until(lambda: all(map(is_whole, hubs)), "and each reaches all of them")
            yield hubs
        finally:
            for hub in hubs:
                hub.end()


def judged(hub: Hub) -> dict[str, list[int]]:
    """By address: the slots that each hub judges."""
    with suppress(*LOST):
        return {one["url"]: one["slots"] for one in hub.get("/api/v1/hubs")["hubs"]}
    return {}


def is_shared_out(hub: Hub) -> bool:
    """Whether everybody has an equal part, and keeps it for longer than it takes until the next slot moves."""
    before = judged(hub)
    if sorted(map(len, before.values())) != [2, 3, 3]:
        return False
    time.sleep(3.5)
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


def missing(hub: Hub) -> list[int] | None:
    with suppress(*LOST):
        slots: list[int] = hub.get("/api/v1/fleet")["missing"]
        return slots
    return None


def nudged(hub: Hub, agent_id: str) -> list[str]:
    """How far its nudges came."""
    found = hub.get("/api/v1/interventions")["interventions"]
    return [step["stage"] for one in found if one["agent_id"] == agent_id for step in one["stages"]]
