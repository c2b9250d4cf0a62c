"""`lifesigns audit verify` and `export`: the log in the store itself, beside a running hub."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

import click

from lifesigns.cli import INTERRUPTED, output
from lifesigns.cli.progress import progress
from lifesigns.cli.requests import asking, exit_if, finds_a_hub, prints_json, with_group_options
from lifesigns.cli.secret_options import Secret
from lifesigns.errors import AdapterError, UsageError

if TYPE_CHECKING:
    from lifesigns.audit.checkpoints import KeptCheckpoint
    from lifesigns.audit.verifying import AuditVerdict

F = TypeVar("F", bound=Callable[..., Any])


def of_a_folder(command: F) -> F:
    """A command with `--state`."""
    return click.option(
        "--state",
        type=click.Path(file_okay=False, path_type=Path),
        help="The hub's state folder.  [LIFESIGNS_STATE, or the user's]",
    )(command)


def _of_a_store(command: F) -> F:
    store = click.option(
        "--store",
        type=Secret(),
        metavar="URL",
        help="sqlite:///path or postgres://...  [that of the hub here]",
    )
    key = click.option(
        "--key",
        "keys",
        multiple=True,
        metavar="KEY",
        help="A public key, or a file with it; may be repeated.  [that in the state folder]",
    )
    return of_a_folder(store(key(command)))


@click.command()
@_of_a_store
@click.option(
    "--checkpoint",
    "files",
    multiple=True,
    type=click.Path(dir_okay=False, path_type=Path),
    help="A checkpoint that you kept; may be repeated.",
)
@click.option(
    "--export", "file", type=click.Path(dir_okay=False, path_type=Path), help="Verify this export instead."
)
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    metavar="PLACE",
    help="A witness's file, or the address where it answers with checkpoints; may be repeated.",
)
@click.option("--entry", "entries", type=int, multiple=True, metavar="N", help="With --hub: this entry.")
@finds_a_hub
@prints_json
@click.option("--quiet", is_flag=True, help="No progress bar.")
def verify(
    state: Path | None,
    store: str | None,
    keys: tuple[str, ...],
    files: tuple[Path, ...],
    file: Path | None,
    witnesses: tuple[str, ...],
    entries: tuple[int, ...],
    hub: str | None,
    token: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Whether the audit log is what the hub has written. Exits with 1 if somebody changed it.

    Every entry is looked at, in the store itself, also while the hub runs. With --hub a hub is asked for proofs instead,
    from anywhere: that its log goes on from your checkpoints, and that entries are in it.

    \b
      lifesigns audit verify
      lifesigns audit verify --checkpoint monday.txt --key "$(cat audit.pub)"
      lifesigns audit verify --witness /mnt/other/hub.checkpoints
      lifesigns audit verify --export audit.ndjson --key audit.pub
      lifesigns audit verify --hub https://hub.example.org --checkpoint monday.txt --key audit.pub
    """
    hub, token = with_group_options(hub, token)
    if sum(one is not None for one in (hub, store, file)) > 1:
        raise UsageError("--hub, --store and --export are three places to look at: use one")
    if entries and hub is None:
        raise UsageError("--entry is for --hub; otherwise every entry is looked at")
    folder = folder_of(state)
    from lifesigns.audit.checkpoints import witnessed

    public_keys, checkpoints = _keys_and_checkpoints(folder, keys, files)
    checkpoints += [one for place in witnesses for one in witnessed(place)]
    try:
        if hub is not None:
            verdict = _by_proofs(hub, token, public_keys, checkpoints, entries)
        else:
            with progress("verifying", quiet=quiet) as move:
                verdict = _all(file, store, folder if state else None, public_keys, checkpoints, move)
    except KeyboardInterrupt:
        click.echo("Stopped before the end: nothing is known.", err=True)
        sys.exit(INTERRUPTED)
    _print(verdict, public_keys, as_json=as_json, by_proofs=hub is not None)
    exit_if(not verdict.good)


@click.command(short_help="Write the whole log and its checkpoints as JSON lines.")
@_of_a_store
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write it there.  [print it]")
def export(state: Path | None, store: str | None, keys: tuple[str, ...], out: Path | None) -> None:
    """The whole log with its checkpoints, as JSON lines, to be kept or verified elsewhere."""
    folder = folder_of(state)
    public_keys, checkpoints = _keys_and_checkpoints(folder, keys, ())
    place = place_of(store, folder if state else None)
    if out is None:
        asyncio.run(_export(place, public_keys, checkpoints, sys.stdout.buffer))
        return
    fresh = out.with_name(f".{out.name}.new")
    try:
        with fresh.open("wb") as into:
            asyncio.run(_export(place, public_keys, checkpoints, into))
        fresh.replace(out)
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}") from error
    finally:
        fresh.unlink(missing_ok=True)


# --- sources ------------------------------------------------------------------------------------------


