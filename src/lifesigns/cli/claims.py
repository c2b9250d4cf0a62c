"""`lifesigns claims`: who holds which task; `recovered`: those of lost workers that were released."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from lifesigns.cli.output import print_json, print_table
from lifesigns.cli.requests import ListingGroup, asks_a_hub, finds_a_hub, prints_json

if TYPE_CHECKING:
    from lifesigns.client import Client


@click.group(cls=ListingGroup, invoke_without_command=True)
@prints_json
@finds_a_hub
@click.pass_context
def claims(ctx: click.Context, /, **_: Any) -> None:
    """List the tasks that agents hold, and the locks that were recovered. Without a command: `list`."""
    if ctx.invoked_subcommand is None:
        ctx.forward(list_)


@claims.command("list")
@prints_json
@asks_a_hub
def list_(client: Client, as_json: bool) -> None:
    """The tasks that agents hold, with their fencing tokens."""
    held = [task for task in client.tasks(limit=1000).tasks if task.claim is not None]
    if as_json:
        print_json({"tasks": held})
        return
    rows = [
        (task.task_id, claim.agent_id, claim.token, claim.claimed_at, claim.held_until or "")
        for task in held
        if (claim := task.claim) is not None
    ]
    print_table(("task", "held by", "token", "since", "until at least"), rows, none="Nobody holds a task.")


@claims.command(short_help="List what was released because its worker was lost.")
@click.option("--for", "for_", default="7d", show_default=True, help="How far back.")
@click.option("--limit", default=100, show_default=True, type=click.IntRange(1, 1000), help="How many.")
@prints_json
@asks_a_hub
def recovered(client: Client, for_: str, limit: int, as_json: bool) -> None:
    """List claims, and locks in GitHub, that were released because their worker was lost, the newest first."""
    found = client.recovered_claims(for_=for_, limit=limit).recovered
    if as_json:
        print_json({"recovered": found})
        return
    rows = [
        (
            one.at,
            one.lock or one.task_id,
            one.agent_id,
            ", ".join(one.assignees),
            f"{one.silent_for_s:.0f} s",
            one.comment_url,
        )
        for one in found
    ]
    head = ("at", "task", "worker", "assigned to", "silent for", "comment")
    print_table(head, rows, none="Nothing was recovered in that time.")
