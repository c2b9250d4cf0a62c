"""`--help` shows how a command is typed: an example where an argument is needed, and each example is right."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from inspect import cleandoc
from pathlib import Path

import click
import pytest

from lifesigns.cli import COMMANDS, main


def walked(group: click.Group, *words: str) -> Iterator[tuple[str, click.Command]]:
    """Every command with its name, those of groups included."""
    ctx = click.Context(group)
    for name in group.list_commands(ctx):
        command = group.get_command(ctx, name)
        assert command is not None
        yield " ".join((*words, name)), command
        if isinstance(command, click.Group):
            yield from walked(command, *words, name)


ALL = dict(walked(main))


def examples(command: click.Command) -> list[str]:
    lines = cleandoc(command.help or "").splitlines()
    return [line.strip() for line in lines if line.startswith("  lifesigns ")]


def parsed(words: list[str]) -> None:
    """As if it was typed, without running it. Raises `UsageError`."""
    ctx, command, rest = click.Context(main), main.get_command(click.Context(main), words[0]), words[1:]
    assert command is not None
    while isinstance(command, click.Group) and rest and rest[0] in command.commands:
        ctx, command, rest = click.Context(command, parent=ctx), command.commands[rest[0]], rest[1:]
    command.make_context(command.name, rest, parent=ctx)


@pytest.mark.parametrize("name", ALL)
def test_a_command_that_needs_something_shows_an_example(name: str) -> None:
    if any(option.required for option in ALL[name].params):
        shown = [line for line in examples(ALL[name]) if line.startswith(f"lifesigns {name} ")]
        assert shown, f"lifesigns {name} --help shows no example"


@pytest.mark.parametrize("name", [name for name in ALL if examples(ALL[name])])
def test_each_example_can_be_typed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What comes after two spaces, in a column, is what it does."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: "ls_x")  # Of the files that examples name with @.
    for line in examples(ALL[name]):
        typed = line.partition("   ")[0].partition(" && ")[0].partition(" | ")[0].removesuffix(" &")
        parsed(shlex.split(typed)[1:])


def test_most_commands_have_an_example() -> None:
    """Keeps the others honest: they would pass if none was found."""
    assert sum(bool(examples(ALL[name])) for name in COMMANDS) > 20


@pytest.mark.parametrize("name", [name for name, command in ALL.items() if isinstance(command, click.Group)])
def test_a_list_of_commands_cuts_no_line(name: str) -> None:
    """At 80 columns it was: `Take everything along from one store to another: sqlite:///path...`."""
    group = ALL[name]
    assert isinstance(group, click.Group)
    room = 80 - 6 - max(map(len, group.commands))
    cut = {
        n: text for n, one in group.commands.items() if (text := one.get_short_help_str(room)).endswith("...")
    }
    assert cut == {}