def folder_of(state: Path | None) -> Path:
    """The state folder."""
    from lifesigns.config.hub_locator import state_folder

    return (state or state_folder(os.environ)).absolute()


def _keys_and_checkpoints(
    folder: Path, keys: Sequence[str], files: Sequence[Path]
) -> tuple[list[bytes], list[KeptCheckpoint]]:
    """Keys, and checkpoints. The state folder's checkpoint counts if its key does."""
    from lifesigns.audit.checkpoints import kept_checkpoints
    from lifesigns.audit.keys import PUBLIC, public_key, public_key_in

    own = public_key_in(folder)
    if not keys and own is None:
        raise UsageError(
            f"there is no {folder / PUBLIC}; say whose log it is with --state, or give its key with --key "
            "(lifesigns audit key prints it)"
        )
    public_keys = [public_key(key) for key in keys] or [public_key(own or "")]
    is_own = own is not None and public_key(own) in public_keys
    return public_keys, kept_checkpoints(files, folder if is_own else None)


def place_of(url: str | None, folder: Path | None) -> str:
    """The log's store: `url`, else in `folder`, else the configured one, else in the default folder."""
    from lifesigns.config.load import load
    from lifesigns.hub.state_folder import default_store

    if url is None and folder is None:
        url = load(environ=os.environ).store
    return url or default_store(folder or folder_of(None))


def _all(
    file: Path | None,
    url: str | None,
    folder: Path | None,
    keys: Sequence[bytes],
    checkpoints: Sequence[KeptCheckpoint],
    move: Callable[[float], None],
) -> AuditVerdict:
    from lifesigns.assembly.hub import store_to_read
    from lifesigns.audit.export import verify_export
    from lifesigns.audit.stored import verify_store
    from lifesigns.hub.slots import refuse_divided

    if file is not None:
        return verify_export(file, keys, checkpoints, move)

    async def look() -> AuditVerdict:
        store = store_to_read(place_of(url, folder))
        try:
            await refuse_divided(store, "lifesigns audit verify")
            return await verify_store(store, keys, checkpoints, move)
        finally:
            await store.close()

    return asyncio.run(look())


def _by_proofs(
    hub: str,
    token: str | None,
    keys: Sequence[bytes],
    checkpoints: Sequence[KeptCheckpoint],
    entries: Sequence[int],
) -> AuditVerdict:
    from lifesigns.audit.proved import verify_hub

    with asking(hub, token) as client:
        return verify_hub(client, keys, checkpoints, entries)


async def _export(
    place: str, keys: Sequence[bytes], checkpoints: Sequence[KeptCheckpoint], into: BinaryIO
) -> None:
    from lifesigns.assembly.hub import store_to_read
    from lifesigns.audit.export import exported
    from lifesigns.hub.slots import refuse_divided

    store = store_to_read(place)
    try:
        await refuse_divided(store, "lifesigns audit export")
        async for line in exported(store, keys, checkpoints):
            into.write(line)
    except AdapterError as error:
        raise UsageError(f"the log cannot be read: {error}") from error
    finally:
        await store.close()


# --- output -------------------------------------------------------------------------------------------


def _print(verdict: AuditVerdict, keys: Sequence[bytes], *, as_json: bool, by_proofs: bool) -> None:
    from lifesigns.hub.audit.notes import key_name

    names = [key_name(key) for key in keys]
    if as_json:
        output.print_json(
            {
                "verified": verdict.good,
                "entries": verdict.entries,
                "sealed": verdict.sealed,
                "retired": verdict.retired,
                "checkpoints": verdict.seals,
                "keys": names,
                "root": verdict.root.hex(),
                "faults": [{"how": one.how, "n": one.n, "text": one.text} for one in verdict.faults],
                "faults_total": verdict.faults_total,
                "accepted": verdict.accepted,
            }
        )
        return
    for line in _lines(verdict, " or ".join(names), by_proofs=by_proofs):
        output.console().print(output.words(line), soft_wrap=True)


def _lines(verdict: AuditVerdict, key: str, *, by_proofs: bool) -> Iterator[str]:
    if not verdict.good:
        yield f"The audit log is NOT what was written: {verdict.faults_total} faults."
        for fault in verdict.faults:
            yield f"  {fault.how}: {fault.text}"
        if verdict.faults_total > len(verdict.faults):
            yield f"  ... and {verdict.faults_total - len(verdict.faults)} more"
        return
    if by_proofs:
        yield f"Verified: the hub has proven {verdict.entries} entries of the {verdict.sealed} that it sealed with {key}."
        return
    yield f"Verified: {verdict.entries} entries, {verdict.seals} checkpoints of {key}."
    for word in verdict.accepted:
        yield f"It was once broken, and gone on with: {word}."
    if verdict.retired:
        yield f"{verdict.retired} of them are retired: their hashes hold, what was in them is gone by policy."
