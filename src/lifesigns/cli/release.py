"""`lifesigns release`: a person's word about a group in which too many are unwell at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from lifesigns.cli.acts import confirm
from lifesigns.cli.requests import UNWELL, asking, asks_a_hub, prints_json
from lifesigns.cli.say import say

if TYPE_CHECKING:
    from lifesigns.views.groups import GroupView


@click.command()
@click.argument("group", required=False)
@click.option("--yes", is_flag=True, help="Do not ask.")
@prints_json
@asks_a_hub
@click.pass_context
def release(
    ctx: click.Context, group: str | None, yes: bool, as_json: bool, hub: str | None, token: str | None
) -> None:
    """Let interventions in a braked GROUP go on for an hour; without one: list what is braked, and exit with 1 if
    something is.

    A group is 'fleet', 'host NAME' or 'provider NAME'. An agent is left alone as long as one of its groups is braked.
    """
    from lifesigns.cli.showing import print_json
    from lifesigns.core.printable import clean

    with asking(hub, token) as client:
        if group is None:
            braked = [one for one in client.groups(limit=1000).groups if one.braked]
            if as_json:
                print_json({"groups": braked})
            else:
                _print(braked)
            ctx.exit(UNWELL if braked else 0)
        confirm(f"Let interventions in {group} go on, whatever is unwell there?", yes)
        done = client.release_group(group)
    if as_json:
        print_json(done)
    else:
        say(clean(f"Interventions in {done.name} go on until {done.released_until}."))


def _print(braked: list[GroupView]) -> None:
    from lifesigns.cli import showing
    from lifesigns.cli.showing import words

    if not braked:
        click.echo("No group is braked.")
        return
    rows = showing.table("group", "unwell", "of")
    for one in braked:
        rows.add_row(words(one.name), str(one.unwell), str(one.members))
    showing.console().print(rows)
