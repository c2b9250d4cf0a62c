"""`lifesigns token`: who may come in."""

from __future__ import annotations

import time

import click

from lifesigns.cli.requests import asking, asks_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.cli.token_accept import accept
from lifesigns.errors import UsageError


@click.group()
def token() -> None:
    """Make, list and revoke the tokens by which agents and people come in."""


@token.command()
@click.option(
    "--role", type=click.Choice(["agent", "viewer", "operator", "admin"]), required=True, help="What it may."
)
@click.option(
    "--agents", default="", metavar="IDS", help="For role agent: ids, or 'coder-*'; commas between."
)
@click.option("--name", help="Whose acts are on record under it.  [role, and the agents]")
@click.option(
    "--expires", "expires_after", type=Duration(), metavar="30d", help="Good for this long.  [for ever]"
)
@prints_json
@asks_a_hub
def create(
    role: str,
    agents: str,
    name: str | None,
    expires_after: float | None,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """Make a token and print it: this is the only time it can be seen.

    \b
      agent     speaks for its own ids and reads about them: --agents 'coder-*'
      viewer    reads everything
      operator  reads, speaks and acts
      admin     that, and tokens
    """
    from lifesigns.cli.showing import print_json

    if role == "agent" and not agents:
        raise UsageError("--agents is missing: an agent's token is for certain ids, as in --agents 'coder-*'")
    if role != "agent" and agents:
        raise UsageError(f"--agents is {agents!r}, but only a token of role agent is for certain agents")
    with asking(hub, token) as client:
        made = client.create_token(
            role, name or f"{role} {agents}".strip()[:100], agents=agents, expires_after=expires_after
        )
    if as_json:
        print_json(made)
        return
    until = f", until {made.expires_at}" if made.expires_at else ""
    say(f"Token {made.id} of {made.role} {made.name!r}{until}. Keep it: nobody can show it again.", err=True)
    say(made.token)


@token.command("list")
@prints_json
@asks_a_hub
def list_(as_json: bool, hub: str | None, token: str | None) -> None:
    """All tokens, without their secrets."""
    from lifesigns.cli import showing
    from lifesigns.cli.showing import words

    with asking(hub, token) as client:
        found = client.tokens()
    if as_json:
        showing.print_json(found)
        return
    rows, now = showing.table("id", "role", "made", "used", "expires", "agents", "name"), time.time()
    for one in found.tokens:
        used = "never" if one.used_at is None else f"{showing.since(one.used_at, now)} ago"
        rows.add_row(
            words(one.id),
            words(one.role),
            f"{showing.since(one.made_at, now)} ago",
            used,
            words(one.expires_at or "never"),
            words(one.agents or "-", most=60),
            words(one.name),
        )
    showing.console().print(rows)


@token.command()
@click.argument("token_id", metavar="ID")
@asks_a_hub
def revoke(token_id: str, hub: str | None, token: str | None) -> None:
    """From now on nobody comes in with the token ID, nor with a session made with it."""
    with asking(hub, token) as client:
        client.revoke_token(token_id)
    say(f"{token_id} is revoked.")


token.add_command(accept)
