"""`lifesigns restore`: a hub's state folder from a backup."""

from __future__ import annotations

from pathlib import Path

import click

from lifesigns.cli.audit_verify import folder_of, of_a_folder
from lifesigns.cli.requests import prints_json
from lifesigns.cli.say import say
from lifesigns.cli.showing import print_json


@click.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@of_a_folder
@prints_json
def restore(file: Path, state: Path | None, as_json: bool) -> None:
    """Make a hub's state folder anew from FILE, which `lifesigns backup` wrote.

    The folder must be empty or not there, and no hub may run on it. Everything in FILE is checked first; if anything is
    wrong, nothing is restored.
    """
    from lifesigns import backup

    folder = folder_of(state)
    manifest = backup.restore(file, folder)
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
