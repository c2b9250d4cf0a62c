"""Tokens: made, shown, used, revoked; links and sessions made with them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence

import pytest
from msgspec.structs import replace

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.access import Access, Principal, Role
from lifesigns.hub.sign_in import LINK_FOR, LINKS_MAX, SESSION_FOR, SESSIONS_MAX
from lifesigns.hub.token_table import NOTE_EVERY, NOTES_MAX
from lifesigns.ports import StoredToken

NOW = 1_000_000.0


class Flaky(MemoryStore):
    """A store that can be away, and that remembers what was written about tokens."""

    away = False
    refused = 0
    notes = 0
    noted = False
    """Something was written about a token that was used."""

    async def tokens(self) -> Sequence[StoredToken]:
        self._refuse()
        return await super().tokens()

    async def keep_token(self, token: StoredToken) -> None:
        self._refuse()
        self.notes += 1
        self.noted |= token.used_at is not None
        await super().keep_token(token)

    async def drop_token(self, token_id: str) -> bool:
        self._refuse()
        return await super().drop_token(token_id)

    def _refuse(self) -> None:
        if self.away:
            self.refused += 1
            raise AdapterError("the store is away")


@pytest.fixture
def store() -> Flaky:
    return Flaky()


@pytest.fixture
async def access(store: Flaky) -> Access:
    access = Access(store)
    await access.tokens.load()
    return access


async def token(access: Access, role: Role = Role.OPERATOR, **more: object) -> str:
    made = await access.tokens.create(role=role, name="somebody", now=NOW, **more)  # type: ignore[arg-type]
    return made.token


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 -- what is waited for is not told by events
            await asyncio.sleep(0.001)


async def principal(access: Access, role: Role = Role.OPERATOR) -> Principal:
    found = access.principal((await token(access, role)).encode(), NOW)
    assert found is not None
    return found


# --- tokens ---------------------------------------------------------------------------------------------


async def test_who_shows_a_token_is_known_by_it(access: Access) -> None:
    shown = await token(access, Role.AGENT, agents="coder-*")
    found = access.principal(shown.encode(), NOW)
    assert found is not None
    assert (found.name, found.role) == ("somebody", Role.AGENT)
    assert found.may_speak_for("coder-7")


async def test_the_store_has_the_digest_and_never_the_token(access: Access, store: Flaky) -> None:
    shown = await token(access)
    assert shown.startswith("ls_")
    (kept,) = await store.tokens()
    secret = shown.rpartition("_")[2]
    assert len(bytes.fromhex(secret)) == 32
    assert secret not in repr(kept)
    assert len(kept.digest) == 32


async def test_anything_but_the_whole_token_is_nobody(access: Access) -> None:
    shown = await token(access)
    (kept,) = access.tokens.list()
    wrong = [
        *(shown[:-1], shown + "0", shown.upper(), "", "ls__", kept.id, f"ls_{kept.id}_", f" {shown}"),
        *(shown.replace("ls_", "LS_"), kept.digest.hex(), "x" * 100_000, shown + "\0"),
    ]
    assert [text for text in wrong if access.principal(text.encode(), NOW) is not None] == []
    assert access.principal(kept.digest, NOW) is None


async def test_a_token_ends_at_the_moment_it_expires(access: Access) -> None:
    shown = (await token(access, expires_at=NOW + 10)).encode()
    assert access.principal(shown, NOW + 9.999) is not None
    assert access.principal(shown, NOW + 10) is None


async def test_tokens_outlive_the_hub(access: Access, store: Flaky) -> None:
    shown = (await token(access, Role.AGENT, agents="a,b-*")).encode()
    again = Access(store)
    assert again.principal(shown, NOW) is None
    await again.tokens.load()
    found = again.principal(shown, NOW)
    assert found is not None
    assert found.patterns.texts() == ["a", "b-*"]


@pytest.mark.parametrize(
    ("wanted", "field"),
    [
        ({"role": Role.AGENT}, "agents"),
        ({"role": Role.AGENT, "agents": "*x"}, "agents"),
        ({"role": Role.VIEWER, "agents": "x"}, "agents"),
        ({"role": Role.VIEWER, "name": " "}, "name"),
        ({"role": Role.VIEWER, "name": "x" * 101}, "name"),
        ({"role": Role.VIEWER, "name": "two\nlines"}, "name"),
        ({"role": Role.VIEWER, "expires_at": NOW}, "expires_at"),
        ({"role": Role.VIEWER, "expires_at": float("nan")}, "expires_at"),
    ],
)
async def test_a_token_that_makes_no_sense_is_refused_by_field(
    access: Access, store: Flaky, wanted: dict[str, object], field: str
) -> None:
    with pytest.raises(WireError) as caught:
        await access.tokens.create(**{"name": "n", "now": NOW, **wanted})  # type: ignore[arg-type]
    assert caught.value.field == field
    assert await store.tokens() == []


async def test_a_token_that_cannot_be_kept_is_not_made(access: Access, store: Flaky) -> None:
    store.away = True
    with pytest.raises(AdapterError):
        await token(access)
    assert access.tokens.list() == []


async def test_a_row_that_cannot_be_understood_lets_nobody_in_and_stops_nobody(
    access: Access, store: Flaky, caplog: pytest.LogCaptureFixture
) -> None:
    """A later version may know more roles."""
    shown = (await token(access)).encode()
    (kept,) = await store.tokens()
    await store.keep_token(replace(kept, id="x", digest=b"x" * 32, role="emperor"))
    await store.keep_token(replace(kept, id="y", digest=b"y" * 32, role="agent", agents="*x"))
    await access.tokens.load()
    assert [known.id for known in access.tokens.list()] == [kept.id]
    assert access.principal(shown, NOW) is not None
    assert "emperor" in caplog.text


# --- revoking -------------------------------------------------------------------------------------------


async def test_a_revoked_token_is_refused_at_once_and_for_good(access: Access, store: Flaky) -> None:
    shown = (await token(access)).encode()
    (kept,) = access.tokens.list()
    assert await access.tokens.revoke(kept.id, NOW)
    assert access.principal(shown, NOW) is None
    assert await store.tokens() == []
    assert not await access.tokens.revoke(kept.id, NOW)


async def test_who_listens_is_out_when_its_token_is(access: Access) -> None:
    """A stream outlives the request that opened it, but not the right to it."""
    who = access.principal((await token(access, expires_at=NOW + 60)).encode(), NOW)
    assert who is not None
    assert access.is_still_valid(who.token_id, NOW + 59)
    assert not access.is_still_valid(who.token_id, NOW + 60)
    await access.tokens.revoke(who.token_id, NOW)
    assert not access.is_still_valid(who.token_id, NOW)


async def test_a_revocation_holds_while_the_store_is_away_and_is_tried_again(
    access: Access, store: Flaky
) -> None:
    shown = (await token(access)).encode()
    (kept,) = access.tokens.list()
    store.away = True
    with pytest.raises(AdapterError):
        await access.tokens.revoke(kept.id, NOW)
    assert access.principal(shown, NOW) is None
    store.away = False
    await access.tokens.load()
    assert access.principal(shown, NOW) is None
    await access.sync(NOW)
    assert await store.tokens() == []


async def test_what_another_hub_makes_or_revokes_holds_here_after_the_next_look(store: Flaky) -> None:
    here, there = Access(store), Access(store)
    shown = (await token(there)).encode()
    await here.sync(NOW)
    assert here.principal(shown, NOW) is not None
    session = signed_in(here, here.principal(shown, NOW))
    await there.tokens.revoke(there.tokens.list()[0].id, NOW)
    await here.sync(NOW)
    assert here.principal(shown, NOW) is None
    assert here.session(session, NOW) is None
    assert await store.tokens() == []


# --- when they were used --------------------------------------------------------------------------------


async def test_a_request_writes_nothing_and_the_next_look_notes_when_a_token_was_used(
    access: Access, store: Flaky
) -> None:
    shown = (await token(access)).encode()
    written = store.notes
    for n in range(100):
        access.principal(shown, NOW + n * 0.1)
    assert store.notes == written
    assert access.tokens.list()[0].used_at == NOW
    await access.sync(NOW + 10)
    assert store.notes == written + 1
    assert (await store.tokens())[0].used_at == NOW


async def test_the_use_of_a_token_is_noted_once_a_minute_at_most(access: Access, store: Flaky) -> None:
    shown = (await token(access)).encode()
    written = store.notes
    for n in range(10):
        access.principal(shown, NOW + n * NOTE_EVERY / 10)
        await access.sync(NOW + n)
    assert store.notes == written + 1
    access.principal(shown, NOW + NOTE_EVERY)
    await access.sync(NOW)
    assert store.notes == written + 2
    assert access.tokens.list()[0].used_at == NOW + NOTE_EVERY


async def test_the_notes_of_many_tokens_are_written_a_few_at_a_time(access: Access, store: Flaky) -> None:
    many = [(await token(access)).encode() for _ in range(NOTES_MAX + 5)]
    written = store.notes
    for shown in many:
        access.principal(shown, NOW)
    await access.sync(NOW)
    assert store.notes == written + NOTES_MAX
    await access.sync(NOW)
    assert store.notes == written + len(many)


async def test_looking_after_tokens_survives_a_store_that_is_away(
    access: Access, store: Flaky, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It is said once, and goes on."""
    monkeypatch.setattr("lifesigns.hub.access.SYNC_EVERY", 0.001)
    shown = (await token(access)).encode()
    access.principal(shown, NOW)
    store.away = True
    with caplog.at_level(logging.WARNING):
        tending = asyncio.create_task(access.run(lambda: NOW))
        await until(lambda: store.refused >= 3)
        assert caplog.text.count("tokens are as they were") == 1
        store.away = False
        await until(lambda: store.noted)
        tending.cancel()
        await asyncio.gather(tending, return_exceptions=True)


