"""Status printer: our own lines on stderr, never in the middle of a child's line."""

from __future__ import annotations

import json
import math
from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from lifesigns.agent.supervise.flows import Sink
from lifesigns.agent.supervise.settings import Verbosity
from lifesigns.agent.supervise.status_messages import StatusMessage
from lifesigns.core.printable import spelled_out

WAIT_MAX: Final = 1.0
"""How long we wait for the child to finish its line, before we begin a new one: a prompt may stand for hours."""
KEPT_MAX: Final = 100


class StatusPrinter:
    """Prints messages where there is a place for them."""

    def __init__(
        self, sink: Sink, agent_id: str, verbosity: Verbosity, *, is_raw: Callable[[], bool]
    ) -> None:
        self._sink = sink
        self._agent_id = agent_id
        self._loudness = verbosity
        self._is_raw = is_raw
        self._waiting: deque[tuple[float, str]] = deque(maxlen=KEPT_MAX)

    def say(self, verdict: StatusMessage, now: float) -> None:
        """Print it at the next place, if the verbosity allows it."""
        if self._loudness is Verbosity.QUIET or (verdict.minor and self._loudness is Verbosity.NORMAL):
            return
        said = (
            self._json(verdict)
            if self._loudness is Verbosity.JSON
            else f"lifesigns: {spelled_out(verdict.text)}"
        )
        self._waiting.append((now, said))
        self.flush(now)

    def wake_at(self) -> float:
        if not self._waiting or self._sink.pending or self._sink.cursor.full_screen:
            return math.inf
        return self._waiting[0][0] + WAIT_MAX

    def flush(self, now: float, *, last: bool = False) -> None:
        """Print what fits now; at the very end, everything."""
        cursor = self._sink.cursor
        while self._waiting:
            since, text = self._waiting[0]
            if not last and (self._sink.pending or cursor.full_screen):
                return
            if not cursor.at_start and not last and now < since + WAIT_MAX:
                return
            self._waiting.popleft()
            end = "\r\n" if self._is_raw() else "\n"
            begin = "" if cursor.at_start else end
            self._sink.put(f"{begin}{text}{end}".encode(errors="replace"))

    def _json(self, verdict: StatusMessage) -> str:
        at = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        return json.dumps(
            {
                "type": verdict.type,
                "agent_id": self._agent_id,
                "at": at,
                "text": verdict.text,
                **verdict.details,
            }
        )
