"""`lifesigns watch`: in a real terminal, and where there is none."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import msgspec
import pytest

from lifesigns.cli.watch_board import Board
from lifesigns.views import AgentHealth
from tests.agent.supervise.running import BOUND, Screen, environ, eventually, on_screen
from tests.cli.hub import HubInThread, hub_in_thread

WATCH = (sys.executable, "-m", "lifesigns", "watch")
ALTERNATE, NORMAL = r"\x1b\[\?1049h", r"\x1b\[\?1049l"


@pytest.fixture
def hub() -> Iterator[HubInThread]:
    with hub_in_thread() as running:
        yield running


@contextmanager
def watching(hub: HubInThread, columns: int = 120, **more: str) -> Iterator[Screen]:
    env: dict[str, Any] = {**hub.environ, "TERM": "xterm-256color", **more}
    with on_screen(*WATCH, rows=24, columns=columns, **env) as screen:
        yield screen


def test_it_shows_who_lives_who_is_lost_and_that_the_hub_is_away(hub: HubInThread) -> None:
    """An agent, its end in red within moments, a new size, a hub that goes and comes back; q ends it, and the terminal is
    as it was."""
    with watching(hub) as screen:
        before = screen.modes()
        screen.expect(ALTERNATE)
        hub.client.beat(
            "coder-7", task_id="t-19", token_count=100
        )  # One before may be missed until it is shown.
        screen.expect(r"coder-7.*healthy")
        assert screen.modes() != before
        hub.client.signal("exited", "coder-7", status=3)
        screen.expect(r"\x1b\[1;31m *coder-7.*disconnected")
        screen.expect("crash")
        screen.resize(10, 70)
        screen.expect(r"lifesigns")
        hub.stop()
        screen.expect(r"The hub is away for")
        hub.start()
        screen.expect(r"hub ok")
        hub.client.beat("coder-8")
        screen.expect(r"coder-8.*healthy")
        screen.type("xq")
        assert screen.ends() == 0
        screen.expect(NORMAL)
        assert "Traceback" not in screen.shown
        assert screen.modes() == before


def test_ctrl_c_ends_it_and_an_agents_words_are_only_words(hub: HubInThread) -> None:
    hub.client.beat("evil", task_id="\x1b]0;owned\x07[red]x[/]")
    hub.client.signal("error", "evil", message="\x1b[2J\x9b2Jgone", recoverable=False)
    with watching(hub) as screen:
        before = screen.modes()
        screen.expect(r"evil")
        screen.expect(r"\]0;owned\[red\]x")
        screen.type("\x03")
        assert screen.ends() == 0
        screen.expect(NORMAL)
        assert "\x1b]0;" not in screen.shown
        assert screen.modes() == before


def test_no_hub_is_said_until_there_is_one_and_a_wrong_token_ends_it(hub: HubInThread) -> None:
    with watching(hub, LIFESIGNS_TOKEN="ls_wrong") as screen:
        assert screen.ends() == 2
        screen.expect("Error: .*HTTP 401")
    hub.stop()
    with watching(hub) as screen:
        screen.expect("No hub answers for")
        hub.start()
        screen.expect("hub ok")
        screen.process.send_signal(signal.SIGTERM)
        assert screen.ends() == 0
        screen.expect(NORMAL)


def test_without_a_terminal_it_is_a_line_for_every_change(hub: HubInThread) -> None:
    patient = {"silence": {"interval": 60.0, "timeout": 300.0}}
    hub.client.signal("registered", "worker", policy=patient)  # It has to outlive the start of a command.
    hub.client.beat("worker")
    with lines(hub) as said:
        said.expect("agents|healthy")
        hub.client.signal("exited", "worker", status=1)
        said.expect("worker: healthy → disconnected (crash)")
        hub.stop()
        said.expect("the hub is away")
        hub.start()
        said.expect("the hub is back")
        hub.client.beat("newcomer")
        said.expect("newcomer: starting → healthy")


def test_events_as_json_lines(hub: HubInThread) -> None:
    hub.client.beat("speaker")
    with lines(hub, "--json") as said:
        eventually(lambda: len(hub.running.service.feed) > 0)
        hub.client.signal("left", "speaker", reason="done\x9b")
        line = said.expect('"terminated"')
        event = json.loads(line)
        assert (event["type"], event["agent_id"], event["data"]["to"]) == (
            "HEALTH_STATE_CHANGED",
            "speaker",
            "terminated",
        )
        assert "\x9b" not in line


class Lines:
    """What a process says, line by line."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._heard: list[str] = []
        self._read = 0
        self._thread = threading.Thread(target=self._listen, args=(process.stdout,))
        self._thread.start()

    def _listen(self, stream: Iterator[str]) -> None:
        for line in stream:
            self._heard.append(line)

    def expect(self, *parts: str) -> str:
        """Wait for a line with one of these; what came before it is forgotten."""
        (wanted,) = parts
        found: list[str] = []

        def there() -> bool:
            while self._read < len(self._heard):
                line = self._heard[self._read]
                self._read += 1
                if any(part in line for part in wanted.split("|")):
                    found.append(line)
                    return True
            return False

        until = time.monotonic() + BOUND
        while not there():
            assert time.monotonic() < until, f"{wanted!r} was not said; but {self._heard}"
            time.sleep(0.02)
        return found[0]

    def join(self) -> None:
        self._thread.join(BOUND)


@contextmanager
def lines(hub: HubInThread, *args: str) -> Iterator[Lines]:
    process = subprocess.Popen(
        [*WATCH, *args], stdout=subprocess.PIPE, text=True, env=environ(**hub.environ, PYTHONUNBUFFERED="1")
    )
    with process:
        said = Lines(process)
        try:
            yield said
        finally:
            process.send_signal(signal.SIGINT)
            try:
                assert process.wait(BOUND) == 0
            finally:
                process.kill()
                said.join()


# --- the board ----------------------------------------------------------------------------------------


def test_rates_are_what_was_used_over_the_last_minute(hub: HubInThread) -> None:
    hub.client.beat("a")
    agent, fleet = hub.client.agent("a"), hub.client.fleet()

    def used(tokens: int, cost: float) -> list[AgentHealth]:
        metrics = msgspec.structs.replace(agent.metrics, token_count=tokens, cost_usd=cost)
        return [msgspec.structs.replace(agent, metrics=metrics)]

    board = Board("http://hub")
    board.saw(used(1000, 1.0), fleet, 100.0)
    assert board.rate("a") is None
    board.saw(used(1500, 1.5), fleet, 130.0)
    assert board.rate("a") == pytest.approx((1000.0, 60.0))
    board.saw(used(1500, 1.5), fleet, 220.0)
    assert board.rate("a") is None  # all it has seen of the last minute is one look
    board.saw(used(10, 0.0), fleet, 230.0)
    assert board.rate("a") is None  # another life
    board.saw([], fleet, 240.0)
    assert board.rate("a") is None
