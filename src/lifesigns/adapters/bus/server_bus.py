"""A bus with a server: one connection at a time, reconnected when it is lost.

This has what the servers have in common; a `ServerConnection` is what differs: one (of Redis two) for as long as it lasts. We
do not use the drivers' own reconnecting. Each does it differently, keeps other things meanwhile, and gives up for other
reasons (nats-py for good at any error of the server), while the port promises one behaviour.

A connection is lost when it ends, or when the server does not answer: then it is frozen, or the network swallows
everything. What was not sent on a lost connection is dropped, because `publish` promises nothing without `flush`.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, Final, Protocol

from lifesigns.adapters.bus.delivery import Delivery
from lifesigns.adapters.bus.subjects import check_pattern, check_payload, check_subject
from lifesigns.errors import AdapterError
from lifesigns.ports import Hear, MessageFilter

logger = logging.getLogger("lifesigns.bus")

CONNECT_FOR: Final = 5.0
"""Seconds for one attempt to connect."""
ANSWER_FOR: Final = 4.0
"""Seconds for an answer: long for any network; with the check below we notice a frozen server within 9 s."""
CHECK_EVERY: Final = 5.0
"""Seconds between checks of a quiet connection. A wake-up costs up to 0.3 ms: one a second would be half of a sender's
budget, and a sender that flushes after each batch notices sooner by itself."""
_RETRY_FIRST_AFTER: Final = 0.05
_RETRY_MAX_AFTER: Final = 1.0
"""Seconds between attempts, doubled up to here: all clients are back about a second after the server is. Searching
takes a thousandth or two of a core; at 2 s a sender was sometimes back only after 5 s."""
BACKLOG_MAX: Final = 256 * 1024
"""Bytes in the connection that the network has not taken; above this, a publisher waits."""

Receive = Callable[[str, str, bytes], None]
"""Pattern, subject, payload."""


class ServerConnection(Protocol):
    """One connection to a server. All methods except `close` return without waiting for the network."""

    lost: asyncio.Future[str]
    """Done, with the reason, when the connection carries no more."""
    refusal: str | None
    """What the server last refused to do for us, in its words."""
    payload_max: int

    @property
    def backlog(self) -> int:
        """Bytes that the network has not taken yet."""

    async def send(self, subject: str, payload: bytes) -> None: ...
    async def listen(self, pattern: str) -> None: ...
    async def unlisten(self, pattern: str) -> None: ...

    def ask(self) -> asyncio.Future[Any]:
        """Done when the server answered, and so has everything sent before."""

    async def close(self) -> None:
        """Close at once without sending anything more, soon and in any state of the server."""


Dial = Callable[[Receive], Awaitable[ServerConnection]]
"""A new connection, or `AdapterError`; a cancelled attempt leaves nothing open."""


class ServerBus:
    """The common part of the buses with a server. Implements `lifesigns.ports.Bus`."""

    def __init__(self, name: str, dial: Dial, *, payload_max: int, waiting_max: int) -> None:
        """`name` is the address for people, without secrets; `payload_max` holds until the server says another."""
        self.losses = 0
        """How often the connection was lost, also to a server that found us too slow."""
        self._name = name
        self._dial = dial
        self._payload_max = payload_max
        self._waiting_max = waiting_max
        self._connection: ServerConnection | None = None
        self._deliveries: dict[str, list[Delivery]] = {}
        self._unwanted: MessageFilter | None = None
        self._keeper: asyncio.Task[None] | None = None
        self._connecting = asyncio.Lock()
        self._closed = False
        self._answered_at = 0.0

    @property
    def payload_max(self) -> int:
        """The largest message; a larger one is refused."""
        return self._payload_max

    @property
    def connected(self) -> bool:
        return self._connection is not None and not self._connection.lost.done()

    async def connect(self) -> None:
        """Connect to the server, or fail. From then on the bus reconnects by itself, for ever."""
        async with self._connecting:
            self._refuse_if_closed()
            if self._keeper is not None:
                return
            connection = await self._reach()
            try:
                self._refuse_if_closed()
            except AdapterError:
                await connection.close()
                raise
            self._connection = connection
            self._keeper = asyncio.create_task(
                self._keep(connection), name=f"keeps the connection to {self._name}"
            )

    async def publish(self, subject: str, payload: bytes) -> None:
        """Send. Fails at once while disconnected, and within `ANSWER_FOR` if the server takes nothing."""
        check_subject(subject)
        connection = self._living_connection()
        check_payload(f"the bus {self._name}", subject, payload, self._payload_max)
        if connection.backlog > BACKLOG_MAX:
            await asyncio.sleep(0)  # Give the network a turn, if it had none yet.
            if connection.backlog > BACKLOG_MAX:
                await self._answer(connection)
            connection = self._living_connection()
        await connection.send(subject, payload)

    async def flush(self) -> None:
        """Return when the server has everything published before."""
        connection = self._living_connection()
        await self._answer(connection)
        self._raise_refusal(connection)

    async def subscribe(self, pattern: str, hear: Hear) -> Delivery:
        """Receive what is published from now on; while disconnected, from the reconnect on."""
        check_pattern(pattern)
        if self._keeper is None or self._closed:
            raise self._unavailable()
        delivery = Delivery(pattern, hear, self._forget, self._waiting_max)
        try:
            await self._begin(delivery)
        except BaseException:
            await delivery.end()
            raise
        return delivery

    def drop(self, unwanted: MessageFilter | None) -> None:
        """Drop messages on these subjects as they come in; None: no more."""
        self._unwanted = unwanted

    def unwanted(self) -> MessageFilter | None:
        """What is dropped at the moment."""
        return self._unwanted

    async def close(self) -> None:
        """Send what is pending, then disconnect."""
        self._closed = True
        try:
            if self._connection is not None and not self._connection.lost.done():
                await self._answer(self._connection)
        except AdapterError as error:
            logger.warning("%s: closed without knowing whether all was sent: %s", self._name, error)
        finally:
            await self._end()

    async def _end(self) -> None:
        if self._keeper is not None:
            self._keeper.cancel()
            await asyncio.wait({self._keeper})
        if self._connection is not None:
            await self._connection.close()
            self._connection = None
        for deliveries in self._deliveries.values():
            for delivery in deliveries:
                delivery.cease()
        self._deliveries.clear()

    # Subscriptions

    async def _begin(self, delivery: Delivery) -> None:
        others = self._deliveries.setdefault(delivery.pattern, [])
        others.append(delivery)
        connection = self._connection
        if connection is None or connection.lost.done():
            return  # The reconnect subscribes to everything.
        if len(others) == 1:
            await connection.listen(delivery.pattern)
        try:
            await self._answer(connection)
        except AdapterError:
            return
        self._raise_refusal(connection)

    async def _forget(self, delivery: Delivery) -> None:
        deliveries = self._deliveries.get(delivery.pattern, [])
        if delivery in deliveries:
            deliveries.remove(delivery)
            if not deliveries:
                del self._deliveries[delivery.pattern]
                if self._connection is not None and not self._connection.lost.done():
                    await self._connection.unlisten(delivery.pattern)

    def _receive(self, pattern: str, subject: str, payload: bytes) -> None:
        if self._unwanted is not None and self._unwanted.drops(subject):
            return
        for delivery in self._deliveries.get(pattern, ()):
            delivery.put(subject, payload)

    # The connection

    async def _reach(self) -> ServerConnection:
        try:
            async with asyncio.timeout(CONNECT_FOR):
                connection = await self._dial(self._receive)
        except TimeoutError as error:
            raise AdapterError(f"no answer from {self._name} within {CONNECT_FOR:g} s") from error
        self._payload_max = connection.payload_max
        self._answered_at = asyncio.get_running_loop().time()
        return connection

    async def _keep(self, connection: ServerConnection) -> None:
        while True:
            try:
                await self._watch(connection)
            finally:
                await connection.close()
            self._connection = None
            self.losses += 1
            logger.warning("lost the connection to %s: %s", self._name, connection.lost.result())
            connection = await self._reconnect()
            self._connection = connection
            logger.warning("found %s again", self._name)

    async def _watch(self, connection: ServerConnection) -> None:
        """Return when it is lost; ask the server whenever it has not answered for a while."""
        loop = asyncio.get_running_loop()
        while not connection.lost.done():
            quiet_for = loop.time() - self._answered_at
            if quiet_for < CHECK_EVERY:
                await asyncio.wait({connection.lost}, timeout=CHECK_EVERY - quiet_for)
                continue
            try:
                await self._answer(connection)
            except AdapterError:
                return
            if connection.refusal is not None:
                logger.warning("%s refused: %s", self._name, connection.refusal)
                connection.refusal = None

    async def _reconnect(self) -> ServerConnection:
        wait_for = _RETRY_FIRST_AFTER
        while True:
            # Chance keeps a thousand agents from reconnecting at the same moment.
            await asyncio.sleep(wait_for * random.uniform(0.5, 1.0))  # noqa: S311 -- no secret
            wait_for = min(wait_for * 2, _RETRY_MAX_AFTER)
            try:
                connection = await self._reach()
            except AdapterError as error:
                logger.debug("%s is still away: %s", self._name, error)
                continue
            except Exception:  # A driver's bug is no reason to stop trying.
                logger.exception("%s cannot be reached", self._name)
                continue
            try:
                await self._subscribe_all(connection)
            except AdapterError as error:
                logger.debug("%s was lost again at once: %s", self._name, error)
                await connection.close()
            except BaseException:
                await connection.close()
                raise
            else:
                return connection

    async def _subscribe_all(self, connection: ServerConnection) -> None:
        """Restore the subscriptions. They may change meanwhile: in the end the server has exactly ours."""
        at_server: set[str] = set()
        while at_server != self._deliveries.keys():
            ours = set(self._deliveries)
            for pattern in ours - at_server:
                await connection.listen(pattern)
            for pattern in at_server - ours:
                await connection.unlisten(pattern)
            at_server = ours
            await self._answer(connection)

    async def _answer(self, connection: ServerConnection) -> None:
        """Wait for an answer; give up a connection without one."""
        answer = connection.ask()
        either: set[asyncio.Future[Any]] = {answer, connection.lost}
        # Twice half of the time: if our own loop stood still, the first wait ends before anything that arrived
        # meanwhile was read, and the second sees the answer.
        for _ in range(2):
            await asyncio.wait(either, timeout=ANSWER_FOR / 2, return_when=asyncio.FIRST_COMPLETED)
            if answer.done() and not answer.cancelled() and answer.exception() is None:
                self._answered_at = asyncio.get_running_loop().time()
                return
            if answer.done() or connection.lost.done():
                break
        if not connection.lost.done():
            failure = None if not answer.done() or answer.cancelled() else answer.exception()
            connection.lost.set_result(str(failure) if failure else f"no answer within {ANSWER_FOR:g} s")
        raise AdapterError(f"lost the connection to {self._name}: {connection.lost.result()}")

    def _living_connection(self) -> ServerConnection:
        connection = self._connection
        if connection is None or self._closed or connection.lost.done():
            raise self._unavailable()
        return connection

    def _refuse_if_closed(self) -> None:
        if self._closed:
            raise self._unavailable()

    def _unavailable(self) -> AdapterError:
        if self._closed:
            return AdapterError(f"the bus {self._name} is closed", transient=False)
        if self._keeper is None:
            return AdapterError(f"the bus {self._name} is not connected: connect() first")
        return AdapterError(f"the connection to {self._name} is lost, and being looked for")

    def _raise_refusal(self, connection: ServerConnection) -> None:
        refusal, connection.refusal = connection.refusal, None
        if refusal is not None:
            raise AdapterError(f"{self._name} refused: {refusal}", transient=False)
