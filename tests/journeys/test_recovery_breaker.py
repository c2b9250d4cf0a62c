"""The breaker of recovery attempts is listed with the others, and people reset it (docs/reference/breaker.md)."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.outside import Hub, Json, serving
from tests.journeys.starts import config, crash, started


def breaker(hub: Hub) -> Json | None:
    listed = hub.get("/api/v1/breakers")["breakers"]
    return next((one for one in listed if one["name"] == "recovery_attempt"), None)


def test_a_program_that_cannot_be_started_opens_it_and_a_reset_tries_again(tmp_path: Path) -> None:
    with started(tmp_path) as those:
        mended = tmp_path / "mended"
        command = f"test -e {mended} && {those.command()}"
        with serving(tmp_path, config(command, per_task_max=2)) as hub:
            assert breaker(hub) is None
            crash(hub)
            hub.until(lambda: (breaker(hub) or {}).get("state") == "forced_open", "all attempts failed")
            assert (breaker(hub) or {})["failures"] == 2
            listed = hub.cli("breakers", check=False)
            assert (listed.returncode, "recovery_attempt" in listed.stdout) == (1, True)
            of_it = hub.get("/api/v1/agents/coder")["circuit_breakers"]
            assert [(one["name"], one["state"]) for one in of_it] == [("recovery_attempt", "forced_open")]
            mended.touch()
            said = hub.cli("breakers", "reset", "recovery_attempt", "--agent", "coder", "--wait").stdout
            assert "reset breaker 'recovery_attempt', done" in said
            hub.until(lambda: hub.health("coder") == "healthy", "the next attempt succeeds")
            assert (breaker(hub) or {})["state"] == "half_open", "it is watched closely"
            opened = hub.post("/api/v1/breakers/recovery_attempt/open")["interventions"][0]
            assert "only failed recoveries open it" in opened["stages"][-1]["text"]
