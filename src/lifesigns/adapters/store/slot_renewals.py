"""Slot renewals: the rows of one process in the schemas of several slots, renewed by one statement.

Each hub of a process renews its row once or twice a second. Those that want to at about the same time share a statement, and
from then on they keep together, as they get their answers together.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, NamedTuple

from lifesigns.adapters.store.rows import Row
from lifesigns.errors import AdapterError

GATHER_FOR: Final = 0.05
"""Seconds that the first one waits for others."""
SHARED: Final = 4
"""Parameters that are the same for all slots: name, address, version and zone."""

Fetch = Callable[[str, Row], Awaitable[Sequence[Row]]]


class _Renewal(NamedTuple):
    slot: int
    shared: Row
    copied: int
    answered: asyncio.Future[Sequence[Row]]


class SlotRenewals:
    """Renews rows of slots. `schemas` are theirs; `fetch` runs one statement, on the connection that is for this."""

    def __init__(self, sql: Mapping[str, str], schema_of: Callable[[int], str], fetch: Fetch) -> None:
        self._sql, self._schema_of, self._fetch = sql, schema_of, fetch
        self._waiting: list[_Renewal] = []
        self._rounds: set[asyncio.Task[None]] = set()

    async def renew(self, slot: int, shared: Row, copied: int) -> Sequence[Row]:
        """Renew the row in this slot; returns all rows there, as `renew_and_list_hubs` does."""
        answered: asyncio.Future[Sequence[Row]] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Renewal(slot, shared, copied, answered))
        if len(self._waiting) == 1:
            task = asyncio.create_task(self._round())
            self._rounds.add(task)
            task.add_done_callback(self._rounds.discard)
        return await answered

    async def _round(self) -> None:
        await asyncio.sleep(GATHER_FOR)
        waiting, self._waiting = self._waiting, []
        while waiting:
            # One statement changes a row once: who wants to renew it twice is answered by the next one.
            together = {one.slot: one for one in waiting if one.shared == waiting[0].shared}
            waiting = [one for one in waiting if together.get(one.slot) is not one]
            await self._answer([*together.values()])

    async def _answer(self, together: Sequence[_Renewal]) -> None:
        try:
            rows = await self._fetch(*self._statement(together))
        except Exception as error:  # noqa: BLE001 -- whatever it is, somebody waits for it
            if len(together) > 1 and isinstance(error, AdapterError) and not error.transient:
                for one in together:  # What is wrong with one of them is not wrong with the others.
                    await self._answer([one])
                return
            for one in together:
                if not one.answered.done():
                    one.answered.set_exception(error)
            return
        for one in together:
            if not one.answered.done():
                one.answered.set_result([row[1:] for row in rows if row[0] == one.slot])

    def _statement(self, together: Sequence[_Renewal]) -> tuple[str, Row]:
        renewals, lists = [], []
        for number, one in enumerate(sorted(together), SHARED + 1):
            words = {"{schema}": self._schema_of(one.slot), "{slot}": str(one.slot), "{copied}": f"${number}"}
            renewals.append(_filled(self._sql["renew_in_slot"], words))
            lists.append(_filled(self._sql["hubs_of_slot"], words))
        sql = f"WITH {', '.join(renewals)} {' UNION ALL '.join(lists)} ORDER BY 1, 3"
        return sql, (*together[0].shared, *(one.copied for one in sorted(together)))


def _filled(sql: str, words: Mapping[str, str]) -> str:
    for word, value in words.items():
        sql = sql.replace(word, value)
    return sql.strip().rstrip(";")
