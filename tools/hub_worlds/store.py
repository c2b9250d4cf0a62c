"""The store, as a hub sees it over a link: a call takes time, its answer can be late or lost, and then nobody knows what became of it.

What happens inside is the memory store's, which keeps the same contract as PostgreSQL's (`tests/contracts/store`): the epoch is
compared in the very moment of the write.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from lifesigns.adapters.store import memory
from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.errors import AdapterError
from lifesigns.ports import Belief, Chunk, Commit, HubRow, StoredState
from tools.hub_worlds.network import STORE

if TYPE_CHECKING:
    from tools.hub_worlds.machine import Machine
    from tools.hub_worlds.world import World

ANSWER_FOR: Final = 10.0
BESIDE_FOR: Final = 2.0
"""As in `adapters/store/postgres.py`."""
LOCKED_FOR: Final = 5.0
"""A transaction waits so long for another one (`lock_timeout`)."""


class StoreServer:
    """The server: whether it is there, how slow it is, and who is in the middle of a commit."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.name = f"hub-world-{world.seed}-{id(world)}"
        self.away = False
        self.slow_by = 0.0
        """Seconds more for each call, at most."""
        self.locked_by: Machine | None = None
        """It was frozen while it committed; the server ends such a transaction after a while."""

    @property
    def kept(self) -> Any:
        """What is stored."""
        return memory._kept_by_name[self.name]

    def forget(self) -> None:
        memory._kept_by_name.pop(self.name, None)

    def is_locked_for(self, machine: Machine) -> bool:
        return self.locked_by is not None and self.locked_by is not machine


class SimulatedStore:
    """One process's connections to the server. Implements `lifesigns.ports.Store`."""

    def __init__(self, world: World, machine: Machine) -> None:
        self._world = world
        self._machine = machine
        self._server = world.store
        self._inner = MemoryStore(self._server.name)
        self._epoch_seen: int | None = None
        self._closed = False

    @property
    def shared(self) -> bool:
        return True

    @property
    def damage(self) -> str:
        return ""

    async def identity(self) -> str:
        return self._server.name

    async def open(self, *, epoch_min: int = 0, beliefs: bool = True) -> StoredState:
        def take_over() -> Any:
            self._inner._epoch_seen = (
                self._epoch_seen
            )  # What this process has seen, not what was answered in vain.
            before = self._server.kept.ledger.epoch
            led = any(epoch == before for _, epoch in self._server.kept.hubs.values())
            state = _at_once(self._inner.open(epoch_min=epoch_min, beliefs=beliefs))
            self._world.laws.taken_over(self._machine, before, state.epoch, from_a_leader=led)
            return state

        state: StoredState = await self._ask(take_over, locks=True)
        return state

    async def renew(
        self, name: str, url: str, version: str, zone: str = "", copied: int = -1
    ) -> Sequence[HubRow]:
        def renewal() -> Any:
            rows = _at_once(self._inner.renew(name, url, version, zone, copied))
            return self._inner._epoch_seen, rows

        self._epoch_seen, rows = await self._ask(renewal, BESIDE_FOR)
        return [*rows]

    async def commit(self, commit: Commit) -> None:
        def write() -> None:
            before = self._server.kept.ledger
            _at_once(self._inner.commit(commit))
            if self._server.kept.ledger.commit != before.commit:
                self._world.laws.stored(self._machine, self._inner._epoch or 0, commit)

        await self._ask(write, locks=True)

    async def ping(self) -> None:
        await self._ask(lambda: _at_once(self._inner.ping()), locks=True)

    async def read_beliefs(self, since: Any, take: Callable[[Sequence[Belief]], Any]) -> None:
        def read() -> list[Belief]:
            rows: list[Belief] = []

            async def collect(some: Sequence[Belief]) -> None:
                rows.extend(some)

            _at_once(self._inner.read_beliefs(since, collect))
            return rows

        await take(await self._ask(read))

    async def journal(self, since: float, until: float) -> AsyncIterator[Chunk]:
        """Nobody replays here."""
        for chunk in list[Chunk]():
            yield chunk

    async def close(self) -> None:
        """Release the row of this hub, as far as the server hears it."""
        if self._closed:
            return
        with suppress(AdapterError):
            await self._ask(lambda: _at_once(self._inner.close()))
        self._closed = True

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Every other call goes there and back."""
        call = getattr(self._inner, name)

        async def there_and_back(*args: Any, **more: Any) -> Any:
            return await self._ask(lambda: _at_once(call(*args, **more)))

        return there_and_back

    async def _ask(self, do: Callable[[], Any], within: float = ANSWER_FOR, *, locks: bool = False) -> Any:
        """There and back."""
        if self._closed or self._world.over:
            raise AdapterError("the store is closed", transient=False)
        if self._server.away:
            await asyncio.sleep(0.01)
            raise AdapterError("the store does not answer")
        call = Call(self._world, self._machine, do, locks=locks)
        try:
            async with asyncio.timeout(within):
                return await call.answer
        except TimeoutError:
            raise AdapterError("the store did not answer in time") from None


class Call:
    """One call: on its way there, waiting for a lock, on its way back."""

    def __init__(self, world: World, machine: Machine, do: Callable[[], Any], *, locks: bool) -> None:
        self._world = world
        self._machine = machine
        self._process = machine.loop
        self._do = do
        self._locks = locks
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        world.at(world.now + self._takes(), self._arrive)

    def _takes(self) -> float:
        world = self._world
        return world.network.delay() + (
            world.chance.random() * world.store.slow_by if world.store.slow_by else 0.0
        )

    @property
    def _locked(self) -> bool:
        return self._locks and self._world.store.is_locked_for(self._machine)

    def _arrive(self, _: object) -> None:
        world = self._world
        if world.store.away or not world.network.reaches(self._machine.name, STORE):
            return
        if self._locked:
            world.at(world.now + LOCKED_FOR, self._wait_no_longer)
        else:
            self._execute()

    def _wait_no_longer(self, _: object) -> None:
        if self._locked:
            self._reply(None, AdapterError("the store refused: canceled for a lock (55P03)"))
        else:
            self._execute()

    def _execute(self) -> None:
        try:
            value = self._do()
        except Exception as refused:  # noqa: BLE001 -- it goes to whoever asked
            self._reply(None, refused)
        else:
            self._reply(value, None)

    def _reply(self, value: Any, error: Exception | None) -> None:
        world = self._world
        if world.network.reaches(STORE, self._machine.name):
            world.at(world.now + self._takes(), self._return, (value, error))

    def _return(self, what: tuple[Any, Exception | None]) -> None:
        if self._machine.loop is self._process:
            self._machine.call(self._hear, *what)

    def _hear(self, value: Any, error: Exception | None) -> None:
        if not self.answer.done():
            self.answer.set_result(value) if error is None else self.answer.set_exception(error)


def _at_once(coroutine: Any) -> Any:
    """The result of a coroutine that waits for nothing."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise AssertionError("the memory store waits for nothing")
