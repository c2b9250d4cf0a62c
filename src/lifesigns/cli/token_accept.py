"""`lifesigns token accept`: rows of tokens that the hub did not write, or no longer recognizes."""

from __future__ import annotations

import asyncio
from pathlib import Path

import click

from lifesigns.cli.audit_verify import folder_of, of_a_folder, place_of
from lifesigns.cli.say import say
from lifesigns.cli.secret_options import Secret
from lifesigns.ports import Store, StoredToken


@click.command()
@of_a_folder
@click.option(
    "--store",
    type=Secret(),
    metavar="URL",
    help="sqlite:///path or postgres://...  [that of the hub here]",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def accept(state: Path | None, store: str | None, yes: bool) -> None:
    """Accept tokens in the store that this hub has not signed.

    A hub signs every token that it stores, and refuses those without its signature: somebody else wrote them into the store, or
    the file tokens.key of the state folder was lost, as after a move without it. This command shows them, asks you, and signs
    them. It needs no token, but the state folder. Revoke afterwards what nobody knows: lifesigns token revoke.
    """
    from lifesigns.assembly.hub import store_to_read

    opened = store_to_read(place_of(store, state))
    asyncio.run(_accept(opened, folder_of(state), yes=yes))


async def _accept(store: Store, folder: Path, *, yes: bool) -> None:
    from lifesigns.hub.token_macs import new_macs

    try:
        macs = new_macs(folder)
        strange = [row for row in await store.tokens() if not macs.vouch_for(row)]
        if not strange:
            say("Every token in the store is this hub's own.")
            return
        _show(strange)
        if not yes:
            click.confirm(f"Believe these {len(strange)} tokens?", abort=True)
        for row in strange:
            await store.keep_token(macs.signed(row))
    finally:
        await store.close()
    say(f"{len(strange)} tokens are accepted; a hub that runs knows it within ten seconds.")


def _show(rows: list[StoredToken]) -> None:
    from lifesigns.cli import output
    from lifesigns.cli.output import words
    from lifesigns.views import moment

    shown = output.table("id", "role", "made", "agents", "name")
    for row in rows:
        shown.add_row(
            *(words(one) for one in (row.id, row.role, moment(row.made_at), row.agents or "-", row.name))
        )
    output.console().print(shown)
