"""Nudging: how a nudge reaches a program that knows nothing of us.

We can only say that it is delivered: to the child's stdin, into its file, by a signal. Never in the middle of a
user's typing, never into a prompt, never by a signal that would end the child, and only when the child has been quiet
for a moment: the closest to a turn boundary that is visible from outside.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Final

from lifesigns.agent.supervise import facts
from lifesigns.agent.supervise.settings import NudgeBy
from lifesigns.agent.supervise.streams import Streams
from lifesigns.core.effects import SendNudge
from lifesigns.core.signals import NudgeDelivered, NudgeFailed

QUIET_FOR: Final = 1.0
WAIT_MAX: Final = 120.0
"""After this a nudge is old news."""


class Nudge:
    """One nudge on its way."""

    def __init__(self, order: SendNudge, by: NudgeBy, now: float) -> None:
        self.order = order
        self._by = by
        self._given_up_at = now + WAIT_MAX

    def deliver(
        self,
        pid: int,
        streams: Streams,
        file: Path,
        *,
        quiet_since: float,
        asks: Callable[[], bool],
        now: float,
    ) -> NudgeDelivered | NudgeFailed | None:
        """Deliver it if this is the moment; None if not yet."""
        match self._by:
            case NudgeBy.NONE:
                return self._failed("no way to nudge it was chosen (--nudge)")
            case NudgeBy.FILE:
                return self._by_file(file)
            case NudgeBy.SIGNAL:
                return self._by_signal(pid, file)
            case NudgeBy.STDIN:
                return self._by_stdin(streams, quiet_since, asks, now)

    def wake_at(self, now: float) -> float:
        return now + QUIET_FOR / 2

    def _by_file(self, file: Path) -> NudgeDelivered | NudgeFailed:
        line = {"nudge_id": self.order.order_id, "attempt": self.order.attempt, "text": self.order.text}
        try:
            with file.open("a", encoding="utf-8") as nudges:
                nudges.write(json.dumps(line) + "\n")
        except OSError as error:
            return self._failed(f"{file}: {error.strerror}")
        return self._delivered()

    def _by_signal(self, pid: int, file: Path) -> NudgeDelivered | NudgeFailed:
        if not facts.catches(pid, signal.SIGUSR1):
            return self._failed("it has no handler for SIGUSR1, and would be ended by it")
        outcome = self._by_file(file)
        if isinstance(outcome, NudgeDelivered):
            try:
                os.kill(pid, signal.SIGUSR1)
            except OSError as error:
                return self._failed(f"SIGUSR1: {error.strerror}")
        return outcome

    def _by_stdin(
        self, streams: Streams, quiet_since: float, asks: Callable[[], bool], now: float
    ) -> NudgeDelivered | NudgeFailed | None:
        sink = streams.input
        if sink is None or sink.error is not None:
            return self._failed("its stdin is closed")
        if sink.pending or not sink.cursor.at_start or now - quiet_since < QUIET_FOR:
            late = now >= self._given_up_at
            return self._failed("it was never quiet, or a line was being typed") if late else None
        if asks():
            return self._failed("it asks its user something, and a nudge is no answer")
        enter = "\r" if streams.pty is not None else "\n"
        sink.put((" ".join(self.order.text.split()) + enter).encode())
        return self._delivered()

    def _delivered(self) -> NudgeDelivered:
        return NudgeDelivered(
            agent_id=self.order.agent_id, incarnation=self.order.incarnation, order_id=self.order.order_id
        )

    def _failed(self, reason: str) -> NudgeFailed:
        return NudgeFailed(
            agent_id=self.order.agent_id,
            incarnation=self.order.incarnation,
            order_id=self.order.order_id,
            reason=reason,
        )
