from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import lifesigns
from lifesigns.cli import COMMANDS, ELSEWHERE, main
from lifesigns.errors import AdapterError, Bug

ROOT = Path(__file__).parents[2]


def started(*args: str) -> subprocess.CompletedProcess[str]:
    """A real process, as a shell would start it."""
    environ = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, *args]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environ, timeout=60)


def loaded_by(*args: str) -> set[str]:
    """The modules a process has imported at its end."""
    told = started("-X", "importtime", *args).stderr
    return {line.rsplit("|", 1)[-1].strip() for line in told.splitlines() if "|" in line}


def test_help_lists_every_command_and_imports_none_of_them() -> None:
    said = CliRunner().invoke(main, ["--help"])
    assert said.exit_code == 0
    assert all(name in said.output for name in COMMANDS)
    loaded = loaded_by("-m", "lifesigns", "--help")
    assert "lifesigns.cli" in loaded
    assert not loaded & {
        "yaml",
        "rich",
        "msgspec",
        "lifesigns.config",
        "lifesigns.core",
        "lifesigns.cli.config",
    }


def test_importing_the_front_door_loads_nothing_else() -> None:
    loaded = loaded_by("-c", "import lifesigns")
    assert "lifesigns" in loaded
    assert not {name for name in loaded if name.startswith("lifesigns.")}
    assert not loaded & {"yaml", "rich", "click", "msgspec", "asyncio", "dataclasses"}


def test_the_version_is_that_of_the_package() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert lifesigns.__version__ == project["version"]
    assert CliRunner().invoke(main, ["--version"]).output == f"lifesigns, version {project['version']}\n"


def test_a_mistyped_command_is_told_its_nearest_neighbour() -> None:
    said = CliRunner().invoke(main, ["confg"])
    assert said.exit_code == 2
    assert "No such command 'confg'. Did you mean 'config'?" in said.stderr


@pytest.mark.parametrize(("name", "here"), ELSEWHERE.items())
def test_the_name_that_a_command_has_elsewhere_leads_to_ours(name: str, here: str) -> None:
    assert name not in COMMANDS
    assert here.split()[0] in COMMANDS
    said = CliRunner().invoke(main, [name])
    assert said.exit_code == 2
    assert f"No such command {name!r}. Here it is: lifesigns {here}\n" in said.stderr


@pytest.mark.parametrize("name", sorted(COMMANDS))
def test_each_entry_leads_to_a_command_of_that_name(name: str) -> None:
    command = main.get_command(click.Context(main), name)
    assert command is not None
    assert command.name == name


def test_an_error_is_one_line_and_status_2_but_a_bug_keeps_its_traceback(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raised: list[Exception] = []

    @click.command()
    def fails() -> None:
        raise raised[-1]

    monkeypatch.setattr(main, "get_command", lambda _ctx, _name: fails)
    raised.append(AdapterError("the disk is full"))
    said = CliRunner().invoke(main, ["fails"])
    assert (said.exit_code, said.stdout, said.stderr) == (2, "", "Error: the disk is full\n")
    raised.append(PermissionError(13, "Permission denied", "/root/hub.backup"))
    said = CliRunner().invoke(main, ["fails"])
    assert (said.exit_code, said.stderr) == (2, "Error: /root/hub.backup: Permission denied\n")
    raised.append(Bug("impossible"))
    assert isinstance(CliRunner().invoke(main, ["fails"]).exception, Bug)


def test_a_real_process_exits_with_the_status_that_says_the_outcome(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text("profile: swift\n")
    bad.write_text("profile: swfit\n")
    assert started("-m", "lifesigns", "config", "check", str(good)).returncode == 0
    wrong = started("-m", "lifesigns", "config", "check", str(bad))
    assert wrong.returncode == 2
    assert wrong.stderr == f"Error: profile: 'swfit' is unknown; did you mean swift? ({bad}:1)\n"
    assert started("-m", "lifesigns", "config", "chekc").returncode == 2


def groups() -> list[tuple[click.Group, str, click.Command]]:
    ctx = click.Context(main)
    found = [main.get_command(ctx, name) for name in COMMANDS]
    return [
        (group, name, command)
        for group in found
        if isinstance(group, click.Group) and JSON in {option.name for option in group.params}
        for name, command in group.commands.items()
    ]


JSON = "as_json"


@pytest.mark.parametrize(
    ("group", "name", "command"), [pytest.param(*one, id=f"{one[0].name} {one[1]}") for one in groups()]
)
def test_json_counts_before_and_after_every_command_that_takes_it(
    group: click.Group, name: str, command: click.Command
) -> None:
    """What a command would get, without running it. A command that prints no JSON says so."""
    needed = ["x"] * sum(isinstance(one, click.Argument) and one.required for one in command.params)

    def parsed(*before: str, after: tuple[str, ...] = ()) -> dict[str, object]:
        with group.make_context(str(group.name), [*before, name, *needed, *after]) as ctx:
            _, found, rest = group.resolve_command(ctx, [*ctx._protected_args, *ctx.args])
            assert found is command
            return command.make_context(name, rest, parent=ctx, resilient_parsing=True).params

    if JSON in {option.name for option in command.params}:
        assert parsed("--json")[JSON] is parsed(after=("--json",))[JSON] is True
        assert parsed()[JSON] is False
    else:
        with pytest.raises(click.UsageError, match="has no --json"):
            parsed("--json")


COLLECTOR = """
import atexit, gc, sys
atexit.register(lambda: print(gc.isenabled(), gc.get_freeze_count() > len(sys.modules), file=sys.stderr))
from lifesigns.cli import run
run()
"""


def test_a_command_runs_with_the_garbage_collector_and_ends_without() -> None:
    """What it has loaded is left alone at the end: the last collections took a quarter of a short command. But while it
    runs, and that may be for years, garbage is collected."""
    assert started("-c", COLLECTOR, "agents", "--hub", "http://127.0.0.1:9").stderr.split()[-2:] == [
        "True",
        "True",
    ]
