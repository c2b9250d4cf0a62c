"""A hub's process: what `lifesigns serve` does with a service (`cli/serve.py`), without sockets and files."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, cast

from lifesigns.cli.serve import first_of
from lifesigns.core.signals import Signal
from lifesigns.errors import AdapterError, Deposed, WireError
from lifesigns.hub.http_receiver import InboxFull, NotLeader, NotStored
from lifesigns.hub.lease import Lease
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.hub.token_macs import HubMacs
from lifesigns.ports import HubAnswer, Store
from lifesigns.web.answers import Problem
from lifesigns.web.second_opinion import SecondOpinions
from tools.hub_worlds.bus import SimulatedBus
from tools.hub_worlds.store import SimulatedStore

if TYPE_CHECKING:
    from tools.hub_worlds.machine import Machine
    from tools.hub_worlds.world import World

SOMEBODY: Final = Principal("t1", "somebody", Role.OPERATOR)
KEY: Final = HubMacs(b"the key of the tokens in every world")

FORWARD_WITHIN: Final = 5.0


class NobodyAnswers(Exception):
    """The hub is there, and cannot take this now (503)."""


class NeverBusy:
    """The processor's time is not the world's."""

    def __init__(self, _now: float) -> None:
        pass

    def look(self, _now: float) -> None:
        return None


class HubProcess:
    """What runs on a machine until it ends, or is ended."""

    def __init__(self, world: World, machine: Machine) -> None:
        self._world = world
        self.machine = machine
        self.stopping = asyncio.Event()
        self.service: Service | None = None
        self.leads = False
        """It judges, as it believes."""
        self.stood_by = False
        self._buses: list[SimulatedBus] = []

    async def run(self) -> None:
        """Lead or stand by, until it is told to stop."""
        first, drained = True, False
        try:
            while not self.stopping.is_set():
                drained = await self._run_once(first=first, drained=drained)
                first = False
        except AdapterError as error:
            self._world.laws.process_ended(self, error)
        self._world.ended(self)

    async def _run_once(self, *, first: bool, drained: bool) -> bool:
        service = self._make()
        try:
            lease = Lease(
                service.store, self.machine.name, self.machine.name, "1", self.machine.zone, drained=drained
            )
            service.join(lease)
            if first:
                await service.open_access()
            if first and await lease.may_lead():
                started = await self._start(service)
            else:
                self.stood_by = True
                await first_of(service.stand_by(), self.stopping.wait())
                started = not self.stopping.is_set() and await service.take_over()
            if started:
                await self._lead(service)
            return lease.drained
        finally:
            assert service.bus_receiver is not None
            await service.bus_receiver.bus.close()
            await service.store.close()

    def _make(self) -> Service:
        world = self._world
        bus = SimulatedBus(world, self.machine)
        self._buses.append(bus)
        store = cast("Store", SimulatedStore(world, self.machine))
        service = self.service = Service(
            store,
            bus,
            policies=world.policies,
            fleet=world.fleet,
            clock=self.machine.wall,
            hub_caller=SimulatedCaller(world, self.machine),
        )
        service.access.tokens.hub_macs = KEY
        service.hub._make_busyness = NeverBusy  # type: ignore[assignment]
        service.feed.observe(lambda events: world.laws.published(self, events))
        self.opinions = SecondOpinions(service)
        return service

    @staticmethod
    async def _start(service: Service) -> bool:
        try:
            await service.start()
        except Deposed:
            return False
        return True

    async def _lead(self, service: Service) -> None:
        self.leads = True
        try:
            await first_of(self.stopping.wait(), service.until_replaced())
            await service.hand_over()
        finally:
            self.leads = False
            await service.stop()

    def hang_up(self) -> None:
        """The machine is off: its connections are gone."""
        for bus in self._buses:
            bus.hang_up()

    # --- what is posted to it ---------------------------------------------------------------------------

    async def take(self, raw: bytes, *, beats: bool, forwarded: bool = False) -> Sequence[bytes]:
        """Take beats or reports; returns the orders for their agents. A hub that stands by notes them, and forwards them."""
        service = self.service
        if service is None:
            raise NobodyAnswers
        if self.leads:
            return await self._take_here(service, raw, beats=beats)
        if service.opinion_giver is not None and not forwarded:
            service.opinion_giver.note_post(raw, SOMEBODY, beats=beats)
        leader = None if service.lease is None else service.lease.leader
        if forwarded or leader is None or leader.name == self.machine.name:
            raise NobodyAnswers
        found: Sequence[bytes] = await self._world.ask_hub(
            self.machine.name,
            leader.name,
            lambda other: other.take(raw, beats=beats, forwarded=True),
            FORWARD_WITHIN,
        )
        return found

    async def _take_here(self, service: Service, raw: bytes, *, beats: bool) -> Sequence[bytes]:
        receiver = service.http_receiver
        try:
            result = await (receiver.take_beats if beats else receiver.take_reports)(raw, SOMEBODY)
        except (NotLeader, NotStored, InboxFull, WireError) as error:
            raise NobodyAnswers from error
        return [bytes(order) for orders in result.orders.values() for order in orders]

    async def act(self, signals: Sequence[Signal]) -> None:
        """What a person asks for; returns when it is stored."""
        if self.service is None or not self.leads:
            raise NobodyAnswers
        try:
            await self.service.http_receiver.store_reports(signals)
        except (NotLeader, NotStored, InboxFull) as error:
            raise NobodyAnswers from error

    async def give_opinion(self, body: bytes, headers: Mapping[str, str]) -> HubAnswer:
        """Answer another hub, as the API does."""

        async def receive() -> dict[str, object]:
            return {"type": "http.request", "body": body, "more_body": False}

        raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
        raw.append((b"content-length", str(len(body)).encode()))
        scope: Any = {"method": "POST", "headers": raw, "path": "/"}
        if self.leads or self.service is None:
            return HubAnswer(404, {}, b"")
        try:
            answer = await self.opinions.answer(scope, receive)
        except Problem as problem:
            return HubAnswer(problem.status, {k.lower(): v for k, v in problem.headers.items()}, b"")
        told = {name.decode().lower(): value.decode() for name, value in answer.headers}
        return HubAnswer(answer.status, told, answer.body)


class SimulatedCaller:
    """A hub's way to the others. Implements `lifesigns.ports.HubCaller`."""

    def __init__(self, world: World, machine: Machine) -> None:
        self._world = world
        self._machine = machine

    async def post(self, url: str, body: bytes, headers: Mapping[str, str], within: float) -> HubAnswer:
        name = url.partition("/")[0]
        try:
            found: HubAnswer = await self._world.ask_hub(
                self._machine.name, name, lambda other: other.give_opinion(body, headers), within
            )
        except NobodyAnswers:
            raise AdapterError(f"{name} does not answer") from None
        return found

    async def close(self) -> None:
        pass
