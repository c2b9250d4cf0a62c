"""The filter of an event query, as a test of one event and as SQL.

The SQL has only the conditions that are set, so that the database can choose the best index.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from lifesigns.adapters.store.values import countable, escaped
from lifesigns.ports import Event


class EventFilter(Struct, frozen=True):
    """The arguments of `Store.events`."""

    after: int
    until: int | None
    since: float | None
    types: Sequence[str]
    agent_id: str | None
    newest_first: bool
    limit: int

    @property
    def count_max(self) -> int:
        """The limit, within what a database can count."""
        return max(0, countable(self.limit))

    def wants(self, event: Event) -> bool:
        """Whether this event passes."""
        return (
            event.id > self.after
            and (self.until is None or event.id <= self.until)
            and (self.since is None or event.at >= self.since)
            and (not self.types or event.type in self.types)
            and (self.agent_id is None or event.agent_id == self.agent_id)
        )

    def query(self) -> tuple[str, list[Any]]:
        """SQL and its values, for `sql.in_words_of`."""
        values: list[Any] = []

        def place(value: Any) -> str:
            values.append(value)
            return f"${len(values)}"

        conditions = [f"id > {place(countable(self.after))}"]
        if self.until is not None:
            conditions.append(f"id <= {place(countable(self.until))}")
        if self.since is not None:
            conditions.append(f"at >= {place(self.since)}")
        if self.types:
            conditions.append(f"type IN ({', '.join(place(escaped(type_)) for type_ in self.types)})")
        if self.agent_id is not None:
            conditions.append(f"agent_id = {place(escaped(self.agent_id))}")
        direction = "DESC" if self.newest_first else "ASC"
        sql = (
            f"SELECT id, at, type, agent_id, data FROM events WHERE {' AND '.join(conditions)} "  # noqa: S608 -- all of it ours
            f"ORDER BY id {direction} LIMIT {place(self.count_max)}"
        )
        return sql, values
