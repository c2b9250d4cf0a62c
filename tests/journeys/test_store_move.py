"""A hub moves from SQLite to PostgreSQL and back, and has lost nothing."""

from __future__ import annotations

import asyncio
import json
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import asyncpg
import pytest

from tests.journeys.outside import Hub, Json, serving
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.timeout(240)


def lived(hub: Hub) -> None:
    """Something of everything: agents, a pause, a message, a token, a nudge that waits."""
    for name in ("coder", "a..b/c@d", "tester"):
        hub.post("/api/v1/beats", {"agent_id": name, "cpu_percent": 12.5, "status": "busy"})
    hub.post("/api/v1/agents/coder/pause", {"reason": "lunch"})
    hub.post("/api/v1/agents/tester/nudge", {"message": "Grüße, wie geht’s?"})
    hub.post("/api/v1/tokens", {"role": "viewer", "name": "screen"})
    hub.until(lambda: len(hub.events()) >= 3, "it is on record")


def known(hub: Hub) -> dict[str, Json]:
    """What the API shows of the past; the events before the hub was last started."""
    return {
        "agents": sorted(one["agent_id"] for one in hub.get("/api/v1/agents")["agents"]),
        "paused": hub.get("/api/v1/agents/coder")["doing"],
        "tokens": sorted(one["name"] for one in hub.get("/api/v1/tokens")["tokens"]),
        "nudges": [one["id"] for one in hub.get("/api/v1/interventions")["interventions"]],
    }


def moved(hub: Hub, source: str, target: str, check: bool = True) -> Json:
    done = hub.cli("store", "move", source, target, "--json", check=check)
    return json.loads(done.stdout) if check else done


def events_in(url: str) -> int:
    """How many are in this database; none without the table."""

    async def count() -> int:
        connection = await asyncpg.connect(url)
        try:
            return int(await connection.fetchval("SELECT count(*) FROM lifesigns.events"))
        finally:
            await connection.close()

    try:
        return asyncio.run(count())
    except asyncpg.PostgresError:
        return 0


def test_everything_goes_along_and_back_again(tmp_path: Path) -> None:
    with PostgresServer() as server, serving(tmp_path) as hub:
        lived(hub)
        file = f"sqlite://{hub.state / 'lifesigns.db'}"
        running = moved(hub, file, server.url, check=False)
        assert running.returncode == 2
        assert f"process {hub.process.pid}" in running.stderr  # type: ignore[union-attr]
        events, before = hub.events(), known(hub)
        hub.stop()
        report = moved(hub, file, server.url)
        assert report["audit_verified"] is True
        assert report["rows"]["events"] >= len(events)
        assert report["rows"]["tokens"] >= 2
        again = moved(hub, file, server.url, check=False)
        assert again.returncode == 2
        assert "is not empty" in again.stderr

        there = Hub(tmp_path, None, "--store", server.url)
        try:
            there.start()
            assert there.events()[: len(events)] == events
            assert known(there) == before
            there.post("/api/v1/beats", {"agent_id": "newcomer"})
            there.until(lambda: there.health("newcomer") == "healthy", "it goes on there")
            running = moved(there, server.url, f"sqlite://{tmp_path / 'back.db'}", check=False)
            assert running.returncode == 2
            assert f"at {there.url} uses this store; stop it first" in running.stderr
            after = known(there)
            there.stop()
            report = moved(there, server.url, f"sqlite://{tmp_path / 'back.db'}")
            assert report["audit_verified"] is True
        finally:
            there.end()
        back = Hub(tmp_path, None, "--store", f"sqlite://{tmp_path / 'back.db'}")
        try:
            back.start()
            assert back.events()[: len(events)] == events
            assert known(back) == after
        finally:
            back.end()


def test_a_move_that_was_broken_off_leaves_a_store_that_is_refused(tmp_path: Path) -> None:
    """Killed in the middle: the old store is as it was, and nobody takes the half for the whole."""
    with PostgresServer() as server, serving(tmp_path) as hub:
        lived(hub)
        hub.stop()
        path = hub.state / "lifesigns.db"
        with closing(sqlite3.connect(path)) as store, store:
            (last,) = store.execute("SELECT event FROM hub").fetchone()
            rows = ((last + n, 1.0, "X", "a", b"{}" * 500) for n in range(1, 100_001))
            store.executemany(
                "INSERT INTO events (id, at, type, agent_id, data) VALUES (?, ?, ?, ?, ?)", rows
            )
            store.execute("UPDATE hub SET event = event + 100000")
        move = hub.started("lifesigns", "store", "move", f"sqlite://{path}", server.url)
        hub.until(lambda: events_in(server.url) > 2000, "it moves")
        move.send_signal(signal.SIGKILL)
        move.wait()
        other = Hub(tmp_path, None, "--store", server.url)
        try:
            other.launch()
            assert other.process is not None
            assert other.process.wait(60) != 0
            assert "a part of a move that was broken off" in other.log.read_text()
        finally:
            other.end()
        again = moved(hub, f"sqlite://{path}", server.url, check=False)
        assert again.returncode == 2
        assert "a part of a move that was broken off" in again.stderr
        hub.start()  # The old one is as it was.
        assert hub.health("coder") is not None
