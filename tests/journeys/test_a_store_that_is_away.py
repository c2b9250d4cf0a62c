"""The store is a server, and it dies: agents are judged all the same, and people are told at once, not when it is back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.outside import Refused, serving
from tests.journeys.pager import pager, webhook
from tests.servers.postgres import PostgresServer


@pytest.mark.timeout(240)
def test_who_dies_while_the_store_is_away_is_told_before_it_is_back(tmp_path: Path) -> None:
    with PostgresServer() as store, pager() as (url, told):
        config = {"profile": "swift", "store": store.url, **webhook(url)}
        with serving(tmp_path, config) as hub:
            seq = 0

            def beat(*names: str) -> None:
                nonlocal seq
                seq += 1
                hub.post("/api/v1/beats", [{"agent_id": name, "seq": seq} for name in names])

            def told_of(text: str) -> bool:
                beat("lives")
                return any(text in str(notice) for notice in told)

            beat("lives", "dies")
            hub.until(lambda: hub.health("dies") == "healthy", "both are heard")
            store.kill()
            hub.until(lambda: told_of("hub_store_lost"), "the store is missed")
            hub.until(lambda: told_of("stuck_agent:dies"), "people are told of the dead one")
            assert hub.health("dies") == "disconnected"
            assert hub.health("lives") == "healthy"
            store.start()

            def on_record() -> bool:
                beat("lives")
                try:
                    return "dies" in hub.disconnected()
                except Refused:
                    return False

            hub.until(on_record, "it is on record when the store is back")
