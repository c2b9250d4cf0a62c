"""`lifesigns audit`: who did what, and whether the record was changed since."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from lifesigns.cli import audit_verify
from lifesigns.cli.output import print_json, print_table, words
from lifesigns.cli.requests import ListingGroup, asking, asks_a_hub, finds_a_hub, prints_json
from lifesigns.cli.say import say
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.client import Client
    from lifesigns.views import AuditEntry

PAGE: Final = 200


@click.group(cls=ListingGroup, invoke_without_command=True)
@click.option("--agent", metavar="ID", help="Only what was done to this agent.")
@click.option("--who", metavar="WHO", help="Only what this one did, written as in the list.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True, help="At most.")
@prints_json
@finds_a_hub
@click.pass_context
def audit(
    ctx: click.Context,
    agent: str | None,
    who: str | None,
    limit: int,
    as_json: bool,
    hub: str | None,
    token: str | None,
) -> None:
    """Show who did what, the newest first.

    \b
      lifesigns audit verify                  whether the record is what was written
      lifesigns audit checkpoint --out FILE   something to hold the hub to
      lifesigns audit accept --reason WHY     go on with a log that was found broken
    """
    if ctx.invoked_subcommand is not None:
        if hub is not None and ctx.invoked_subcommand in ("accept", "export", "key"):
            raise UsageError(
                f"audit {ctx.invoked_subcommand} works on this machine's state folder: it has no --hub"
            )
        return
    with asking(hub, token) as client:
        entries = _newest(client, agent, who, limit)
    if as_json:
        print_json({"entries": entries})
        return
    rows = [(one.n, one.at, words(one.who, most=60), one.what, one.agent_id, one.detail) for one in entries]
    none = "Nothing was done yet." if agent is None and who is None else "No entry of the log is about that."
    print_table(("n", "when", "who", "what", "agent", "detail"), rows, none=none)


def _newest(client: Client, agent: str | None, who: str | None, limit: int) -> list[AuditEntry]:
    entries: list[AuditEntry] = []
    before: int | None = None
    while len(entries) < limit:
        page = client.audit(limit=min(PAGE, limit - len(entries)), before=before, agent=agent, who=who)
        entries.extend(page.entries)
        before = page.before
        if before is None:
            break
    return entries


audit.add_command(audit_verify.verify)
audit.add_command(audit_verify.export)


@audit.command()
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it there.  [print it]")
@asks_a_hub
def checkpoint(client: Client, out: Path | None) -> None:
    """The newest checkpoint of the log, signed by the hub.

    Keep it somewhere else. `lifesigns audit verify --checkpoint FILE` compares the hub's later log with it.
    """
    note = client.audit_checkpoint()
    if out is None:
        say(note.removesuffix("\n"))
        return
    try:
        out.write_text(note, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error


@audit.command()
@click.option("--reason", required=True, help="Why; it is on record.")
@audit_verify.of_a_folder
def accept(reason: str, state: Path | None) -> None:
    """Go on with an audit log that was found broken, as it is now.

    A hub that finds its log changed seals nothing any more. Look what was done (`lifesigns audit verify`), keep it (`lifesigns audit
    export`), and then say so here: the hub of this state folder heeds it within seconds, or at its next start. Who accepted it, and
    why, is an entry of the log.

    \b
      lifesigns audit accept --reason "Restored by hand after the disk was lost."
    """
    import getpass
    import socket

    from lifesigns.hub.audit import acceptance

    folder = audit_verify.folder_of(state)
    if not folder.is_dir():
        raise UsageError(f"there is no state folder {folder}; name the hub's with --state")
    if not reason.strip():
        raise UsageError("--reason is empty: say why the log is to be believed")
    try:
        acceptance.request(folder, f"{getpass.getuser()}@{socket.gethostname()}", reason)
    except OSError as error:
        raise UsageError(f"{folder} cannot be written: {error.strerror}") from error
    say("The hub of this folder goes on with its audit log as it is, within seconds or at its next start.")


@audit.command(short_help="The public key that this hub seals its log with.")
@audit_verify.of_a_folder
def key(state: Path | None) -> None:
    """The public key that the hub of this machine seals its log with.

    Keep it somewhere else, too: `--key` exposes a log that somebody sealed again with another key.
    """
    from lifesigns.audit.keys import PUBLIC, public_key_in

    folder = audit_verify.folder_of(state)
    public = public_key_in(folder)
    if public is None:
        raise UsageError(f"there is no {folder / PUBLIC}; has a hub run with this state folder?")
    say(public)
