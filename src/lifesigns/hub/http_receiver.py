"""HTTP receiver: checks whether a sender may send this, takes it in, waits until it is stored; and hands out orders."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from time import thread_time
from typing import Final, TypeVar

import msgspec

from lifesigns import wire
from lifesigns.core.context import POLICY
from lifesigns.core.effects import Effect, Refusal
from lifesigns.core.signals import AgentRegistered, Report, Signal
from lifesigns.errors import AdapterError
from lifesigns.hub.access import Principal
from lifesigns.hub.clock import Clock
from lifesigns.hub.counters import HTTP
from lifesigns.hub.deliveries import KeyedDeliveries, fingerprint_of
from lifesigns.hub.forgeries import Forgery
from lifesigns.hub.hub import Hub
from lifesigns.hub.inbox import PIECE
from lifesigns.hub.order_ledger import NOT_STORED
from lifesigns.hub.ownership import refusal
from lifesigns.hub.principals import Patterns, Role
from lifesigns.hub.shares import PATIENCE, TURN_FOR
from lifesigns.hub.signatures import Signatures
from lifesigns.hub.slots import BETWEEN_AGENTS, NOT_HERE, are_own, slot_of

T = TypeVar("T", bound=Signal)
Read = TypeVar("Read")

Orders = dict[str, list[msgspec.Raw]]
"""By agent, encoded."""

STORE_WAIT: Final = 1.5
"""How long storing a report may take before its sender is told to retry. Its beats wait behind it: in the fastest
profile they are missed after 2.2 s, and a failing store must not look like the silence of an agent."""

NO_ROOM_FOR: Final = 0.05
"""Seconds after which there may be room in the inbox again."""

READ_BESIDE_FROM: Final = 64 * 1024
"""Bytes of a delivery. At worst they take 8 ms to decode."""


@dataclass(slots=True)
class IngestResult:
    """The outcome of one delivery, and the orders waiting for its agents."""

    accepted: int
    rejected: list[wire.Rejected] = field(default_factory=list)
    orders: Orders = field(default_factory=dict)


NOT_SIGNED: Final = {
    Forgery.UNSIGNED: "which has to sign what it says (key= or LIFESIGNS_KEY)",
    Forgery.SIGNATURE: "for which the key that signed this may not speak",
}

TAKEN: Final = IngestResult(1)
"""The shared, immutable result of nearly every single beat."""


class InboxFull(Exception):
    """There is no room in the inbox: retry in a second."""


class NotLeader(Exception):
    """Another hub judges now, or may, because this one does not reach its store: go there."""


class NotStored(Exception):
    """The store does not take it: retry in a second."""


class HttpReceiver:
    """Takes in beats and reports, and hands out orders."""

    def __init__(self, hub: Hub, clock: Clock, signatures: Signatures) -> None:
        self._hub = hub
        self._clock = clock
        self._reading = asyncio.Lock()
        self._signatures = signatures
        self._heard = KeyedDeliveries()

    async def take_beats(self, raw: bytes, who: Principal, *, shared: bool = False) -> IngestResult:
        """Take beats in any form of the contract. If the hubs of other slots get the same, it is `shared`: each takes its own.
        Raises `WireError` if nothing is readable, `InboxFull` if there is no room, `NotLeader` if another hub judges now, or
        may."""
        if self._hub.is_replaced:
            raise NotLeader
        now = self._clock()
        raw, signer = self._signatures.opened(raw, now, f"from {who.name!r}")
        batch = await self._decoded(wire.decoding_beats(raw, who.token_id, now), who, now)
        own = self._own(batch, who, signer, shared=shared)
        turn_ends = thread_time() + TURN_FOR if len(own) > PIECE else 0.0
        for n, piece in enumerate(self._pieces(own, who)):
            if n and (self._hub.inbox.waiting or thread_time() >= turn_ends):
                await self.next_turn(who, now)
                turn_ends = thread_time() + TURN_FOR
            if not self._hub.hear_beats(piece, raw, who.token_id, self._clock()):
                raise InboxFull
        return self._result(own, batch)

    def take_together(
        self, raws: Sequence[bytes], whos: Sequence[Principal], at: float
    ) -> Sequence[IngestResult] | None:
        """Take messages of one beat each that came in one round of the loop, and their principals. All or nothing:
        None, and none is taken, if they have to be taken one by one."""
        if self._hub.is_replaced or self._signatures.must_sign is not None:
            return None
        together = wire.decode_together(raws, now=at)
        if together is None:
            return None
        for beat, who in zip(together.beats, whos, strict=True):
            if not who.may_speak_for(beat.agent_id):
                return None
            beat.source = who.token_id
        if not self._hub.hear_beats(together.beats, together.raw, "", at):
            return None
        waiting = self.orders_for([beat.agent_id for beat in together.beats])
        if not waiting:
            return [TAKEN] * len(raws)
        return [_with_orders(beat.agent_id, waiting) for beat in together.beats]

    async def take_reports(
        self,
        raw: bytes,
        who: Principal,
        key: str = "",
        charge: Callable[[int], None] | None = None,
        *,
        shared: bool = False,
    ) -> IngestResult:
        """As beats; but an agent sends a report once, so the hub acknowledges it only when its effects are stored. `charge`
        gets their number. A delivery whose `key` is known is only acknowledged. Raises `KeyReused`."""
        now, bounded = self._clock(), not who.speaks_for_all
        raw, signer = self._signatures.opened(raw, now, f"from {who.name!r}")
        decoding = wire.decoding_signals(raw, now=now, source=who.token_id, bounded=bounded)
        batch = await self._decoded(decoding, who, now)
        own = self._own(batch, who, signer, shared=shared)
        fingerprint = await self.read_beside(raw, partial(fingerprint_of, raw), who.token_id) if key else b""
        reports = any(isinstance(signal, Report) for signal in own)
        self.check_open() if reports else self._check_leader()
        news = own if not key or self._heard.note(who.token_id, key, fingerprint) else []
        try:
            if reports:
                effects = await self._store_by_turns(news, who, now)
                if charge is not None:
                    charge(len(effects))
                batch.rejected += _policies_refused(own, effects)
            elif not self._hub.hear(news, source=who.token_id):
                raise InboxFull
        except InboxFull:
            if key:
                self._heard.forget(who.token_id, key)
            raise
        return self._result(own, batch)

    @property
    def can_store(self) -> bool:
        """Whether the store takes commits at the moment, as far as we know."""
        committer = self._hub.committer
        return committer.trouble is None and not committer.deposed and committer.late_for <= STORE_WAIT

    async def store_reports(self, reports: Sequence[Signal]) -> Sequence[Effect]:
        """Take in reports and return their effects, when these are stored. Raises `InboxFull` or `NotStored`.

        While the store takes nothing the hub takes no reports either: senders repeat them until they are stored, and
        the same error or call taken in twenty times would look like twenty.
        """
        self.check_open()
        return await self._kept(reports)

    async def _kept(self, reports: Sequence[Signal] = ()) -> Sequence[Effect]:
        try:
            async with asyncio.timeout(STORE_WAIT):
                effects = await self._hub.store_reports(reports)
        except (TimeoutError, AdapterError) as error:
            raise NotStored from error
        if effects is None:
            raise InboxFull
        return effects

    # --- turns ----------------------------------------------------------------------------------------

    async def _decoded(self, decoding: wire.Decoding[T], who: Principal, since: float) -> wire.Batch[T]:
        """Decode a batch in turns: one that is large or unreadable holds up no one else."""
        turn_ends = 0.0
        while True:
            try:
                next(decoding)
            except StopIteration as done:
                batch: wire.Batch[T] = done.value
                return batch
            if (
                not turn_ends
            ):  # Most batches are decoded without a pause, and asking for the time costs as much as a beat.
                turn_ends = thread_time() + TURN_FOR
            elif thread_time() >= turn_ends:
                await self.next_turn(who, since)
                turn_ends = thread_time() + TURN_FOR

    def _pieces(self, signals: list[T], who: Principal) -> Iterator[list[T]]:
        """What is heard at once. An agent's token hears others between two of them; what people and their tools say goes to
        the inbox as it is."""
        if who.role is not Role.AGENT or len(signals) <= PIECE:
            yield signals
            return
        for begin in range(0, len(signals), PIECE):
            yield signals[begin : begin + PIECE]

    async def next_turn(self, who: Principal, since: float) -> None:
        """Let others go first; `since` is when the delivery came. If it waits for long, that is no silence of its agents."""
        if who.role is not Role.AGENT:
            await asyncio.sleep(0)
            return
        await self._hub.shares.turn(who.token_id)
        if self._clock() - since > PATIENCE:
            self._hub.put_off(who.token_id)

    async def _store_by_turns(self, reports: list[Signal], who: Principal, since: float) -> Sequence[Effect]:
        """As `keep`, piece by piece. Words are said once: with the first of them all are taken."""
        self.check_open()
        effects: list[Effect] = []
        for n, piece in enumerate(self._pieces(reports, who)):
            if n:
                await self.next_turn(who, since)
            while not self._hub.hear(piece, source=who.token_id, led_to=effects):
                if not n:
                    raise InboxFull
                await asyncio.sleep(NO_ROOM_FOR)
        await self._kept()
        return effects

    # --- for other receivers --------------------------------------------------------------------------

    def check_open(self) -> None:
        """Raises `NotLeader` or `NotStored` if nothing that comes now would be kept, as far as it is known."""
        self._check_leader()
        if not self.can_store:
            raise NotStored from self._hub.committer.trouble

    def _check_leader(self) -> None:
        if self._hub.is_replaced:
            raise NotLeader from self._hub.committer.trouble

    def why_not(self, agent_id: str, who: Principal, signer: Patterns | None = None) -> str | None:
        """Why this sender may not speak for this agent; None if it may."""
        if not who.may_speak_for(agent_id):
            self._hub.counters.forged.note(Forgery.SPEAKER, f"{agent_id!r} from {who.name!r}", self._clock())
            return f"is {agent_id!r}, for which {who.name!r} may not speak"
        if signer is None and self._signatures.must_sign is None:
            return None  # The usual case: nobody signs, and nobody has to.
        if (fault := self._signatures.fault(agent_id, signer)) is not None:
            self._hub.counters.forged.note(fault, f"{agent_id!r} from {who.name!r}", self._clock())
            return f"is {agent_id!r}, {NOT_SIGNED[fault]}"
        return None

    async def read_beside(self, raw: bytes, decode: Callable[[], Read], source: str) -> Read:
        """Decode large messages in another thread, one after the other, so that the loop goes on. Their source pays for that
        time too: the two threads share one interpreter."""
        if len(raw) <= READ_BESIDE_FROM:
            return decode()
        async with self._reading:
            read, seconds = await asyncio.to_thread(_timed, decode)
        self._hub.shares.charge(source, seconds)
        return read

    # --- orders ---------------------------------------------------------------------------------------

    def orders_for(self, agent_ids: Collection[str], exclude: Sequence[str] = ()) -> Orders:
        """The orders waiting for these agents, without those they have declined."""
        return {
            agent_id: [msgspec.Raw(wire.encode_order(order)) for order in orders]
            for agent_id, orders in self._hub.ledger.waiting_for(agent_ids, exclude).items()
        }

    async def wait_for_orders(
        self, agent_ids: Sequence[str], wait_for: float, exclude: Sequence[str] = ()
    ) -> Orders:
        """As `orders_for`; if there are none, wait for one for a while."""
        orders = self.orders_for(agent_ids, exclude)
        if not orders and wait_for > 0:
            await self._hub.ledger.wait(agent_ids, wait_for)
            orders = self.orders_for(agent_ids, exclude)
        return orders

    async def acknowledge(self, agent_id: str, order_id: str) -> bool:
        """The agent's side has this order: once this returns no hub hands it out again, even after a crash. Whether
        there was one. Raises `NotStored`."""
        acknowledged = self._hub.ledger.acknowledge(agent_id, order_id)
        if acknowledged is not None and not isinstance(acknowledged.order, NOT_STORED):
            await self.store_reports(())
        return acknowledged is not None

    # --- parts ----------------------------------------------------------------------------------------

    def _own(self, batch: wire.Batch[T], who: Principal, signer: Patterns | None, *, shared: bool) -> list[T]:
        """The messages this sender may send; the others are rejected."""
        slot = self._hub.slot
        trusted = who.speaks_for_all and signer is None and self._signatures.must_sign is None
        if trusted and (slot is None or are_own(batch.accepted, slot)):
            return batch.accepted
        bad = {rejected.index for rejected in batch.rejected}
        places = (n for n in range(len(batch.accepted) + len(bad)) if n not in bad)
        own: list[T] = []
        for index, signal in zip(places, batch.accepted, strict=True):
            if shared and slot_of(getattr(signal, "agent_id", "")) != slot:
                continue  # The hub of its slot got it, too.
            refused = self._refused(signal, who, signer)
            if refused is None:
                own.append(signal)
            else:
                batch.rejected.append(wire.Rejected(index, *refused))
        return own

    def _refused(self, signal: T, who: Principal, signer: Patterns | None) -> tuple[str, str] | None:
        """The field by which this sender may not send it, and why; None if it may."""
        if self._hub.slot is not None:
            if isinstance(signal, BETWEEN_AGENTS):
                return "type", NOT_HERE
            if slot_of(getattr(signal, "agent_id", "")) != self._hub.slot:
                return "agent_id", "is of another slot than this delivery"
        if (why := self.why_not(getattr(signal, "agent_id", ""), who, signer)) is not None:
            return "agent_id", why
        return self.not_own(signal, who)

    def not_own(self, signal: Signal, who: Principal) -> tuple[str, str] | None:
        """The field by which this is about another agent's task, checkpoint or message, and why; None if it is not."""
        refused = refusal(self._hub.engine.beliefs, who, signal)
        if refused is not None:
            self._hub.counters.not_own[HTTP] += 1
        return refused

    def _result(self, own: Sequence[T], batch: wire.Batch[T]) -> IngestResult:
        self._hub.counters.unreadable += len(batch.rejected)
        orders = (
            self.orders_for({getattr(signal, "agent_id", "") for signal in own}) if self._hub.ledger else {}
        )
        return IngestResult(len(own), batch.rejected, orders)


def _policies_refused(reports: Sequence[Signal], effects: Sequence[Effect]) -> list[wire.Rejected]:
    """Rejections for the parts of announced policies that the engine refused."""
    index = {signal.agent_id: n for n, signal in enumerate(reports) if isinstance(signal, AgentRegistered)}
    return [
        wire.Rejected(index[effect.agent_id], "policy", effect.reason.removeprefix(POLICY).strip())
        for effect in effects
        if isinstance(effect, Refusal) and effect.reason.startswith(POLICY) and effect.agent_id in index
    ]


def _timed(read: Callable[[], Read]) -> tuple[Read, float]:
    began = thread_time()
    return read(), thread_time() - began


def _with_orders(agent_id: str, waiting: Orders) -> IngestResult:
    return IngestResult(1, orders={agent_id: waiting[agent_id]}) if agent_id in waiting else TAKEN
