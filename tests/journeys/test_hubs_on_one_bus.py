"""Two hubs with separate stores are not to share a bus: both would judge the same agents, and every order would come twice."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, environment, serving
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer
from tests.servers.process import Server
from tests.servers.valkey import ValkeyServer


def alerts(hub: Hub) -> list[str]:
    """The alerts that stand now."""
    return [one["type"] for one in hub.get("/api/v1/alerts")["alerts"] if one["standing"]]


def status(hub: Hub) -> str:
    """`ok`, `standby`; empty if it does not answer."""
    try:
        return str(hub.get("/readyz")["status"])
    except Refused as refused:
        return str(refused.body["status"])
    except OSError:
        return ""


def refusal(hub: Hub, *words: str) -> subprocess.CompletedProcess[str]:
    """Of another hub, beside this one. It waits 2 s for an answer, which may not be enough where everybody starves: then it
    runs, until it is tried again."""
    for _ in range(3):
        with suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                [sys.executable, "-m", "lifesigns", "serve", *words],
                capture_output=True,
                text=True,
                timeout=30,
                check=False,
                env=environment(),
                cwd=hub.folder,
            )
    pytest.fail("it was not refused")


@pytest.mark.parametrize("kind", [NatsServer, ValkeyServer])
@pytest.mark.timeout(180)
def test_the_second_one_is_refused_and_the_error_names_both(tmp_path: Path, kind: type[Server]) -> None:
    with kind() as bus:
        for name in ("first", "second"):
            (tmp_path / name / "state").mkdir(parents=True)
        with serving(tmp_path / "first", {"bus": bus.url}) as first:
            state = tmp_path / "second" / "state"
            refused = refusal(first, "--port", "0", "--state", str(state), "--bus", bus.url)
            assert refused.returncode == 2
            assert f"at {first.url} (store SQLite in {first.state}) hears this bus already" in refused.stderr
            assert f"(store SQLite in {state}), has another store" in refused.stderr


@pytest.mark.timeout(180)
def test_two_that_could_not_ask_are_told_of_and_those_who_mean_it_are_left_alone(tmp_path: Path) -> None:
    """The bus was away when they started."""
    with NatsServer() as bus:
        bus.kill()
        for name in ("first", "second", "third"):
            (tmp_path / name).mkdir(parents=True)

        def hub(name: str, **more: str) -> Hub:
            made = Hub(tmp_path / name, {"bus": {"url": bus.url, **more}})
            made.launch()
            return made

        first, second = hub("first"), hub("second")
        third = hub("third", other_hubs="allowed")
        try:
            for one in (first, second, third):
                one.until(lambda one=one: (one.state / "hub.url").exists(), "it listens")  # type: ignore[misc]
            bus.start()
            first.until(lambda: "HUB_BUS_SHARED" in alerts(first), "the first one tells of the second")
            second.until(lambda: "HUB_BUS_SHARED" in alerts(second), "and the second one of the first")
            text = next(one["text"] for one in first.get("/api/v1/alerts")["alerts"] if one["standing"])
            assert second.url in text
            assert third.url not in text
            assert alerts(third) == []
            second.stop()
            first.until(lambda: "HUB_BUS_SHARED" not in alerts(first), "it is over")
        finally:
            for one in (first, second, third):
                one.end()


@pytest.mark.timeout(120)
def test_hubs_on_one_store_share_the_bus(tmp_path: Path) -> None:
    with PostgresServer() as store, NatsServer() as bus:
        for name in ("first", "second"):
            (tmp_path / name / "state").mkdir(parents=True)
        config = {"store": store.url, "bus": bus.url}
        with serving(tmp_path / "first", config) as first:
            for key in ("tokens.key", "audit.key"):
                shutil.copy(first.state / key, tmp_path / "second" / "state")
            second = Hub(tmp_path / "second", config)
            try:
                second.launch()
                first.until(lambda: status(second) == "standby", "the second one stands by")
                first.stop()
                second.until(lambda: status(second) == "ok", "and takes over")
            finally:
                second.end()
