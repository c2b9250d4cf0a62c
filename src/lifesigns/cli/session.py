"""`lifesigns session`: the sessions of the dashboard."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from lifesigns.cli.output import expiry, print_json, print_table, since
from lifesigns.cli.requests import asks_a_hub, prints_json
from lifesigns.cli.say import say

if TYPE_CHECKING:
    from lifesigns.client import Client


@click.group()
def session() -> None:
    """List and end sessions of the dashboard."""


@session.command("list")
@prints_json
@asks_a_hub
def list_(client: Client, as_json: bool) -> None:
    """Show who is signed in to the dashboard, from where and until when.

    An admin sees all sessions, others those that were made with the same token.
    """
    found = client.sessions()
    if as_json:
        print_json(found)
        return
    rows, now = [], time.time()
    for one in found.sessions:
        used, made = f"{since(one.used_at, now)} ago", f"{since(one.made_at, now)} ago"
        ends = expiry(one.ends_at, now)
        rows.append((one.id, one.role, made, used, ends, one.address or "-", one.name))
    print_table(
        ("id", "role", "signed in", "used", "ends", "from", "name"), rows, none="Nobody is signed in."
    )


@session.command()
@click.argument("session_id", metavar="ID")
@asks_a_hub
def end(client: Client, session_id: str) -> None:
    """Sign out the browser that has the session ID.

    lifesigns session list shows the ids. To keep somebody out, revoke the token too: lifesigns token revoke.

    \b
      lifesigns session end b72ed2985208dbd3
    """
    client.end_session(session_id)
    say(f"Session {session_id} is ended.")
