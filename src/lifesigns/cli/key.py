"""`lifesigns key`: the keys with which agents sign."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from lifesigns.cli.output import expiry, print_json, print_table, since, words
from lifesigns.cli.requests import asks_a_hub, prints_json
from lifesigns.cli.run import Duration
from lifesigns.cli.say import say

if TYPE_CHECKING:
    from lifesigns.client import Client


@click.group()
def key() -> None:
    """Make, list and revoke the keys with which agents sign what they say.

    An agent that has a key signs its beats and reports, so that nobody else can speak as that agent, even on a shared bus.
    access.signed in lifesigns.yaml says which agents have to.
    """


@key.command()
@click.argument("agents", metavar="AGENTS")
@click.option("--name", help="Whose it is, for the record.  [the agents]")
@click.option(
    "--expires", "expires_after", type=Duration(), metavar="30d", help="Good for this long.  [for ever]"
)
@click.option(
    "--public",
    metavar="HEX",
    help="Make none, but register the public half (64 hex digits) of one that was made elsewhere.",
)
@prints_json
@asks_a_hub
def create(
    client: Client,
    agents: str,
    name: str | None,
    expires_after: float | None,
    public: str | None,
    as_json: bool,
) -> None:
    """Make a key and print it: this is the only time it can be seen.

    AGENTS are the ids that may sign with it, or beginnings of ids: coder-7,tester-*. The key is made on this machine. The hub
    gets its public half, with which it can verify but not sign. Give the key to the agent as LIFESIGNS_KEY.

    \b
      lifesigns key create 'coder-*'
    """
    from lifesigns.assembly.keys import key_pair

    private, public_key = ("", public) if public else key_pair()
    made = client.create_key(public_key, name or agents[:100], agents=agents, expires_after=expires_after)
    if as_json:
        print_json(made)
    else:
        until = f", until {made.expires_at}" if made.expires_at else ""
        say(f"Key {made.id} of {made.agents}{until}. Give it to its agent as LIFESIGNS_KEY.", err=True)
    if private:
        say(private, err=as_json)


@key.command("list", short_help="List all keys: whose, when used, how soon they expire.")
@prints_json
@asks_a_hub
def list_(client: Client, as_json: bool) -> None:
    """Show all keys: for which agents, when they were used, how soon they expire."""
    keys = [one for one in client.tokens().tokens if one.role == "key"]
    if as_json:
        print_json({"keys": keys})
        return
    rows, now = [], time.time()
    for one in keys:
        made = f"{since(one.made_at, now)} ago"
        used = "never" if one.used_at is None else f"{since(one.used_at, now)} ago"
        rows.append((one.id, made, used, expiry(one.expires_at, now), words(one.agents, most=60), one.name))
    print_table(("id", "made", "used", "expires", "agents", "name"), rows)


@key.command()
@click.argument("key_id", metavar="ID")
@asks_a_hub
def revoke(client: Client, key_id: str) -> None:
    """Revoke the key ID: the hub refuses what is signed with it.

    lifesigns key list shows the ids.

    \b
      lifesigns key revoke 5c1d0e77
    """
    client.revoke_token(key_id)
    say(f"{key_id} is revoked.")
