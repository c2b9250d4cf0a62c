"""The bus: carries messages by subject, from anybody to everybody who wants to hear them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

Hear = Callable[[str, bytes], None]
"""Called with subject and payload, on the loop of the bus; it must not block."""


class Subscription(Protocol):
    """One wish to hear."""

    @property
    def dropped(self) -> int:
        """Messages lost because they came faster than they were heard; the oldest go first.
        What a server drops before us nobody can count."""

    async def end(self) -> None:
        """Hear nothing more."""


class Bus(Protocol):
    """Carries messages by subject, from anybody to everybody who wants to hear it.

    A bus keeps nothing: who is away hears nothing, and a subscriber that is too slow loses its own oldest messages,
    never somebody else's. In a pattern `*` stands for one word of a subject and a final `>` for one or more.
    """

    @property
    def payload_max(self) -> int:
        """The largest message it carries; a larger one is refused, and that is not transient."""

    @property
    def connected(self) -> bool: ...

    async def connect(self) -> None:
        """Find the server, or fail. From then on a lost connection is looked for again, for ever."""

    async def publish(self, subject: str, payload: bytes) -> None:
        """Hand over. Fails at once while the connection is lost: what to keep for later, the caller knows. It is certain
        to be at the server only after `flush`."""

    async def flush(self) -> None:
        """Return when the server has everything that was published before. Fails within seconds if it does not answer,
        or refused something."""

    async def subscribe(self, pattern: str, hear: Hear) -> Subscription:
        """Hear what is published from now on, or from when a lost connection is found again."""

    async def close(self) -> None:
        """Send what is on its way, then end."""
