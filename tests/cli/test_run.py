"""`lifesigns run` as a command: its options, and what is said about wrong ones."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from lifesigns.cli import main
from lifesigns.cli.run import default_id
from tests.agent.supervise.running import SILENT

ROOT = Path(__file__).parents[2]


def started(*args: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """A real process, as a shell would start it."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "lifesigns", "run", *args]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, env=environ, timeout=60, cwd=cwd
    )


def test_help_names_every_option_of_the_page() -> None:
    said = CliRunner().invoke(main, ["run", "--help"])
    assert said.exit_code == 0
    page = (ROOT / "docs/reference/cli/run.md").read_text(encoding="utf-8")
    options = "id task hub restart nudge idle-after max-time pty profile quiet verbose json".split()
    assert [
        option for option in options if f"--{option}" not in said.output or f"`--{option}" not in page
    ] == []


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ([], "Missing argument"),
        (["--"], "Missing argument"),
        (["--restart", "sometimes", "--", "true"], "'sometimes' is not one of"),
        (["--nudge", "shout", "--", "true"], "'shout' is not one of"),
        (["--idle-after", "soon", "--", "true"], "'soon' is not a duration"),
        (["--max-time", "0", "--", "true"], "no time at all"),
        (["--profile", "swfit", "--", "true"], "'swfit' is unknown"),
        (["--id", "a b", "--", "true"], "an id is 1 to 128 of"),
        (["--hub", "nowhere", "--", "true"], "nowhere"),
        (["--no-such-option", "--", "true"], "No such option"),
    ],
)
def test_wrong_usage_is_status_2_and_says_what_is_wrong(args: list[str], why: str) -> None:
    said = CliRunner().invoke(main, ["run", *args])
    assert said.exit_code == 2
    assert why in said.stderr


def test_options_of_the_command_are_the_commands() -> None:
    """With and without the dashes between: what follows the command's name is not ours."""
    assert started("--", "echo", "--id", "x").stdout == "--id x\n"
    assert started("echo", "--id", "x").stdout == "--id x\n"
    assert started("echo", "--", "--help").stdout == "-- --help\n"


def test_a_policy_for_this_agent_is_read_from_the_configuration(tmp_path: Path) -> None:
    config = "profile: swift\nagents:\n  coder-*:\n    stall:\n      output_after: 1s\n"
    (tmp_path / "lifesigns.yaml").write_text(config)
    done = started("--id", "coder-7", "--max-time", "8", "--", "sleep", "300", cwd=tmp_path)
    assert re.match(f"lifesigns: coder-7 is stuck: {SILENT}", done.stderr)


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("claude", "claude"),
        ("/usr/bin/python3", "python3"),
        ("./my agent!.sh", "my-agent-.sh"),
        ("/", "agent"),
    ],
)
def test_an_agent_without_an_id_has_the_name_of_its_command(program: str, name: str) -> None:
    assert default_id(program, None) == name
    assert default_id(program, "nats://x").startswith(f"{name}@")
    assert default_id(program, "nats://x").endswith(f":{os.getpid()}")
