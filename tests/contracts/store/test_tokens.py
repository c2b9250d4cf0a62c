"""Tokens: who may come in."""

from msgspec.structs import replace

from lifesigns.ports import StoredToken
from tests.contracts.store.ground import Ground

TOKEN = StoredToken("t-1", b"\x00\xff" * 16, "agent", "the coders", "coder-*", made_at=5.0)


async def test_a_token_is_kept_as_it_is(ground: Ground) -> None:
    later = StoredToken("t-0", b"d", "admin", "", "", made_at=6.5, expires_at=9.25, used_at=7.0)
    store = await ground.store()
    await store.keep_token(later)
    await store.keep_token(TOKEN)
    assert await store.tokens() == [TOKEN, later]
    await store.close()
    assert await ground.make().tokens() == [TOKEN, later]


async def test_what_changed_about_a_token_is_kept(ground: Ground) -> None:
    store = await ground.store()
    await store.keep_token(TOKEN)
    used = replace(TOKEN, used_at=8.0, expires_at=10.0)
    await store.keep_token(used)
    assert await store.tokens() == [used]
    await store.keep_token(TOKEN)
    assert await store.tokens() == [TOKEN]


async def test_a_token_is_dropped_once(ground: Ground) -> None:
    store = await ground.store()
    await store.keep_token(TOKEN)
    assert not await store.drop_token("t-2")
    assert await store.drop_token("t-1")
    assert not await store.drop_token("t-1")
    assert await store.tokens() == []
