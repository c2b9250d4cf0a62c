from __future__ import annotations

import pytest

import lifesigns


@pytest.mark.parametrize("name", lifesigns.__all__)
def test_everything_the_front_door_names_is_there(name: str) -> None:
    assert getattr(lifesigns, name) is not None


def test_the_front_door_names_what_it_has_in_order() -> None:
    assert dir(lifesigns) == sorted(lifesigns.__all__)


def test_what_it_does_not_name_is_not_there() -> None:
    with pytest.raises(AttributeError, match="module 'lifesigns' has no attribute 'nonsense'"):
        getattr(lifesigns, "nonsense")  # noqa: B009
