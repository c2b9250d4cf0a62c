"""Interrupts: how seriously a user means Ctrl-C. Pure: the caller passes the time.

The first is for the child alone: it may save, ask, or carry on. A second one within two seconds, without output in
between, sends SIGTERM. A third sends SIGKILL. A child that answers each of them (an interactive one that shows its
prompt anew) gets SIGTERM only with the third in a row.
"""

from __future__ import annotations

import math
import signal
from typing import Final

AGAIN_WITHIN: Final = 2.0


class Interrupts:
    """Counts interrupts that follow each other closely."""

    def __init__(self) -> None:
        self.at = -math.inf
        self._count = 0
        self._asked = False

    def pressed(self, now: float, *, answered: bool) -> signal.Signals | None:
        """What to send besides the interrupt itself. `answered`: the child wrote output since the last."""
        if now - self.at > AGAIN_WITHIN:
            self._count, self._asked = 0, False
        self.at = now
        self._count += 1
        if self._asked:
            return signal.SIGKILL
        if self._count > 2 or (self._count == 2 and not answered):
            self._asked = True
            return signal.SIGTERM
        return None
