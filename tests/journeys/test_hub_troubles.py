"""What is wrong with the hub itself is an alert that stands while it lasts, and `doctor` says it too."""

from __future__ import annotations

import json
import shutil
import socket
import sqlite3
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, Refused, serving

pytestmark = pytest.mark.timeout(300)


def standing(hub: Hub, kind: str) -> Any:
    """The text of the alert of this type that stands now; None if there is none."""
    found = [one for one in hub.get("/api/v1/alerts")["alerts"] if one["standing"] and one["type"] == kind]
    return found[0]["text"] if found else None


def bad(hub: Hub) -> dict[str, str]:
    """What `lifesigns doctor` calls bad."""
    checks = json.loads(hub.cli("doctor", "--json", check=False).stdout)["checks"]
    return {check["what"]: check["said"] for check in checks if check["level"] == "bad"}


def is_refused(hub: Hub, token: str) -> bool:
    try:
        hub.request("POST", "/api/v1/beats", {"agent_id": "coder"}, token=token)
    except Refused as refused:
        return refused.status in (401, 429)
    return False


def test_a_hub_that_lost_its_state_says_that_agents_knock(tmp_path: Path) -> None:
    """It started empty, answered its living agents 401 for ever, and doctor said that nothing is bad."""
    with serving(tmp_path) as hub:
        token = hub.post("/api/v1/tokens", {"role": "agent", "name": "its", "agents": "coder"})["token"]
        hub.request("POST", "/api/v1/beats", {"agent_id": "coder"}, token=token)
        hub.stop()
        shutil.rmtree(hub.state)
        hub.start()
        assert standing(hub, "HUB_TOKENS_REFUSED") is None
        assert is_refused(hub, token)
        assert is_refused(hub, token)
        hub.until(lambda: standing(hub, "HUB_TOKENS_REFUSED"), "it is an alert")
        text = standing(hub, "HUB_TOKENS_REFUSED")
        assert "coder" in text
        assert "knows no agent at all" in text
        assert token not in text
        assert "coder" in bad(hub)["tokens"]


def test_an_agent_whose_token_was_revoked_is_named_and_a_typing_error_is_no_alert(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        made = hub.post("/api/v1/tokens", {"role": "agent", "name": "its", "agents": "coder"})
        hub.request("POST", "/api/v1/beats", {"agent_id": "coder"}, token=made["token"])
        assert is_refused(hub, "ls_00000000_" + "0" * 64)  # Once, and never again.
        assert is_refused(hub, "hello")
        assert is_refused(hub, "hello")
        hub.request("DELETE", f"/api/v1/tokens/{made['id']}")
        for _ in range(2):
            assert is_refused(hub, made["token"])
        hub.until(lambda: standing(hub, "HUB_TOKENS_REFUSED"), "it is an alert")
        text = standing(hub, "HUB_TOKENS_REFUSED")
        assert made["id"] in text
        assert "00000000" not in text
        assert "coder" in text


def is_unread(hub: Hub, path: str) -> bool:
    try:
        hub.get(path)
    except Refused as refused:
        return refused.status == 503
    return False


def test_a_damaged_read_makes_the_store_bad(tmp_path: Path) -> None:
    """The store was called ok as long as it could be written to: here nothing is written to what is damaged, for a while."""
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder"})
        hub.post("/api/v1/agents/coder/pause")
        hub.until(lambda: "coder" in str(hub.get("/api/v1/audit")), "there is something in the audit log")
        hub.stop()
        with closing(sqlite3.connect(hub.state / "lifesigns.db")) as store:
            (page_size,) = store.execute("PRAGMA page_size").fetchone()
            (root,) = store.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'deeds'").fetchone()
        hub.start()
        assert hub.get("/readyz")["store"] == "ok"
        with (hub.state / "lifesigns.db").open("r+b") as file:
            file.seek((root - 1) * page_size)
            file.write(b"\xff" * page_size)
        hub.post("/api/v1/signals", {"type": "doing", "agent_id": "coder", "doing": "working"})
        hub.until(lambda: is_unread(hub, "/api/v1/audit"), "the log cannot be read")
        with pytest.raises(Refused) as unready:
            hub.get("/readyz")  # At once: the next write may be long in coming.
        assert "damaged" in unready.value.body["store"]
        hub.until(lambda: standing(hub, "HUB_STORE_LOST"), "it is an alert")
        assert "damaged" in standing(hub, "HUB_STORE_LOST")
        assert "damaged" in bad(hub)["store"]


def flip(hub: Hub, kind: str) -> None:
    with closing(sqlite3.connect(hub.state / "lifesigns.db")) as store, store:
        changed = store.execute("UPDATE beliefs SET value = x'c1c1c1' WHERE kind = ?", (kind,)).rowcount
        assert changed == 1


def test_a_row_that_cannot_be_read_is_left_out_and_told(tmp_path: Path) -> None:
    """It was a traceback, and no hub."""
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder"})
        hub.post("/api/v1/agents/coder/pause")
        hub.stop()
        flip(hub, "agent")
        hub.start()
        hub.until(lambda: standing(hub, "HUB_ROWS_UNREADABLE"), "it is an alert")
        assert "agent coder" in standing(hub, "HUB_ROWS_UNREADABLE")
        assert "agent coder" in bad(hub)["memory"]
        hub.post("/api/v1/beats", {"agent_id": "coder"})
        hub.until(lambda: hub.health("coder") == "healthy", "the agent is watched anew")
        assert "Traceback" not in hub.log.read_text()
        hub.stop()
        hub.start()
        assert standing(hub, "HUB_ROWS_UNREADABLE") is None


def test_a_hub_whose_own_row_cannot_be_read_says_what_to_do(tmp_path: Path) -> None:
    """To go on would let order ids and fencing tokens begin anew."""
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder"})
        hub.stop()
        flip(hub, "hub")
        with pytest.raises(AssertionError):
            hub.start()
        log = hub.log.read_text()
        assert "Traceback" not in log
        assert "docs/runbooks/restore.md" in log


def test_full_connections_are_an_alert(tmp_path: Path) -> None:
    """`ulimit -n 128`: newcomers got 503, and nobody was told."""
    with serving(tmp_path, {"limits": {"connections": 8}}) as hub, ExitStack() as held:
        for _ in range(12):
            held.enter_context(socket.create_connection(("127.0.0.1", hub.port)))

        def told() -> bool:
            try:
                return standing(hub, "HUB_CONNECTIONS_FULL") is not None
            except (Refused, OSError):
                held.close()
                return False

        hub.until(told, "it is an alert")
        assert "no room for more" in standing(hub, "HUB_CONNECTIONS_FULL")
        assert "no room for more" in bad(hub)["connections"]
