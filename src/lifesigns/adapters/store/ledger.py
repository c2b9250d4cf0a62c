"""The ledger: how far a store is written, and by whom. One row, read and written in the transaction of every page.

A page of a hub that was replaced is refused for good. A page that is kept already is skipped. A page out of order is
our own bug: if page 5 were kept before page 4, page 4 would later be skipped as one that is kept already.
"""

from __future__ import annotations

from dataclasses import dataclass

from lifesigns.errors import AdapterError, Bug, Deposed
from lifesigns.ports import Commit


@dataclass(frozen=True, slots=True)
class Ledger:
    """How far a store is written: the epoch of its hub, the last page and the last event."""

    epoch: int
    page: int
    event: int


def check_turn(store: str, kept: Ledger, epoch: int | None) -> None:
    """Whether the hub of this epoch still has its turn; None: it never opened the store."""
    if epoch is None:
        raise Bug(f"{store} was written to before it was opened")
    if kept.epoch > epoch:
        raise Deposed(
            f"{store} belongs to another hub now (epoch {kept.epoch}; ours was {epoch}); stop one of the two"
        )
    if kept.epoch < epoch:
        raise AdapterError(
            f"{store} is not the one that was opened (its epoch is {kept.epoch}, ours {epoch}): it was replaced, "
            "or set back to an older state; start the hub anew",
            transient=False,
        )


def turned(store: str, kept: Ledger, epoch: int | None, page: Commit) -> Ledger | None:
    """How far the store is written with this page; None if the page is kept already."""
    check_turn(store, kept, epoch)
    if page.number <= kept.page:
        return None
    if page.number != kept.page + 1:
        raise Bug(f"page {page.number} came where page {kept.page + 1} belongs in {store}")
    for expected, event in enumerate(page.events, kept.event + 1):
        if event.id != expected:
            raise Bug(
                f"event {event.id} came where event {expected} belongs, on page {page.number} of {store}"
            )
    return Ledger(kept.epoch, page.number, kept.event + len(page.events))
