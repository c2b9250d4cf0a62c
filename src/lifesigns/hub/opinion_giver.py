"""Opinion giver: what a hub that stands by knows of an agent that the hub which judges does not hear.

It listens on the bus only while it is asked, and only to the agents in question: to hear every beat of a large fleet for the
rare question would cost as much as judging. A few seconds are enough, because it also pings them by its own way. What agents
post to it over HTTP, as they do when they look for a hub, it notes at once.

It has heard an agent if it heard something from the agent itself since the silence began. Whether its own bus works it knows
by a canary; if not, it cannot tell. No two clocks are compared: a silence is so many seconds long.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final

from lifesigns import wire
from lifesigns.core.effects import SendPing
from lifesigns.core.handlers.admission import OWN_REPORTS
from lifesigns.core.signals import Opinion, Report, Signal
from lifesigns.errors import AdapterError, UsageError, WireError
from lifesigns.hub.bus_receiver import CANARY, Relays, speaker_fault
from lifesigns.hub.clock import Clock
from lifesigns.hub.principals import Principal
from lifesigns.hub.shares import BUS_SOURCE
from lifesigns.hub.signatures import Signatures
from lifesigns.ports import Bus, Hear, Subscription
from lifesigns.wire import subjects
from lifesigns.wire.opinions import Inquiry, Opinions, Question
from lifesigns.wire.subjects import Place

APART_MAX: Final = 100
"""Agents whose subjects are subscribed one by one; of more, all beats and reports are heard while the question is open."""
ASKED_MAX: Final = 10_000
"""Agents in question at once. About more the hub cannot tell."""
POSTED_MAX: Final = 100_000
LISTEN_MAX: Final = 30.0
RETRY_AFTER: Final = 2.0
SLOW_RETRY_AFTER: Final = 30.0
PINGS: Final = 2

log: Final = logging.getLogger("lifesigns.hub")


class OpinionGiver:
    """Answers inquiries. Without a bus it knows only what was posted to this hub."""

    def __init__(
        self, zone: str, name: str, bus: Bus | None, signatures: Signatures, relays: Relays, clock: Clock
    ) -> None:
        self._zone = zone
        self._bus = bus
        self._signatures = signatures
        self._relays = relays
        self._clock = clock
        self._canary_subject = f"{CANARY}.{name}"
        self._canary: Subscription | None = None
        self._canary_sent = 0
        self._canary_back = 0
        self._posted: OrderedDict[str, float] = OrderedDict()
        """When each agent last posted to this hub."""
        self._asked: dict[str, int] = {}
        """The agents in question, and by how many inquiries."""
        self._heard: set[str] = set()
        """Those of them that were heard on the bus."""
        self._news = asyncio.Event()

    # --- listening ------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Keep a connection to the bus, for ever, so that a question need not wait for it."""
        if self._bus is None:
            return
        while self._canary is None:
            try:
                await self._bus.connect()
                self._canary = await self._bus.subscribe(self._canary_subject, self._canary_returned)
            except AdapterError as error:
                log.debug("the bus is not reached: %s", error)
                await asyncio.sleep(RETRY_AFTER if error.transient else SLOW_RETRY_AFTER)

    async def close(self) -> None:
        """Listen no more; the connection stays for the hub that judges from now on."""
        if self._canary is not None:
            with suppress(AdapterError):
                await self._canary.end()

    def note_post(self, raw: bytes, who: Principal, *, beats: bool) -> None:
        """Agents came to this hub over HTTP. It answers them elsewhere; here it only notes that they live."""
        now = self._clock()
        try:
            message, signer = self._signatures.opened(raw, now, f"from {who.name!r}")
            said = _said(message, who.token_id, now, beats=beats)
        except WireError:
            return
        for signal in said:
            agent_id: str = getattr(signal, "agent_id", "")
            if who.may_speak_for(agent_id) and self._signatures.fault(agent_id, signer) is None:
                self._posted[agent_id] = now
                self._posted.move_to_end(agent_id)
        while len(self._posted) > POSTED_MAX:
            self._posted.popitem(last=False)

    # --- answering ------------------------------------------------------------------------------------

    async def answer(self, inquiry: Inquiry) -> Opinions:
        """Listen for as long as the other hub can wait, and no longer than needed."""
        now, questions = self._clock(), {question.agent_id: question for question in inquiry.questions}
        posted = {
            agent_id
            for agent_id, question in questions.items()
            if self._posted.get(agent_id, -1.0) >= now - question.silent_for
        }
        open_ids = questions.keys() - posted
        heard, can_tell = set[str](), False
        if open_ids and self._bus is not None and len(self._asked.keys() | open_ids) <= ASKED_MAX:
            asked = [questions[agent_id] for agent_id in open_ids]
            heard, can_tell = await self._listen(asked, min(inquiry.listen_for, LISTEN_MAX))
        otherwise = Opinion.NOT_HEARD if can_tell else Opinion.CANNOT_TELL
        return Opinions(
            {
                agent_id: Opinion.HEARD if agent_id in posted or agent_id in heard else otherwise
                for agent_id in questions
            }
        )

    async def _listen(self, questions: Collection[Question], listen_for: float) -> tuple[set[str], bool]:
        """The agents that were heard on the bus, and whether the bus worked meanwhile."""
        assert self._bus is not None
        ids, heard = {question.agent_id for question in questions}, set[str]()
        self._canary_sent += 1
        canary = self._canary_sent
        try:
            async with asyncio.timeout(listen_for), self._subscribed(ids):
                await self._bus.publish(self._canary_subject, str(canary).encode())
                pinging = asyncio.create_task(self._ping(questions, listen_for))
                try:
                    while not ids <= self._heard:
                        self._news.clear()
                        await self._news.wait()
                finally:
                    pinging.cancel()
                    heard = ids & self._heard
        except TimeoutError:
            pass
        except AdapterError as error:
            log.debug("the bus is away: %s", error)
        return heard, self._canary_back >= canary

    @asynccontextmanager
    async def _subscribed(self, ids: Collection[str]) -> AsyncIterator[None]:
        assert self._bus is not None
        if self._canary is None:
            raise AdapterError("the bus is not reached yet", transient=True)
        for agent_id in ids:
            self._asked[agent_id] = self._asked.get(agent_id, 0) + 1
        subscriptions: list[Subscription] = []
        try:
            for pattern, hear in self._patterns(ids):
                subscriptions.append(await self._bus.subscribe(pattern, hear))
            yield
        finally:
            for agent_id in ids:
                self._asked[agent_id] -= 1
                if not self._asked[agent_id]:
                    del self._asked[agent_id]
                    self._heard.discard(agent_id)
            for subscription in subscriptions:
                with suppress(AdapterError):
                    await subscription.end()

    def _patterns(self, ids: Collection[str]) -> Iterable[tuple[str, Hear]]:
        if len(ids) > APART_MAX:
            yield f"{subjects.BEATS}.>", self._beats
            yield f"{subjects.SIGNALS}.>", self._reports
            yield f"{subjects.REPORTS}.>", self._reports
            return
        yield f"{subjects.SIGNALS}.*.*", self._reports  # Of processes with several agents.
        for agent_id in ids:
            end = subjects.ending(agent_id)
            yield f"{subjects.BEATS}.{end}", self._beats
            yield f"{subjects.SIGNALS}.{end}", self._reports
            yield f"{subjects.REPORTS}.*.*.{end}", self._reports

    async def _ping(self, questions: Collection[Question], listen_for: float) -> None:
        """Twice: the first answer may come before all servers of the bus know that we listen."""
        assert self._bus is not None
        why = f"a hub elsewhere does not hear it, and asks zone {self._zone}"
        for number in range(PINGS):
            for question in questions:
                if question.agent_id in self._heard:
                    continue
                ping = SendPing(
                    self._clock(),
                    f"{question.order_id}-{self._zone}-{number}",
                    question.epoch,
                    question.agent_id,
                    question.incarnation,
                    number + 1,
                    why,
                )
                with suppress(AdapterError, UsageError):
                    await self._bus.publish(
                        f"{subjects.ORDERS}.{subjects.ending(question.agent_id)}", wire.encode_order(ping)
                    )
            await asyncio.sleep(listen_for / PINGS)

    # --- hearing --------------------------------------------------------------------------------------

    def _canary_returned(self, _subject: str, payload: bytes) -> None:
        with suppress(ValueError):
            self._canary_back = max(self._canary_back, min(int(payload), self._canary_sent))

    def _beats(self, subject: str, payload: bytes) -> None:
        self._hear(subject, subjects.of_beats(subject), payload, beats=True)

    def _reports(self, subject: str, payload: bytes) -> None:
        self._hear(subject, subjects.of_reports(subject), payload, beats=False)

    def _hear(self, subject: str, place: Place, payload: bytes, *, beats: bool) -> None:
        if place.speaker is not None and place.speaker not in self._asked:
            return
        now = self._clock()
        try:
            message, signer = self._signatures.opened(payload, now, f"on {subject}")
            said = _said(message, BUS_SOURCE, now, beats=beats)
        except WireError:
            return
        for signal in said:
            agent_id: str = getattr(signal, "agent_id", "")
            if agent_id not in self._asked or agent_id in self._heard:
                continue
            if speaker_fault(agent_id, place, signer, self._relays, self._signatures) is None:
                self._heard.add(agent_id)
                self._news.set()


def _said(raw: bytes, source: str, now: float, *, beats: bool) -> Iterable[Signal]:
    """What agents say themselves in this message."""
    if beats:
        return wire.decode_beats(raw, source, now).accepted
    signals = wire.decode_signals(raw, now=now, source=source, bounded=True).accepted
    return [signal for signal in signals if not isinstance(signal, Report) or type(signal) in OWN_REPORTS]
