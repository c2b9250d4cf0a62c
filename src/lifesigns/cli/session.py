"""`lifesigns session`: who is signed in to the dashboard."""

from __future__ import annotations

import time

import click

from lifesigns.cli.requests import asking, asks_a_hub, prints_json
from lifesigns.cli.say import say


@click.group()
def session() -> None:
    """List and end the sessions of those who are signed in to the dashboard."""


@session.command("list")
@prints_json
@asks_a_hub
def list_(as_json: bool, hub: str | None, token: str | None) -> None:
    """Who is signed in: all for an admin, those made with the same token for others."""
    from lifesigns.cli import showing
    from lifesigns.cli.showing import words

    with asking(hub, token) as client:
        found = client.sessions()
    if as_json:
        showing.print_json(found)
        return
    rows, now = showing.table("id", "role", "signed in", "used", "ends", "from", "name"), time.time()
    for one in found.sessions:
        rows.add_row(
            words(one.id),
            words(one.role),
            f"{showing.since(one.made_at, now)} ago",
            f"{showing.since(one.used_at, now)} ago",
            words(one.ends_at),
            words(one.address or "-"),
            words(one.name),
        )
    showing.console().print(rows)


@session.command()
@click.argument("session_id", metavar="ID")
@asks_a_hub
def end(session_id: str, hub: str | None, token: str | None) -> None:
    """Sign out the browser with the session ID."""
    with asking(hub, token) as client:
        client.end_session(session_id)
    say(f"Session {session_id} is ended.")
