"""`lifesigns run`: watches any program without a change to it, and restarts it if you like."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from lifesigns.cli.secret_options import Secret, allows_insecure
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.core.policy import Policy


class Duration(click.ParamType[float]):
    """`90`, `90s`, `10m`, `1h`."""

    name = "duration"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> float:
        from lifesigns.config.durations import parse

        try:
            seconds = parse(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if seconds <= 0:
            self.fail(f"{value!r} is no time at all; leave the option out for no bound", param, ctx)
        return seconds


@click.command(context_settings={"ignore_unknown_options": False, "allow_interspersed_args": False})
@click.option("--id", "agent_id", metavar="ID", help="The agent's id. By default the command's name.")
@click.option("--task", "task_id", metavar="TASK", help="What it works on.")
@click.option(
    "--hub",
    type=Secret(),
    metavar="URL",
    envvar="LIFESIGNS_HUB",
    help="A hub to report to and obey, or none; with a password rather as LIFESIGNS_HUB or @FILE.  [this machine's, if it runs]",
)
@allows_insecure
@click.option(
    "--restart",
    type=click.Choice(["never", "on-failure", "always"]),
    default="never",
    show_default=True,
    help="Start it again when it has ended.",
)
@click.option(
    "--nudge",
    type=click.Choice(["none", "stdin", "signal", "file"]),
    default="none",
    show_default=True,
    help="How it is told that it seems stuck.",
)
@click.option("--idle-after", type=Duration(), help="No output for this long is a finding.  [10m]")
@click.option("--max-time", "max_for", type=Duration(), help="End it after this long; exits with 124.")
@click.option(
    "--watchdog",
    type=Duration(),
    help="It must say WATCHDOG=1 to its NOTIFY_SOCKET this often, as under systemd.",
)
@click.option("--pty", is_flag=True, help="Give it a terminal, even if there is none here.")
@click.option("--profile", help="swift, balanced, tolerant, swarm, fast_tasks, fleet, long_tasks.")
@click.option("--quiet", "verbosity", flag_value="quiet", help="Say nothing.")
@click.option("--verbose", "verbosity", flag_value="verbose", help="Say more.")
@click.option("--json", "verbosity", flag_value="json", help="Say it as JSON lines, on stderr.")
@click.argument("command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- CMD...")
@click.pass_context
def run(
    ctx: click.Context,
    agent_id: str | None,
    task_id: str | None,
    hub: str | None,
    restart: str,
    nudge: str,
    idle_after: float | None,
    max_for: float | None,
    watchdog: float | None,
    pty: bool,
    profile: str | None,
    verbosity: str | None,
    command: tuple[str, ...],
) -> None:
    """Run any command, watched, and restarted if you like.

    The command needs no change: its output, its terminal, its exit status and its signals are the same as without us.
    We report on stderr, and nothing while all is well.

    \b
      lifesigns run -- ./agent.sh
      lifesigns run --id coder-7 --idle-after 10m --restart on-failure -- python agent.py
    """
    if os.name != "posix":
        raise UsageError("lifesigns run needs process groups and terminals as Unix has them")
    from lifesigns.agent.supervise.child import die_of
    from lifesigns.agent.supervise.settings import NudgeBy, Restart, RestartPolicy, Settings, Verbosity
    from lifesigns.assembly.supervision import supervise
    from lifesigns.config.hub_locator import NO_HUB, running_hub

    alone = hub == NO_HUB
    hub = None if alone else hub or running_hub(os.environ)
    settings = Settings(
        command=command,
        agent_id=agent_id or default_id(command[0], hub),
        task_id=task_id,
        hub=hub,
        child_hub=NO_HUB if alone else None,
        restart=RestartPolicy(when=Restart(restart)),
        nudge=NudgeBy(nudge),
        idle_after=idle_after,
        max_for=max_for,
        watchdog=watchdog,
        pty=pty,
        verbosity=Verbosity(verbosity or "normal"),
    )
    end = supervise(settings, _policy(settings.agent_id, profile), profile)
    if end.signal is not None:
        sys.stdout.flush()
        die_of(end.signal)
        ctx.exit(128 + end.signal)
    ctx.exit(end.status or 0)


def default_id(program: str, hub: str | None) -> str:
    """The command's name; at a hub, where others run it too, with host and process."""
    import socket

    name = re.sub(r"[^A-Za-z0-9._-]+", "-", Path(program).name)[:48] or "agent"
    if hub is None:
        return name
    host = re.sub(r"[^A-Za-z0-9._-]+", "-", socket.gethostname())[:48]
    return f"{name}@{host}:{os.getpid()}"


def _policy(agent_id: str, profile: str | None) -> Policy:
    from lifesigns.config.load import load
    from lifesigns.core.profiles import PROFILES

    if profile is not None and profile not in PROFILES:
        raise UsageError(f"--profile: {profile!r} is unknown; known are {', '.join(PROFILES)}")
    return load(environ=os.environ, flags={"profile": profile} if profile else None).policies.of(agent_id)
