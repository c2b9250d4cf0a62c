"""The whole demo, with real processes: everybody is found, named and helped, and nothing stays behind."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from lifesigns.config.load import load
from lifesigns.demo.fleet import FLEET
from lifesigns.demo.processes import POLICY
from lifesigns.web import pages
from tests.agent.supervise.running import BOUND, eventually, on_screen
from tests.demo.running import DEMO, demo_in, nothing_is_left, processes_of
from tests.tidy.source import PACKAGE, imported_modules

LONG = 150.0


@pytest.mark.timeout(LONG + 30)
def test_everybody_is_found_named_and_helped_and_nobody_else_is_touched(tmp_path: Path) -> None:
    """At a quick pace. The table says it, the exit status says it, and no process or folder is left."""
    with demo_in(tmp_path, "--turn", "0.3", "--json") as demo:
        told, trouble = demo.communicate(timeout=LONG)
    table = json.loads(told)
    assert (demo.returncode, table["right"]) == (0, True), f"{told}\n{trouble}"
    rows = {row["agent_id"]: row for row in table["agents"]}
    assert set(rows) == {member.id for member in FLEET}
    assert rows["indexer"]["done"] == ["nudged", "people asked", "stopped", "respawned"]
    assert rows["indexer"]["checkpoint"] == "turn-4"
    assert rows["searcher"]["done"] == ["nudged"]
    assert rows["builder"]["done"] == ["respawned"]
    assert rows["deployer"]["done"] == ["people told", "answered by a person"]
    assert rows["researcher"]["done"] == ["stopped"]
    assert rows["coder"]["done"] == rows["writer"]["done"] == []
    late = {name: row["found_after_s"] for name, row in rows.items() if name != "coder"}
    assert all(after is not None and after < BOUND for after in late.values()), late
    assert nothing_is_left(tmp_path)


def test_ctrl_c_at_the_screen_ends_everything_at_once(tmp_path: Path) -> None:
    """Agents, hub and folder are gone, the terminal is as it was, and the table says how far it came."""
    with on_screen(*DEMO, rows=30, columns=130, TMPDIR=str(tmp_path), TERM="xterm-256color") as screen:
        before = screen.modes()
        if pages.is_built():
            screen.expect(r"In your browser \(once\): http://\S+/sign-in\?code=\S+")
        screen.expect(r"coder.*healthy")
        screen.expect(r"coder is there and works")
        assert len(processes_of(tmp_path)) > len(FLEET)
        screen.type("\x03")
        assert screen.ends() == 130
        screen.expect(r"Not as it should be")
        assert screen.modes() == before
    eventually(lambda: nothing_is_left(tmp_path))


def test_its_policy_is_a_good_one() -> None:
    policy = load(POLICY, environ={}).policies
    assert policy.of("researcher").spending.cost_max == 1.0
    assert policy.of("coder").spending.cost_max is None


def test_its_agents_are_written_as_a_user_would_write_them() -> None:
    """With the front door only, and what they share among themselves."""
    for program in (PACKAGE / "demo" / "agents").glob("*.py"):
        ours = {name for _, name in imported_modules(program.read_text()) if name.startswith("lifesigns")}
        assert ours <= {"lifesigns", "lifesigns.demo.agents.turns"}, program
    assert {member.id for member in FLEET} <= {p.stem for p in (PACKAGE / "demo" / "agents").glob("*.py")}
