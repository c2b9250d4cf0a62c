"""Bus receiver: beats and reports that come over the bus, and the canary that shows whether the bus works.

The subject names the speaker (`wire/subjects.py`), because the server of a bus can enforce that: a client that may
publish on `heartbeat.coder-7` speaks for coder-7, whatever the message says. Only relays speak for many, if the hub
accepts them at all.

A bus stores nothing, and an agent sends a report once: our senders put their name and a number into the subject, repeat
the message until the hub has stored and acknowledged it, and the hub ignores repetitions.

The hub starts with or without the bus, and says which. It counts unreadable messages and logs one now and then; a peer
that sends nonsense does not stop it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Generator, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import partial
from typing import Final, Protocol, TypeVar

from lifesigns import wire
from lifesigns.core.signals import Beat, CanaryReturned, Signal
from lifesigns.errors import AdapterError, UsageError, WireError
from lifesigns.hub.bus_shares import BusShares
from lifesigns.hub.bus_turns import BusTurns, Reading
from lifesigns.hub.clock import Clock
from lifesigns.hub.counters import BUS, HubCounters
from lifesigns.hub.deliveries import Deliveries
from lifesigns.hub.forgeries import Forgery
from lifesigns.hub.http_receiver import InboxFull, NotLeader, NotStored
from lifesigns.hub.ownership import Refusal
from lifesigns.hub.principals import Patterns
from lifesigns.hub.shares import BUS_SOURCE, Shares
from lifesigns.hub.signatures import NO_KEYS, Signatures
from lifesigns.ports import Bus, Hear, Subscription
from lifesigns.wire import subjects
from lifesigns.wire.subjects import Place

BEATS: Final = f"{subjects.BEATS}.>"
SIGNALS: Final = f"{subjects.SIGNALS}.>"
REPORTS: Final = f"{subjects.REPORTS}.>"
CANARY: Final = "lifesigns.canary"
SOURCE: Final = BUS_SOURCE

RETRY_AFTER: Final = 2.0
SLOW_RETRY_AFTER: Final = 30.0
"""For errors that a retry does not cure: a wrong password, until a person mends it on the other side."""

COMPLAIN_EVERY: Final = 60.0

PER_RELAY_MAX: Final = 256
"""Numbers remembered per relay: a relay sends a few messages, and no more until the hub has stored them."""
ANSWERS_MAX: Final = 2_000
"""Messages acknowledged together, and messages on their way to the bus; a sender without an acknowledgement repeats its message."""

S = TypeVar("S", bound=Signal)

log: Final = logging.getLogger("lifesigns.hub")


class Relays(StrEnum):
    """Whether the hub accepts messages whose subject names no agent."""

    OPEN = "open"
    SIGNED = "signed"
    """Signed by a key that may speak for every agent in it."""
    REFUSED = "refused"
    APART = "apart"
    """Refused without suspicion: each agent has to speak under its own subject, because hubs hear those of their slots only."""


def speaker_fault(
    agent_id: str, place: Place, signer: Patterns | None, relays: Relays, signatures: Signatures
) -> Forgery | None:
    """Why whoever sent a message from this place may not speak for that agent; None if it may."""
    if place.speaker is not None:
        if agent_id != place.speaker:
            return Forgery.SPEAKER
    elif relays is Relays.REFUSED or (relays is Relays.SIGNED and signer is None):
        return Forgery.RELAY
    return signatures.fault(agent_id, signer)


class SignalSink(Protocol):
    """Takes what was received, and counts what was unreadable."""

    counters: HubCounters
    shares: Shares

    def hear(self, signals: Sequence[Signal], at: float, source: str = "") -> bool: ...
    def put_off(self, source: str, first_part: str = "") -> None: ...
    def refusal(self, signal: Signal) -> Refusal | None: ...
    def hear_beats(self, beats: Sequence[Beat], raw: bytes, source: str, at: float) -> bool: ...
    def begin_gathering(self) -> None: ...
    def end_gathering(self) -> None: ...


class CommitWaiter(Protocol):
    """Waits until the store has what was received."""

    @property
    def can_store(self) -> bool: ...
    async def store_reports(self, reports: Sequence[Signal]) -> object: ...


class BusReceiver:
    """Receives messages from the bus and passes them to the hub. Without `commits` it acknowledges none."""

    source = SOURCE

    def __init__(
        self,
        bus: Bus,
        name: str,
        sink: SignalSink,
        clock: Clock,
        commits: CommitWaiter | None = None,
        signatures: Signatures | None = None,
        relays: Relays = Relays.OPEN,
    ) -> None:
        self.bus = bus
        self._canary_subject = f"{CANARY}.{name}"
        self._sink = sink
        self._clock = clock
        self._handlers: tuple[tuple[str, Hear], ...] = (
            (BEATS, self.hear_beats),
            (SIGNALS, self._reports),
            (REPORTS, self._reports),
            (self._canary_subject, self._canary),
        )
        self._subscriptions: dict[str, Subscription] = {}
        self._why = ""
        """Why the last attempt to connect failed."""
        self._complained_at = -COMPLAIN_EVERY
        self._gathered: list[bytes] = []
        self._gathered_on: list[str] = []
        self._gathered_at = 0.0
        self._commits = commits
        self._signatures = signatures or Signatures(NO_KEYS, sink.counters.forged)
        self._relays = relays
        self._received: Deliveries[int] = Deliveries(PER_RELAY_MAX)
        self._unacknowledged: dict[tuple[str, int], None] = {}
        """Where to acknowledge which message that came in this round of the loop."""
        self._sends: set[asyncio.Task[None]] = set()
        self._shares = BusShares(bus, sink.shares, clock, partial(sink.put_off, SOURCE))
        self._turns = BusTurns(self._shares)

    def also_hear(self, subject: str, hear: Hear) -> None:
        """Listen there, too. Before `open`."""
        self._handlers = (*self._handlers, (subject, hear))

    def go_on_with(self, pattern: str, subscription: Subscription) -> None:
        """Somebody has subscribed for this receiver. Before `open`."""
        self._subscriptions[pattern] = subscription

    @property
    def state(self) -> str:
        """`ok`, or what is wrong."""
        if len(self._subscriptions) < len(self._handlers):
            return self._why or "not reached yet"
        return "ok" if self.bus.connected else "connection lost"

    @property
    def dropped(self) -> int:
        """Messages lost because they came faster than the hub took them."""
        return sum(subscription.dropped for subscription in self._subscriptions.values())

    @property
    def over_share(self) -> int:
        """Messages dropped because their sender used up its share of the hub's time."""
        return self._shares.dropped

    async def open(self) -> None:
        """Connect and subscribe; retry while the bus is away."""
        while True:
            try:
                await self.bus.connect()
                for pattern, hear in self._handlers:
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
        self._turns.close()
        await self.bus.close()

    def send_canary(self, seq: int) -> None:
        """Our own beat, out through the bus and back in."""
        # A bus that is away does not return it, and that shows the failure.
        self._start(self._publish(self._canary_subject, str(seq).encode()))

    def hand_over(self) -> None:
        """Pass the gathered beats to the hub: single-beat messages are decoded together."""
        if not self._gathered:
            return
        gathered, self._gathered = self._gathered, []
        gathered_on, self._gathered_on = self._gathered_on, []
        self._sink.end_gathering()
        at, began = self._gathered_at, self._shares.own_time()
        must_sign = self._signatures.must_sign is not None
        together = None if must_sign else wire.decode_together(gathered, SOURCE, at)
        if together is not None and _each_its_own(gathered_on, together.beats):
            self._sink.hear_beats(together.beats, together.raw, SOURCE, at)
        else:
            for subject, payload in zip(gathered_on, gathered, strict=True):
                self._turns.read(subject, len(payload), self._reading_beats(subject, payload, at))
        self._shares.note(gathered_on, self._shares.own_time() - began)

    def hear_beats(self, subject: str, payload: bytes) -> None:
        """A message with beats came."""
        if self._shares.dropping and self._shares.drops(subject):
            return
        if wire.fits_together(payload):
            gathered = self._gathered
            if not gathered:
                self._gathered_at = self._clock()
                self._sink.begin_gathering()
                asyncio.get_running_loop().call_soon(self.hand_over)
            gathered.append(payload)
            self._gathered_on.append(subject)
            if len(gathered) >= wire.TOGETHER_MAX:
                self.hand_over()
        else:
            self.hand_over()
            self._read(subject, payload, self._reading_beats(subject, payload, self._clock()))

    def _read(self, subject: str, payload: bytes, reading: Reading) -> None:
        began = self._shares.own_time()
        self._turns.read(subject, len(payload), reading)
        self._shares.note((subject,), self._shares.own_time() - began)

    def _reading_beats(self, subject: str, payload: bytes, at: float) -> Reading:
        try:
            payload, signer = self._signatures.opened(payload, at, f"on {subject}")
            batch = yield from wire.decoding_beats(payload, SOURCE, at)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
        else:
            self._rejected(subject, batch.rejected)
            if own := self._own(batch.accepted, subject, subjects.of_beats(subject), signer):
                self._sink.hear_beats(own, payload, SOURCE, at)

    def _own(self, signals: list[S], subject: str, place: Place, signer: Patterns | None) -> list[S]:
        """The signals this sender may send. The others are counted and dropped."""
        if place.speaker is None and self._relays is Relays.APART:
            self._start(self._publish(place.kept_on, subjects.APART))
            return []
        anybody = place.speaker is None and self._relays is Relays.OPEN and self._signatures.must_sign is None
        if anybody and signer is None:
            return signals
        own: list[S] = []
        for signal in signals:
            agent_id = getattr(signal, "agent_id", "")
            fault = speaker_fault(agent_id, place, signer, self._relays, self._signatures)
            if fault is None:
                own.append(signal)
            else:
                self._sink.counters.forged.note(fault, f"{agent_id!r} on {subject}", self._clock())
        if len(own) < len(signals) and place.speaker is None and place.relay:
            self._start(self._publish(place.kept_on, subjects.APART))
        return own

    def _reports(self, subject: str, payload: bytes) -> None:
        if self._shares.dropping and self._shares.drops(subject):
            return
        self.hand_over()
        self._read(subject, payload, self._reading_reports(subject, payload))

    def _reading_reports(self, subject: str, payload: bytes) -> Reading:
        place = subjects.of_reports(subject)
        if place.number is None or self._commits is None:
            yield from self._hear_reports(subject, place, payload)
        else:
            yield from self._hear_and_acknowledge(subject, place, payload)

    def _hear_reports(self, subject: str, place: Place, payload: bytes) -> Generator[None, None, bool]:
        """Whether the hub had room for them. Unreadable ones count as done: a repetition would be unreadable too."""
        now = self._clock()
        try:
            payload, signer = self._signatures.opened(payload, now, f"on {subject}")
            batch = yield from wire.decoding_signals(payload, now=now, source=SOURCE, bounded=True)
        except WireError as error:
            self._unreadable(subject, 1, str(error))
            return True
        self._rejected(subject, batch.rejected)
        own = [
            signal
            for signal in self._own(batch.accepted, subject, place, signer)
            if self._may_report(signal, subject)
        ]
        return not own or self._sink.hear(own, now, SOURCE)

    def _may_report(self, signal: Signal, subject: str) -> bool:
        """Whether this is about the sender's own tasks and messages; if not it is counted and dropped."""
        refused = self._sink.refusal(signal)
        if refused is not None:
            self._sink.counters.not_own[BUS] += 1
            self._unreadable(subject, 1, " ".join(refused))
        return refused is None

    def _hear_and_acknowledge(self, subject: str, place: Place, payload: bytes) -> Reading:
        """Pass on a message unless it is a repetition, and acknowledge it when it is stored. While the store takes
        nothing the hub ignores it: the sender repeats it, and the same error taken in twenty times would look like
        twenty errors."""
        assert self._commits is not None
        assert place.number is not None
        if not self._commits.can_store:
            return
        if place.speaker is None and self._relays in (Relays.REFUSED, Relays.APART):
            yield from self._hear_reports(subject, place, payload)
            return
        numbers = self._received.of(place.kept_on)
        if place.number not in numbers:
            if not (yield from self._hear_reports(subject, place, payload)):
                return
            numbers.append(place.number)
        if not self._unacknowledged and not self._start(self._acknowledge()):
            return
        if len(self._unacknowledged) < ANSWERS_MAX:
            self._unacknowledged[place.kept_on, place.number] = None

    def _start(self, sending: Coroutine[None, None, None]) -> bool:
        """Whether there is room for it among all that is on its way."""
        if len(self._sends) >= ANSWERS_MAX:
            sending.close()
            return False
        task = asyncio.get_running_loop().create_task(sending)
        self._sends.add(task)
        task.add_done_callback(self._sends.discard)
        return True

    async def _acknowledge(self) -> None:
        """Acknowledge what came in one round of the loop, each message once, when all of it is stored. One by one took more
        time than to read them, and nobody paid for it."""
        assert self._commits is not None
        messages, self._unacknowledged = self._unacknowledged, {}
        with suppress(NotStored, NotLeader, InboxFull):  # The senders repeat them.
            await self._commits.store_reports(())
            for to, number in messages:
                await self._publish(to, str(number).encode())

    async def _publish(self, subject: str, payload: bytes) -> None:
        with suppress(
            AdapterError, UsageError
        ):  # The bus is away; or a peer made up a subject that no client can subscribe to.
            await self.bus.publish(subject, payload)

    def _canary(self, subject: str, payload: bytes) -> None:
        try:
            self._sink.hear((CanaryReturned(seq=int(payload)),), self._clock())
        except ValueError:
            self._unreadable(subject, 1, "is no canary of ours")

    def _rejected(self, subject: str, rejected: Sequence[wire.Rejected]) -> None:
        if rejected:
            first = rejected[0]
            self._unreadable(subject, len(rejected), f"{first.field} {first.detail}".strip())

    def _unreadable(self, subject: str, count: int, why: str) -> None:
        self._sink.counters.unreadable += count
        now = self._clock()
        if now - self._complained_at >= COMPLAIN_EVERY:
            self._complained_at = now
            log.warning(
                "a message on %s cannot be read: %s", subject, why, extra={"action": "message_unreadable"}
            )


def _each_its_own(gathered_on: Sequence[str], beats: Sequence[Beat]) -> bool:
    """Whether each came on the subject of its agent. This runs for every beat: one comparison of joined text is faster
    than many, and no id contains a line break."""
    spoken = "\nheartbeat.".join([beat.agent_id for beat in beats])
    return "\n".join(gathered_on) == f"heartbeat.{spoken}"
