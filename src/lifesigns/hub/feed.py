"""Feed: events as they happen, for all listeners.

No listener delays the hub or another listener. The feed cuts off one that is too slow: it comes back with the id of the
last event it has seen and reads the rest from the store.
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
"""Events waiting for one listener, a few megabytes."""

LISTENERS_MAX: Final = 1000


class Listener:
    """One listener: `async with feed.listen() as listener: events = await listener.next()`."""

    def __init__(self, feed: Feed, types: frozenset[str], token_id: str = "") -> None:
        self._feed = feed
        self.token_id = token_id
        """The token of this listener."""
        self._types = types
        self._waiting: deque[Event] = deque()
        self._woken = asyncio.Event()
        self.overrun = False
        """It was too slow and missed events: it has to come again."""
        self.ended = False

    @property
    def hears_beats(self) -> bool:
        return AGENT_HEARTBEAT in self._types

    def wants(self, event: Event) -> bool:
        """A listener gets beats only if it names them: there are so many."""
        return event.type in self._types if self._types else event.type != AGENT_HEARTBEAT

    def put(self, events: Sequence[Event]) -> None:
        """Queue events for this listener, if it wants them."""
        self._waiting.extend(event for event in events if self.wants(event))
        if len(self._waiting) > WAITING_MAX:
            self._waiting.clear()
            self.overrun = True
        if self._waiting or self.overrun:
            self._woken.set()

    async def next(self, wait_for: float) -> list[Event]:
        """The waiting events, or the next ones within a while; empty if there was none, or none will come."""
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
        """The hub stops: no more events will come."""
        self.ended = True
        self._woken.set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._feed.leave(self)


class Feed:
    """All listeners."""

    def __init__(self) -> None:
        self._listeners: set[Listener] = set()
        self._observers: list[Callable[[Sequence[Event]], None]] = []
        self._ended = False
        self.newest = 0
        """The id of the last published event."""

    def __len__(self) -> int:
        return len(self._listeners)

    @property
    def full(self) -> bool:
        return len(self._listeners) >= LISTENERS_MAX

    @property
    def beats_wanted(self) -> bool:
        return any(listener.hears_beats for listener in self._listeners)

    def listeners_of(self, token_id: str) -> int:
        """The number of listeners with this token."""
        return sum(listener.token_id == token_id for listener in self._listeners)

    def listen(self, types: Sequence[str] = (), token_id: str = "") -> Listener:
        """Listen to events of these types from now on; to all but beats if none is named."""
        listener = Listener(self, frozenset(types), token_id)
        self._listeners.add(listener)
        if self._ended:
            listener.end()
        return listener

    def leave(self, listener: Listener) -> None:
        self._listeners.discard(listener)

    def publish(self, events: Sequence[Event]) -> None:
        """Pass events to observers and listeners."""
        for event in reversed(events):
            if event.id:
                self.newest = event.id
                break
        for observe in self._observers:
            observe(events)
        self.publish_beats(events)

    def publish_beats(self, events: Sequence[Event]) -> None:
        """Pass events to listeners only: there are as many as beats."""
        for listener in self._listeners:
            listener.put(events)

    def observe(self, observer: Callable[[Sequence[Event]], None]) -> None:
        """Call this with all events from now on, as soon as they are stored."""
        self._observers.append(observer)

    def end(self) -> None:
        """End all listeners."""
        self._ended = True
        for listener in self._listeners:
            listener.end()
