"""The log in the store, beside a hub that may run. Nothing here takes over or writes: the store is read without being opened."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

from lifesigns.adapters.signing.ed25519 import verifies
from lifesigns.audit.checkpoints import KeptCheckpoint
from lifesigns.audit.verifying import AuditVerdict, Verifier
from lifesigns.hub.audit.unsealed import overdue
from lifesigns.ports import AuditRecord, Seal, Store
from lifesigns.views import moment

AT_ONCE: Final = 1000
FORGETTING: Final = 86400.0
"""Events are forgotten by their moment, and those near the oldest one may have been forgotten before it: a moment is when something fell
due, which may be long before it is noticed."""
Progress = Callable[[float], None]


async def verify_store(
    store: Store,
    keys: Sequence[bytes],
    checkpoints: Sequence[KeptCheckpoint],
    progress: Progress = lambda _: None,
) -> AuditVerdict:
    """Whether the log in this store is what was sealed.

    The seals are read before the entries, and the end of the history too: a hub that works meanwhile has kept what they
    speak of.
    """
    verifier = Verifier(keys, verifies)
    for one in checkpoints:
        verifier.seal(one.where, one.note)
    async for seal in seals_of(store):
        verifier.seal(f"the checkpoint of {moment(seal.at)} in the store", seal.note)
    first = await store.events(limit=1)
    until = [event.id for event in await store.events(newest_first=True, limit=1)]
    if first:
        verifier.watch_events(first[0].id)
    total = [audit_record.n + 1 for audit_record in await store.audit_records(newest_first=True, limit=1)]
    async for some in records_of(store):
        verifier.hear(some)
        progress(some[-1].n / max(1, *total))
    verifier.overdue(await overdue(store, verifier.sealed))
    if until:
        await _verify_events(store, verifier, until[0])
    return verifier.verdict()


async def _verify_events(store: Store, verifier: Verifier, until: int) -> None:
    """What the history says of audited acts must be what the log says; and none of it is gone, but for the oldest."""
    after, forgotten_until = 0, None
    while some := await store.events(after=after, until=until, limit=AT_ONCE):
        for event in some:
            if forgotten_until is None:
                forgotten_until = event.at + FORGETTING
            elif event.id != after + 1 and event.at > forgotten_until:
                verifier.gone_from_history(after + 1, event.id)
            after = event.id
        for n, event in verifier.compare_events(some):
            for audit_record in await store.audit_records(after=n - 1, before=n + 1):
                verifier.differs(event, audit_record)
        await asyncio.sleep(0)


async def records_of(store: Store) -> AsyncIterator[Sequence[AuditRecord]]:
    """All entries, some at a time."""
    after = -1
    while some := await store.audit_records(after=after, limit=AT_ONCE):
        yield some
        after = some[-1].n
        await asyncio.sleep(0)  # Here a Ctrl-C gets in.


async def seals_of(store: Store) -> AsyncIterator[Seal]:
    """All seals."""
    after = -1
    while some := await store.seals(after=after, limit=AT_ONCE):
        for seal in some:
            yield seal
        after = some[-1].size
