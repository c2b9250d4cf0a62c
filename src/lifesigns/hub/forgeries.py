"""Forgeries: messages that their supposed sender did not send. The hub drops and counts them."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Final

from lifesigns.core.printable import clean

BURST: Final = 10
"""Within `OVER_AFTER` of each other. Fewer come from a misconfigured sender, and are in the log."""
OVER_AFTER: Final = 120.0
LOG_EVERY: Final = 60.0

log: Final = logging.getLogger("lifesigns.hub")


class Forgery(StrEnum):
    """What gave it away."""

    SPEAKER = "speaker"
    """It came on another agent's subject, or with a token that is not for it."""
    RELAY = "relay"
    """It came on the subject of a relay, and the hub accepts none, or only signed ones."""
    UNSIGNED = "unsigned"
    """Its agent has to sign its messages."""
    SIGNATURE = "signature"
    """Its signature is by another key, or the message was changed since."""
    REPLAY = "replay"
    """The hub has received it before."""


class Forgeries:
    """The forgeries of late, and counts since the hub began."""

    def __init__(self) -> None:
        self.counts = dict.fromkeys(Forgery, 0)
        self._lately = 0
        self._last_at = self._logged_at = float("-inf")
        self._last = ""

    def note(self, kind: Forgery, detail: str, now: float, count: int = 1) -> None:
        """Count dropped messages. People read the detail: it names the way in and the speaker."""
        self.counts[kind] += count
        self._lately = count if now - self._last_at > OVER_AFTER else self._lately + count
        self._last_at, self._last = now, clean(detail, 200)
        if now - self._logged_at >= LOG_EVERY:
            self._logged_at = now
            log.warning(
                "a message is not its sender's to say: %s", self._last, extra={"action": "message_forged"}
            )

    def why(self, now: float) -> str:
        """Describe a recent burst of them; empty if there is none."""
        if self._lately < BURST or now - self._last_at > OVER_AFTER:
            return ""
        return f"{self._lately} messages were not their senders' to say, and were not heard; the last: {self._last}"
