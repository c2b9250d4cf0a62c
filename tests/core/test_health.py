"""The one table of legal changes of health."""

import pytest

from lifesigns.core.health import LEGAL, UNWELL, Health


def test_every_state_has_a_row() -> None:
    assert set(LEGAL) == set(Health)


@pytest.mark.parametrize("health", Health)
def test_no_state_changes_into_itself(health: Health) -> None:
    """A flip is a change; staying is none."""
    assert health not in LEGAL[health]


def test_a_terminated_agent_can_only_start_anew() -> None:
    assert LEGAL[Health.TERMINATED] == {Health.STARTING}


@pytest.mark.parametrize("health", [h for h in Health if h is not Health.TERMINATED])
def test_every_life_can_end(health: Health) -> None:
    assert Health.TERMINATED in LEGAL[health]


@pytest.mark.parametrize("health", [h for h in Health if h is not Health.STARTING])
def test_every_life_can_be_followed_by_another(health: Health) -> None:
    assert Health.STARTING in LEGAL[health]


@pytest.mark.parametrize("health", sorted(UNWELL))
def test_every_unwell_agent_can_be_well_again(health: Health) -> None:
    assert Health.HEALTHY in LEGAL[health]


def test_degraded_is_a_warning_and_no_call_for_help() -> None:
    assert {Health.STUCK, Health.FAILING, Health.DISCONNECTED} == UNWELL
