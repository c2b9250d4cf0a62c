from __future__ import annotations

import pytest

from lifesigns.config import readers
from lifesigns.config.fitting import flat, settable
from lifesigns.config.load import SCHEMA
from lifesigns.config.schema import FLEET, POLICY, Schema, end, keys
from lifesigns.config.values import Limits
from lifesigns.core.policy import FleetPolicy, Policy


@pytest.mark.parametrize(
    ("schema", "value"), [(POLICY, Policy()), (FLEET, FleetPolicy()), (keys(Limits), Limits())]
)
def test_every_threshold_has_a_reader_that_takes_its_default(schema: Schema, value: object) -> None:
    """So a new field of the policy can be configured, or fails here."""
    for path, default in flat(settable(value)).items():
        reader = end(schema, path)
        assert reader is not None, path
        assert reader(default) == default, path


def test_a_share_is_no_duration_and_a_wait_is_one() -> None:
    assert end(POLICY, ("erring", "rate_max")) is readers.number
    assert end(POLICY, ("silence", "ping_wait")) is readers.seconds


@pytest.mark.parametrize(
    "path",
    [
        ("policy", "silence"),
        ("policy", "x"),
        ("profile", "x"),
        ("policy", "silence", "interval", "x"),
    ],
)
def test_there_is_no_reader_where_no_key_ends(path: tuple[str, ...]) -> None:
    assert end(SCHEMA, path) is None
