"""Restoring: the engine of the last hub, from the rows of the store."""

from __future__ import annotations

import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.engine import Engine
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.hub import memory
from lifesigns.hub.clock import SteadyClock
from lifesigns.ports import StoredState

A_MOMENT: Final = 0.001
"""A hub whose clock was set back continues so long after the last one: how long it was away is unknown."""

ROWS_SHOWN: Final = 5

log: Final = logging.getLogger("lifesigns.hub")


def restore_engine(
    recall: memory.Recall,
    remembered: StoredState,
    clock: SteadyClock,
    policies: PolicyBook,
    fleet: FleetPolicy,
    changes: ChangedKeys,
) -> tuple[Engine, str]:
    """The engine as the last hub left it, from the rows that were read before and those of `remembered`; and a sentence
    about unreadable rows, empty if there are none."""
    recall.take(remembered.beliefs)
    beliefs = recall.beliefs()
    if clock() < beliefs.at:
        step = clock.go_on_from(beliefs.at + A_MOMENT)
        log.warning(
            "the clock was set back by %.3f s since the last hub; this one goes on from where that one was",
            step,
            extra={"action": "clock_set_back"},
        )
    now = clock()
    beliefs.at = beliefs.at or now  # The very first hub has not been away.
    engine = Engine.restore(beliefs, now, policies, fleet, epoch=remembered.epoch, changes=changes)
    return engine, _log_unreadable(recall.unreadable)


@contextmanager
def collector_paused() -> Iterator[None]:
    """For a takeover, beside a loop that has to answer: a collection would stop all threads for 25 ms with 100,000 agents.
    What is made meanwhile is no garbage: it stays, and is not visited again."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def _log_unreadable(rows: Mapping[str, str]) -> str:
    """Log each unreadable row; returns a sentence for people."""
    for name, error in rows.items():
        log.error(
            "the row %r of the store cannot be read and is left out: %s",
            name,
            error,
            extra={"action": "row_unreadable"},
        )
    if not rows:
        return ""
    named = ", ".join(sorted(rows)[:ROWS_SHOWN])
    return (
        f"{len(rows)} rows of the store cannot be read: {named}. They are as if they had never been; "
        "restore a backup if they are needed"
    )
