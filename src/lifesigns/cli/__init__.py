"""The command line. `lifesigns --help` must be quick, so a command's module is imported when it is used.

Exit status: 0 well, 1 something unwell was found, 2 wrong usage or configuration, 130 Ctrl-C.
"""

from __future__ import annotations

import atexit
import gc
from importlib import import_module
from typing import Any, Final, NamedTuple, NoReturn

import click

from lifesigns import __version__
from lifesigns.errors import Bug, LifesignsError

USAGE: Final = 2
INTERRUPTED: Final = 130


class Entry(NamedTuple):
    """A command that is not imported yet: its module, and its line in `--help`."""

    module: str
    summary: str


COMMANDS: Final[dict[str, Entry]] = {
    "agents": Entry("lifesigns.cli.agents", "List agents, the neediest first."),
    "alerts": Entry("lifesigns.cli.alerts", "Show what people should know; acknowledge and silence it."),
    "audit": Entry("lifesigns.cli.audit", "Show who did what; verify that nobody changed it."),
    "backup": Entry("lifesigns.cli.backup", "Write everything a hub keeps into one file."),
    "beat": Entry("lifesigns.cli.beat", "Send one beat, for scripts and cron."),
    "breakers": Entry(
        "lifesigns.cli.breakers", "List the circuit breakers of all agents; reset, open or close one."
    ),
    "claims": Entry("lifesigns.cli.claims", "List who holds which task, and recovered locks."),
    "clear": Entry("lifesigns.cli.acts", "Clear an agent: lift quarantine, interventions and limits."),
    "config": Entry("lifesigns.cli.config", "Look at the configuration before something runs on it."),
    "decide": Entry("lifesigns.cli.acts", "Decide about an escalated agent."),
    "demo": Entry("lifesigns.cli.demo", "See a fleet freeze, loop, crash and recover."),
    "doctor": Entry("lifesigns.cli.doctor", "Find what is wrong with a set-up, and how to mend it."),
    "ecos": Entry("lifesigns.cli.ecos", "Write and read the health files of ECOS."),
    "escalate": Entry("lifesigns.cli.acts", "Ask somebody to decide about an agent."),
    "hooks": Entry("lifesigns.cli.hooks", "Watch coding agents: Claude Code, Codex, Gemini and others."),
    "hubs": Entry("lifesigns.cli.hubs", "List the hubs on one store: which judges, which stand by."),
    "key": Entry("lifesigns.cli.key", "Make, list and revoke the keys with which agents sign."),
    "mcp": Entry("lifesigns.cli.mcp", "Serve the hub as tools for a model (MCP)."),
    "memory": Entry(
        "lifesigns.cli.memory", "Look up what workers keep in an MCP memory server; put something there."
    ),
    "nudge": Entry("lifesigns.cli.acts", "Tell an agent something at its next turn boundary."),
    "open": Entry("lifesigns.cli.open", "Make a link that signs you in to the dashboard."),
    "pause": Entry("lifesigns.cli.acts", "Leave an agent alone for a while."),
    "release": Entry("lifesigns.cli.release", "Let interventions in a braked group continue."),
    "recover": Entry("lifesigns.cli.recover", "Have a task go on in a new life of its agent."),
    "replay": Entry("lifesigns.cli.replay", "Judge recorded signals again, under another policy."),
    "restore": Entry("lifesigns.cli.backup", "Restore a hub's state folder from a backup."),
    "resume": Entry("lifesigns.cli.acts", "End a pause."),
    "run": Entry("lifesigns.cli.run", "Run any command, watched, and restarted if you like."),
    "serve": Entry(
        "lifesigns.cli.serve", "Run the hub: receive beats, judge agents, store what happens, serve the API."
    ),
    "show": Entry("lifesigns.cli.show", "Show everything about one agent."),
    "simulate": Entry("lifesigns.cli.simulate", "Live through a week of a fleet in a minute."),
    "store": Entry("lifesigns.cli.store", "Move what a hub keeps to another database."),
    "tasks": Entry("lifesigns.cli.tasks", "List tasks, or show one: its agent, progress and expected end."),
    "terminate": Entry("lifesigns.cli.acts", "End an agent: ask it to save, then force it."),
    "session": Entry("lifesigns.cli.session", "List and end sessions of the dashboard."),
    "token": Entry("lifesigns.cli.token", "Make, list, rotate and revoke tokens."),
    "watch": Entry("lifesigns.cli.watch", "Watch the fleet live, the neediest agents first."),
}
"""Each module has a click command with the name of its entry."""

ELSEWHERE: Final = {
    **dict.fromkeys(("list", "ls", "ps", "status"), "agents"),
    **dict.fromkeys(("events", "history", "logs"), "show AGENT"),
    **dict.fromkeys(("end", "kill", "stop"), "terminate AGENT"),
    **dict.fromkeys(("dashboard", "login", "ui"), "open"),
    **dict.fromkeys(("server", "start", "up"), "serve"),
    "check": "doctor",
    "install": "hooks install",
    "restart": "recover TASK",
    "top": "watch",
}
"""What other tools call it, and what to type here."""


class LazyGroup(click.Group):
    """A group whose commands are a table until one of them is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command = getattr(import_module(entry.module), cmd_name)
        gc.enable()
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.exceptions.NoSuchCommand as error:
            name = error.command_name
            if name in ELSEWHERE:
                here = f"No such command {name!r}. Here it is: lifesigns {ELSEWHERE[name]}"
                raise click.exceptions.NoSuchCommand(name, here, ctx=ctx) from None
            raise click.exceptions.NoSuchCommand(name, possibilities=COMMANDS, ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, COMMANDS[name].summary) for name in self.list_commands(ctx)])

    def invoke(self, ctx: click.Context) -> Any:
        """Print errors of the user and of the world as one line each. A bug of ours keeps its traceback. Ctrl-C is no finding
        (click would exit with 1, which is one)."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            ctx.exit(INTERRUPTED)
        except Bug:
            raise
        except LifesignsError as error:
            _end_with(ctx, str(error))
        except OSError as error:
            if error.filename is None:
                raise
            _end_with(ctx, f"{error.filename}: {error.strerror}")


def _end_with(ctx: click.Context, message: str) -> NoReturn:
    from lifesigns.cli.say import say

    for line in message.splitlines():
        say(f"Error: {line}", err=True)
    ctx.exit(USAGE)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="lifesigns")
def main() -> None:
    """Tells you which of your agents are alive, frozen, stuck or looping, and gets them going again."""


def run() -> None:
    """The program `lifesigns`. Its modules are no garbage, so the collector looks at them neither while they are imported
    nor when the interpreter ends: that would be a quarter of what a short command costs."""
    gc.disable()  # Until the command is imported.
    atexit.register(gc.freeze)
    main(prog_name="lifesigns")
