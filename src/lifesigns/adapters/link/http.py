"""HTTP link: reaches a hub over its API.

It posts beats and reports; orders come back in the answers. Between beats a long poll brings them at once: one request
for all agents of this process (in groups, if they are very many). The link acknowledges each order once, so that the
hub stops offering it; but not a ping, whose answer is the pong.

Beats have their own connection: nothing else, however much or slow, is ahead of them. All queues here are bounded, and
the link polls a hub that offers the same orders over and over less and less often.
"""

from __future__ import annotations

import asyncio
import logging
import random
import secrets
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from lifesigns import wire
from lifesigns.adapters.link.http_connection import HttpConnection, Reply, Target
from lifesigns.core.effects import Order, SendPing
from lifesigns.core.signals import Beat, Report
from lifesigns.errors import AdapterError, UsageError, WireError
from lifesigns.ports import SavedState, Signer
from lifesigns.wire.limits import BATCH_MAX
from lifesigns.wire.signed import LINE_MAX, Seal

log: Final = logging.getLogger("lifesigns.sender")

POLL_FOR: Final = 30.0
POLL_MARGIN: Final = 10.0
POLL_GROUP: Final = 200
"""Agents per poll: their ids have to fit into the request line."""
SETTLE_FOR: Final = 0.1
"""Agents start together: one poll begins for all of them, not one for each."""
STALE_REST_MAX: Final = 2.0
"""The pause between polls that bring nothing new begins with `SETTLE_FOR` and doubles up to this. New orders come with
the answers to beats meanwhile."""
RETRY_MAX: Final = 5.0
SLOW_RETRY: Final = 30.0
BREATH: Final = 20
BREATH_FOR: Final = 0.001
"""After so many encoded messages the link releases the GIL, so that a thousand of them stall no other thread."""
SHOWN_MAX: Final = 3
SEEN_MAX: Final = 1000
EXCLUDED_MAX: Final = 20
"""So many of the known orders a poll excludes by name: more would not fit into its request line."""
ACKS_MAX: Final = 1000
ACK_AGAIN_AFTER: Final = 30.0
"""If the hub offers an order so long after its acknowledgement, it has lost that, or another order has the same id."""
COMPLAINTS_MAX: Final = 100

TEMPORARY: Final = frozenset({408, 425, 429})
NOT_KEPT: Final = frozenset({400, 404, 405, 409, 413, 422, 501, 507})
"""The hub refuses the content of a checkpoint, and would refuse it the next time, too."""
UPLOAD_FOR: Final = 65.0
"""A little longer than the callers' own limit."""
REFUSED: Final = frozenset({400, 413, 422})
"""The hub refuses the message itself. A retry would block everything behind it, for ever."""

T = TypeVar("T", Beat, Report)


class _Rejected(msgspec.Struct):
    index: int = 0
    field: str | None = None
    detail: str = ""


class _Answer(msgspec.Struct):
    """A hub's answer to beats, reports and polls; other fields are ignored."""

    rejected: list[_Rejected] = []
    orders: dict[str, list[msgspec.Raw]] | list[msgspec.Raw] | None = None


class _Problem(msgspec.Struct):
    title: str = ""
    detail: str = ""


_ANSWER: Final = msgspec.json.Decoder(_Answer)
_PROBLEM: Final = msgspec.json.Decoder(_Problem)


