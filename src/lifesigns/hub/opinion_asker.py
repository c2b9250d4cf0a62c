"""Opinion asker: brings the engine's questions to a hub in each other zone, and its answers back as signals.

Questions of one moment go out in one request. Whatever happens to it, the engine hears in time: a zone whose hubs do not
answer cannot be asked. Nobody waits for that longer than for an answer to the pings.
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from lifesigns.core.effects import AskSecondOpinion
from lifesigns.core.signals import Opinion, OpinionGiven, Signal
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.hub_requests import NONCE, SESSION, request_headers, signed_answer
from lifesigns.hub.lease import Lease
from lifesigns.hub.token_macs import HubMacs
from lifesigns.ports import HubCaller, HubRow
from lifesigns.wire import opinions as wire
from lifesigns.wire.opinions import QUESTIONS_MAX, Inquiry, Question

PATH: Final = "/hubs/second-opinion"

GATHER_FOR: Final = 0.05
"""Agents that share a link fall silent together: their questions go out in one request."""
REQUESTS_MAX: Final = 16
"""Under way to one zone: questions about 8,000 agents. Of more at once none is convicted: the zone cannot be asked."""
HUBS_MAX: Final = 2
"""Hubs of one zone that are tried, one after the other."""
LISTEN_MAX: Final = 20.0
"""Seconds. An agent that answers pings does so within one or two; others beat every few seconds."""
ANSWER_SHARE: Final = 0.95
"""Of the time until the verdict: then we stop to wait for an answer."""
ANSWER_FOR: Final = 1.0
"""Seconds that question and answer may take beyond the listening, on a busy machine; at most half of the time there is."""
HANG_UP_AFTER: Final = 2.0
"""Seconds after which a hub that has not answered is given up, and the next one tried."""
MEET_EVERY: Final = 10.0
"""Seconds between two tries to meet a hub."""
MEET_WITHIN: Final = 5.0
UNAUTHORIZED: Final = 401

log: Final = logging.getLogger("lifesigns.hub")


class OpinionAsker:
    """Asks other zones. `hear` takes the answers."""

    def __init__(
        self, lease: Lease, macs: HubMacs, caller: HubCaller, hear: Callable[[Sequence[Signal]], object]
    ) -> None:
        self._lease = lease
        self._macs = macs
        self._caller = caller
        self._hear = hear
        self._waiting: list[AskSecondOpinion] = []
        self._sessions: dict[str, str] = {}
        """By hub: its session, as it last told it."""
        self._meet_at: dict[str, float] = {}
        """By hub that has not answered yet: when to try again."""
        self._under_way: Counter[str] = Counter()
        self._requests: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self.given: Counter[Opinion] = Counter()
        """How often each was the answer, for one agent and one zone."""

    def meet(self) -> None:
        """Ask the hubs in other zones nothing yet, but learn their sessions: the first question need not wait for that, and
        a hub with another key is on the log before somebody depends on it."""
        loop, hubs = (
            asyncio.get_running_loop(),
            [hub for zone in self._lease.other_zones() for hub in self._lease.hubs_in(zone)[:HUBS_MAX]],
        )
        for hub in hubs:
            if hub.name not in self._sessions and loop.time() >= self._meet_at.get(hub.name, 0.0):
                self._meet_at[hub.name] = loop.time() + MEET_EVERY
                self._run(self._meet(hub))
        self._meet_at = {hub.name: self._meet_at[hub.name] for hub in hubs if hub.name in self._meet_at}

    async def _meet(self, hub: HubRow) -> None:
        try:
            await self._ask_hub(hub, wire.encode(Inquiry((), 0.0)), MEET_WITHIN)
        except (AdapterError, WireError) as error:
            self._sessions.pop(hub.name, None)
            text = "%s in zone %s cannot be asked: %s; while that is so, nobody is ended for silence"
            log.warning(text, hub.name, hub.zone, error, extra={"action": "hub_not_met"})

    def ask(self, order: AskSecondOpinion) -> None:
        """Ask soon, together with others."""
        self._waiting.append(order)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(GATHER_FOR, self._ask_all)

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        for request in self._requests:
            request.cancel()
        await asyncio.gather(*self._requests, return_exceptions=True)
        await self._caller.close()

    def _ask_all(self) -> None:
        self._timer = None
        orders, self._waiting = self._waiting, []
        by_zone: dict[str, list[AskSecondOpinion]] = {}
        for order in orders:
            for zone in order.zones:
                by_zone.setdefault(zone, []).append(order)
        for zone, mine in by_zone.items():
            # Those with about as much time together: the shortest decides for all in a request.
            ordered = iter(sorted(mine, key=lambda order: order.answer_within))
            while some := list(islice(ordered, QUESTIONS_MAX)):
                self._start(zone, some)

    def _start(self, zone: str, orders: list[AskSecondOpinion]) -> None:
        if self._under_way[zone] >= REQUESTS_MAX:
            self._tell(zone, orders, {})
            return
        self._under_way[zone] += 1
        self._run(self._inquire(zone, orders))

    def _run(self, request_to: Coroutine[None, None, None]) -> None:
        request = asyncio.get_running_loop().create_task(request_to)
        self._requests.add(request)
        request.add_done_callback(self._requests.discard)

    async def _inquire(self, zone: str, orders: list[AskSecondOpinion]) -> None:
        found: Mapping[str, Opinion] = {}
        try:
            async with asyncio.timeout(orders[0].answer_within * ANSWER_SHARE - GATHER_FOR):
                found = await self._ask_zone(zone, orders)
        except TimeoutError:
            log.info("no hub in zone %s answered in time", zone, extra={"action": "zone_not_asked"})
        finally:
            self._under_way[zone] -= 1
        self._tell(zone, orders, found)

    async def _ask_zone(self, zone: str, orders: list[AskSecondOpinion]) -> Mapping[str, Opinion]:
        """The opinions of the first hub of the zone that answers; none if none does."""
        within = orders[0].answer_within * ANSWER_SHARE - GATHER_FOR
        listen_for = min(LISTEN_MAX, max(within / 2, within - ANSWER_FOR))
        body = wire.encode(Inquiry(tuple(map(_question, orders)), listen_for))
        for hub in self._lease.hubs_in(zone)[:HUBS_MAX]:
            try:
                return await self._ask_hub(hub, body, listen_for + HANG_UP_AFTER)
            except (AdapterError, WireError) as error:
                log.info(
                    "%s in zone %s cannot be asked: %s",
                    hub.name,
                    zone,
                    error,
                    extra={"action": "hub_not_asked"},
                )
        return {}

    async def _ask_hub(self, hub: HubRow, body: bytes, within: float) -> Mapping[str, Opinion]:
        for _ in range(2):  # The second time with the session that the hub told us.
            headers = request_headers(self._macs, self._sessions.get(hub.name, ""), PATH, body)
            answer = await self._caller.post(f"{hub.url.rstrip('/')}{PATH}", body, headers, within)
            if answer.status == UNAUTHORIZED and SESSION in answer.headers:
                self._sessions[hub.name] = answer.headers[SESSION]
                continue
            if answer.status != 200:
                raise AdapterError(f"it answered {answer.status}", transient=True)
            if not signed_answer(self._macs, answer.headers, headers[NONCE], answer.body):
                raise AdapterError("its answer is not signed with our key", transient=False)
            return wire.decode_opinions(answer.body).opinions
        raise AdapterError("it does not know our key; hubs on one store share tokens.key", transient=False)

    def _tell(self, zone: str, orders: Iterable[AskSecondOpinion], found: Mapping[str, Opinion]) -> None:
        """What the zone said of each; it cannot be asked if it said nothing at all."""
        missing = Opinion.CANNOT_TELL if found else Opinion.CANNOT_BE_ASKED
        given = [
            OpinionGiven(agent_id=order.agent_id, zone=zone, opinion=found.get(order.agent_id, missing))
            for order in orders
        ]
        self.given.update(one.opinion for one in given)
        self._hear(given)


def _question(order: AskSecondOpinion) -> Question:
    return Question(order.agent_id, order.incarnation, order.order_id, order.epoch, order.silent_for)
