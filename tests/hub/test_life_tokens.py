"""A token for one life: the lives before it have none any more, those that may still come keep theirs."""

from __future__ import annotations

import pytest

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.hub.access import Access, Role
from lifesigns.hub.life_tokens import token_for_life

NOW = 1_000_000.0


async def made() -> Access:
    store = MemoryStore()
    await store.open()
    access = Access(store)
    await access.load()
    return access


def comes_in(access: Access, token: str) -> bool:
    return access.principal(token.encode(), NOW) is not None


async def test_it_is_for_this_agent_alone() -> None:
    access = await made()
    principal = access.principal((await token_for_life(access, "a", "a~5-1", (), NOW)).encode(), NOW)
    assert principal is not None
    assert principal.role is Role.AGENT
    assert principal.may_speak_for("a")
    assert not principal.may_speak_for("a-2")


async def test_earlier_lives_lose_theirs_but_for_those_that_may_still_come() -> None:
    access = await made()
    own = (await access.create(role=Role.AGENT, name="mine", now=NOW, agents="a")).token
    other = await token_for_life(access, "b", "b~5-1", (), NOW)
    first = await token_for_life(access, "a", "a~5-1", (), NOW)
    second = await token_for_life(access, "a", "a~5-3", ["a~5-1"], NOW)
    assert [comes_in(access, token) for token in (own, other, first, second)] == [True] * 4
    third = await token_for_life(access, "a", "a~5-5", ["a~5-3"], NOW)
    assert [comes_in(access, token) for token in (own, other, first, second, third)] == [
        *(True, True, False, True, True),
    ]


async def test_names_of_long_ids_still_tell_lives_apart() -> None:
    access, name = await made(), "a" * 128
    first = await token_for_life(access, name, f"{name}~5-1", (), NOW)
    await token_for_life(access, name, f"{name}~5-3", [f"{name}~5-1"], NOW)
    assert comes_in(access, first)


async def test_that_there_is_no_room_for_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lifesigns.hub.access.TOKENS_MAX", 0)
    with pytest.raises(AdapterError, match="no token for it") as caught:
        await token_for_life(await made(), "a", "a~5-1", (), NOW)
    assert not caught.value.transient
