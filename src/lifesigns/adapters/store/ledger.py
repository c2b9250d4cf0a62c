"""The ledger: how far a store is written, and by whom. One row, read and written in the transaction of every commit.

A commit of a replaced hub is refused for good. A stored commit is skipped. A commit out of order is our own bug: if
number 5 were stored before number 4, number 4 would later be skipped as already stored.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from lifesigns.errors import AdapterError, Bug, Deposed
from lifesigns.ports import Commit


class Ledger(Struct, frozen=True):
    """How far a store is written: the epoch of its hub, the last commit and the last event."""

    epoch: int
    commit: int
    event: int


def taken_over(store: str, rows: Sequence[Sequence[int]]) -> Ledger:
    """The ledger of the hub that takes over; no row if another hub was quicker."""
    if not rows:
        raise Deposed(f"{store} was taken over by another hub in the same moment")
    return Ledger(*rows[0])


def check_turn(store: str, kept: Ledger, epoch: int | None) -> None:
    """Check that the hub of this epoch may still write; None: it never opened the store."""
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


def next_ledger(store: str, kept: Ledger, epoch: int | None, commit: Commit) -> Ledger | None:
    """The ledger after this commit; None if the commit is already stored."""
    check_turn(store, kept, epoch)
    if commit.number <= kept.commit:
        return None
    if commit.number != kept.commit + 1:
        raise Bug(f"commit {commit.number} came where commit {kept.commit + 1} belongs in {store}")
    check_events(store, commit, kept.event + 1)
    return Ledger(kept.epoch, commit.number, kept.event + len(commit.events))


def check_events(store: str, commit: Commit, first: int) -> None:
    """Check that the events of a commit have the ids from `first` on."""
    for expected, event in enumerate(commit.events, first):
        if event.id != expected:
            raise Bug(
                f"event {event.id} came where event {expected} belongs, in commit {commit.number} of {store}"
            )
