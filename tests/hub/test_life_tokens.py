"""A token for one life: the lives before it have none any more, those that may still come keep theirs."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from lifesigns.adapters.signing.agent_key import signer_of
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.assembly.keys import key_pair
from lifesigns.core.agent import Agent, Past
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError
from lifesigns.hub.access import Access, Role
from lifesigns.hub.life_tokens import QUIET_FOR, UNKNOWN_FOR, credentials_for_life, revoke_ended
from lifesigns.wire.signed import key_id

NOW = 1_000_000.0


async def made() -> Access:
    store = MemoryStore()
    await store.open()
    access = Access(store)
    await access.tokens.load()
    return access


async def token_for_life(
    access: Access, agent_id: str, incarnation: str, may_come: Iterable[str], now: float
) -> str:
    return (await credentials_for_life(access, agent_id, incarnation, may_come, now)).token


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
    own = (await access.tokens.create(role=Role.AGENT, name="mine", now=NOW, agents="a")).token
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
    monkeypatch.setattr("lifesigns.hub.token_table.TOKENS_MAX", 0)
    with pytest.raises(AdapterError, match="no token for it") as caught:
        await token_for_life(await made(), "a", "a~5-1", (), NOW)
    assert not caught.value.transient


async def test_who_has_to_sign_gets_a_key_for_this_agent_alone_and_it_ends_with_the_token() -> None:
    access = await made()
    first = await credentials_for_life(access, "a", "a~5-1", (), NOW, key_pair)
    public = signer_of(first.key).public
    known = access.key(key_id(public), NOW)
    assert known is not None
    assert (known[0], known[1].texts()) == (public, ["a"])
    second = await credentials_for_life(access, "a", "a~5-3", ["a~5-1"], NOW, key_pair)
    assert access.key(key_id(public), NOW), "it may still come"
    await credentials_for_life(access, "a", "a~5-5", ["a~5-3"], NOW, key_pair)
    assert access.key(key_id(public), NOW) is None
    assert access.key(key_id(signer_of(second.key).public), NOW)
    assert (await credentials_for_life(access, "b", "b~5-1", (), NOW)).key == ""


def an_agent(incarnation: str, health: Health, *retired: str) -> Agent:
    agent = Agent("a", 1, incarnation=incarnation, past=Past(retired=retired))
    agent.health = health
    return agent


@pytest.mark.parametrize(
    ("agent", "after", "over"),
    [
        (an_agent("a~5-1", Health.TERMINATED), QUIET_FOR, True),
        (an_agent("a~5-1", Health.TERMINATED), QUIET_FOR - 1, False),
        (an_agent("by hand", Health.HEALTHY, "zero", "a~5-1"), QUIET_FOR, True),
        (an_agent("a~5-1", Health.HEALTHY), 1e9, False),
        (an_agent("a~5-1", Health.DISCONNECTED), 1e9, False),
        (an_agent("the life before", Health.TERMINATED), 1e9, False),
        (None, UNKNOWN_FOR, True),
        (None, UNKNOWN_FOR - 1, False),
    ],
)
async def test_a_life_that_is_over_and_quiet_has_neither_token_nor_key(
    agent: Agent | None, after: float, over: bool
) -> None:
    """One that is away, or was started and not heard yet, keeps them for as long as that takes."""
    access = await made()
    life = await credentials_for_life(access, "a", "a~5-1", (), NOW, key_pair)
    own = (await access.tokens.create(role=Role.AGENT, name="mine", now=NOW, agents="a")).token
    await revoke_ended(access, {} if agent is None else {"a": agent}, NOW + after)
    assert comes_in(access, life.token) is not over
    assert (access.key(key_id(signer_of(life.key).public), NOW) is None) is over
    assert comes_in(access, own)


async def test_last_words_are_waited_for() -> None:
    access = await made()
    life = await credentials_for_life(access, "a", "a~5-1", (), NOW)
    assert access.principal(life.token.encode(), NOW + 1000) is not None
    await revoke_ended(access, {"a": an_agent("a~5-1", Health.TERMINATED)}, NOW + 1000 + QUIET_FOR - 1)
    assert comes_in(access, life.token)
    await revoke_ended(access, {"a": an_agent("a~5-1", Health.TERMINATED)}, NOW + 1000 + QUIET_FOR)
    assert not comes_in(access, life.token)
