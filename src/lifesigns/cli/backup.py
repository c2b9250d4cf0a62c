"""`lifesigns backup` and `restore`: everything a hub keeps, as one file, and back."""

from __future__ import annotations

import os
from pathlib import Path

import click

from lifesigns import __version__
from lifesigns.cli.audit_verify import folder_of, of_a_folder
from lifesigns.cli.output import print_json
from lifesigns.cli.requests import prints_json
from lifesigns.cli.say import say
from lifesigns.cli.secret_options import Secret

file_argument = click.argument("file", type=click.Path(dir_okay=False, path_type=Path))


@click.command()
@file_argument
@of_a_folder
@click.option(
    "--store", type=Secret(), metavar="URL", help="The hub's store, if it is not the configured one."
)
@prints_json
def backup(file: Path, state: Path | None, store: str | None, as_json: bool) -> None:
    """Write everything a hub keeps into FILE; the hub may run meanwhile.

    The file holds the store, the audit key and the tokens: anyone who has it can be this hub. Only its owner can read
    it. A PostgreSQL store is not in it: back that up with its own tools (pg_dump).

    \b
      lifesigns backup hub.backup
    """
    from lifesigns.backup import back_up
    from lifesigns.config.load import load

    url = store or (load(environ=os.environ).store if state is None else None)
    manifest = back_up(folder_of(state), url, file, version=__version__)
    if as_json:
        print_json({"file": str(file), "size": file.stat().st_size, "manifest": manifest})
        return
    say(f"{file}: {len(manifest.files)} files, {manifest.size:,} bytes")
    if not manifest.store_included:
        say(
            f"The store {manifest.store} is not in it: back it up with its own tools (pg_dump), right after this.",
            err=True,
        )


@click.command()
@file_argument
@of_a_folder
@prints_json
def restore(file: Path, state: Path | None, as_json: bool) -> None:
    """Restore a hub's state folder from FILE, which `lifesigns backup` wrote.

    The folder must be empty or missing, and no hub may run on it. All of FILE is checked first; if anything is wrong,
    nothing is restored.

    \b
      lifesigns restore hub.backup --state /srv/lifesigns
    """
    from lifesigns.backup import restore as restored

    folder = folder_of(state)
    manifest = restored(file, folder)
    if as_json:
        print_json({"state": str(folder), "manifest": manifest})
        return
    say(f"{folder}: {len(manifest.files)} files, {manifest.size:,} bytes")
    if manifest.store_included:
        say(f"Now: lifesigns audit verify --state {folder}; then lifesigns serve --state {folder}")
    else:
        say(
            f"The store {manifest.store} was not in it: restore it with its own tools before you start the hub.",
            err=True,
        )
