"""`lifesigns store`: what a hub keeps, moved to another database."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import click

from lifesigns import __version__
from lifesigns.cli import INTERRUPTED
from lifesigns.cli.audit_verify import folder_of, of_a_folder
from lifesigns.cli.output import print_json
from lifesigns.cli.progress import progress
from lifesigns.cli.requests import exit_if, prints_json
from lifesigns.cli.say import say
from lifesigns.cli.secret_options import Secret


@click.group()
def store() -> None:
    """Move what a hub keeps to another database."""


@store.command(short_help="Take everything along from one store to another.")
@click.argument("source", metavar="FROM", type=Secret())
@click.argument("target", metavar="TO", type=Secret())
@of_a_folder
@prints_json
@click.option("--quiet", is_flag=True, help="No progress bar.")
def move(source: str, target: str, state: Path | None, as_json: bool, quiet: bool) -> None:
    """Take everything along from one store to another: sqlite:///path or postgres://host/database, or @FILE with that.

    No hub may run on either. The target has to be empty; every row is read back and compared, and the audit log is
    verified. The old store stays as it is. A move that is broken off leaves a target that hubs refuse.

    \b
      lifesigns store move sqlite:///var/lib/lifesigns/lifesigns.db @/etc/lifesigns/store-url
    """
    from lifesigns.assembly.moving import move_store
    from lifesigns.config.account import masked

    folder = folder_of(state)
    try:
        with progress("moving", quiet=quiet or as_json) as show:
            counts, audit = asyncio.run(move_store(source, target, folder, __version__, show))
    except KeyboardInterrupt:
        say("Stopped before the end: hubs refuse the new store, and the old one is as it was.", err=True)
        sys.exit(INTERRUPTED)
    verified = None if audit is None else audit.good
    if as_json:
        print_json({"from": masked(source), "to": masked(target), "rows": counts, "audit_verified": verified})
    else:
        say(f"{sum(counts.values()):,} rows are in {masked(target)}, each compared: {_listed(counts)}")
        if audit is None:
            say(f"The audit log was not verified: there is no key of it in {folder} (--state).")
        elif audit.good:
            say("The audit log is verified there.")
        else:
            say(
                f"The audit log does not verify there: {audit.faults[0].text}. Did it before? lifesigns audit verify"
            )
        say(
            f"Now say store: {masked(target)} in lifesigns.yaml, and start the hub. The old store is as it was."
        )
    exit_if(verified is False)


def _listed(counts: dict[str, int]) -> str:
    words = {
        "deeds": "audit entries",
        "journal": "stretches of the journal",
        "minutes": "minutes",
        "hours": "hours",
    }
    return ", ".join(f"{n:,} {words.get(name, name)}" for name, n in counts.items() if n) + "."
