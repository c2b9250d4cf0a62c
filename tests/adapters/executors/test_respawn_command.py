"""Agents started by a command: once for each order, without a shell, and beyond the hub's own life."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from lifesigns.adapters.executors import respawn_command
from lifesigns.adapters.executors.commands import Command
from lifesigns.adapters.executors.respawn_command import RespawnCommand
from lifesigns.core.commands import RESPAWN_FACTS
from lifesigns.core.effects import Respawn
from lifesigns.core.signals import RespawnStarted
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import NotExecuted
from tests.adapters.executors.ground import respawn, until

AGENT = """
import json, os, pathlib, sys, time
told = {name: value for name, value in os.environ.items() if name.startswith("LIFESIGNS_")}
line = json.dumps({"pid": os.getpid(), "sid": os.getsid(0), "argv": sys.argv[1:], "told": told})
with open("lives", "a") as lives:
    lives.write(line + "\\n")
if "--stay" in sys.argv:
    time.sleep(300)
"""


class Nursery:
    """A folder with an agent's program, and the lives it has led."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "agent.py").write_text(AGENT)

    def command(self, *words: str) -> str:
        return " ".join([sys.executable, "-S", "agent.py", *words])

    def hand(self, *words: str, command: str = "", shell: bool = False, **more: Any) -> RespawnCommand:
        made = Command(command or self.command(*words), RESPAWN_FACTS, shell, self.folder)
        folder = self.folder / "respawns"
        return RespawnCommand(made, folder, lambda _: "http://hub/cp-3", hub="http://hub", **more)

    @property
    def lives(self) -> list[dict[str, Any]]:
        path = self.folder / "lives"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    def children(self) -> list[int]:
        """The processes that run, whether or not they have said anything yet."""
        return [one.pid for one in psutil.Process().children() if self._runs(one)]

    def _runs(self, process: psutil.Process) -> bool:
        try:
            return process.status() != "zombie" and process.cwd() == str(self.folder)
        except psutil.Error:  # It has ended in between.
            return False

    def records(self) -> list[Path]:
        return list((self.folder / "respawns").glob("*.json"))


@pytest.fixture
def nursery(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Nursery]:
    made = Nursery(tmp_path)
    monkeypatch.setattr(respawn_command, "SETTLE_FOR", 0.01)  # Those who stay need not be waited for.
    yield made
    for life in made.lives:
        with suppress(ProcessLookupError):
            os.kill(life["pid"], signal.SIGKILL)
        with suppress(psutil.NoSuchProcess):
            psutil.Process(life["pid"]).wait(10)


async def test_facts_are_words_and_no_shell_reads_them(nursery: Nursery) -> None:
    hand = nursery.hand("{agent_slug}", "--from={checkpoint_id}", "'{task_id} $x'", "{{}}", "--stay")
    order = respawn("a/b.1:c@d", new_incarnation="a~b.1:c@d~1-4")
    outcome = await hand.carry_out(order)
    await until(lambda: nursery.lives)
    assert isinstance(outcome, RespawnStarted)
    assert nursery.lives[0]["argv"] == ["a~b.1:c@d", "--from=cp-3", "t-19 $x", "{}", "--stay"]


