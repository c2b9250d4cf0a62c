"""The stage: real processes, of which none outlives it, whatever happens."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from lifesigns.client import AsyncClient
from lifesigns.demo.fleet import FLEET
from lifesigns.demo.narrator import Narrator, StoryLine
from lifesigns.demo.processes import DemoProcesses, environment
from lifesigns.errors import AdapterError
from tests.agent.supervise.running import BOUND, environ, eventually
from tests.demo.running import nothing_is_left, processes_of

ONE = FLEET[:1]
HOLDS_A_STAGE = """
import asyncio
from lifesigns.demo.fleet import FLEET
from lifesigns.demo.processes import DemoProcesses

async def main():
    async with DemoProcesses(FLEET[:1], turn=0.3, port=0):
        print("ready", flush=True)
        await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where stages of this test have their folders."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


async def test_a_hub_that_dies_is_told_and_nothing_stays(place: Path) -> None:
    async def lose_the_hub() -> None:
        def kill_it(line: StoryLine) -> None:
            if "coder is there" in line.text:
                os.kill(int((processes.folder / "hub.lock").read_text()), signal.SIGKILL)

        async with (
            DemoProcesses(ONE, turn=0.1, port=0) as processes,
            AsyncClient(processes.url, processes.token) as client,
        ):
            await Narrator(ONE, 0.1, kill_it).follow(processes, client, BOUND, to_the_end=True)

    with pytest.raises(AdapterError, match="the hub is gone"):
        await lose_the_hub()
    assert nothing_is_left(place)


async def test_a_port_that_is_taken_is_told_and_nothing_stays(place: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(AdapterError, match=f"127.0.0.1:{port} cannot be listened on"):
            async with DemoProcesses(ONE, turn=0.1, port=port):
                pass
    assert nothing_is_left(place)


def test_even_if_we_are_killed_nothing_stays(tmp_path: Path) -> None:
    """Nobody is there to end its processes but the guardian."""
    command = [sys.executable, "-c", HOLDS_A_STAGE]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environ(TMPDIR=str(tmp_path))) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"ready\n"
        assert processes_of(tmp_path)
        holder.kill()
    eventually(lambda: nothing_is_left(tmp_path))


def test_what_is_configured_elsewhere_does_not_change_the_demo(tmp_path: Path) -> None:
    ours = {"PATH": "/bin", "LIFESIGNS_HUB": "http://elsewhere", "LIFESIGNS_POLICY__LADDER__ENABLED": "no"}
    told = environment(ours, tmp_path)
    assert told["PATH"] == "/bin"
    assert {name for name in told if name.startswith("LIFESIGNS_")} == {"LIFESIGNS_STATE", "LIFESIGNS_CONFIG"}
