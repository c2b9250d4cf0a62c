"""Who asks again gets those who changed since, and is told when nobody knows any more."""

from __future__ import annotations

import pytest

from lifesigns.core.agent import Agent
from lifesigns.hub import changes as changes_module
from lifesigns.hub.changes import Changes


def agent(name: str, heard_at: float = 0.0) -> Agent:
    made = Agent(name, 1, since=0.0)
    made.heard_at = heard_at
    return made


def test_a_token_stands_for_its_moment_in_the_life_of_one_hub() -> None:
    token = Changes(3).token(1234.5678)
    assert Changes(3).moment(token) == 1234.567
    assert Changes(4).moment(token) is None


@pytest.mark.parametrize("token", ["", "3", "3.", "x.1", "3.x", "3.-1", "3.1e5", "3." + "9" * 16])
def test_a_token_that_is_none_of_ours_means_everything(token: str) -> None:
    assert Changes(3).moment(token) is None


def test_beats_words_and_effects_are_changes() -> None:
    changes = Changes(1)
    changes.note("named", 10.0)
    assert changes.since(agent("named"), 10.0)
    assert not changes.since(agent("named"), 10.1)
    assert changes.since(agent("beats", heard_at=11.0), 11.0)
    assert not changes.since(agent("beats", heard_at=11.0), 11.1)


def test_who_was_forgotten_is_named() -> None:
    changes = Changes(1)
    changes.gone(["a", "b"], 10.0)
    changes.gone(["c"], 20.0)
    assert changes.gone_since(10.0) == ["a", "b", "c"]
    assert changes.gone_since(10.1) == ["c"]


def test_who_asks_from_too_long_ago_is_told_everything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes_module, "GONE_MAX", 2)
    changes = Changes(1)
    old = changes.token(5.0)
    changes.gone(["a", "b"], 10.0)
    assert changes.moment(old) is None
    assert changes.moment(changes.token(10.0)) == 10.0


def test_names_that_nobody_has_do_not_pile_up() -> None:
    """Anybody may say words about agents that do not exist."""
    changes = Changes(1)
    changes.note("a", 1.0)
    for number in range(100):
        changes.note(f"nobody-{number}", 2.0)
    changes.keep_only({"a": agent("a")})
    assert changes._changed_at == {"a": 1.0}