async def test_it_finds_who_it_is_as_a_child_of_lifesigns_run_does(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFESIGNS_TASK", "the hub's own")
    await nursery.hand("--stay").carry_out(respawn())
    await until(lambda: nursery.lives)
    told = nursery.lives[0]["told"]
    assert told == {
        "LIFESIGNS_AGENT_ID": "coder-7",
        "LIFESIGNS_AGENT_SLUG": "coder-7",
        "LIFESIGNS_INCARNATION": "coder-7~1-4",
        "LIFESIGNS_TASK": "t-19",
        "LIFESIGNS_HUB": "http://hub",
        "LIFESIGNS_ATTEMPT": "2",
        "LIFESIGNS_CHECKPOINT": "cp-3",
        "LIFESIGNS_CHECKPOINT_URL": "http://hub/cp-3",
        "LIFESIGNS_HANDOFF": respawn().handoff,
    }


async def test_it_has_a_session_of_its_own_and_so_outlives_the_hub(nursery: Nursery) -> None:
    await nursery.hand("--stay").carry_out(respawn())
    await until(lambda: nursery.lives)
    assert nursery.lives[0]["sid"] == nursery.lives[0]["pid"]


async def test_a_shell_reads_it_only_if_asked_to_and_free_text_is_in_its_environment(
    nursery: Nursery,
) -> None:
    handoff = '"$LIFESIGNS_HANDOFF"'
    command = f"{nursery.command(handoff)} && {nursery.command('second')}"
    await nursery.hand(command=command, shell=True).carry_out(respawn())
    await until(lambda: len(nursery.lives) == 2)
    assert [life["argv"] for life in nursery.lives] == [[respawn().handoff], ["second"]]


async def test_an_order_that_comes_again_starts_nobody(nursery: Nursery) -> None:
    """The hub crashed before it had kept the outcome, or lost patience."""
    for _ in range(3):
        assert isinstance(await nursery.hand("--stay").carry_out(respawn()), RespawnStarted)
    assert len(nursery.children()) == 1
    await nursery.hand("--stay").carry_out(respawn(order_id="1-9", new_incarnation="coder-7~1-8"))
    await until(lambda: len(nursery.lives) == 2)
    assert len(nursery.children()) == 2


async def test_the_same_id_of_another_store_is_another_order(nursery: Nursery) -> None:
    """A hub whose store began anew counts from one again."""
    await nursery.hand("--stay").carry_out(respawn())
    await nursery.hand("--stay").carry_out(respawn(at=1.0))
    await until(lambda: len(nursery.lives) == 2)


async def test_a_life_that_began_as_the_hub_crashed_is_found_again(nursery: Nursery) -> None:
    await nursery.hand("--stay").carry_out(respawn())
    await until(lambda: nursery.lives)
    (record,) = nursery.records()
    record.write_text(json.dumps({"order": "1-5", "incarnation": "coder-7~1-4"}))
    assert isinstance(await nursery.hand("--stay").carry_out(respawn()), RespawnStarted)
    assert len(nursery.lives) == 1
    assert json.loads(record.read_text())["pid"] == nursery.lives[0]["pid"]


@pytest.mark.parametrize("left", ["{}", "", "[", '{"order": "1-5"}'])
async def test_one_that_may_have_begun_and_is_not_there_is_not_started_again(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """It may have done half of something. That it failed is told, and the engine decides, under its limits."""
    monkeypatch.setattr(respawn_command, "SETTLE_FOR", 20.0)
    await nursery.hand().carry_out(respawn())
    (record,) = nursery.records()
    record.write_text(left)
    with pytest.raises(AdapterError, match="nobody lives from it") as caught:
        await nursery.hand("--stay").carry_out(respawn())
    assert not caught.value.transient
    await until(lambda: len(nursery.lives) == 1)


async def test_a_command_that_fails_at_once_has_started_nobody(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(respawn_command, "SETTLE_FOR", 20.0)
    with pytest.raises(AdapterError, match="with status 3") as caught:
        await nursery.hand(command=f"{sys.executable} -c 'raise SystemExit(3)'").carry_out(respawn())
    assert not caught.value.transient


async def test_a_command_that_hands_over_and_ends_well_has_started_somebody(nursery: Nursery) -> None:
    assert isinstance(await nursery.hand().carry_out(respawn()), RespawnStarted)


async def test_a_command_that_is_not_there_is_told(nursery: Nursery) -> None:
    with pytest.raises(AdapterError, match="cannot be started: No such file") as caught:
        await nursery.hand(command="/no/such/program {agent_id}").carry_out(respawn())
    assert not caught.value.transient


async def test_nobody_is_started_who_could_not_be_remembered(nursery: Nursery) -> None:
    (nursery.folder / "respawns").write_text("a file where the folder should be")
    with pytest.raises(AdapterError) as caught:
        await nursery.hand("--stay").carry_out(respawn())
    assert caught.value.transient
    assert not nursery.lives


@pytest.mark.parametrize(
    ("command", "wrong"),
    [
        ("start {agent}", r"has \{agent\}, but knows only"),
        ("start {agent_id.__class__}", "belongs to no name"),
        ("start {agent_id!r}", "belongs to no name"),
        ("start {0}", "belongs to no name"),
        ("start 'open", "cannot be taken apart"),
        ("", "is empty"),
    ],
)
def test_a_wrong_template_is_told_before_anything_is_started(command: str, wrong: str) -> None:
    with pytest.raises(UsageError, match=wrong):
        Command(command, RESPAWN_FACTS)


# --- one life at a time --------------------------------------------------------------------------------------


def again(number: int) -> Respawn:
    """The next try, from which the ones before were not heard."""
    before = tuple(f"coder-7~1-{4 + 10 * n}" for n in range(number))
    return respawn(
        order_id=f"1-{5 + 10 * number}", new_incarnation=f"coder-7~1-{4 + 10 * number}", instead_of=before
    )


async def test_nobody_is_started_beside_a_start_that_may_still_come(nursery: Nursery) -> None:
    await nursery.hand("--stay").carry_out(respawn())
    await until(lambda: nursery.lives)
    for _ in range(3):
        with pytest.raises(NotExecuted, match="may still come") as caught:
            await nursery.hand("--stay").carry_out(again(1))
        assert caught.value.transient
    assert len(nursery.children()) == 1


async def test_when_the_start_before_has_ended_the_next_one_begins(nursery: Nursery) -> None:
    await nursery.hand("--stay").carry_out(respawn())
    await until(lambda: nursery.lives)
    with pytest.raises(NotExecuted):
        await nursery.hand("--stay").carry_out(again(1))
    os.kill(nursery.lives[0]["pid"], signal.SIGKILL)
    await until(lambda: not nursery.children())
    await nursery.hand("--stay").carry_out(again(1))
    await until(lambda: len(nursery.lives) == 2)


async def test_a_start_that_was_waited_for_is_ended_by_the_order_after_that(nursery: Nursery) -> None:
    await nursery.hand("--stay").carry_out(respawn())
    await until(lambda: nursery.lives)
    with pytest.raises(NotExecuted):
        await nursery.hand("--stay").carry_out(again(1))
    await nursery.hand("--stay").carry_out(again(2))
    await until(lambda: len(nursery.lives) == 2)
    assert nursery.children() == [nursery.lives[1]["pid"]]


async def test_what_has_left_its_session_is_waited_for_and_never_ended(nursery: Nursery) -> None:
    """It may be a terminal or a service manager, in which others live."""
    await nursery.hand(command=f"setsid --fork {nursery.command('--stay')}").carry_out(respawn())
    await until(lambda: nursery.lives)
    with pytest.raises(NotExecuted):
        await nursery.hand("--stay").carry_out(again(1))
    await nursery.hand("--stay").carry_out(again(2))
    await until(lambda: len(nursery.lives) == 2)
    assert psutil.pid_exists(nursery.lives[0]["pid"])


async def test_it_finds_the_token_that_was_made_for_it_and_no_other(
    nursery: Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LIFESIGNS_TOKEN", "the hub's own")

    monkeypatch.setenv("LIFESIGNS_KEY", "another's")

    async def credentials(order: Respawn) -> tuple[str, str]:
        return f"for {order.new_incarnation}", "its key"

    await nursery.hand("--stay", credentials=credentials).carry_out(respawn())
    await nursery.hand("--stay").carry_out(respawn("other", order_id="1-9"))
    await until(lambda: len(nursery.lives) == 2)
    names = ("LIFESIGNS_TOKEN", "LIFESIGNS_KEY")
    told = {
        life["told"]["LIFESIGNS_AGENT_ID"]: [life["told"].get(name) for name in names]
        for life in nursery.lives
    }
    assert told == {"coder-7": ["for coder-7~1-4", "its key"], "other": [None, None]}
