"""Hubs that judge together, attacked from outside: what one hub promises for its fleet holds for a fleet in slots."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Json, Refused, serving
from tests.servers.postgres import PostgresServer

CREW = [f"a{n}" for n in range(40)]
"""At least four in each slot."""
TOGETHER: Json = {"hubs": {"judge": "all"}}


@pytest.fixture(scope="module")
def all_slots(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hub]:
    """One process that judges every slot: whatever is divided, is divided here, too."""
    with PostgresServer() as server:
        folder: Path = tmp_path_factory.mktemp("all-slots")
        with serving(folder, TOGETHER, env={"LIFESIGNS_STORE": server.url}) as hub:
            hub.until(lambda: hub.get("/api/v1/fleet")["missing"] == [], "it judges all slots")
            hub.post("/api/v1/beats", [{"agent_id": name, "task_id": f"of-{name}"} for name in CREW])
            yield hub


@pytest.mark.parametrize("limit", [1, 3, 7, 39, 40, 100])
def test_pages_of_agents_show_each_of_them_once(all_slots: Hub, limit: int) -> None:
    shown: list[str] = []
    cursor = ""
    while True:
        page = all_slots.get(f"/api/v1/agents?limit={limit}{cursor}")
        shown += [one["agent_id"] for one in page["agents"]]
        if page["cursor"] is None:
            break
        cursor = f"&cursor={page['cursor']}"
    assert sorted(shown) == sorted(CREW)
