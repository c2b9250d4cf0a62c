"""`lifesigns token`: the tokens of agents and people."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from lifesigns.cli.output import expiry, print_json, print_table, since, words
from lifesigns.cli.requests import asks_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say
from lifesigns.cli.token_accept import accept
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.client import Client


class Expiry(Duration):
    """A duration, or `never`."""

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        return value if value == "never" else super().convert(value, param, ctx)


@click.group()
def token() -> None:
    """Make, list, rotate and revoke the tokens of agents and people."""


@token.command()
@click.option(
    "--role", type=click.Choice(["agent", "viewer", "operator", "admin"]), required=True, help="What it may."
)
@click.option(
    "--agents", default="", metavar="IDS", help="For role agent: ids, or 'coder-*'; commas between."
)
@click.option("--name", help="Whose acts are on record under it.  [role, and the agents]")
@click.option(
    *("--expires", "expires_after"),
    type=Expiry(),
    metavar="30d",
    help="Good for this long, or never.  [role agent: 90d, others: never]",
)
@prints_json
@asks_a_hub
def create(
    client: Client, role: str, agents: str, name: str | None, expires_after: float | str | None, as_json: bool
) -> None:
    """Make a token and print it: this is the only time it can be seen.

    \b
      agent     speaks for its own ids and reads about them: --agents 'coder-*'
      viewer    reads everything
      operator  reads, speaks and acts
      admin     that, and tokens

    \b
      lifesigns token create --role viewer --name wall-screen
      lifesigns token create --role agent --agents 'coder-*'
    """
    if role == "agent" and not agents:
        raise UsageError("--agents is missing: an agent's token is for certain ids, as in --agents 'coder-*'")
    if role != "agent" and agents:
        raise UsageError(f"--agents is {agents!r}, but only a token of role agent is for certain agents")
    name = name or f"{role} {agents}".strip()[:100]
    made = client.create_token(role, name, agents=agents, expires_after=expires_after)
    if as_json:
        print_json(made)
        return
    until = f", until {made.expires_at}" if made.expires_at else ""
    say(f"Token {made.id} of {made.role} {made.name!r}{until}. Keep it: nobody can show it again.", err=True)
    say(made.token)


@token.command("list")
@prints_json
@asks_a_hub
def list_(client: Client, as_json: bool) -> None:
    """List all tokens, without their secrets."""
    tokens = client.tokens()
    if as_json:
        print_json(tokens)
        return
    rows, now = [], time.time()
    for one in tokens.tokens:
        made = f"{since(one.made_at, now)} ago"
        used = "never" if one.used_at is None else f"{since(one.used_at, now)} ago"
        agents = words(one.agents or "-", most=60)
        rows.append((one.id, one.role, made, used, expiry(one.expires_at, now), agents, one.name))
    print_table(("id", "role", "made", "used", "expires", "agents", "name"), rows)


@token.command()
@click.argument("token_id", metavar="ID")
@click.option(
    "--grace",
    type=Duration(),
    default="1d",
    metavar="1d",
    help="How long the old secret is still good.  [1d]",
)
@prints_json
@asks_a_hub
def rotate(client: Client, token_id: str, grace: float, as_json: bool) -> None:
    """Give the token ID a new secret and print it.

    It stays the same token, with its role and agents, and lasts as long again. The old secret is good for the grace, too: hand
    out the new one meanwhile. If the old one is in wrong hands, revoke the token and make another one. lifesigns token list shows
    the ids.

    \b
      lifesigns token rotate 0ec2b2ce
    """
    made = client.rotate_token(token_id, grace=grace)
    if as_json:
        print_json(made)
        return
    until = f", until {made.expires_at}" if made.expires_at else ""
    say(
        f"Token {made.id} of {made.role} {made.name!r} has a new secret{until}. Nobody can show it again.",
        err=True,
    )
    say(made.token)


@token.command()
@click.argument("token_id", metavar="ID")
@asks_a_hub
def revoke(client: Client, token_id: str) -> None:
    """Revoke the token ID, and all sessions made with it.

    \b
      lifesigns token revoke 0ec2b2ce
    """
    client.revoke_token(token_id)
    say(f"{token_id} is revoked.")


token.add_command(accept)
