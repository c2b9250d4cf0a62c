"""Errors travel: out of a worker of a process pool they come as they went in."""

import pickle

import pytest

from lifesigns.errors import (
    AdapterError,
    BreakerOpen,
    Bug,
    HubError,
    LifesignsError,
    PolicyError,
    UsageError,
    WireError,
)

ERRORS = [
    UsageError("no"),
    PolicyError("silence.timeout", "too short"),
    WireError("load", "is no number"),
    AdapterError("away", transient=False),
    HubError("no", status=400, detail="is no number", field="load", transient=False),
    BreakerOpen("search-api", 130.0, 100.0),
    Bug(),
]


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_an_error_survives_being_pickled(error: LifesignsError) -> None:
    revived = pickle.loads(pickle.dumps(error))
    assert type(revived) is type(error)
    assert str(revived) == str(error)
    assert vars(revived) == vars(error)


@pytest.mark.parametrize(
    ("until", "says"),
    [(130.0, "tried again in 30.0 s"), (90.0, "in 0.0 s"), (float("inf"), "somebody closes")],
)
def test_a_refusal_says_when_to_come_back(until: float, says: str) -> None:
    """A moment on somebody's monotonic clock tells nobody anything."""
    assert says in str(BreakerOpen("search-api", until, 100.0))