# --- signing in -----------------------------------------------------------------------------------------


def signed_in(access: Access, who: Principal | None, now: float = NOW) -> str:
    assert who is not None
    session = access.redeem(access.sign_ins.link(who.token_id, now), now)
    assert session is not None
    return session


async def test_a_link_opens_one_session_as_whoever_made_it(access: Access) -> None:
    who = await principal(access, Role.VIEWER)
    code = access.sign_ins.link(who.token_id, NOW)
    session = access.redeem(code, NOW + 1)
    assert session is not None
    assert session != code
    assert access.session(session, NOW + 2) == who
    assert access.redeem(code, NOW + 3) is None


async def test_a_link_is_good_for_five_minutes(access: Access) -> None:
    who = await principal(access)
    early, late = access.sign_ins.link(who.token_id, NOW), access.sign_ins.link(who.token_id, NOW)
    assert access.redeem(early, NOW + LINK_FOR - 0.001) is not None
    assert access.redeem(late, NOW + LINK_FOR) is None


async def test_codes_sessions_and_tokens_do_not_stand_for_each_other(access: Access) -> None:
    shown = await token(access)
    who = access.principal(shown.encode(), NOW)
    assert who is not None
    code, session = access.sign_ins.link(who.token_id, NOW), signed_in(access, who)
    assert access.session(code, NOW) is None
    assert access.session(shown, NOW) is None
    assert access.session(who.token_id, NOW) is None
    assert access.redeem(session, NOW) is None
    assert access.redeem(shown, NOW) is None
    assert access.principal(session.encode(), NOW) is None
    assert access.principal(code.encode(), NOW) is None


