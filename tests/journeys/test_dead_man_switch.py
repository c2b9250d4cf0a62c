"""Who watches the watcher: somebody outside is pinged while all is well, and only by the hub that judges; people are told
when a hub died."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Json, Refused, serving
from tests.journeys.pager import pager, webhook
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer


class Switch:
    """A cron monitor: every address is one monitor."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.pings: list[tuple[float, str]] = []
        self.status = 200

    def of(self, path: str) -> list[float]:
        """When this monitor was pinged."""
        return [at for at, pinged in list(self.pings) if pinged == path]


@contextmanager
def switch() -> Iterator[Switch]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            monitor.pings.append((time.monotonic(), self.path))
            self.send_response(monitor.status)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            """Say nothing."""

    server = HTTPServer(("127.0.0.1", 0), Handler)
    monitor = Switch(server.server_port)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield monitor
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def hub_health(hub: Hub) -> Json:
    return hub.get("/api/v1/fleet")["hub"]


def checked(hub: Hub) -> tuple[str, str]:
    """What `lifesigns doctor` says about it."""
    checks = json.loads(hub.cli("doctor", "--json", check=False).stdout)["checks"]
    return next((one["level"], one["said"]) for one in checks if one["what"] == "dead-man's switch")


def judges(hub: Hub) -> bool:
    try:
        return bool(hub.get("/readyz")["status"] == "ok")
    except (Refused, OSError):
        return False


def watches_for(hub: Hub, seconds: float) -> None:
    """Wait until the hub has gone on for so long."""
    began = hub.get("/api/v1/fleet")["hub"]["at"]
    hub.until(lambda: _moment(hub_health(hub)["at"]) - _moment(began) >= seconds, "the hub goes on")


def _moment(text: str) -> float:
    hours, minutes, seconds = text.split("T")[1].rstrip("Z").split(":")
    return int(hours) * 3600 + int(minutes) * 60 + float(seconds)


@pytest.mark.timeout(180)
def test_only_the_hub_that_judges_pings_and_people_are_told_which_hub_died(tmp_path: Path) -> None:
    with PostgresServer() as store, switch() as monitor, pager() as (url, told):

        def config(path: str) -> Json:
            pinged = {"url": monitor.url + path, "every": 1}
            return {"store": store.url, "dead_man_switch": pinged, **webhook(url)}

        for name in ("first", "second"):
            (tmp_path / name / "state").mkdir(parents=True)
        with serving(tmp_path / "first", config("/first?of=hub")) as first:
            for key in ("tokens.key", "audit.key"):
                shutil.copy(tmp_path / "first" / "state" / key, tmp_path / "second" / "state")
            second = Hub(tmp_path / "second", config("/second"))
            try:
                second.launch()
                first.until(
                    lambda: len(first.get("/api/v1/hubs")["hubs"]) == 2, "the second hub is in the table"
                )
                pinged = len(monitor.of("/first?of=hub"))
                first.until(lambda: len(monitor.of("/first?of=hub")) >= pinged + 3, "the first one pings")
                assert monitor.of("/second") == [], "a hub that stands by does not"
                assert checked(first) == ("ok", "pinged, and it answers")
                first.kill()
                second.until(lambda: judges(second), "the second one takes over")
                second.until(lambda: monitor.of("/second"), "and pings")
                # At the takeover, and not when a hub that stands by would be missed.
                second.until(
                    lambda: any("hub_lost" in str(one) and first.url in str(one) for one in told),
                    "people are told which hub died",
                    15.0,
                )
                first.launch()
                second.until(
                    lambda: any(one["stage"] == "resolved" and one["key"] == "hub_lost" for one in told),
                    "and that it is back",
                )
            finally:
                second.end()


@pytest.mark.timeout(180)
def test_there_is_no_ping_while_the_store_or_the_bus_is_away(tmp_path: Path) -> None:
    with PostgresServer() as store, NatsServer() as bus, switch() as monitor:
        config = {"store": store.url, "bus": bus.url, "dead_man_switch": {"url": monitor.url, "every": 1}}
        with serving(tmp_path, config) as hub:

            def pings() -> None:
                """Wait until it does."""
                before = len(monitor.pings)
                hub.until(lambda: len(monitor.pings) >= before + 2, "it pings")

            def pings_not(why: str) -> None:
                """Wait until it knows why, and see that no ping comes."""
                hub.until(lambda: why in hub_health(hub)["dead_man_switch"], "it notices")
                before = len(monitor.pings)
                watches_for(hub, 3.5)
                assert len(monitor.pings) == before, f"no ping, because {why}"
                assert "lifesigns_dead_man_held_back 1.0" in hub.get("/metrics")

            pings()
            store.kill()
            pings_not("the store is away")
            level, said = checked(hub)
            assert (level, "the store is away" in said) == ("warn", True)
            store.start()
            pings()
            bus.kill()
            pings_not("the bus is away")
            bus.start()
            pings()


@pytest.mark.timeout(120)
def test_an_address_that_refuses_is_shown_and_its_secret_is_not(tmp_path: Path) -> None:
    with switch() as monitor:
        monitor.status = 404
        address = f"{monitor.url}/ping/5f1b6c0e-secret"
        with serving(tmp_path, {"dead_man_switch": address}) as hub:
            hub.until(lambda: "404" in hub_health(hub)["dead_man_switch"], "it says that it is refused")
            assert "5f1b6c0e" not in str(hub_health(hub))
            assert "5f1b6c0e" not in hub.log.read_text()
            assert "5f1b6c0e" not in hub.cli("config", "check").stdout
            hub.post("/api/v1/beats", {"agent_id": "coder"})  # It watches on all the same.
            hub.until(lambda: hub.health("coder") == "healthy", "it watches")
            monitor.status = 204
            hub.until(lambda: hub_health(hub)["dead_man_switch"] == "ok", "it is tried again")


def test_an_address_that_is_none_is_refused_at_the_start(tmp_path: Path) -> None:
    with serving(tmp_path) as hub:
        for value, right in (("ftp://x/y", "https://"), ("env:NO_SUCH_NAME", "NO_SUCH_NAME")):
            state = str(tmp_path / "other")
            refused = hub.cli(
                "serve", "--port", "0", "--state", state, check=False, LIFESIGNS_DEAD_MAN_SWITCH=value
            )
            assert refused.returncode == 2
            assert right in refused.stderr
