"""A guarded function has the type it had. mypy checks this file; running it checks that the types are true."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import assert_type

from lifesigns.agent.guard.guard import guard
from lifesigns.agent.guard.saving import AsyncSaveQueue, SaveQueue
from tests.agent.guard.world import breaker

one = breaker()


@one
def function(x: int, y: str = "a") -> float:
    return x + len(y)


@one
async def coroutine(x: int) -> str:
    return str(x)


@one
def items(n: int) -> Iterator[int]:
    yield n


@one
async def stream(n: int) -> AsyncIterator[int]:
    yield n


class Shop:
    @one
    def method(self, x: int) -> str:
        return str(x)

    @staticmethod
    @one
    def static(x: int) -> str:
        return str(x)

    @classmethod
    @one
    def of_class(cls, x: int) -> str:
        return str(x)


async def test_types_stay_what_they_were() -> None:
    assert assert_type(function(1, y="b"), float) == 2
    assert assert_type(await coroutine(1), str) == "1"
    assert [assert_type(item, int) for item in items(1)] == [1]
    assert [assert_type(item, int) async for item in stream(1)] == [1]
    shop = Shop()
    assert assert_type(shop.method(1), str) == assert_type(Shop.method(shop, 1), str) == "1"
    assert assert_type(shop.static(1), str) == assert_type(Shop.static(1), str) == "1"
    assert assert_type(shop.of_class(1), str) == assert_type(Shop.of_class(1), str) == "1"
    assert assert_type(one.call(function, 1, "b"), float) == 2
    assert assert_type(await one.acall(coroutine, 1), str) == "1"


def test_wrong_arguments_are_seen_by_the_checker() -> None:
    """Each of these would be reported as an unused comment if the types had been lost."""

    def never() -> None:
        function("one")  # type: ignore[arg-type]
        Shop().method("one")  # type: ignore[arg-type]
        one.call(function, "one")  # type: ignore[arg-type]
        guard(7)  # type: ignore[arg-type]

    assert callable(never)


async def test_queues_know_what_they_save() -> None:
    kept: list[int] = []

    async def awrite(item: int) -> None:
        kept.append(item)

    saves = assert_type(SaveQueue(one, kept.append), SaveQueue[int])
    async_saves = assert_type(AsyncSaveQueue(one, awrite), AsyncSaveQueue[int])
    assert_type(saves.save(1).result(), None)
    assert_type(await (await async_saves.save(2)), None)
    assert kept == [1, 2]
