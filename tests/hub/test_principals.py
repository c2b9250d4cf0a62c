"""For whom a visitor may speak, and whom it may see."""

import pytest

from lifesigns.errors import WireError
from lifesigns.hub.principals import Patterns, Principal, Role


def agent(agents: str) -> Principal:
    return Principal("t", "a name", Role.AGENT, Patterns.of(agents))


@pytest.mark.parametrize(
    ("agents", "own"),
    [
        ("coder-7", ["coder-7"]),
        ("coder-*", ["coder-7", "coder-7/b", "coder-.", "coder-..x", "coder-7..8"]),
        ("coder-7, reviewer-*", ["coder-7", "reviewer-1"]),
        ("host/*", ["host/a", "host/a/b"]),
        ("*", ["coder-7", "x"]),
    ],
)
def test_an_agent_speaks_for_the_ids_of_its_token(agents: str, own: list[str]) -> None:
    assert [i for i in own if not agent(agents).may_speak_for(i)] == []
    assert [i for i in own if not agent(agents).may_see(i)] == []


@pytest.mark.parametrize(
    ("agents", "others"),
    [
        ("coder-7", ["coder-70", "coder-", "Coder-7", "coder-7/", "coder-7/x", "", "xcoder-7"]),
        ("coder-*", ["coder-", "coder", "Coder-7", "xcoder-7", "reviewer-1", ""]),
        ("coder-*", ["coder-7/../x", "coder-7/..", "coder-/../../x"]),
        ("coder-*", ["coder-7\u200b/../x", "x/coder-7"]),
        ("*", ["", "../x", "a/../b"]),
        ("a.c", ["abc"]),
    ],
)
def test_an_agent_speaks_for_nobody_else(agents: str, others: list[str]) -> None:
    """An id is a text: no case folding, no patterns but the prefix, no way out of it."""
    assert [i for i in others if agent(agents).may_speak_for(i)] == []
    assert [i for i in others if agent(agents).may_see(i)] == []


def test_a_viewer_sees_everything_and_says_nothing() -> None:
    viewer = Principal("t", "v", Role.VIEWER)
    assert viewer.may_see("anybody")
    assert not viewer.may_speak_for("anybody")


@pytest.mark.parametrize("role", [Role.OPERATOR, Role.ADMIN])
def test_operators_and_admins_may_speak_for_anybody(role: Role) -> None:
    principal = Principal("t", "o", role)
    assert principal.may_see("anybody")
    assert principal.may_speak_for("anybody")
    assert principal.speaks_for_all


@pytest.mark.parametrize(
    "agents",
    ["", " , ", "co*er", "**", "*-x", "a b", "a?", "[ab]", "x" * 129, "co\nder", "ä", ",".join(["a"] * 101)],
)
def test_a_pattern_that_means_nothing_is_refused_with_what_would_be_right(agents: str) -> None:
    with pytest.raises(WireError) as caught:
        Patterns.of(agents)
    assert caught.value.field == "agents"


def test_patterns_are_written_as_they_were_read() -> None:
    assert Patterns.of("b-*, a").texts() == ["a", "b-*"]
