"""The audit log in the store: entries with their events, leaves for ever, seals for a while."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from lifesigns.adapters.store import sql_store
from lifesigns.errors import AdapterError
from lifesigns.ports import AuditRecord, Commit, Seal
from tests.contracts.store.ground import AnyStore, Ground, event, old_file

DAY = 86400.0
NOW = 400 * DAY


def deed(n: int, *, agent_id: str = "coder-7", who: str = "ann (k1)") -> AuditRecord:
    return AuditRecord(n, n + 1, float(n), agent_id, who, bytes([n % 256]) * 32, b'{"n": %d}' % n)


async def fill(
    store: AnyStore, *audit_records: AuditRecord, page: int = 1, seals: tuple[Seal, ...] = ()
) -> None:
    events = [event(one.event_id, at=one.at) for one in audit_records]
    await store.commit(Commit(page, events=events, audit_records=audit_records, seals=seals))


async def numbers(store: AnyStore, **asked: object) -> list[int]:
    return [one.n for one in await store.audit_records(**asked)]  # type: ignore[arg-type]


async def test_entries_come_back_as_they_were(ground: Ground) -> None:
    """Also with names that no database takes as they are; and beside a hub, without taking over."""
    store = await ground.store()
    odd = replace(deed(1, agent_id="a\0\\b", who="\ud800 (k1)"), entry=bytes(range(256)), at=1 / 3)
    await fill(store, deed(0), odd)
    assert await ground.make().audit_records() == [deed(0), odd]
    await fill(store, deed(2), page=2)


async def test_entries_are_asked_for_by_number_agent_and_person(ground: Ground) -> None:
    store = await ground.store()
    some = [deed(n, agent_id=f"a{n % 2}", who=("", "ann (k1)", "bob (k2)")[n % 3]) for n in range(12)]
    await fill(store, *some)
    assert await numbers(store, after=3, before=7) == [4, 5, 6]
    assert await numbers(store, after=3, limit=2) == [4, 5]
    assert await numbers(store, newest_first=True, limit=3) == [11, 10, 9]
    assert await numbers(store, before=4, newest_first=True, limit=2) == [3, 2]
    assert await numbers(store, agent_id="a1") == [1, 3, 5, 7, 9, 11]
    assert await numbers(store, who="") == [0, 3, 6, 9]
    assert await numbers(store, agent_id="a1", who="ann (k1)", newest_first=True) == [7, 1]
    assert await numbers(store, limit=0) == []
    assert await numbers(store, agent_id="nobody") == []


async def test_a_page_that_is_kept_already_brings_its_entries_once(ground: Ground) -> None:
    store = await ground.store()
    page = Commit(1, events=[event(1)], audit_records=[deed(0)], seals=[Seal(1, 1.0, "a\n")])
    await store.commit(page)
    await store.commit(page)
    assert (len(await store.audit_records()), len(await store.seals())) == (1, 1)


async def test_what_somebody_put_in_the_place_of_an_entry_is_not_in_its_way(ground: Ground) -> None:
    """Or whoever can write to the database could keep a hub from writing."""
    store = await ground.store()
    await fill(store, deed(0, who="eve"))
    mine = replace(deed(0), event_id=2)
    await fill(store, mine, page=2)
    assert await store.audit_records() == [mine]


async def test_what_is_retired_keeps_its_number_and_its_leaf(ground: Ground) -> None:
    """More than one step can take; what is retired already counts no more."""
    store, many = await ground.store(), sql_store.ROWS_AT_ONCE + 7
    await fill(store, *(deed(n) for n in range(many)))
    assert await store.retire(0, 3) == 3
    assert await store.retire(0, many - 2) == many - 5
    assert await store.retire(0, many - 2) == 0
    (last_retired, kept) = await store.audit_records(after=many - 4, limit=2)
    gone = deed(many - 3)
    assert last_retired == replace(gone, agent_id="", who="", entry=None)
    assert kept == deed(many - 2)


async def test_forgetting_the_history_spares_the_log(ground: Ground) -> None:
    store = await ground.store()
    await fill(store, deed(0), deed(1))
    assert await store.forget(NOW, keep_for=30 * DAY) == 2
    assert await store.events() == []
    assert await store.audit_records() == [deed(0), deed(1)]


async def test_seals_go_after_a_week_but_never_the_newest(ground: Ground) -> None:
    store = await ground.store()
    seals = [Seal(size, NOW - age * DAY, f"{size}\n\n— x\n") for size, age in ((1, 20), (2, 8), (5, 6))]
    await fill(store, seals=tuple(seals))
    assert await store.seals() == seals
    assert await store.seals(after=1, limit=1) == [seals[1]]
    assert await store.seals(newest_first=True, limit=1) == [seals[2]]
    assert await store.forget(NOW, keep_for=30 * DAY) == 2
    assert await store.forget(NOW + 30 * DAY, keep_for=30 * DAY) == 0
    assert await store.seals() == seals[2:]
    anew = replace(seals[2], note="anew")
    await fill(store, page=2, seals=(seals[2], anew))
    assert await store.seals() == [anew]


async def test_only_the_hub_that_has_its_turn_retires(ground: Ground) -> None:
    first = await ground.store()
    await fill(first, deed(0))
    await ground.store()
    with pytest.raises(AdapterError) as refused:
        await first.retire(0, 1)
    assert not refused.value.transient
    assert await first.audit_records() == [deed(0)]


async def test_a_file_of_the_second_version_is_migrated_with_all_it_has(tmp_path: Path) -> None:
    store = old_file(tmp_path / "old.db", 2)
    try:
        assert (await store.open()).epoch == 5
        await fill(store, replace(deed(0), event_id=2), page=2)
        assert len(await store.audit_records()) == 1
        assert len(await store.events()) == 2
    finally:
        await store.close()
