"""A commit as one statement of PostgreSQL, which is a transaction by itself.

With one statement after the other the server waits for the hub in between, and a hub that is frozen there keeps the lock
of the ledger: no other hub can take over. One statement is run, or not, when the server has all of it. It takes fewer
round trips, too.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from lifesigns.adapters.store.rows import Row, commit_rows
from lifesigns.adapters.store.sql import queries
from lifesigns.ports import Commit

_value = re.compile(r"\$(\d+)")


def commit_statement(commit: Commit, epoch: int | None) -> tuple[str, Row]:
    """The statement for a commit, and its values: columns of rows, as arrays. The statement is always the same, so that
    the server prepares it once."""
    changes = commit_rows(commit)
    first = commit.events[0].id if commit.events else None
    values: list[Any] = [epoch, commit.number, len(commit.events), first]
    for query, rows in changes:
        columns = zip(*rows, strict=True) if rows else ((),) * _value_count(queries("postgres")[query])
        values.extend(list(column) for column in columns)
    return _joined(tuple(query for query, _ in changes)), values


@cache
def _joined(parts: tuple[str, ...]) -> str:
    """`keep_commit` with these queries, which the server runs after it, or not at all if it fails. Their values come one
    after the other."""
    sql = queries("postgres")
    head, select = sql["keep_commit"].rsplit("\nSELECT", 1)
    count, named = _value_count(head), [head]
    for part in parts:
        named.append(f"{part} AS (\n{_shifted(sql[part], count)}\n)")
        count += _value_count(sql[part])
    return ",\n".join(named) + f"\nSELECT{select}"


def _shifted(query: str, by: int) -> str:
    return _value.sub(lambda value: f"${int(value[1]) + by}", query)


def _value_count(query: str) -> int:
    return max(int(number) for number in _value.findall(query))
