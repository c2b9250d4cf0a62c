"""Bus receiver: beats and reports that come over the bus, and the canary that shows whether the bus can be heard.

A bus keeps nothing, and reports are said once: a sender of ours names itself and a number in the subject
(`lifesigns.signal.relay:<name>.<number>`), is told on `lifesigns.kept.relay:<name>` when they are kept, and says them again until
then. What was heard before is not heard twice.

The hub starts whether the bus is there or not, and says which. What cannot be read is counted and shown now and then; a
peer that sends nonsense is no reason to stop.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections import OrderedDict, deque
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Final, Protocol

from lifesigns import wire
from lifesigns.core.signals import Beat, CanaryReturned, Signal
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.clock import Clock
from lifesigns.hub.http_receiver import InboxFull, NotLeader, NotStored
from lifesigns.hub.pulse import Pulse
from lifesigns.ports import Bus, Subscription

BEATS: Final = "heartbeat.>"
WORDS: Final = "lifesigns.signal.>"
KEPT: Final = "lifesigns.kept"
CANARY: Final = "lifesigns.canary"
SOURCE: Final = "bus"

RETRY_AFTER: Final = 2.0
SLOW_RETRY_AFTER: Final = 30.0
"""When trying again is not expected to help: a wrong password, until somebody mends it on the other side."""

COMPLAIN_EVERY: Final = 60.0

RELAYS_MAX: Final = 20_000
PER_RELAY_MAX: Final = 256
"""Messages of which it is known that they were heard: a relay sends a few, and no more until they are kept."""
ANSWERS_MAX: Final = 2_000
"""Acknowledgements that wait for the store; who gets none says it again."""

_ASKS_TO_BE_KEPT: Final = re.compile(r"lifesigns\.signal\.(relay:[A-Za-z0-9_:-]{1,200})\.([0-9]{1,18})")

log: Final = logging.getLogger("lifesigns.hub")


class SignalSink(Protocol):
    """Who is given what was heard, and counts what could not be read."""

    pulse: Pulse

    def hear(self, signals: Sequence[Signal], at: float) -> bool: ...
    def hear_beats(self, beats: Sequence[Beat], raw: bytes, source: str, at: float) -> bool: ...
    def begin_gathering(self) -> None: ...
    def end_gathering(self) -> None: ...


class CommitWaiter(Protocol):
    """Who knows when what was heard is kept."""

    @property
    def keeps(self) -> bool: ...
    async def keep(self, reports: Sequence[Signal]) -> object: ...


class BusReceiver:
    """Listens on the bus and gives what it hears to the hub. Without a keeper nobody is told what was kept."""

    source = SOURCE

    def __init__(
        self, bus: Bus, name: str, ear: SignalSink, clock: Clock, keeper: CommitWaiter | None = None
    ) -> None:
        self.bus = bus
        self._canary_subject = f"{CANARY}.{name}"
        self._ear = ear
        self._clock = clock
        self._wanted = ((BEATS, self._beats), (WORDS, self._reports), (self._canary_subject, self._canary))
        self._subscriptions: dict[str, Subscription] = {}
        self._why = ""
        """Why it was not reached the last time."""
        self._complained_at = -COMPLAIN_EVERY
        self._gathered: list[tuple[str, bytes]] = []
        self._gathered_at = 0.0
        self._keeper = keeper
        self._heard: OrderedDict[str, deque[int]] = OrderedDict()
        self._sends: set[asyncio.Task[None]] = set()

    @property
    def state(self) -> str:
        """`ok`, or what is wrong."""
        if len(self._subscriptions) < len(self._wanted):
            return self._why or "not reached yet"
        return "ok" if self.bus.connected else "connection lost"

    @property
    def dropped(self) -> int:
        """Messages that came faster than they were heard."""
        return sum(subscription.dropped for subscription in self._subscriptions.values())

    async def open(self) -> None:
        """Reach the bus and listen; if it is away, for as long as it takes."""
        while True:
            try:
                await self.bus.connect()
                for pattern, hear in self._wanted:
                    if pattern not in self._subscriptions:
                        self._subscriptions[pattern] = await self.bus.subscribe(pattern, hear)
            except AdapterError as error:
                if not self._why:
                    log.error("the bus is not reached: %s", error, extra={"action": "bus_unreachable"})
                self._why = str(error)
                await asyncio.sleep(RETRY_AFTER if error.transient else SLOW_RETRY_AFTER)
            else:
                self._why = ""
                log.info("listening on the bus", extra={"action": "bus_reached"})
                return

    async def close(self) -> None:
        for send in self._sends:
            send.cancel()
        await asyncio.gather(*self._sends, return_exceptions=True)
        await self.bus.close()

    def send_canary(self, seq: int) -> None:
        """Our own beat, out through the bus and back in."""
        self._beside(self._send_canary(seq))

    async def _send_canary(self, seq: int) -> None:
        with suppress(AdapterError):  # Then it will not return, and that is what it is for.
            await self.bus.publish(self._canary_subject, str(seq).encode())

    def hand_over(self) -> None:
        """Give the hub what was gathered: beats that came one a message are read together."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        self._ear.end_gathering()
        at = self._gathered_at
        together = wire.decode_together([payload for _, payload in gathered], SOURCE, at)
        if together is not None:
            self._ear.hear_beats(together.beats, together.raw, SOURCE, at)
        else:
            for subject, payload in gathered:
                self._read(subject, payload, at)

    def _beats(self, subject: str, payload: bytes) -> None:
        if wire.fits_together(payload):
            gathered = self._gathered
            if not gathered:
                self._gathered_at = self._clock()
                self._ear.begin_gathering()
                asyncio.get_running_loop().call_soon(self.hand_over)
            gathered.append((subject, payload))
            if len(gathered) >= wire.TOGETHER_MAX:
                self.hand_over()
        else:
            self.hand_over()
            self._read(subject, payload, self._clock())

    def _read(self, subject: str, payload: bytes, at: float) -> None:
        try:
            batch = wire.decode_beats(payload, SOURCE, at)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
        else:
            self._rejected(subject, batch.rejected)
            self._ear.hear_beats(batch.accepted, payload, SOURCE, at)

    def _reports(self, subject: str, payload: bytes) -> None:
        self.hand_over()
        asked = None if self._keeper is None else _ASKS_TO_BE_KEPT.fullmatch(subject)
        if asked is None:
            self._hear_reports(subject, payload)
        else:
            self._hear_and_answer(subject, payload, asked[1], int(asked[2]))

    def _hear_reports(self, subject: str, payload: bytes) -> bool:
        """Whether there is room for them. What cannot be read is dealt with: it would not be read the next time either."""
        now = self._clock()
        try:
            batch = wire.decode_signals(payload, now=now, source=SOURCE, bounded=True)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
            return True
        self._rejected(subject, batch.rejected)
        return self._ear.hear(batch.accepted, now)

    def _hear_and_answer(self, subject: str, payload: bytes, relay: str, number: int) -> None:
        """Hear it, unless that was done before, and say when it is kept. While nothing is kept nothing is heard: it comes
        again, and an error that is heard twenty times looks like twenty of them."""
        assert self._keeper is not None
        if not self._keeper.keeps:
            return
        known = self._heard.setdefault(relay, deque(maxlen=PER_RELAY_MAX))
        self._heard.move_to_end(relay)
        if len(self._heard) > RELAYS_MAX:
            self._heard.popitem(last=False)
        if number not in known:
            if not self._hear_reports(subject, payload):
                return
            known.append(number)
        if len(self._sends) < ANSWERS_MAX:
            self._beside(self._answer(relay, number))

    def _beside(self, what: Coroutine[None, None, None]) -> None:
        task = asyncio.get_running_loop().create_task(what)
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    async def _answer(self, relay: str, number: int) -> None:
        assert self._keeper is not None
        with suppress(AdapterError, NotStored, NotLeader, InboxFull):  # Then it is said again.
            await self._keeper.keep(())
            await self.bus.publish(f"{KEPT}.{relay}", str(number).encode())

    def _canary(self, subject: str, payload: bytes) -> None:
        try:
            self._ear.hear((CanaryReturned(seq=int(payload)),), self._clock())
        except ValueError:
            self._unreadable(subject, 1, "is no canary of ours")

    def _rejected(self, subject: str, rejected: Sequence[wire.Rejected]) -> None:
        if rejected:
            first = rejected[0]
            self._unreadable(subject, len(rejected), f"{first.field} {first.detail}".strip())

    def _unreadable(self, subject: str, count: int, why: str) -> None:
        self._ear.pulse.unreadable += count
        now = self._clock()
        if now - self._complained_at >= COMPLAIN_EVERY:
            self._complained_at = now
            log.warning(
                "a message on %s cannot be read: %s", subject, why, extra={"action": "message_unreadable"}
            )
