"""One bus for the hubs of all slots of a process: each hears what is said by the agents of its slot.

The subject names the speaker, so a message goes to one hub undecoded. What names no agent (a relay, a canary, another hub)
goes to all that listen there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from lifesigns.hub.slots import slot_of
from lifesigns.ports import Bus, Hear, Subscription
from lifesigns.ports.bus import MessageFilter
from lifesigns.wire import subjects

_OF_BEATS: Final = f"{subjects.BEATS}."
_OF_REPORTS: Final = (f"{subjects.SIGNALS}.", f"{subjects.REPORTS}.")


def speaker_of(subject: str) -> str | None:
    """The agent that a subject names; None if it names none."""
    if subject.startswith(_OF_BEATS):
        return subjects.of_beats(subject).speaker
    return subjects.of_reports(subject).speaker if subject.startswith(_OF_REPORTS) else None


class SharedBus:
    """Subscribes once to each pattern, and passes messages on."""

    def __init__(self, bus: Bus) -> None:
        self.bus = bus
        self._connecting = asyncio.Lock()
        self._met = False
        """Whether it has been reached: from then on it connects again by itself."""
        self._hears: dict[str, dict[int, dict[Hear, None]]] = {}
        """By pattern and slot."""
        self._subscriptions: dict[str, Subscription] = {}

    def of_slot(self, slot: int) -> SlotBus:
        """The bus as the hub of this slot has it, for one of its lives."""
        return SlotBus(self, slot)

    async def connect(self) -> None:
        """Connect, if it is not."""
        async with self._connecting:
            if not self._met:
                await self.bus.connect()
                self._met = True

    async def subscribe(self, pattern: str, slot: int, hear: Hear) -> Subscription:
        """Receive from now on."""
        async with self._connecting:
            if pattern not in self._subscriptions:
                self._subscriptions[pattern] = await self.bus.subscribe(pattern, self._passing_on(pattern))
        self._hears.setdefault(pattern, {}).setdefault(slot, {})[hear] = None
        return SlotSubscription(
            self._subscriptions[pattern], lambda: self._hears[pattern][slot].pop(hear, None)
        )

    def _passing_on(self, pattern: str) -> Hear:
        hears = self._hears.setdefault(pattern, {})

        def pass_on(subject: str, payload: bytes) -> None:
            speaker = speaker_of(subject)
            wanted = hears.values() if speaker is None else (hears.get(slot_of(speaker), {}),)
            for here in wanted:
                for hear in tuple(here):
                    hear(subject, payload)

        return pass_on


class SlotSubscription:
    """One subscription of one slot."""

    def __init__(self, shared: Subscription, end: Callable[[], object]) -> None:
        self._shared, self._end = shared, end

    @property
    def dropped(self) -> int:
        """Of all slots together: nobody knows of which agents those messages were."""
        return self._shared.dropped

    async def end(self) -> None:
        """Deliver nothing more."""
        self._end()


class SlotBus:
    """Implements `lifesigns.ports.Bus` for the hub of one slot. The connection is that of the process."""

    def __init__(self, shared: SharedBus, slot: int) -> None:
        self._shared, self._slot = shared, slot
        self._subscriptions: list[Subscription] = []

    @property
    def payload_max(self) -> int:
        return self._shared.bus.payload_max

    @property
    def connected(self) -> bool:
        return self._shared.bus.connected

    async def connect(self) -> None:
        """Connect to the server, or fail."""
        await self._shared.connect()

    async def publish(self, subject: str, payload: bytes) -> None:
        """Send a message."""
        await self._shared.bus.publish(subject, payload)

    async def flush(self) -> None:
        """Return when the server has everything published before."""
        await self._shared.bus.flush()

    async def subscribe(self, pattern: str, hear: Hear) -> Subscription:
        """Receive what agents of this slot, or nobody in particular, publish from now on."""
        subscription = await self._shared.subscribe(pattern, self._slot, hear)
        self._subscriptions.append(subscription)
        return subscription

    def drop(self, unwanted: MessageFilter | None) -> None:
        """The hub drops them itself: what one slot does not want, another one may."""

    async def close(self) -> None:
        """Hear nothing more."""
        for subscription in self._subscriptions:
            await subscription.end()
