"""A hub whose store was taken over by another takes nothing in any more, and says so: its agents must look for the other."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, serving


def status(hub: Hub, path: str, body: object) -> int:
    try:
        hub.post(path, body)
    except Refused as refused:
        return refused.status
    return 202


def test_a_hub_that_was_deposed_refuses_beats_and_signals(tmp_path: Path) -> None:
    """It answered 202, so its agents stayed, and the hub that judges took all of them for dead."""
    store = ["--store", f"sqlite://{tmp_path / 'shared.db'}"]
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with serving(tmp_path / "first", None, *store) as first:
        first.post("/api/v1/beats", {"agent_id": "a"})
        with serving(tmp_path / "second", None, *store) as second:
            second.post("/api/v1/beats", {"agent_id": "a"})
            first.until(
                lambda: status(first, "/api/v1/beats", {"agent_id": "a"}) == 503, "the first one refuses"
            )
            left = {"type": "left", "agent_id": "a"}
            assert status(first, "/api/v1/signals", left) == 503
            with pytest.raises(Refused) as refused:
                first.post("/api/v1/beats", [{"agent_id": "a"}])
            assert "Another hub has taken over" in refused.value.body["detail"]
            with pytest.raises(Refused) as unready:
                first.get("/readyz")
            assert unready.value.status == 503
            assert status(second, "/api/v1/beats", {"agent_id": "a"}) == 202
            assert second.health("a") == "healthy"
