"""`lifesigns breakers`: circuit breakers of all agents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from lifesigns.cli.asking import UNWELL, asking, asks_a_hub, prints_json

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import BreakerView


@click.group(invoke_without_command=True)
@click.option("--open", "only_open", is_flag=True, help="Only those that let nothing through.")
@prints_json
@asks_a_hub
@click.pass_context
def breakers(ctx: click.Context, only_open: bool, as_json: bool, hub: str | None, token: str | None) -> None:
    """List the circuit breakers of all agents, open ones first. Exits with 1 if one is open."""
    if ctx.invoked_subcommand is not None:
        return
    from lifesigns.cli.showing import print_json
    from lifesigns.core.signals import BreakerState

    refusing = (BreakerState.OPEN, BreakerState.FORCED_OPEN)
    with asking(hub, token) as client:
        found = sorted(_all(client), key=lambda one: (one.state not in refusing, one.name, one.agent_id))
    shown = [one for one in found if one.state in refusing or not only_open]
    if as_json:
        print_json({"breakers": shown})
    else:
        _print(shown, refusing, only_open=only_open)
    ctx.exit(UNWELL if any(one.state in refusing for one in shown) else 0)


def _all(client: Client) -> Iterator[BreakerView]:
    cursor = None
    while True:
        page = client.breakers(cursor=cursor)
        yield from page.breakers
        cursor = page.cursor
        if cursor is None:
            return


def _print(shown: list[BreakerView], refusing: tuple[str, ...], *, only_open: bool) -> None:
    from lifesigns.cli import showing
    from lifesigns.cli.showing import words

    if not shown:
        showing.console().print("No breaker is open." if only_open else "No agent has reported a breaker.")
        return
    rows = showing.table("breaker", "state", "agent")
    for one in shown:
        style = "bold red" if one.state in refusing else "green" if one.state == "closed" else "yellow"
        rows.add_row(words(one.name), words(one.state, style), words(one.agent_id))
    showing.console().print(rows)