class HttpLink:
    """A `Link` over the hub's HTTP API. `token` is a Bearer token of role `agent`."""

    def __init__(
        self, url: str, token: str | None = None, signer: Signer | None = None, name: str = ""
    ) -> None:
        self._target = Target.of(url)
        self._name = name or secrets.token_hex(8)
        """With the number of a load it makes the key of each delivery, by which a hub knows what comes again."""
        if token is not None and not (token.isascii() and token.isprintable()):
            raise UsageError("token has signs that no HTTP header can carry: is there a line break in it?")
        self._token = token
        self._beats_seal = self._reports_seal = None
        if signer is not None:
            self._beats_seal, self._reports_seal = Seal(signer), Seal(signer)
        self._beats_connection = HttpConnection(self._target, token)
        self._reports_connection = HttpConnection(self._target, token)
        """For reports and acknowledgements."""
        self._obey: Callable[[Order], bool] | None = None
        self._followed: dict[str, None] = {}
        self._seen: dict[str, None] = {}
        """Offered orders, newest last. The hub offers them again until they are settled or another sender takes them;
        those are no news."""
        self._unacknowledged: dict[str, Order] = {}
        self._acknowledged: dict[str, float] = {}
        """The time of it, by the monotonic clock."""
        self._acknowledging: asyncio.Task[None] | None = None
        self._polls: list[asyncio.Task[None]] = []
        self._regroup: asyncio.TimerHandle | None = None
        self._complaints: set[str] = set()
        """Texts already logged: each try would repeat them."""
        self.rejected = 0
        """Beats and reports that the hub refused."""

    async def open(self, obey: Callable[[Order], bool]) -> None:
        self._obey = obey
        await self._beats_connection.connect()

    async def follow(self, agent_id: str) -> None:
        self._followed[agent_id] = None
        self._restart_polls_soon()

    async def unfollow(self, agent_id: str) -> None:
        self._followed.pop(agent_id, None)
        self._restart_polls_soon()

    tells_stopping = False

    async def carry_beats(self, beats: Sequence[Beat]) -> bool:
        await self._post(self._beats_connection, self._beats_seal, "/api/v1/beats", beats, wire.encode_beat)
        return True

    async def carry_reports(self, number: int, reports: Sequence[Report]) -> None:
        encode = partial(wire.encode_signal, sent_at=time.time())
        key = f"{self._name}/{number}"
        await self._post(
            self._reports_connection, self._reports_seal, "/api/v1/signals", reports, encode, key
        )

    async def upload(self, state: SavedState) -> bool:
        saved = state.saved
        if saved.task_id is None:
            return False
        parameters = {
            "agent_id": saved.agent_id,
            "incarnation": saved.incarnation,
            "parent": saved.parent_id,
            "digest": saved.digest,
        }
        query = urlencode({name: value for name, value in parameters.items() if value})
        task, checkpoint = quote(saved.task_id, safe=""), quote(saved.checkpoint_id, safe="")
        path = f"/api/v1/tasks/{task}/checkpoints/{checkpoint}?{query}"
        connection = HttpConnection(self._target, self._token)  # Its own: beats do not wait behind it.
        try:
            reply = await connection.ask("PUT", path, state.content, answer_for=UPLOAD_FOR)
        finally:
            connection.close()
        if reply.status in NOT_KEPT:
            log.warning(
                "%s does not keep checkpoint %s: %s", self._target.url, saved.checkpoint_id, _explain(reply)
            )
            return False
        self._check(reply)
        return True

    async def close(self) -> None:
        if self._regroup is not None:
            self._regroup.cancel()
        tasks = [*self._polls, *([] if self._acknowledging is None else [self._acknowledging])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._beats_connection.close()
        self._reports_connection.close()

    # --- sending --------------------------------------------------------------------------------------------------

    async def _post(
        self,
        connection: HttpConnection,
        seal: Seal | None,
        path: str,
        items: Sequence[T],
        encode: Callable[..., bytes],
        key: str = "",
    ) -> None:
        parts: list[bytes] = []
        for part in wire.write_each(items, encode):
            parts.append(part)
            if len(parts) % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)
        # The same items come in the same parts each time: all that changes is when they are sent, and that is of one length.
        for n, body in enumerate(wire.pack(parts, BATCH_MAX - LINE_MAX)):
            sealed = body if seal is None else seal.signed(body)
            reply = await connection.ask("POST", path, sealed, key=f"{key}.{n}" if key else "")
            if reply.status in REFUSED:
                self.rejected += 1
                log.error("%s%s refused a message: %s", self._target.url, path, _explain(reply))
                continue
            self._check(reply)
            answer = self._read(reply)
            self._complain(path, answer.rejected)
            self._take(answer)

    def _check(self, reply: Reply) -> None:
        """Raise an error for anything but success, transient if it may pass by itself."""
        if 200 <= reply.status < 300:
            return
        transient = reply.status >= 500 or reply.status in TEMPORARY
        text = f"{self._target.url}: {_explain(reply)}"
        if reply.status in (401, 403):
            sent = "its token" if self._token else "no token (token= or LIFESIGNS_TOKEN)"
            text += f"; it was sent {sent}"
        if not transient and text not in self._complaints and len(self._complaints) < COMPLAINTS_MAX:
            self._complaints.add(text)
            log.error("%s", text)
            if len(self._complaints) == COMPLAINTS_MAX:
                log.error("%s: further new refusals are not logged", self._target.url)
        raise AdapterError(text, transient=transient)

    def _read(self, reply: Reply) -> _Answer:
        try:
            return _ANSWER.decode(reply.body) if reply.body.strip() else _Answer()
        except (msgspec.DecodeError, ValueError, RecursionError) as error:
            raise AdapterError(
                f"{self._target.url}: its answer cannot be read: {error}", transient=True
            ) from error

    def _complain(self, path: str, rejected: list[_Rejected]) -> None:
        self.rejected += len(rejected)
        for one in rejected[:SHOWN_MAX]:
            log.warning("%s%s rejected %s: %s", self._target.url, path, one.field or "a message", one.detail)

    # --- receiving ------------------------------------------------------------------------------------------------

    def _restart_polls_soon(self) -> None:
        """The followed agents have changed: poll for them, a moment later."""
        if self._regroup is None:
            self._regroup = asyncio.get_running_loop().call_later(SETTLE_FOR, self._start_polls)

    def _start_polls(self) -> None:
        self._regroup = None
        for task in self._polls:
            task.cancel()
        followed = list(self._followed)
        groups = [followed[n : n + POLL_GROUP] for n in range(0, len(followed), POLL_GROUP)]
        self._polls = [self._begin(self._poll(group)) for group in groups]

    async def _poll(self, agents: list[str]) -> None:
        """Poll for orders, for ever."""
        connection = HttpConnection(self._target, self._token)
        failures, rest = 0, SETTLE_FOR
        try:
            while True:
                try:
                    reply = await connection.ask(
                        "GET", self._poll_path(agents), answer_for=POLL_FOR + POLL_MARGIN
                    )
                    self._check(reply)
                    answer = self._read(reply)
                except AdapterError as error:
                    failures += 1
                    wait = min(0.25 * 2.0 ** min(failures, 10), RETRY_MAX) if error.transient else SLOW_RETRY
                    await asyncio.sleep(wait * random.uniform(0.75, 1.0))  # noqa: S311 -- spreads, hides nothing
                    continue
                failures = 0
                if self._take(answer):
                    rest = SETTLE_FOR
                else:
                    await asyncio.sleep(rest)  # A hub that does not wait must not make us spin.
                    rest = min(2 * rest, STALE_REST_MAX) if answer.orders else SETTLE_FOR
        finally:
            connection.close()

    def _poll_path(self, agents: list[str]) -> str:
        query = [
            ("wait", f"{POLL_FOR:g}"),
            *(("exclude", order_id) for order_id in list(self._seen)[-EXCLUDED_MAX:]),
        ]
        if len(agents) == 1:
            return f"/api/v1/agents/{quote(agents[0], safe='')}/orders?{urlencode(query)}"
        return f"/api/v1/orders?{urlencode([*(('agent', agent) for agent in agents), *query])}"

    def _take(self, answer: _Answer) -> bool:
        """Obey the orders of an answer, and acknowledge those for us. False if it brought nothing new."""
        offered = answer.orders or []
        raw_orders = (
            offered if isinstance(offered, list) else [raw for each in offered.values() for raw in each]
        )
        news = False
        for raw in raw_orders:
            try:
                order = wire.decode_order(bytes(raw))
            except WireError as error:
                log.warning("%s sent an order that cannot be read: %s", self._target.url, error)
                continue
            if order.order_id not in self._seen:
                news = True
                self._seen[order.order_id] = None
                _keep_newest(self._seen, SEEN_MAX)
            if (self._obey is None or self._obey(order)) and not isinstance(order, SendPing):
                self._owe_acknowledgement(order)
        return news

    def _owe_acknowledgement(self, order: Order) -> None:
        """Queue one acknowledgement for each order, however often the hub offers it."""
        acknowledged_at = self._acknowledged.get(order.order_id)
        if order.order_id in self._unacknowledged or len(self._unacknowledged) >= ACKS_MAX:
            return  # The hub offers again what does not fit now.
        if acknowledged_at is not None and time.monotonic() - acknowledged_at < ACK_AGAIN_AFTER:
            return
        self._unacknowledged[order.order_id] = order
        if self._acknowledging is None:
            self._acknowledging = self._begin(self._acknowledge_all())

    async def _acknowledge_all(self) -> None:
        """Acknowledge one after the other, oldest first. After a failure, the hub offers the rest again."""
        try:
            while self._unacknowledged:
                order = next(iter(self._unacknowledged.values()))
                try:
                    await self._acknowledge(order)
                finally:
                    del self._unacknowledged[order.order_id]
        except AdapterError as error:
            log.debug("acknowledgements wait until their orders are offered again: %s", error)
            self._unacknowledged.clear()
        finally:
            self._acknowledging = None

    async def _acknowledge(self, order: Order) -> None:
        agent, order_id = quote(order.agent_id, safe=""), quote(order.order_id, safe="")
        reply = await self._reports_connection.ask(
            "POST", f"/api/v1/agents/{agent}/orders/{order_id}/ack", b""
        )
        if reply.status != 404:  # It was settled or acknowledged before: polls may overtake us.
            self._check(reply)
        self._acknowledged[order.order_id] = time.monotonic()
        _keep_newest(self._acknowledged, SEEN_MAX)

    def _begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        return asyncio.get_running_loop().create_task(work)


def _keep_newest(entries: dict[str, Any], most: int) -> None:
    while len(entries) > most:
        del entries[next(iter(entries))]


def _explain(reply: Reply) -> str:
    """The hub's explanation of a refused request."""
    try:
        problem = _PROBLEM.decode(reply.body)
        text = problem.detail or problem.title
    except (msgspec.DecodeError, ValueError):
        text = ""
    return f"HTTP {reply.status}{': ' + text[:300] if text else ''}"
