"""The log in the store, beside a hub that may run. This reads the store without opening it: it takes nothing over and
writes nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import msgspec

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.audit.checkpoints import KeptCheckpoint
from lifesigns.audit.verifying import AuditVerdict, Verifier
from lifesigns.hub.audit.state import KIND, decode_state
from lifesigns.ports import AuditRecord, Seal, Store
from lifesigns.views import moment

AT_ONCE: Final = 1000
Progress = Callable[[float], None]


async def verify_store(
    store: Store,
    keys: Sequence[bytes],
    checkpoints: Sequence[KeptCheckpoint],
    progress: Progress = lambda _: None,
) -> AuditVerdict:
    """Whether the log in this store is what was sealed.

    It reads the seals and the end of the history before the entries: a hub that works meanwhile has stored all they
    cover.
    """
    verifier = Verifier(keys, verifies)
    total = [audit_record.n + 1 for audit_record in await store.audit_records(newest_first=True, limit=1)]
    verifier.must_be_sealed(*total or [0])
    for one in [*checkpoints, *await row_of(store)]:
        verifier.seal(one.where, one.note)
    async for seal in seals_of(store):
        verifier.seal(f"the checkpoint of {moment(seal.at)} in the store", seal.note)
    first = await store.events(limit=1)
    until = [event.id for event in await store.events(newest_first=True, limit=1)]
    if first:
        verifier.watch_events(first[0].id)
    last = -1
    async for some in records_of(store):
        verifier.hear(some)
        last = some[-1].n
        progress(last / max(1, *total))
    await _verify_events(store, verifier, *until or [0])
    async for some in records_of(store, after=last):
        verifier.hear(some)  # A hub may have forgotten events meanwhile, and logged that before.
    return verifier.verdict()


async def row_of(store: Store) -> list[KeptCheckpoint]:
    """The seal in the row of the log, which every commit with entries writes."""
    row = await store.belief(KIND, "")
    try:
        note = "" if row is None else decode_state(row).note
    except msgspec.MsgspecError:
        note = ""  # Not ours: ignored, and then no seal covers the last entries.
    return [KeptCheckpoint("the checkpoint beside the newest entry", note)] if note else []


async def _verify_events(store: Store, verifier: Verifier, until: int) -> None:
    """The history must agree with the log about audited acts, and be complete."""
    after = 0
    while some := await store.events(after=after, until=until, limit=AT_ONCE):
        for event in some:
            if event.id != after + 1:
                verifier.gone_from_history(after + 1, event.id)
            after = event.id
        for n, event in verifier.compare_events(some):
            for audit_record in await store.audit_records(after=n - 1, before=n + 1):
                verifier.differs(event, audit_record)
        await asyncio.sleep(0)
    verifier.history_ends(after)


async def records_of(store: Store, after: int = -1) -> AsyncIterator[Sequence[AuditRecord]]:
    """All entries, some at a time."""
    while some := await store.audit_records(after=after, limit=AT_ONCE):
        yield some
        after = some[-1].n
        await asyncio.sleep(0)  # Lets a Ctrl-C in.


async def seals_of(store: Store) -> AsyncIterator[Seal]:
    """All seals."""
    after = -1
    while some := await store.seals(after=after, limit=AT_ONCE):
        for seal in some:
            yield seal
        after = some[-1].size
