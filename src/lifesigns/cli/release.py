"""`lifesigns release`: lets the hub act again in a braked group."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lifesigns.cli.acts import confirm, yes_option
from lifesigns.cli.output import answer, print_json, print_table
from lifesigns.cli.requests import asks_a_hub, exit_if, prints_json
from lifesigns.core.printable import clean

if TYPE_CHECKING:
    from lifesigns.client import Client


@click.command()
@click.argument("group", required=False)
@yes_option
@prints_json
@asks_a_hub
def release(client: Client, group: str | None, yes: bool, as_json: bool) -> None:
    """Let interventions in a braked GROUP continue for an hour; without one: list braked groups, and exit with 1 if
    there are any.

    A group is 'fleet', 'host NAME' or 'provider NAME'. An agent is left alone as long as one of its groups is braked.

    \b
      lifesigns release
      lifesigns release 'host ws-1'
    """
    if group is None:
        _list(client, as_json)
        return
    confirm(f"Let interventions in {group} go on, whatever is unwell there?", yes)
    done = client.release_group(group)
    line = clean(f"Interventions in {done.name} go on until {done.released_until}.")
    answer(done, line, as_json=as_json)


def _list(client: Client, as_json: bool) -> None:
    braked = [one for one in client.groups(limit=1000).groups if one.braked]
    if as_json:
        print_json({"groups": braked})
    else:
        rows = [(one.name, one.unwell, one.members) for one in braked]
        print_table(("group", "unwell", "of"), rows, none="No group is braked.")
    exit_if(braked)
