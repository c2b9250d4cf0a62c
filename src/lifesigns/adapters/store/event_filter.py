"""Which events are asked for: as a question to one event, and as a query to a database.

Only the conditions that are asked for are in the query, so that the database can choose the index that fits them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from lifesigns.adapters.store.values import countable, escaped
from lifesigns.ports import Event


@dataclass(frozen=True, slots=True)
class EventFilter:
    """What `Store.events` was asked."""

    after: int
    until: int | None
    since: float | None
    types: Sequence[str]
    agent_id: str | None
    newest_first: bool
    limit: int

    @property
    def count_max(self) -> int:
        """How many are wanted; not more than can be counted."""
        return max(0, countable(self.limit))

    def wants(self, event: Event) -> bool:
        """Whether this event is asked for."""
        return (
            event.id > self.after
            and (self.until is None or event.id <= self.until)
            and (self.since is None or event.at >= self.since)
            and (not self.types or event.type in self.types)
            and (self.agent_id is None or event.agent_id == self.agent_id)
        )

    def query(self, placeholder: str, types: Callable[[list[str]], tuple[str, Any]]) -> tuple[str, list[Any]]:
        """SQL and its values. `placeholder` is `?` or `$`; `types` says how a list of types is asked for."""
        asked: list[tuple[str, Any]] = [("id > {}", countable(self.after))]
        if self.until is not None:
            asked.append(("id <= {}", countable(self.until)))
        if self.since is not None:
            asked.append(("at >= {}", self.since))
        if self.types:
            asked.append(types([escaped(type_) for type_ in self.types]))
        if self.agent_id is not None:
            asked.append(("agent_id = {}", escaped(self.agent_id)))
        conditions = " AND ".join(
            condition.format(f"{placeholder}{number}") for number, (condition, _) in enumerate(asked, 1)
        )
        direction = "DESC" if self.newest_first else "ASC"
        sql = (
            f"SELECT id, at, type, agent_id, data FROM events WHERE {conditions} "  # noqa: S608 -- all of it ours
            f"ORDER BY id {direction} LIMIT {placeholder}{len(asked) + 1}"
        )
        return sql, [*(value for _, value in asked), self.count_max]
