"""Asking a hub: the options by which every command finds it, and the errors if it does not answer."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click
from click.core import ParameterSource

from lifesigns.cli.secret_options import Secret, allows_insecure
from lifesigns.errors import HubError

if TYPE_CHECKING:
    from lifesigns.client import Client

F = TypeVar("F", bound=Callable[..., Any])

UNWELL: Final = 1
"""The exit status if something unwell was found."""
NO_TOKEN: Final = 401
NOT_THERE: Final = 404
LOOKED_THROUGH: Final = 5000
"""Agents among which a mistyped id is looked for: a second of waiting at most."""
OF_EVERY_COMMAND: Final = ("hub", "token", "insecure")
"""Options with a way of their own to the command of a group: `with_group_options`."""


def finds_a_hub(command: F) -> F:
    """A command with `--hub`, `--token` and `--insecure`."""
    hub = click.option("--hub", metavar="URL", help="The hub.  [LIFESIGNS_HUB, or this machine's]")
    token = click.option(
        "--token",
        type=Secret(),
        metavar="TOKEN",
        help="To get in: @FILE has it, for others see what is typed.  [LIFESIGNS_TOKEN, or this machine's]",
    )
    return hub(token(allows_insecure(command)))


def asks_a_hub(command: Callable[..., None]) -> Callable[..., None]:
    """The same; the command gets a client of that hub."""

    @wraps(command)
    def ask(*args: Any, hub: str | None, token: str | None, **options: Any) -> None:
        with (
            asking(*with_group_options(hub, token)) as client,
            naming_the_nearest(client, options.get("agent_id")),
        ):
            command(*args, client=client, **options)

    return finds_a_hub(ask)


def with_group_options(hub: str | None, token: str | None) -> tuple[str | None, str | None]:
    """Hub and token; if the command has none, those of its group: `lifesigns alerts --hub URL ack ID`."""
    group = click.get_current_context().parent
    params = {} if group is None else group.params
    return hub or params.get("hub"), token or params.get("token")


class ListingGroup(click.Group):
    """A group that lists something without a command. Options before a command count for the command, as those after it
    do: `lifesigns claims --json recovered`. One that the command does not have is an error."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name, command, rest = super().resolve_command(ctx, args)
        if name is not None and command is not None:
            given = {
                option.name: option
                for option in self.params
                if ctx.get_parameter_source(option.name or "") is ParameterSource.COMMANDLINE
                and option.name not in OF_EVERY_COMMAND
            }
            known = {option.name for option in command.params}
            for option_name, option in given.items():
                if option_name not in known:
                    raise click.UsageError(f"{name} has no {option.opts[0]}.", ctx)
            ctx.default_map = {name: {option_name: ctx.params[str(option_name)] for option_name in given}}
        return name, command, rest


def prints_json(command: F) -> F:
    """A command with `--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


@contextmanager
def asking(
    hub: str | None, token: str | None, *, retry_for: float = 0.0, timeout: float = 10.0
) -> Iterator[Client]:
    """The client of a command. An absent hub is an error that says what to do about it."""
    from lifesigns.client import Client

    with Client(hub, token, retry_for=retry_for, timeout=timeout) as client:
        try:
            yield client
        except HubError as error:
            raise HubError(
                explained(error, client.hub), status=error.status, transient=error.transient
            ) from error


@contextmanager
def naming_the_nearest(client: Client, agent_id: str | None) -> Iterator[None]:
    """An error over an unknown agent says which known one has nearly that id."""
    try:
        yield
    except HubError as error:
        if error.status != NOT_THERE or agent_id is None:
            raise
        from difflib import get_close_matches

        near: list[str] = []
        with suppress(HubError):  # This token may not list agents.
            known = [agent.agent_id for agent in client.agents(limit=LOOKED_THROUGH)]
            near = get_close_matches(agent_id, known, n=1)
        if not near:
            raise
        raise HubError(f"{error}; did you mean {near[0]}?", status=error.status) from error


def exit_if(unwell: object) -> None:
    """Exit with 1 if something unwell was found."""
    if unwell:
        sys.exit(UNWELL)


def explained(error: HubError, hub: str) -> str:
    """The error, and what to do about it."""
    if error.status is None:
        way = "start one with: lifesigns serve; or say where it is with --hub or LIFESIGNS_HUB"
        return f"no hub answers at {error} ({way})"
    if error.status == NO_TOKEN:
        return f"{error}; give a token with --token or LIFESIGNS_TOKEN, lifesigns token create makes one"
    return str(error)
