"""Every hub is as good as the one that judges: what is sent to a hub that stands by reaches that one, and its answer comes
back, whichever of the two is killed meanwhile."""

from __future__ import annotations

import http.client
import http.cookiejar
import itertools
import json
import re
import signal
import socket
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.journeys.hub_pair import Line, hub_pair, readiness
from tests.journeys.outside import Hub, Refused

TAKEOVER_FOR = 30.0
LOST = (OSError, http.client.HTTPException)
POSTS, SENDERS = 100, 10


@contextmanager
def beside(*works: Callable[[], None]) -> Iterator[None]:
    """Run these in threads of their own meanwhile; what one of them raises is raised in the end."""
    faults: list[BaseException] = []

    def run(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:  # noqa: BLE001 -- raised again below
            faults.append(error)

    threads = [threading.Thread(target=run, args=(work,), daemon=True) for work in works]
    for thread in threads:
        thread.start()
    yield
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "it ends"
    if faults:
        raise faults[0]


def granted(hub: Hub) -> list[str]:
    """The tasks that agents got, as they are on record."""
    return [
        str(one["data"]["task_id"])
        for one in hub.events("CLAIM_CHANGED")
        if one["data"]["stage"] == "granted"
    ]


def opened(browser: urllib.request.OpenerDirector, what: str | urllib.request.Request) -> tuple[int, bytes]:
    """Status and body of what a browser gets."""
    try:
        with browser.open(what) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read()


class EventReader:
    """Listens to one hub's events, and comes back after every end with the last id it has seen."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.ids: list[int] = []
        self.last = ""
        self.over = False
        self.times = 0
        """How often it listened."""

    def run(self) -> None:
        while not self.over:
            line = Line(self._hub)
            with suppress(*LOST, Refused):
                self._listen(line)
            line.close()
            time.sleep(0.2)

    def _listen(self, line: Line) -> None:
        seen = {"Last_Event_ID": self.last} if self.last else {}
        event_id, data = "", ""
        for text in line.listen("/api/v1/events", **seen):
            if self.over:
                return
            if text.startswith("retry:"):
                self.times += 1
            elif text.startswith("id: "):
                event_id = text[4:]
            elif text.startswith("data: "):
                data = text[6:]
            elif not text:  # An event is there when the line after it is.
                if event_id:
                    self.last = event_id
                if data and json.loads(data)["id"]:
                    self.ids.append(json.loads(data)["id"])
                event_id = data = ""


@pytest.mark.timeout(240)
def test_every_kind_of_call_works_at_a_hub_that_stands_by(tmp_path: Path) -> None:
    with hub_pair(tmp_path) as (first, second):
        # What agents say.
        assert second.post("/api/v1/beats", {"agent_id": "a"})["accepted"] == 1
        assert second.post("/api/v1/beats", [{"agent_id": "a"}, {"agent_id": "b"}])["accepted"] == 2
        second.post("/api/v1/signals", {"type": "claim", "agent_id": "a", "task_id": "task-1"})
        second.get("/ping/nightly")
        event = {
            "session_id": "session-1",
            "hook_event_name": "SessionStart",
            "cwd": "/tmp",
            "source": "startup",
        }
        second.post("/hooks/claude-code", event)
        second.post("/v1/logs", {"resourceLogs": []})
        told = second.post(
            "/mcp",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {}},
            Accept="application/json",
        )
        assert told["result"]["tools"]
        known = {one["agent_id"] for one in first.get("/api/v1/agents")["agents"]}
        assert {"a", "b", "nightly"} <= known
        assert {one["agent_id"] for one in second.get("/api/v1/agents")["agents"]} == known
        assert granted(first) == ["task-1"]
        # What waits for an agent, and what people do.
        line = Line(second)

        def is_nudged() -> bool:
            """A ping may come first, where everything takes long."""
            status, orders = line.ask("GET", "/api/v1/agents/a/orders?wait=30")
            return status == 200 and "Hello?" in str(orders)

        with beside(lambda: second.until(is_nudged, "the nudge waits for it")):
            second.post("/api/v1/agents/a/nudge", {"message": "Hello?"})
        line.close()
        made = second.post("/api/v1/tokens", {"role": "viewer", "name": "v"})["token"]
        assert second.request("GET", "/api/v1/me", token=made)["role"] == "viewer", "at once"
        assert first.request("GET", "/api/v1/me", token=made)["role"] == "viewer"
        with pytest.raises(Refused) as refused:
            second.request("POST", "/api/v1/agents/a/nudge", {"message": "?"}, token=made)
        assert refused.value.status == 403, "no role is gained on the way"
        # The command line.
        assert "nightly" in second.cli("agents").stdout
        assert json.loads(second.cli("show", "a", "--json").stdout)["agent"]["agent_id"] == "a"
        states = {one["url"]: one for one in json.loads(second.cli("hubs", "--json").stdout)["hubs"]}
        assert (states[first.url]["state"], states[first.url]["here"]) == ("judges", False)
        assert (states[second.url]["state"], states[second.url]["here"]) == ("stands by", True)
        checks = json.loads(second.cli("doctor", "--json", check=False).stdout)["checks"]
        assert [one["level"] for one in checks if one["what"] == "hubs"] == ["ok"]


@pytest.mark.timeout(120)
def test_a_person_signs_in_at_a_hub_that_stands_by_under_the_name_that_was_typed(tmp_path: Path) -> None:
    with hub_pair(tmp_path) as (first, second):
        typed = f"http://localhost:{second.port}"
        link = second.post("/api/v1/sign-in-links", {}, Host=f"localhost:{second.port}")["url"]
        assert link.startswith(f"{typed}/sign-in?code=")
        jar = http.cookiejar.CookieJar()
        browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(jar))
        page = opened(browser, link)[1].decode()
        form = dict(re.findall(r'name="(code|nonce)" value="([^"]+)"', page))
        button = urllib.request.Request(f"{typed}/sign-in", urllib.parse.urlencode(form).encode())
        button.add_header("Origin", "http://evil.example")
        assert opened(browser, button)[0] == 403
        button.add_header("Origin", typed)
        opened(browser, button)  # It leads to the dashboard, which is there if it was built.
        assert {cookie.name for cookie in jar if "sign_in" not in cookie.name} == {f"lifesigns_{second.port}"}
        me = json.loads(opened(browser, f"{typed}/api/v1/me")[1])
        assert me["role"] == "admin"

        def hubs(key: str, value: object) -> list[str]:
            shown = json.loads(opened(browser, f"{typed}/api/v1/hubs")[1])["hubs"]
            return [one["url"] for one in shown if one[key] == value]

        second.until(lambda: hubs("here", True) == [second.url], "it says which hub one looks at")
        assert hubs("state", "judges") == [first.url]
        (session,) = second.get("/api/v1/sessions")["sessions"]
        assert session["address"] == "127.0.0.1"


@pytest.mark.timeout(180)
def test_a_thousand_posts_through_a_hub_that_stands_by_are_each_counted(tmp_path: Path) -> None:
    """Single ones and batches, and every report that was acknowledged is on record, once."""
    with hub_pair(tmp_path) as (first, second):

        def send(name: str) -> None:
            line = Line(second)
            for n in range(POSTS):
                if n % 10:
                    status, answer = line.ask("POST", "/api/v1/beats", {"agent_id": name, "seq": n + 1})
                else:
                    report = {"type": "claim", "agent_id": name, "task_id": f"{name}-{n}"}
                    status, answer = line.ask("POST", "/api/v1/signals", report)
                assert (status, answer["rejected"]) == (202, [])
            line.close()

        names = [f"sender-{n}" for n in range(SENDERS)]
        with beside(*(lambda name=name: send(name) for name in names)):
            pass
        for name in names:
            assert first.get(f"/api/v1/agents/{name}")["metrics"]["total_heartbeats"] == POSTS * 9 // 10
        assert sorted(granted(first)) == sorted(f"{name}-{n}" for name in names for n in range(0, POSTS, 10))


@pytest.mark.timeout(240)
def test_the_hub_that_judges_is_killed_and_nothing_is_lost_or_doubled(tmp_path: Path) -> None:
    """In the middle of a long poll, a stream of events, and a burst of posts; its listener never refuses a connection."""
    with hub_pair(tmp_path) as (first, second):
        second.post("/api/v1/beats", {"agent_id": "a"})
        reader = EventReader(second)
        acknowledged: list[str] = []
        statuses: set[int] = set()
        over = threading.Event()
        ended: list[str] = []

        def report() -> None:
            line, number = Line(second), itertools.count()
            name = f"task-{next(number)}"
            while not over.is_set():
                said = {"type": "claim", "agent_id": "a", "task_id": name}
                try:
                    status, _ = line.ask("POST", "/api/v1/signals", said)
                except LOST:
                    line.close()
                    line, status = Line(second), 0
                statuses.add(status)
                if status == 202:
                    acknowledged.append(name)
                if status != 503:  # Only of that it is known that nobody has heard it: it is said again.
                    name = f"task-{next(number)}"
                if status != 202:
                    time.sleep(0.2)
            line.close()

        def poll() -> None:
            line = Line(second, 60)
            try:
                ended.append(str(line.ask("GET", "/api/v1/agents/b/orders?wait=60")[0]))
            except LOST as error:
                ended.append(type(error).__name__)
            line.close()

        def connect() -> None:
            while not over.is_set():
                socket.create_connection(("127.0.0.1", second.port), timeout=10).close()
                time.sleep(0.02)

        second.post("/api/v1/beats", {"agent_id": "b"})
        with beside(reader.run, report, poll, connect):
            second.until(lambda: reader.times and len(acknowledged) > 5, "all is under way")
            first.kill()
            second.until(lambda: ended, "the long poll ends", 10.0)
            second.until(lambda: 503 in statuses, "while nobody judges it says so")
            second.until(lambda: readiness(second) == "ok", "the second one takes over", TAKEOVER_FOR)
            before = len(acknowledged)
            second.until(lambda: len(acknowledged) > before + 5, "reports are taken again")
            over.set()
            last = second.events()[-1]["id"]
            second.until(lambda: reader.ids and reader.ids[-1] >= last, "all events have come")
            reader.over = True
            second.post("/api/v1/beats", {"agent_id": "c"})  # So that the reader has a line to stop at.
        assert statuses <= {0, 202, 502, 503}
        saved = granted(second)
        assert len(saved) == len(set(saved)), "none is on record twice"
        assert set(acknowledged) <= set(saved), "none that was acknowledged is lost"
        assert reader.times > 1
        assert reader.ids == list(range(reader.ids[0], reader.ids[-1] + 1)), "no event is missing or doubled"


@pytest.mark.timeout(180)
def test_a_hub_that_judges_and_is_frozen_holds_nobody_up(tmp_path: Path) -> None:
    """Its calls end when another one judges; and it forwards, in its turn, when it goes on."""
    with hub_pair(tmp_path) as (first, second):
        second.post("/api/v1/beats", {"agent_id": "a"})
        first.signal(signal.SIGSTOP)
        began = time.monotonic()
        line = Line(second, TAKEOVER_FOR)
        with suppress(*LOST):
            assert line.ask("GET", "/api/v1/agents")[0] in (200, 503, 504)
        line.close()
        assert time.monotonic() - began < TAKEOVER_FOR
        second.until(lambda: readiness(second) == "ok", "the second one takes over", TAKEOVER_FOR)
        first.signal(signal.SIGCONT)
        second.until(lambda: readiness(first) == "standby", "the first one stands by, and forwards")
        first.post("/api/v1/beats", {"agent_id": "through-the-first"})
        assert second.agent("through-the-first") is not None


@pytest.mark.timeout(180)
def test_a_hub_that_stands_by_is_killed_and_the_one_that_judges_goes_on(tmp_path: Path) -> None:
    with hub_pair(tmp_path) as (first, second):
        agent = first.python("agent.py", AGENT, LIFESIGNS_HUB=f"{second.url},{first.url}")
        first.until(lambda: first.health("a") == "healthy", "it is heard through the one that stands by")
        second.kill()
        beats = first.get("/api/v1/agents/a")["metrics"]["total_heartbeats"]
        first.until(
            lambda: first.get("/api/v1/agents/a")["metrics"]["total_heartbeats"] > beats + 3,
            "it is heard by the one that judges",
        )
        assert agent.poll() is None
        flips = [one["data"]["to"] for one in first.events("HEALTH_STATE_CHANGED", agent="a")]
        assert set(flips) <= {"healthy"}


AGENT = """
import time
import lifesigns

with lifesigns.Sender("a", interval=1.0) as life:
    while True:
        life.checkpoint(str(time.time()))
        time.sleep(0.5)
"""
