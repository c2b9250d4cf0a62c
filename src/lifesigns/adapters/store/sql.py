"""SQL in files: named, described queries, and numbered migrations.

A query begins with its name between dashes (`-- take_over --`) and says its purpose in a comment. Where the dialects
allow it, `queries/common.sql` has it once. A migration is a file `0001_name.sql`; a released one never changes, and
there is no way back.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Final, Literal, TypeAlias

from msgspec import Struct

from lifesigns.errors import AdapterError

_HERE: Final = files("lifesigns.adapters.store")
_named = re.compile(r"^-- (\w+) --$", re.MULTILINE)
_value = re.compile(r"\$(\d+)(?:::\w+)?")
_typed_row = re.compile(r"VALUES \((\$1::[^)]+)\)")

Dialect: TypeAlias = Literal["sqlite", "postgres"]


class Migration(Struct, frozen=True):
    """One step of the database's schema."""

    number: int
    name: str
    sql: str


@cache
def queries(dialect: Dialect) -> Mapping[str, str]:
    """The queries of `sqlite` or `postgres` by name."""
    text = "".join(
        (_HERE / "queries" / f"{name}.sql").read_text(encoding="utf-8") for name in ("common", dialect)
    )
    _, *parts = _named.split(text)
    return {
        name: in_words_of(dialect, sql.strip().removesuffix(";"))
        for name, sql in zip(parts[::2], parts[1::2], strict=True)
    }


def in_words_of(dialect: Dialect, sql: str) -> str:
    """A query in a database's dialect. For SQLite `$1::text` is `?1`; for PostgreSQL a row of typed values is any
    number of rows, whose columns come as arrays."""
    if dialect == "sqlite":
        return _value.sub(r"?\1", sql)
    return _typed_row.sub(lambda row: f"SELECT * FROM unnest({row[1].replace(',', '[],')}[])", sql)  # noqa: S608 -- ours


@cache
def migrations(dialect: Dialect) -> Sequence[Migration]:
    """All migrations of `sqlite` or `postgres`, in order."""
    files_in_order = sorted(
        (file for file in (_HERE / "migrations" / dialect).iterdir() if file.name.endswith(".sql")),
        key=lambda file: file.name,
    )
    return [_migration(file.name, file.read_text(encoding="utf-8")) for file in files_in_order]


def next_migration(store: str, kept: int, known: Sequence[Migration]) -> Migration | None:
    """The next migration of a database whose last one has the number `kept`; None if there is none."""
    newest = known[-1].number
    if kept > newest:
        raise AdapterError(
            f"{store} was made by a newer lifesigns (its version is {kept}, this one knows {newest}); "
            "update lifesigns, or choose another store",
            transient=False,
        )
    return next((migration for migration in known if migration.number > kept), None)


def _migration(file: str, sql: str) -> Migration:
    number, _, name = file.removesuffix(".sql").partition("_")
    return Migration(int(number), name, sql)
