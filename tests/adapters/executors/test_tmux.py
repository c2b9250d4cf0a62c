"""Nudges typed into a real tmux: only when nobody is disturbed, as text, once."""

from __future__ import annotations

import shutil
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lifesigns.adapters.executors.tmux import TmuxNudge, one_line
from lifesigns.core.signals import NudgeDelivered
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import NotExecuted
from tests.adapters.executors.ground import nudge, until

tmux_there = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed on this machine")

READER = """
import sys
if "--paste" in sys.argv:
    print("\\x1b[?2004h", end="")
print("ready", flush=True)
for line in sys.stdin:
    with open(sys.argv[1], "a") as typed:
        typed.write(repr(line) + "\\n")
"""
PROGRAMS = [Path(sys.executable).name, Path(sys.executable).resolve().name]


class Terminal:
    """A tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        self.socket = f"lifesigns-{uuid.uuid4().hex[:8]}"
        self.folder = folder
        (folder / "reader.py").write_text(READER)
        self.typed = folder / "typed"

    def tmux(self, *words: str) -> str:
        done = subprocess.run(
            ["tmux", "-L", self.socket, "-f", "/dev/null", *words],
            capture_output=True,
            text=True,
            timeout=20,
            check=True,
        )
        return done.stdout

    async def session(self, name: str, command: str) -> None:
        self.tmux("new-session", "-d", "-s", name, "-x", "200", "-y", "30", command)

    async def reader(self, name: str = "coder-7", *words: str) -> None:
        await self.session(
            name, f"exec {sys.executable} -S {self.folder}/reader.py {self.typed} {' '.join(words)}"
        )
        await until(lambda: "ready" in self.tmux("capture-pane", "-p", "-t", f"={name}:"))

    def hand(self, *, busy: bool = False, **more: Any) -> TmuxNudge:
        values: dict[str, Any] = {"quiet_for": 0.2, "socket": self.socket, **more}
        target, idle = values.pop("target", "={agent_id}:"), values.pop("idle", PROGRAMS)
        return TmuxNudge(target, idle, lambda _: busy, **values)

    def lines(self) -> list[str]:
        return self.typed.read_text().splitlines() if self.typed.exists() else []


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    made = Terminal(tmp_path)
    yield made
    subprocess.run(["tmux", "-L", made.socket, "kill-server"], capture_output=True, timeout=20, check=False)


@tmux_there
async def test_it_is_typed_as_one_line_of_text(terminal: Terminal) -> None:
    await terminal.reader()
    text = "It's 'quiet'; $(touch x) `id` \\ #{pane_id} Enter C-c\nSecond line \x1b[31mred\x03 ünïcode;"
    outcome = await terminal.hand().carry_out(nudge(text))
    assert outcome == NudgeDelivered(agent_id="coder-7", order_id="1-6")
    await until(terminal.lines)
    assert terminal.lines() == [repr(one_line(text) + "\n")]


@tmux_there
async def test_a_program_that_wants_pastes_in_brackets_gets_them(terminal: Terminal) -> None:
    await terminal.reader("coder-7", "--paste")
    await terminal.hand().carry_out(nudge("hello"))
    await until(terminal.lines)
    assert terminal.lines() == [repr("\x1b[200~hello\x1b[201~\n")]


@tmux_there
async def test_a_nudge_that_comes_again_is_not_typed_twice(terminal: Terminal) -> None:
    """The pane remembers it, whatever happened to the hub."""
    await terminal.reader()
    for _ in range(2):
        assert isinstance(await terminal.hand().carry_out(nudge("one")), NudgeDelivered)
    await terminal.hand().carry_out(nudge("two", order_id="1-9"))
    await until(lambda: len(terminal.lines()) == 2)
    assert terminal.lines() == [repr("one\n"), repr("two\n")]


@tmux_there
async def test_it_waits_while_the_pane_shows_something_new(terminal: Terminal) -> None:
    await terminal.session(
        "coder-7",
        f"exec {sys.executable} -c 'import time\nfor n in range(9999): print(n, flush=True); time.sleep(0.02)'",
    )
    await until(lambda: "5" in terminal.tmux("capture-pane", "-p", "-t", "=coder-7:"))
    with pytest.raises(NotExecuted, match="it puts something out") as caught:
        await terminal.hand().carry_out(nudge())
    assert caught.value.transient


@tmux_there
async def test_it_waits_while_somebody_scrolls(terminal: Terminal) -> None:
    await terminal.reader()
    terminal.tmux("copy-mode", "-t", "=coder-7:")
    with pytest.raises(NotExecuted, match="somebody scrolls"):
        await terminal.hand().carry_out(nudge())
    assert not terminal.lines()


@tmux_there
async def test_it_waits_while_another_program_is_in_front(terminal: Terminal) -> None:
    """A shell would execute it."""
    await terminal.session("coder-7", "exec sleep 100")
    shown = ("display-message", "-p", "-t", "=coder-7:", "#{pane_current_command}")
    await until(lambda: terminal.tmux(*shown).strip() == "sleep")
    with pytest.raises(NotExecuted, match="sleep runs in it"):
        await terminal.hand().carry_out(nudge())


@tmux_there
async def test_it_waits_while_the_hub_knows_of_an_open_call(terminal: Terminal) -> None:
    await terminal.reader()
    with pytest.raises(NotExecuted, match="a call of its agent is open"):
        await terminal.hand(busy=True).carry_out(nudge())
    assert not terminal.lines()


@tmux_there
async def test_the_pane_of_another_agent_is_never_taken_for_its_own(terminal: Terminal) -> None:
    """tmux takes the beginning of a name for the name, and shows some pane if there is none."""
    await terminal.reader("coder-70")
    with pytest.raises(NotExecuted, match="can't find"):
        await terminal.hand().carry_out(nudge())
    assert not terminal.lines()


@tmux_there
async def test_a_server_that_is_not_there_is_looked_for_again(terminal: Terminal) -> None:
    with pytest.raises(NotExecuted) as caught:
        await terminal.hand().carry_out(nudge())
    assert caught.value.transient


async def test_without_tmux_nothing_can_be_typed(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(terminal.folder))
    with pytest.raises(AdapterError, match="no tmux on this machine") as caught:
        await terminal.hand().carry_out(nudge())
    assert not caught.value.transient


def test_a_wrong_pane_is_told_at_once() -> None:
    with pytest.raises(UsageError, match=r"the pane has \{task\}"):
        TmuxNudge("={task}:", ["claude"], lambda _: False)


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a\nb\r\nc", "a b c"),
        ("\x1b[31mred\x07", "Note: [31mred"),
        ("!rm -rf x", "Note: !rm -rf x"),
        ("/quit", "Note: /quit"),
        ("  two\tx ", "two x"),
        ("\u2028x\u200b", "x"),
        ("", ""),
    ],
)
def test_nothing_is_typed_that_a_terminal_would_obey(text: str, line: str) -> None:
    assert one_line(text) == line
