"""The bus: carries messages by subject, from any sender to all subscribers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Hear = Callable[[str, bytes], None]
"""Called with subject and payload, on the loop of the bus; it must not block."""


class MessageFilter(Protocol):
    """Which messages a bus drops as they come in."""

    @property
    def subjects(self) -> str:
        """A regular expression of subjects whose messages a bus may skip without a look at each; the others are asked for."""

    def drops(self, subject: str, count: int = 1) -> bool:
        """Whether messages on this subject are dropped; if so, this many are counted."""


class Subscription(Protocol):
    """One subscription."""

    @property
    def dropped(self) -> int:
        """Messages lost because they came faster than the subscriber read them; the oldest go first. Nobody can count
        what a server drops before us."""

    async def end(self) -> None:
        """Deliver nothing more."""


class Bus(Protocol):
    """Carries messages by subject, from any sender to all subscribers.

    A bus keeps nothing: an absent subscriber misses messages, and a slow one loses its own oldest messages, never
    another's. In a pattern `*` stands for one token of a subject and a final `>` for one or more.
    """

    @property
    def payload_max(self) -> int:
        """The largest message; the bus refuses a larger one, and that error is not transient."""

    @property
    def connected(self) -> bool: ...

    async def connect(self) -> None:
        """Connect to the server, or fail. From then on the bus reconnects by itself, for ever."""

    async def publish(self, subject: str, payload: bytes) -> None:
        """Send a message. Fails at once while disconnected: the caller knows what to keep for later. Only `flush` makes
        sure that the server has it."""

    async def flush(self) -> None:
        """Return when the server has everything published before. Fails within seconds if it does not answer, or
        refused something."""

    async def subscribe(self, pattern: str, hear: Hear) -> Subscription:
        """Receive what is published from now on, or from a reconnect on."""

    def drop(self, unwanted: MessageFilter | None) -> None:
        """From now on drop messages on these subjects as they come in, as cheaply as this bus can; None: drop none."""

    async def close(self) -> None:
        """Send what is pending, then disconnect."""
