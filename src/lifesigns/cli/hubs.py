"""`lifesigns hubs`: the hubs on one store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lifesigns.cli.output import print_json, print_table
from lifesigns.cli.requests import ListingGroup, asks_a_hub, exit_if, finds_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.core.words import duration

if TYPE_CHECKING:
    from lifesigns.client import Client


@click.group(cls=ListingGroup, invoke_without_command=True)
@prints_json
@finds_a_hub
@click.pass_context
def hubs(ctx: click.Context, /, **_: Any) -> None:
    """List the hubs on one store. Without a command: `list`."""
    if ctx.invoked_subcommand is None:
        ctx.forward(list_)


@hubs.command("list")
@prints_json
@asks_a_hub
def list_(client: Client, as_json: bool) -> None:
    """Which hub judges, which stand by, which are lost. Exits with 1 if one is lost."""
    found = client.hubs()
    if as_json:
        print_json(found)
    else:
        together = any(hub.slots for hub in found.hubs)
        rows = [
            (
                *(hub.name, hub.state, f"{duration(hub.renewed_ago_s)} ago", hub.version),
                (" ".join(map(str, hub.slots)) if together else hub.zone) or "-",
                hub.url,
            )
            for hub in found.hubs
        ]
        head = ("name", "state", "renewed", "version", "slots" if together else "zone", "address")
        print_table(head, rows, none="One hub, with a store for itself.")
    exit_if(any(hub.state == "lost" for hub in found.hubs))


@hubs.command()
@click.argument("name")
@asks_a_hub
def forget(client: Client, name: str) -> None:
    """Forget the hub NAME, which is lost and will not come back. A hub that is stopped is forgotten by itself.

    \b
      lifesigns hubs forget hub-2
    """
    client.forget_hub(name)
    say(f"{name} is forgotten.")


@hubs.command(short_help="Let the hub NAME hand over and rest.")
@click.argument("name")
@asks_a_hub
def drain(client: Client, name: str) -> None:
    """Let the hub NAME hand over and rest, before its machine is worked on.

    Another hub goes on within about a second, and nothing is lost. NAME stands by, and does not judge until it is started anew
    or resumed; only if no other hub does for half a minute.

    \b
      lifesigns hubs drain hub-2
    """
    client.drain_hub(name)
    say(f"{name} is drained: another hub judges, and it may be stopped. lifesigns hubs shows them.")


@hubs.command(short_help="Let the hub NAME, which was drained, judge again.")
@click.argument("name")
@asks_a_hub
def resume(client: Client, name: str) -> None:
    """Let the hub NAME, which was drained, judge again when it is its turn.

    \b
      lifesigns hubs resume hub-2
    """
    client.resume_hub(name)
    say(f"{name} is resumed: it stands by like the others.")
