"""Bus neighbours: other hubs that hear the same bus and have another store.

Each of them would judge the same agents and give orders of its own. Hubs on one store agree which of them judges; hubs
with separate stores cannot, so they are not to share a bus. Every hub that judges announces itself there now and then.
One that starts asks first, and does not start if another one answers. Where that was not possible, because the bus was
away, people are told as soon as the two hear each other.

Nobody vouches for what is said on a bus: a stranger there can keep a hub from starting, but change nothing it does.
"""

from __future__ import annotations

import asyncio
import os
from contextlib import suppress
from typing import Final

import msgspec
from msgspec import Struct

from lifesigns.core.printable import clean
from lifesigns.errors import AdapterError, UsageError
from lifesigns.hub.clock import Clock
from lifesigns.ports import Bus

SUBJECT: Final = "lifesigns.canary.hubs"
"""Below the subjects that a hub speaks to itself on: where a server restricts who may speak, it may speak here."""
ANNOUNCE_EVERY: Final = 10.0
GONE_AFTER: Final = 3 * ANNOUNCE_EVERY
REACH_FOR: Final = 3.0
"""How long a hub that starts tries to reach the bus, to ask there."""
ANSWER_FOR: Final = 2.0
"""How long it waits for answers. A hub answers within milliseconds, on a starved machine within a second; one that is
busier still is found later."""
OTHERS_MAX: Final = 16
TEXT_MAX: Final = 200


class HubCard(Struct, frozen=True):
    """How a hub introduces itself."""

    hub: str
    url: str
    store: str
    """Its address, without secrets."""
    identity: str = ""
    """The same for all hubs on one store; empty if no other hub can use this store."""
    process: str = ""
    """Tells a hub its own messages from those of others."""
    asks: bool = False
    """It is about to start, and wants to know who is here."""
    leaves: bool = False
    """It is about to stop."""

    def __str__(self) -> str:
        return clean(f"{self.hub} at {self.url} (store {self.store})", TEXT_MAX)


class BusNeighbours:
    """The other hubs on the bus."""

    def __init__(self, bus: Bus, card: HubCard, clock: Clock) -> None:
        self._bus = bus
        self._card = msgspec.structs.replace(card, process=os.urandom(8).hex())
        self._clock = clock
        self._others: dict[str, tuple[HubCard, float]] = {}
        """By process: each, and when it last announced itself."""
        self._heard_one = asyncio.Event()
        self._starting = False
        self._replies: set[asyncio.Task[None]] = set()

    async def refuse_to_share(self) -> None:
        """Ask who is here, over a connection for this question alone. Raises `UsageError` if a hub with another store
        answers; returns if none does, or the bus is not reached."""
        self._starting = True
        try:
            async with asyncio.timeout(REACH_FOR):
                await self._bus.connect()
                await self._bus.subscribe(SUBJECT, self.hear)
            await self._announce(msgspec.structs.replace(self._card, asks=True))
            async with asyncio.timeout(ANSWER_FOR):
                await self._heard_one.wait()
        except (AdapterError, TimeoutError):
            return
        finally:
            await self._bus.close()
        other, _ = next(iter(self._others.values()))
        raise UsageError(
            f"the hub {other} hears this bus already, and this hub, {self._card}, has another store: both would judge "
            "the same agents and give them orders. Let both use one PostgreSQL as store, then one judges and the other "
            "stands by; or give each a bus of its own (at NATS another account is enough). If both are meant to hear it, "
            "say bus.other_hubs: allowed for each"
        )

    async def run(self) -> None:
        """Announce this hub, for ever."""
        while True:
            await self._announce(self._card)
            await asyncio.sleep(ANNOUNCE_EVERY)

    async def leave(self) -> None:
        """This hub stops: others need not wait to find that out."""
        await self._announce(msgspec.structs.replace(self._card, leaves=True))

    def hear(self, _subject: str, payload: bytes) -> None:
        """Somebody introduces itself."""
        try:
            card = msgspec.json.decode(payload, type=HubCard)
        except msgspec.MsgspecError:
            return
        if card.process == self._card.process or (card.identity and card.identity == self._card.identity):
            return
        if card.leaves:
            self._others.pop(card.process, None)
        elif card.asks:
            if not self._starting and not self._replies:
                reply = asyncio.get_running_loop().create_task(self._announce(self._card))
                self._replies.add(reply)
                reply.add_done_callback(self._replies.discard)
        elif card.process in self._others or len(self._others) < OTHERS_MAX:
            self._others[card.process] = (card, self._clock())
            self._heard_one.set()

    def why_shared(self, now: float) -> str:
        """The hubs that share the bus, and have another store; empty if there is none."""
        for process in [one for one, (_, at) in self._others.items() if now - at >= GONE_AFTER]:
            del self._others[process]
        return ", ".join(str(card) for card, _ in self._others.values())

    async def _announce(self, card: HubCard) -> None:
        with suppress(AdapterError):  # The bus is away: then nobody shares it.
            await self._bus.publish(SUBJECT, msgspec.json.encode(card))
