"""The hubs on one store: who is there, and who leads."""

from __future__ import annotations

import pytest

from lifesigns.errors import Deposed
from lifesigns.ports import Commit, HubRow
from tests.contracts.store.ground import Ground


def row(name: str, beat: int, *, leads: bool = False) -> HubRow:
    return HubRow(name, beat, f"http://{name}", "1.0", leads)


async def test_a_renewal_raises_the_beat_and_shows_all_hubs(ground: Ground) -> None:
    one, two = ground.make(), ground.make()
    assert await one.renew("one", "http://one", "1.0") == [row("one", 1)]
    assert await two.renew("two", "http://two", "1.0") == [row("one", 1), row("two", 1)]
    assert await one.renew("one", "http://one", "1.0") == [row("one", 2), row("two", 1)]


async def test_hubs_on_one_store_know_that_it_is_one(ground: Ground) -> None:
    one, two = ground.make(), ground.make()
    assert await one.identity() == await two.identity()
    assert bool(await one.identity()) is one.shared


async def test_the_hub_that_opened_the_store_last_leads(ground: Ground) -> None:
    one, two = ground.make(), ground.make()
    await one.renew("one", "http://one", "1.0")
    await one.open()
    assert await two.renew("two", "http://two", "1.0") == [row("one", 1, leads=True), row("two", 1)]
    await two.open()
    assert await one.renew("one", "http://one", "1.0") == [row("one", 2), row("two", 1, leads=True)]


async def test_of_two_hubs_that_saw_the_same_leader_one_takes_over(ground: Ground) -> None:
    """Both saw it gone: the slower one must not depose the quicker one."""
    old, one, two = ground.make(), ground.make(), ground.make()
    await old.renew("old", "http://old", "1.0")
    await old.open()
    await one.renew("one", "http://one", "1.0")
    await two.renew("two", "http://two", "1.0")
    await one.open()
    with pytest.raises(Deposed):
        await two.open()
    await one.commit(Commit(1))
    with pytest.raises(Deposed):
        await old.commit(Commit(1))
    await two.renew("two", "http://two", "1.0")
    await two.open()


async def test_a_released_hub_leads_no_more(ground: Ground) -> None:
    one, two = ground.make(), ground.make()
    await one.renew("one", "http://one", "1.0")
    await one.open()
    await one.release("one")
    assert await two.renew("two", "http://two", "1.0") == [row("two", 1)]
    await two.open()
    assert await two.renew("two", "http://two", "1.0") == [row("two", 2, leads=True)]
    await two.release("nobody")


async def test_a_hub_says_in_which_zone_it_is(ground: Ground) -> None:
    one, two = ground.make(), ground.make()
    await one.renew("one", "http://one", "1.0", "eu-1")
    assert [found.zone for found in await two.renew("two", "http://two", "1.0")] == ["eu-1", ""]
    await one.renew("one", "http://one", "1.0", "eu-2")
    assert [found.zone for found in await two.renew("two", "http://two", "1.0")] == ["eu-2", ""]


async def test_a_hub_says_its_address_anew(ground: Ground) -> None:
    one = ground.make()
    await one.renew("one", "http://one", "1.0")
    assert await one.renew("one", "http://elsewhere", "1.1") == [
        HubRow("one", 2, "http://elsewhere", "1.1", leads=False)
    ]


async def test_a_hub_says_how_far_its_copy_is(ground: Ground) -> None:
    one = ground.make()
    await one.renew("one", "http://one", "1.0")
    (seen,) = await one.renew("one", "http://one", "1.0", copied=17)
    assert seen.copied == 17


async def test_a_drained_hub_stays_so_until_it_is_told_otherwise(ground: Ground) -> None:
    """A renewal of its own does not change what somebody else wants."""
    one, two = ground.make(), ground.make()
    await one.renew("one", "http://one", "1.0")
    await two.renew("two", "http://two", "1.0")
    await two.drain("one")
    await two.drain("nobody")
    assert [hub.drained for hub in await one.renew("one", "http://one", "1.0")] == [True, False]
    await two.drain("one", drained=False)
    assert [hub.drained for hub in await one.renew("one", "http://one", "1.0")] == [False, False]
