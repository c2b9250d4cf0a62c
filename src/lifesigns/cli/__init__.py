"""The command line. `lifesigns --help` must be quick, so a command's module is imported when it is used.

Exit status: 0 well, 1 something unwell was found, 2 wrong usage or configuration.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from lifesigns import __version__
from lifesigns.errors import Bug, LifesignsError

USAGE: Final = 2


class Entry(NamedTuple):
    """A command that is not imported yet: where it lives, and what `--help` says about it."""

    module: str
    summary: str


COMMANDS: Final[dict[str, Entry]] = {
    "config": Entry("lifesigns.cli.config", "Look at the configuration before something runs on it."),
    "run": Entry("lifesigns.cli.run", "Run any command, watched, and restarted if you like."),
    "simulate": Entry("lifesigns.cli.simulate", "Live through a week of a fleet in a minute."),
}
"""Each module has a click command with the name of its entry."""


class LazyGroup(click.Group):
    """A group whose commands are a table until one of them is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.module), cmd_name)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            name = error.command_name
            raise click.exceptions.NoSuchCommand(name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Errors of the user and of the world are one line each. A bug of ours keeps its traceback."""
        try:
            return super().invoke(ctx)
        except Bug:
            raise
        except LifesignsError as error:
            for line in str(error).splitlines():
                click.echo(f"Error: {line}", err=True)
            ctx.exit(USAGE)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lifesigns")
def main() -> None:
    """Tells you which of your agents are alive, frozen, stuck or looping, and gets them going again."""
