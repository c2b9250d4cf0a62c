"""Whether a lock is stale: every criterion alone, its boundaries, and the laws over all evidence."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import replace

from lifesigns.hub.locks.staleness import KeepReason, LockSigns, WorkerSigns, history, verdict
from lifesigns.ports.issues import IssueEvent

MINUTE = 60.0
LEASE, GRACE = 10 * MINUTE, 5 * MINUTE
T0 = 1_000_000.0


def worker(**changes: Any) -> WorkerSigns:
    values: dict[str, Any] = {
        "agent_id": "w-1",
        "heard_at": T0,
        "alive": False,
        "lease": LEASE,
        "grace": GRACE,
    }
    return WorkerSigns(**(values | changes))


def signs(**changes: Any) -> LockSigns:
    values: dict[str, Any] = {
        "claimed": True,
        "persons": (),
        "workers": (worker(),),
        "claimed_by": None,
        "since": T0 - 3600,
        "touched_at": T0 - 3600,
        "watched_from": T0 - 7200,
        "lease": LEASE,
        "grace": GRACE,
    }
    return LockSigns(**(values | changes))


STALE = T0 + LEASE


@pytest.mark.parametrize(
    ("changes", "now", "reason"),
    [
        ({}, STALE - 0.001, KeepReason.FRESH),
        ({}, STALE, None),
        ({"claimed": False}, STALE, KeepReason.NOT_CLAIMED),
        ({"persons": ("alice",)}, STALE, KeepReason.BY_PERSON),
        ({"blind": True}, STALE, KeepReason.BLIND),
        ({"claimed_by": "w-1"}, STALE, KeepReason.CLAIMED),
        ({"workers": (worker(alive=True),)}, STALE, KeepReason.ALIVE),
        ({"workers": (worker(), worker(agent_id="w-2", alive=True))}, STALE, KeepReason.ALIVE),
        ({"workers": (worker(braked=True),)}, STALE, KeepReason.BRAKED),
        # Claimed anew after the worker was last heard: the lease counts from there.
        ({"since": T0 + MINUTE, "touched_at": T0 + MINUTE}, STALE + MINUTE - 0.001, KeepReason.FRESH),
        ({"since": T0 + MINUTE, "touched_at": T0 + MINUTE}, STALE + MINUTE, None),
        # Its account did something there.
        ({"touched_at": T0 + 2 * MINUTE}, STALE + MINUTE, KeepReason.FRESH),
        ({"touched_at": T0 + 2 * MINUTE}, STALE + 2 * MINUTE, None),
    ],
)
def test_each_criterion_and_its_boundary(
    changes: dict[str, Any], now: float, reason: KeepReason | None
) -> None:
    assert verdict(signs(**changes), now).keep_reason == reason


@pytest.mark.parametrize("workers", [(), (worker(heard_at=None),)])
def test_a_lock_without_any_heartbeat_has_a_grace(workers: tuple[WorkerSigns, ...]) -> None:
    """It counts from the claim, and not before this hub could have heard the worker."""
    lock = signs(workers=workers, since=T0, touched_at=T0, watched_from=T0 - 100)
    assert verdict(lock, T0 + LEASE + GRACE - 0.001).keep_reason is KeepReason.FRESH
    assert verdict(lock, T0 + LEASE + GRACE).stale
    started_late = replace(lock, watched_from=T0 + 3600)
    assert verdict(started_late, T0 + 3600 + LEASE + GRACE - 0.001).keep_reason is KeepReason.FRESH
    assert verdict(started_late, T0 + 3600 + LEASE + GRACE).stale


def test_of_several_workers_the_longest_lease_counts() -> None:
    lock = signs(workers=(worker(), worker(agent_id="w-2", heard_at=T0 - 60, lease=LEASE + 120)))
    judged = verdict(lock, STALE + 60)
    assert judged.stale
    assert judged.worker_id == "w-2"
    assert verdict(lock, STALE + 59.999).keep_reason is KeepReason.FRESH


def test_the_time_in_which_the_hub_did_not_look_counts_for_nobody() -> None:
    assert verdict(signs(), STALE, lambda start, wait: start + wait + 300.0).keep_reason is KeepReason.FRESH


# --- laws -------------------------------------------------------------------------------------------------


def mostly(usual: Any, other: Any) -> st.SearchStrategy[Any]:
    """Where everything was as often one way as the other, one lock in two hundred was stale."""
    return st.sampled_from((usual,) * 5 + (other,))


moments = st.floats(0.0, 100_000.0, allow_nan=False)
workers = st.builds(
    WorkerSigns,
    agent_id=st.sampled_from(["w-1", "w-2"]),
    heard_at=st.none() | moments,
    alive=mostly(False, True),
    lease=st.floats(1.0, 3600.0),
    grace=st.floats(0.0, 3600.0),
    braked=mostly(False, True),
)
evidence = st.builds(
    LockSigns,
    claimed=mostly(True, False),
    persons=mostly((), ("alice",)),
    workers=st.lists(workers, max_size=3).map(tuple),
    claimed_by=mostly(None, "w-1"),
    since=moments,
    touched_at=moments,
    watched_from=moments,
    lease=st.floats(1.0, 3600.0),
    grace=st.floats(0.0, 3600.0),
    blind=mostly(False, True),
)


instants = st.floats(100_000.0, 200_000.0) | st.floats(0.0, 200_000.0)


@given(evidence, instants)
@example(signs(), STALE)
def test_nothing_is_released_from_who_lives_from_people_or_while_we_cannot_see(
    lock: LockSigns, now: float
) -> None:
    if verdict(lock, now).stale:
        assert lock.claimed
        assert not lock.persons
        assert not lock.blind
        assert lock.claimed_by is None
        assert not any(one.alive or one.braked for one in lock.workers)
        heard = [one for one in lock.workers if one.heard_at is not None]
        assert all(now >= (one.heard_at or 0.0) + one.lease for one in heard)
        assert now >= lock.since + min((one.lease for one in lock.workers), default=lock.lease)


@given(evidence, instants, st.floats(0.0, 1e6))
@example(signs(), STALE, 1e6)
def test_a_stale_lock_stays_stale_until_something_is_heard(lock: LockSigns, now: float, later: float) -> None:
    if verdict(lock, now).stale:
        assert verdict(lock, now + later).stale


# --- what events say ----------------------------------------------------------------------------------------


def event(number: int, kind: str, age: float, **more: str) -> IssueEvent:
    return IssueEvent(number, kind, age, **more)


def test_a_lock_begins_with_the_last_of_assignment_and_label() -> None:
    events = [
        event(1, "labeled", 900.0, label="status:in-progress", actor="alice"),
        event(2, "assigned", 800.0, assignee="Acme-Bot", actor="alice"),
        event(3, "labeled", 700.0, label="other", actor="alice"),
        event(4, "referenced", 500.0, actor="acme-bot"),
    ]
    assert history(events, ("acme-bot",), "Status:In-Progress") == (2, 800.0, 500.0)


def test_an_earlier_lock_of_the_same_account_is_another_lock() -> None:
    events = [
        event(1, "assigned", 900.0, assignee="bot", actor="bot"),
        event(2, "unassigned", 800.0, assignee="bot", actor="m"),
        event(3, "assigned", 100.0, assignee="bot", actor="bot"),
    ]
    found = history(events, ("bot",), "x")
    assert found is not None
    assert (found.id, found.since) == (3, 100.0)


def test_without_an_assignment_in_the_events_nobody_knows_when_it_began() -> None:
    assert history([event(1, "labeled", 5.0, label="x")], ("bot",), "x") is None