async def test_a_session_lives_for_twelve_hours_after_it_was_last_used(access: Access) -> None:
    session = signed_in(access, await principal(access))
    assert access.session(session, NOW + SESSION_FOR - 1) is not None
    assert access.session(session, NOW + 2 * SESSION_FOR - 2) is not None
    assert access.session(session, NOW + 3 * SESSION_FOR - 2) is None
    assert access.session(session, NOW) is None


async def test_who_signs_out_is_out_and_others_stay(access: Access) -> None:
    who = await principal(access)
    mine, others = signed_in(access, who), signed_in(access, who)
    access.sign_ins.sign_out(mine)
    access.sign_ins.sign_out("nobody's")
    assert access.session(mine, NOW) is None
    assert access.session(others, NOW) is not None


async def test_revoking_a_token_ends_its_sessions_and_links(access: Access) -> None:
    who, other = await principal(access), await principal(access)
    session, code, others = (
        signed_in(access, who),
        access.sign_ins.link(who.token_id, NOW),
        signed_in(access, other),
    )
    await access.tokens.revoke(who.token_id, NOW)
    assert access.session(session, NOW) is None
    assert access.redeem(code, NOW) is None
    assert access.session(others, NOW) is not None


async def test_a_session_ends_with_the_time_of_its_token(access: Access) -> None:
    who = access.principal((await token(access, expires_at=NOW + 60)).encode(), NOW)
    assert who is not None
    session, code = signed_in(access, who), access.sign_ins.link(who.token_id, NOW)
    assert access.session(session, NOW + 59) is not None
    assert access.session(session, NOW + 60) is None
    assert access.redeem(code, NOW + 60) is None


async def test_links_and_sessions_are_bounded_and_the_oldest_go_first(access: Access) -> None:
    who = await principal(access)
    codes = [access.sign_ins.link(who.token_id, NOW) for _ in range(LINKS_MAX + 1)]
    assert access.redeem(codes[0], NOW) is None
    assert access.redeem(codes[1], NOW) is not None
    sessions = [signed_in(access, who) for _ in range(SESSIONS_MAX)]
    assert access.session(sessions[0], NOW) is not None  # and is now the one that was used last
    signed_in(access, who)
    assert access.session(sessions[0], NOW) is not None
    assert access.session(sessions[1], NOW) is None


async def test_what_nobody_came_back_for_is_let_go(access: Access) -> None:
    who = await principal(access)
    code, session = access.sign_ins.link(who.token_id, NOW), signed_in(access, who)
    await access.sync(NOW + SESSION_FOR)
    assert access.redeem(code, NOW) is None, "not even to a clock that stands where it was good"
    assert access.session(session, NOW) is None
