"""Bus receiver: beats and reports that come over the bus, and the canary that shows whether the bus can be heard.

The subject says who speaks (`wire/subjects.py`), because that is what the server of a bus can watch over: who may publish on
`heartbeat.coder-7` speaks for coder-7, whatever the message says. Only relays speak for many, if they are heard at all.

A bus keeps nothing, and reports are said once: a sender of ours names itself and a number in the subject, is told when they are
kept, and says them again until then. What was heard before is not heard twice.

The hub starts whether the bus is there or not, and says which. What cannot be read is counted and shown now and then; a
peer that sends nonsense is no reason to stop.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from enum import StrEnum
from typing import Final, Protocol, TypeVar

from lifesigns import wire
from lifesigns.core.signals import Beat, CanaryReturned, Signal
from lifesigns.errors import AdapterError, UsageError, WireError
from lifesigns.hub.clock import Clock
from lifesigns.hub.deliveries import Deliveries
from lifesigns.hub.forgeries import Forgery
from lifesigns.hub.http_receiver import InboxFull, NotLeader, NotStored
from lifesigns.hub.ownership import Refusal
from lifesigns.hub.principals import Patterns
from lifesigns.hub.pulse import BUS, Pulse
from lifesigns.hub.signatures import NO_KEYS, Signatures
from lifesigns.ports import Bus, Subscription
from lifesigns.wire import subjects
from lifesigns.wire.subjects import Place

BEATS: Final = f"{subjects.BEATS}.>"
SIGNALS: Final = f"{subjects.SIGNALS}.>"
REPORTS: Final = f"{subjects.REPORTS}.>"
CANARY: Final = "lifesigns.canary"
SOURCE: Final = "bus"

RETRY_AFTER: Final = 2.0
SLOW_RETRY_AFTER: Final = 30.0
"""When trying again is not expected to help: a wrong password, until somebody mends it on the other side."""

COMPLAIN_EVERY: Final = 60.0

PER_RELAY_MAX: Final = 256
"""Messages of which it is known that they were heard: a relay sends a few, and no more until they are kept."""
ANSWERS_MAX: Final = 2_000
"""Acknowledgements that wait for the store; who gets none says it again."""

S = TypeVar("S", bound=Signal)

log: Final = logging.getLogger("lifesigns.hub")


class Relays(StrEnum):
    """Whether messages are heard whose subject does not say who speaks."""

    OPEN = "open"
    SIGNED = "signed"
    """By a key that may speak for every agent in it."""
    REFUSED = "refused"


class SignalSink(Protocol):
    """Who is given what was heard, and counts what could not be read."""

    pulse: Pulse

    def hear(self, signals: Sequence[Signal], at: float) -> bool: ...
    def refusal(self, signal: Signal) -> Refusal | None: ...
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
        self,
        bus: Bus,
        name: str,
        ear: SignalSink,
        clock: Clock,
        keeper: CommitWaiter | None = None,
        signatures: Signatures | None = None,
        relays: Relays = Relays.OPEN,
    ) -> None:
        self.bus = bus
        self._canary_subject = f"{CANARY}.{name}"
        self._ear = ear
        self._clock = clock
        self._wanted = (
            (BEATS, self._beats),
            (SIGNALS, self._reports),
            (REPORTS, self._reports),
            (self._canary_subject, self._canary),
        )
        self._subscriptions: dict[str, Subscription] = {}
        self._why = ""
        """Why it was not reached the last time."""
        self._complained_at = -COMPLAIN_EVERY
        self._gathered: list[bytes] = []
        self._gathered_on: list[str] = []
        self._gathered_at = 0.0
        self._keeper = keeper
        self._signatures = signatures or Signatures(NO_KEYS, ear.pulse.forged)
        self._relays = relays
        self._heard: Deliveries[int] = Deliveries(PER_RELAY_MAX)
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
        # If the bus is away it will not return, and that is what it is for.
        self._beside(self._publish(self._canary_subject, str(seq).encode()))

    def hand_over(self) -> None:
        """Give the hub what was gathered: beats that came one a message are read together."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        gathered_on, self._gathered_on = self._gathered_on, []
        self._ear.end_gathering()
        at = self._gathered_at
        must_sign = self._signatures.must_sign is not None
        together = None if must_sign else wire.decode_together(gathered, SOURCE, at)
        if together is not None and _each_its_own(gathered_on, together.beats):
            self._ear.hear_beats(together.beats, together.raw, SOURCE, at)
        else:
            for subject, payload in zip(gathered_on, gathered, strict=True):
                self._read(subject, payload, at)

    def _beats(self, subject: str, payload: bytes) -> None:
        if wire.fits_together(payload):
            gathered = self._gathered
            if not gathered:
                self._gathered_at = self._clock()
                self._ear.begin_gathering()
                asyncio.get_running_loop().call_soon(self.hand_over)
            gathered.append(payload)
            self._gathered_on.append(subject)
            if len(gathered) >= wire.TOGETHER_MAX:
                self.hand_over()
        else:
            self.hand_over()
            self._read(subject, payload, self._clock())

    def _read(self, subject: str, payload: bytes, at: float) -> None:
        try:
            payload, signer = self._signatures.opened(payload, at, f"on {subject}")
            batch = wire.decode_beats(payload, SOURCE, at)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
        else:
            self._rejected(subject, batch.rejected)
            if own := self._own(batch.accepted, subject, subjects.of_beats(subject), signer):
                self._ear.hear_beats(own, payload, SOURCE, at)

    def _own(self, said: list[S], subject: str, place: Place, signer: Patterns | None) -> list[S]:
        """What its sender may say here. The rest is counted and not heard."""
        anybody = place.speaker is None and self._relays is Relays.OPEN and self._signatures.must_sign is None
        if anybody and signer is None:
            return said
        own: list[S] = []
        for signal in said:
            agent_id = getattr(signal, "agent_id", "")
            fault = self._fault(agent_id, place, signer)
            if fault is None:
                own.append(signal)
            else:
                self._ear.pulse.forged.note(fault, f"{agent_id!r} on {subject}", self._clock())
        if len(own) < len(said) and place.speaker is None and place.relay:
            self._beside(self._publish(place.kept_on, subjects.APART))
        return own

    def _fault(self, agent_id: str, place: Place, signer: Patterns | None) -> Forgery | None:
        """Why this is not its sender's to say; None if it is."""
        if place.speaker is not None:
            if agent_id != place.speaker:
                return Forgery.SPEAKER
        elif self._relays is Relays.REFUSED or (self._relays is Relays.SIGNED and signer is None):
            return Forgery.RELAY
        return self._signatures.fault(agent_id, signer)

    def _reports(self, subject: str, payload: bytes) -> None:
        self.hand_over()
        place = subjects.of_reports(subject)
        if place.number is None or self._keeper is None:
            self._hear_reports(subject, place, payload)
        else:
            self._hear_and_answer(subject, place, payload)

    def _hear_reports(self, subject: str, place: Place, payload: bytes) -> bool:
        """Whether there is room for them. What cannot be read is dealt with: it would not be read the next time either."""
        now = self._clock()
        try:
            payload, signer = self._signatures.opened(payload, now, f"on {subject}")
            batch = wire.decode_signals(payload, now=now, source=SOURCE, bounded=True)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
            return True
        self._rejected(subject, batch.rejected)
        own = [
            signal
            for signal in self._own(batch.accepted, subject, place, signer)
            if self._may_say(signal, subject)
        ]
        return not own or self._ear.hear(own, now)

    def _may_say(self, signal: Signal, subject: str) -> bool:
        """Whether this is about its sender's own things; if not it is counted and not heard."""
        refused = self._ear.refusal(signal)
        if refused is not None:
            self._ear.pulse.not_own[BUS] += 1
            self._unreadable(subject, 1, " ".join(refused))
        return refused is None

    def _hear_and_answer(self, subject: str, place: Place, payload: bytes) -> None:
        """Hear it, unless that was done before, and say when it is kept. While nothing is kept nothing is heard: it comes
        again, and an error that is heard twenty times looks like twenty of them."""
        assert self._keeper is not None
        assert place.number is not None
        if not self._keeper.keeps:
            return
        if place.speaker is None and self._relays is Relays.REFUSED:
            self._hear_reports(subject, place, payload)
            return
        known = self._heard.of(place.kept_on)
        if place.number not in known:
            if not self._hear_reports(subject, place, payload):
                return
            known.append(place.number)
        self._beside(self._answer(place.kept_on, place.number))

    def _beside(self, what: Coroutine[None, None, None]) -> None:
        if len(self._sends) >= ANSWERS_MAX:
            what.close()
            return
        task = asyncio.get_running_loop().create_task(what)
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)

    async def _answer(self, to: str, number: int) -> None:
        assert self._keeper is not None
        with suppress(NotStored, NotLeader, InboxFull):  # Then it is said again.
            await self._keeper.keep(())
            await self._publish(to, str(number).encode())

    async def _publish(self, subject: str, payload: bytes) -> None:
        with suppress(
            AdapterError, UsageError
        ):  # Away; or a subject that somebody made up, and nobody can hear.
            await self.bus.publish(subject, payload)

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


def _each_its_own(gathered_on: Sequence[str], beats: Sequence[Beat]) -> bool:
    """Whether each came on the subject of its agent. Nothing is asked as often: all at once is faster than one by one, and
    no id has a line break in it."""
    spoken = "\nheartbeat.".join([beat.agent_id for beat in beats])
    return "\n".join(gathered_on) == f"heartbeat.{spoken}"
