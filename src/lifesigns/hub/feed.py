"""Feed: events as they happen, to everybody who listens.

Nobody waits for a listener. One that is too slow is cut off, not the others: it comes back with the id of the last event
it has seen and reads the rest from the store.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Final, Self

from lifesigns.events.catalogue import AGENT_HEARTBEAT
from lifesigns.ports import Event

WAITING_MAX: Final = 10_000
"""Events that wait for one listener, a few megabytes."""

LISTENERS_MAX: Final = 1000


class Listener:
    """One who listens: `async with feed.listen() as listener: events = await listener.next()`."""

    def __init__(self, feed: Feed, types: frozenset[str], token_id: str = "") -> None:
        self._feed = feed
        self.token_id = token_id
        """Of whoever listens."""
        self._types = types
        self._waiting: deque[Event] = deque()
        self._woken = asyncio.Event()
        self.overrun = False
        """It was too slow and has missed something: it has to come again."""
        self.ended = False

    @property
    def hears_beats(self) -> bool:
        return AGENT_HEARTBEAT in self._types

    def wants(self, event: Event) -> bool:
        """Of beats only who asks for them by name: there are so many."""
        return event.type in self._types if self._types else event.type != AGENT_HEARTBEAT

    def put(self, events: Sequence[Event]) -> None:
        """Events for this listener, if it wants them."""
        self._waiting.extend(event for event in events if self.wants(event))
        if len(self._waiting) > WAITING_MAX:
            self._waiting.clear()
            self.overrun = True
        if self._waiting or self.overrun:
            self._woken.set()

    async def next(self, wait_for: float) -> list[Event]:
        """What there is, after waiting for it for a while; empty if nothing happened, or nothing more will come."""
        if not self._waiting and not self.overrun and not self.ended:
            try:
                async with asyncio.timeout(wait_for):
                    await self._woken.wait()
            except TimeoutError:
                return []
        self._woken.clear()
        events = list(self._waiting)
        self._waiting.clear()
        return events

    def end(self) -> None:
        """The hub stops: nothing more will come."""
        self.ended = True
        self._woken.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave(self)


class Feed:
    """Everybody who listens."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._observers: list[Callable[[Sequence[Event]], None]] = []
        self._ended = False
        self.newest = 0
        """The id of the last event that was told."""

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        return len(self._listeners) >= LISTENERS_MAX

    @property
    def beats_wanted(self) -> bool:
        return any(listener.hears_beats for listener in self._listeners)

    def listeners_of(self, token_id: str) -> int:
        """How many listen with this token."""
        return sum(listener.token_id == token_id for listener in self._listeners)

    def listen(self, types: Sequence[str] = (), token_id: str = "") -> Listener:
        """Hear what is told from now on, of these types; of all but beats if none is named."""
        listener = Listener(self, frozenset(types), token_id)
        self._listeners.add(listener)
        if self._ended:
            listener.end()
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def tell(self, events: Sequence[Event]) -> None:
        """These happened."""
        for event in reversed(events):
            if event.id:
                self.newest = event.id
                break
        for tell in self._observers:
            tell(events)
        self.tell_beats(events)

    def tell_beats(self, events: Sequence[Event]) -> None:
        """These for those who listen, and for nobody who observes: there are as many of them as there are beats."""
        for listener in self._listeners:
            listener.put(events)

    def observe(self, tell: Callable[[Sequence[Event]], None]) -> None:
        """Call this with all that is told from now on, as soon as it is kept."""
        self._observers.append(tell)

    def end(self) -> None:
        """Nothing more will be told."""
        self._ended = True
        for listener in self._listeners:
            listener.end()
