"""Any text and any bytes come back as they were."""

import pytest
from hypothesis import given
from hypothesis import strategies as some

from lifesigns.adapters.store.values import escaped, unescaped
from lifesigns.ports import Commit, Event, Sample, StoredOrder, StoredToken
from tests.contracts.store.ground import Ground, believed

STRANGE = [
    "",
    "\0",
    "a\0b",
    "\\",
    "\\0",
    "\\u0000",
    "\\\\u0000",
    "\ud800",
    "\udfff\ud800",
    "עִבְרִית‏ mixed العربية",
    "🤖👩‍🚀",
    "e\u0301 \u00e9",
    "%s ? $1 ' \" ; -- \n\r\t",
    "A",
    "a",
    "x" * 1024,
    "\0\\" * 512,
    "\U0010ffff",
    "\ufffe\uffff",
]


async def test_strange_names_are_names_like_others(ground: Ground) -> None:
    """Each is itself and no other: not by case, nor by composition."""
    store = await ground.store()
    beliefs = [believed(key, key.encode("utf-8", "surrogatepass"), kind="task") for key in STRANGE]
    orders = [StoredOrder(text, float(n), "coder-7", b"{}") for n, text in enumerate(STRANGE)]
    await store.commit(Commit(1, beliefs=beliefs, orders=orders))
    for text in STRANGE:
        await store.keep_token(StoredToken(text, b"", "agent", text, text, made_at=0.0))
    _, found = await ground.opened()
    assert {belief.key: belief.value for belief in found.beliefs} == {
        belief.key: belief.value for belief in beliefs
    }
    assert found.orders == orders
    assert {(token.id, token.name, token.agents) for token in await store.tokens()} == {
        (text, text, text) for text in STRANGE
    }
    again = await ground.store()
    await again.commit(
        Commit(2, beliefs=[believed(key, None, kind="task") for key in STRANGE[1:]], settled=STRANGE[1:])
    )
    _, left = await ground.opened()
    assert [belief.key for belief in left.beliefs] == [""]
    assert [kept.order_id for kept in left.orders] == [""]


async def test_agents_are_told_apart_whatever_their_names(ground: Ground) -> None:
    names = ["A-Z.a-z_0-9:@/", "coder", "Coder", "c" * 128, *STRANGE[1:]]
    store = await ground.store()
    events = [Event(n, 1.0, "T", name, b"{}") for n, name in enumerate(names, 1)]
    samples = [Sample(name, 60.0, n, 0.0) for n, name in enumerate(names)]
    await store.commit(Commit(1, events=events, samples=samples))
    for n, name in enumerate(names):
        assert await store.events(agent_id=name) == [events[n]]
        assert await store.samples(name, 0, 100) == [samples[n]]


@pytest.mark.parametrize(
    "data", [b"", b'{"t": "\\u0000\\ud800"}', b"\xff\x00\xfe", '{"t": "‏🤖"}'.encode(), b"{}" * 40_000]
)
async def test_bytes_are_the_hubs_business(ground: Ground, data: bytes) -> None:
    store = await ground.store()
    event, order = Event(1, 1.0, "T", "coder-7", data), StoredOrder("o", 1.0, "coder-7", data)
    await store.commit(Commit(1, beliefs=[believed("a", data)], events=[event], orders=[order]))
    _, found = await ground.opened()
    assert [belief.value for belief in found.beliefs] == [data]
    assert found.orders == [order]
    assert await store.events() == [event]


@given(some.text(some.characters() | some.sampled_from("\0\\u0d8\ud800")))
def test_what_was_escaped_comes_back(text: str) -> None:
    kept = escaped(text)
    assert unescaped(kept) == text
    assert "\0" not in kept
    kept.encode()


@given(some.text(some.characters(exclude_characters="\0\\", exclude_categories=["Cs"])))
def test_an_ordinary_text_is_kept_as_people_wrote_it(text: str) -> None:
    assert escaped(text) == text
