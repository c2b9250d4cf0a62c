"""Shares on a bus: how much of the hub's time the messages of one sender take, and when they are dropped.

A bus has no tokens, and no one to slow down: its server sends what was published, in one stream. The subject says who
speaks, and permissions at the server are for a subject and what is below it: so the first part of an id is the sender (`evil`
of `heartbeat.evil.b-7`), and a relay is one, too.

While all of the bus takes little time nothing is looked at. From `WATCH_FROM` on the time is divided among the senders by
their messages and charged as `shares.py` does it. What a sender over its share sends is dropped as it comes in, until it has
paid; its agents are not convicted of silence then. Reports are not acknowledged, so our senders repeat them.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Final

from lifesigns.hub.clock import Clock
from lifesigns.hub.shares import BUS_SOURCE, Shares
from lifesigns.ports import Bus
from lifesigns.wire.subjects import of_senders, sender

WATCH_EVERY: Final = 0.05
"""Seconds, at least, between two reckonings."""

WATCH_FROM: Final = 0.1
"""The share of its time that the hub spends on the bus from which on it looks at who sends: less than one sender may take."""

MESSAGE_COSTS: Final = 3e-6
"""Seconds to read a message from the socket, which is not measured."""

DROP_COSTS: Final = 1e-6
"""Seconds for one that is dropped: whoever does not stop sending stays dropped."""

LOOK_AGAIN_AFTER: Final = 1.0
"""Seconds, at most, until a dropped sender is looked at again: its agents are put off for longer than this."""

SKIPPED_MAX: Final = 16
"""Senders whose messages the bus may skip without asking: a longer list takes longer to look through."""

PutOff = Callable[[str], None]
"""Called with the first part of ids, or with nothing if the ids are unknown."""


class BusShares:
    """The senders of one bus."""

    def __init__(self, bus: Bus, shares: Shares, clock: Clock, put_off: PutOff) -> None:
        self._bus, self._shares, self._clock, self._tell = bus, shares, clock, put_off
        self.own_time = shares.own_time
        self.dropped = 0
        """Messages of senders over their share."""
        self.subjects = ""
        """As a regular expression: those of senders over their share."""
        self._dropping: Counter[str] = Counter()
        """By sender over its share: its messages dropped since the last look."""
        self._spent = 0.0
        self._drained = 0.0
        self._messages: Counter[str] = Counter()
        self._watching = False
        self._reckoned_at = clock()

    def drops(self, subject: str, count: int = 1) -> bool:
        """Whether messages on this subject are dropped; if so this many are counted."""
        if (name := sender(subject)) not in self._dropping:
            return False
        self._dropping[name] += count
        self.dropped += count
        return True

    @property
    def dropping(self) -> bool:
        """Whether the messages of any sender are dropped."""
        return bool(self._dropping)

    def note(self, subjects: Sequence[str], seconds: float) -> None:
        """The messages on these subjects took so long."""
        if self._shares.share >= 1:
            return  # No limit.
        self._spent += seconds + MESSAGE_COSTS * len(subjects)
        if self._watching:
            self._messages.update(map(sender, subjects))
        if (passed := self._clock() - self._reckoned_at) >= WATCH_EVERY:
            self._reckon(passed)

    def owes(self, name: str) -> float:
        return self._shares.owes(_account(name))

    def charge(self, name: str, seconds: float) -> None:
        """So long was worked for this sender alone."""
        self._shares.charge(_account(name), seconds)
        self._drop_if_over(name)

    def put_off(self, name: str) -> None:
        """What this sender said waits, or is dropped: that is no silence of its agents."""
        self._tell("" if name.startswith("relay:") else name)

    def _reckon(self, passed: float) -> None:
        drained = self._shares.spent_on_bus
        spent = self._spent + drained - self._drained
        if messages := self._messages.total():
            for name, count in self._messages.items():
                self._shares.charge(_account(name), spent * count / messages)
                self._drop_if_over(name)
        self._watching = spent / passed >= min(WATCH_FROM, self._shares.share / 2)
        self._spent, self._drained, self._reckoned_at = 0.0, drained, self._clock()
        self._messages.clear()

    # --- dropping -------------------------------------------------------------------------------------

    def _drop_if_over(self, name: str) -> None:
        if name not in self._dropping and self.owes(name) > 0:
            self._dropping[name] = 0
            self._drop()
            self._look_again(name)

    def _look_again(self, name: str) -> None:
        self._shares.charge(_account(name), self._dropping[name] * DROP_COSTS, fine=True)
        self._dropping[name] = 0
        self.put_off(name)
        if (wait_for := self.owes(name)) > 0:
            loop = asyncio.get_running_loop()
            loop.call_later(min(wait_for, LOOK_AGAIN_AFTER), self._look_again, name)
            return
        del self._dropping[name]
        self._drop()

    def _drop(self) -> None:
        self.subjects = of_senders(sorted(islice(self._dropping, SKIPPED_MAX)))
        self._bus.drop(self if self._dropping else None)
        self._shares.flooded = self.dropping


def _account(name: str) -> str:
    return f"{BUS_SOURCE} {name}"
