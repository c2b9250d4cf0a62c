"""Pages of what is in memory: a limit, and a cursor that counts what was shown already."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from typing import Annotated, Final, TypeVar

import msgspec
from msgspec import Meta

T = TypeVar("T")

LIMIT_MAX: Final = 1000


class PageQuery(msgspec.Struct):
    """Which page."""

    limit: Annotated[int, Meta(ge=1, le=LIMIT_MAX)] = 100
    cursor: Annotated[str, Meta(pattern=r"^[0-9]{1,9}\Z")] | None = None
    """From the answer before: the next page."""


def page(items: Iterable[T], query: PageQuery) -> tuple[list[T], str | None]:
    """The items of this page, and the cursor of the next if there is one. Items that come or go meanwhile shift the
    rest."""
    start = int(query.cursor or 0)
    found = list(islice(items, start, start + query.limit + 1))
    more = len(found) > query.limit
    return found[: query.limit], str(start + query.limit) if more else None
