"""Hubs in two zones, on one PostgreSQL and two NATS servers that are one cluster: before an agent is ended for its silence, the
hub in the other zone is asked. The way between the two servers is cut; somebody ends for good whom the hub wants ended."""

from __future__ import annotations

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Json, free_port, serving
from tests.journeys.test_endings import WORKER, Line
from tests.journeys.test_hubs_that_stand_by import status
from tests.servers.nats import NatsServer
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.timeout(300)

SOON = {
    "silence": {"interval": "500ms", "timeout": "20s", "ping_wait": "6s", "adaptive": False},
    "ladder": {"hesitate_for": "200ms", "escalation_timeout": "2s", "save_for": "1s"},
}
"""A silent agent is to be ended some 25 s after it was last heard, if nobody decides."""


@dataclass
class Executioner:
    """Ends the process of every agent that it is told to end."""

    processes: dict[str, subprocess.Popen[str]] = field(default_factory=dict)
    ended: list[str] = field(default_factory=list)

    def end(self, agent_id: str) -> None:
        self.ended.append(agent_id)
        self.processes[agent_id].kill()

    @contextmanager
    def listening(self) -> Iterator[str]:
        executioner = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                order = json.loads(self.rfile.read(int(self.headers["content-length"])))
                executioner.end(order["agent_id"])
                self.send_response(200)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *args: object) -> None:
                """Say nothing."""

        server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/end"
        finally:
            server.shutdown()
            server.server_close()
            thread.join()


@dataclass
class Site:
    """The first hub judges, beside one server; the second stands by, beside the other one, as does the worker."""

    first: Hub
    second: Hub
    between: Line
    executioner: Executioner

    def run(self, name: str, bus: str) -> None:
        program = WORKER.replace('"worker"', f'"{name}"')
        process = self.first.python(f"{name}.py", program, LIFESIGNS_HUB=bus)
        self.executioner.processes[name] = process
        self.first.until(lambda: self.first.health(name) == "healthy", f"{name} is healthy")

    def lost_hubs(self) -> list[str]:
        return [hub["name"] for hub in self.first.get("/api/v1/hubs")["hubs"] if hub["state"] == "lost"]

    def goes_on(self, name: str) -> bool:
        return self.executioner.processes[name].poll() is None

    def verdict(self, name: str) -> Json:
        """The one time that it was found to be gone."""
        self.first.until(lambda: self._ends(name), f"{name} is not heard any more")
        (lost,) = self._ends(name)
        return lost

    def _ends(self, name: str) -> list[Json]:
        flips = [event["data"] for event in self.first.events("HEALTH_STATE_CHANGED", agent=name)]
        return [flip for flip in flips if flip["to"] == "disconnected"]

    def undecided(self, name: str) -> bool:
        asked = self.first.events("NEEDS_HUMAN", agent=name)
        return any(event["data"]["reason"] == "undecided" for event in asked)


@contextmanager
def site(folder: Path, *zones: str) -> Iterator[Site]:
    executioner, route = Executioner(), free_port()
    with ExitStack() as stack:
        postgres = stack.enter_context(PostgresServer())
        here = stack.enter_context(
            NatsServer("--cluster_name", "c", "--cluster", f"nats://127.0.0.1:{route}")
        )
        between = Line(route)
        stack.callback(between.close)
        routes = between.url.replace("http", "nats")
        own_route = f"nats://127.0.0.1:{free_port()}"
        there = stack.enter_context(
            NatsServer("--cluster_name", "c", "--cluster", own_route, "--routes", routes)
        )
        config: Json = {
            "profile": "swift",
            "policy": SOON,
            "terminate": {"webhook": stack.enter_context(executioner.listening())},
        }
        for name in ("first", "second"):
            (folder / name / "state").mkdir(parents=True)
        options: list[tuple[str, ...]] = [
            ("--store", postgres.url, "--bus", bus.url) for bus in (here, there)
        ]
        if zones:
            options = [(*some, "--zone", zone) for some, zone in zip(options, zones, strict=True)]
        first = stack.enter_context(serving(folder / "first", config, *options[0]))
        for key in ("tokens.key", "audit.key"):
            shutil.copy(folder / "first" / "state" / key, folder / "second" / "state")
        second = Hub(folder / "second", config, *options[1])
        stack.callback(second.end)
        second.launch()
        first.until(lambda: status(second, "/healthz") == 200, "the second hub answers")
        first.until(lambda: len(first.get("/api/v1/hubs")["hubs"]) == 2, "the first one has seen it")
        made = Site(first, second, between, executioner)
        made.run("worker", there.url)
        made.run("other", here.url)
        yield made


def zones_of(hub: Hub) -> list[str]:
    return [listed["zone"] for listed in json.loads(hub.cli("hubs", "--json").stdout)["hubs"]]


def test_an_agent_that_the_other_zone_hears_is_cut_off_and_lives(tmp_path: Path) -> None:
    with site(tmp_path, "east", "west") as found:
        first = found.first
        listed = {hub["url"]: hub["zone"] for hub in json.loads(first.cli("hubs", "--json").stdout)["hubs"]}
        assert listed == {first.url: "east", found.second.url: "west"}
        found.between.cut()
        lost = found.verdict("worker")
        assert lost["cause"] == "partition"
        assert "It is heard in zone west" in lost["reason"]
        first.until(lambda: found.undecided("worker"), "people are asked, and nobody decides")
        assert found.goes_on("worker")
        found.between.mend()
        first.until(lambda: first.health("worker") == "healthy", "the worker is heard again")
        assert found.executioner.ended == []
        assert found.goes_on("worker")


def test_a_zone_whose_hub_is_stopped_is_not_missed(tmp_path: Path) -> None:
    """It says good-bye, so nobody waits for its opinion."""
    with site(tmp_path, "east", "west") as found:
        found.second.stop()
        found.first.until(lambda: zones_of(found.first) == ["east"], "the first hub has seen it go")
        found.between.cut()
        assert found.verdict("worker")["cause"] == "unknown"
        found.first.until(lambda: found.executioner.ended == ["worker"], "the silent worker is ended")


def test_without_zones_it_is_ended(tmp_path: Path) -> None:
    """What the other tests here prevent."""
    with site(tmp_path) as found:
        found.between.cut()
        found.first.until(lambda: found.executioner.ended == ["worker"], "the worker is ended")


def test_an_agent_that_no_zone_hears_is_ended(tmp_path: Path) -> None:
    with site(tmp_path, "east", "west") as found:
        found.executioner.processes["worker"].kill()
        found.first.until(lambda: found.executioner.ended == ["worker"], "the dead worker is ended")
        lost = found.verdict("worker")
        assert lost["cause"] == "unknown"


def test_while_a_zone_cannot_be_asked_nobody_is_ended(tmp_path: Path) -> None:
    """Until somebody says that its hub will not come back."""
    with site(tmp_path, "east", "west") as found:
        first = found.first
        found.second.kill()
        found.between.cut()
        first.until(lambda: found.undecided("worker"), "people are asked, and nobody decides")
        assert "Whether it is heard in zone west could not be asked" in found.verdict("worker")["reason"]
        assert found.goes_on("worker")
        first.until(lambda: first.events("HUB_LOST"), "people are told that the second hub is lost", 60.0)
        (told,) = first.events("HUB_LOST")
        assert "no agent is ended for its silence: nobody can be asked in zone west" in told["data"]["reason"]
        first.cli("hubs", "forget", found.lost_hubs()[0])
        found.executioner.processes["other"].kill()
        first.until(lambda: found.executioner.ended == ["other"], "a dead agent is ended again")
        assert found.goes_on("worker")
