"""A store moved into another one: with no hub on either, and the audit log verified afterwards."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from lifesigns.adapters.store.moving import move
from lifesigns.adapters.store.sql_store import SqlStore
from lifesigns.assembly.hub import store_at, store_to_read
from lifesigns.audit.checkpoints import kept_checkpoints
from lifesigns.audit.keys import public_key, public_key_in
from lifesigns.audit.stored import verify_store
from lifesigns.audit.verifying import AuditVerdict
from lifesigns.errors import UsageError
from lifesigns.hub.resting import resting
from lifesigns.hub.slots import refuse_divided
from lifesigns.ports import Store


async def move_store(
    source_url: str, target_url: str, state: Path, version: str, progress: Callable[[float], None]
) -> tuple[dict[str, int], AuditVerdict | None]:
    """Move everything; returns the rows of each table, and what the audit log is found to be in the new store: None if
    the state folder has no key to tell by."""
    source = _sql_store(store_to_read(source_url))
    target = _sql_store(store_at(target_url))
    try:
        for store in (source, target):
            await refuse_divided(store, "lifesigns store move")
        async with resting(source, source_url, version):
            counts = await move(source, target, progress)
        key = public_key_in(state)
        if key is None:
            return counts, None
        return counts, await verify_store(target, [public_key(key)], kept_checkpoints((), state))
    finally:
        await target.close()
        await source.close()


def _sql_store(store: Store) -> SqlStore:
    if not isinstance(store, SqlStore):
        raise UsageError("memory cannot be moved; a store is sqlite:///path or postgres://host/database")
    return store
