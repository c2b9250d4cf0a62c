"""`lifesigns beat ID`: one beat, for scripts and cron."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli.output import print_json
from lifesigns.cli.requests import UNWELL, asking, exit_if, finds_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.core.printable import clean
from lifesigns.errors import HubError

if TYPE_CHECKING:
    from lifesigns.views import Receipt

RETRY_FOR: Final = 5.0
"""A restarting hub is no reason to miss a beat."""


@click.command()
@click.argument("agent_id", metavar="ID")
@click.option("--status", help="In its own words: busy, idle, waiting ...")
@click.option(
    "--doing",
    type=click.Choice(["working", "idle", "waiting_for_human", "rate_limited", "busy", "draining"]),
    metavar="DOING",
    help="working, idle, waiting_for_human, rate_limited, busy or draining.",
)
@click.option("--until", metavar="WHEN", help="Until when: 10m from now, or 2026-11-15T18:00:00Z.")
@click.option("--task", "task_id", metavar="TASK", help="What it works on.")
@click.option("--phase", help="Which part of that.")
@click.option("--progress", help="How far it is, in its own words.")
@click.option("--load", type=click.FloatRange(0, 1), help="From 0 to 1.")
@click.option(
    "--capacity", "capacity_available", type=click.IntRange(0), help="How many more tasks it takes."
)
@click.option("--tokens", "token_count", type=click.IntRange(0), help="Used so far.")
@click.option("--cost", "cost_usd", type=click.FloatRange(0), help="So far, in dollars.")
@click.option("--errors", "error_count", type=click.IntRange(0), help="So far.")
@click.option("--role", help="critical-infrastructure, active-development, background, standby ...")
@click.option("--host", help="Where it runs.")
@click.option("--incarnation", help="Which life of this id.")
@click.option("--meta", multiple=True, metavar="KEY=VALUE", help="Anything else; may be repeated.")
@prints_json
@finds_a_hub
def beat(
    agent_id: str,
    until: str | None,
    meta: tuple[str, ...],
    as_json: bool,
    hub: str | None,
    token: str | None,
    **options: Any,
) -> None:
    """Send one beat: ID lives.

    \b
      lifesigns beat backup --status idle && echo told
      lifesigns beat etl-3 --task t-19 --progress "12/40 files" --doing busy --until 20m

    Exits with 1 if the hub did not take it. Orders that wait for ID are shown.
    """
    fields = {name: value for name, value in options.items() if value is not None}
    if until is not None:
        fields |= {"until": _moment(until), "timestamp": time.time()}
    if meta:
        fields["metadata"] = dict(map(_pair, meta))
    try:
        with asking(hub, token, retry_for=RETRY_FOR) as client:
            receipt = client.beat(agent_id, **fields)
    except HubError as error:
        for line in str(error).splitlines():
            say(f"Error: {line}", err=True)
        sys.exit(UNWELL)
    if as_json:
        print_json(receipt)
    else:
        _print(receipt)
    exit_if(not receipt.accepted)


def _print(receipt: Receipt) -> None:
    for bad in receipt.rejected:
        say(f"Error: {clean(bad.field)}: {clean(bad.detail)}", err=True)
    for agent_id, orders in receipt.orders.items():
        for order in orders:
            text = order.get("text") or order.get("suspicion") or order.get("reason") or ""
            say(f"{clean(order.get('type', 'order'))} for {clean(agent_id)}: {clean(text)}".rstrip(": "))


def _moment(text: str) -> str | float:
    """A moment, or a duration from now."""
    from lifesigns.config.durations import parse

    if text[4:5] == "-":
        return text
    try:
        return time.time() + parse(text)
    except ValueError as error:
        raise click.BadParameter(
            f"{error}; or a moment: 2026-11-15T18:00:00Z", param_hint="--until"
        ) from None


def _pair(text: str) -> tuple[str, str]:
    key, separator, value = text.partition("=")
    if not key or not separator:
        raise click.BadParameter(f"{text!r} is not KEY=VALUE", param_hint="--meta")
    return key, value
