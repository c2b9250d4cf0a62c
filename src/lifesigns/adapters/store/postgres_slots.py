"""PostgresSlots: which hub owns which slot, in the database of a `PostgresStore`. Implements `lifesigns.ports.slots.SlotTable`."""

from __future__ import annotations

from collections.abc import Mapping

from lifesigns.adapters.store.postgres import PostgresStore
from lifesigns.adapters.store.sql import named_queries
from lifesigns.adapters.store.sql_store import Script, Statement
from lifesigns.adapters.store.values import escaped, unescaped
from lifesigns.errors import AdapterError
from lifesigns.ports.slots import Plan, SlotHub, SlotLook, SlotRow


class PostgresSlots:
    """The rows of hubs and slots. A hub has its row from `PostgresStore.renew`."""

    def __init__(self, store: PostgresStore) -> None:
        self._store = store
        self._sql = named_queries("slots")

    async def look(self, name: str, knows_format: int) -> SlotLook:
        """Raise the beat of this hub, and read all rows."""
        return await self._store.transact_beside(self._look(name, knows_format))

    async def change(self, name: str, plan: Plan) -> Mapping[int, int]:
        """Claim and give, where nothing has changed since."""
        return await self._store.transact_beside(self._change(name, plan))

    async def make(self) -> None:
        """Make the tables, if they are not there."""
        await self._store.transact_beside(self._make())

    def _make(self) -> Script[None]:
        for statement in self._sql["make_slots"].split(";"):
            yield Statement(statement)

    def _look(self, name: str, knows_format: int) -> Script[SlotLook]:
        renewed = yield Statement(self._sql["renew_slot_hub"], (escaped(name), knows_format))
        if not renewed:
            raise AdapterError(
                f"the hub {name} has no row: it was forgotten, or never joined", transient=True
            )
        hubs = yield Statement(self._sql["slot_hubs"])
        slots = yield Statement(self._sql["slots"])
        return SlotLook(
            [SlotHub(unescaped(other), *row) for other, *row in hubs],
            [SlotRow(slot, epoch, unescaped(owner), form) for slot, epoch, owner, form in slots],
        )

    def _change(self, name: str, plan: Plan) -> Script[Mapping[int, int]]:
        wanted = {slot: (epoch, name) for slot, epoch in plan.claim.items()} | plan.give
        hubs = [escaped(hub) for hub in plan.beats]
        beats = dict((yield Statement(self._sql["lock_slot_hubs"], (hubs,))))
        renewed = {hub for hub, beat in plan.beats.items() if beats.get(escaped(hub), beat) != beat}
        rows = yield Statement(self._sql["lock_slots"], ([*wanted],))
        owners = {
            slot: wanted[slot][1]
            for slot, epoch, owner in rows
            if epoch == wanted[slot][0] and unescaped(owner) not in renewed
        }
        if not owners:
            return {}
        ((epoch,),) = yield Statement(self._sql["next_slot_epoch"])
        yield Statement(self._sql["own_slots"], (epoch, [*owners], [escaped(one) for one in owners.values()]))
        return dict.fromkeys((slot for slot in owners if slot in plan.claim), epoch)
