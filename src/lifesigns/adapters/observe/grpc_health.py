"""gRPC health: `grpc.health.v1` for the hub and for each agent, on its own port. Needs the extra `grpc`.

    ""                  the hub: SERVING while store and bus are there
    "agent/coder-7"     an agent, or just "coder-7": SERVING while healthy or degraded, NOT_SERVING otherwise

`Check` of an unknown agent is NOT_FOUND. `Watch` reports each change: flips arrive as events, and one look a second at
all watched services finds what no event tells (the store is away, an agent is forgotten). A slow reader gets the latest
status, not the history.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from typing import Any, Final, Protocol

from lifesigns.adapters.observe import grpc_otlp, grpc_requests
from lifesigns.adapters.observe.grpc_otlp import TakeBatch
from lifesigns.core.health import Health
from lifesigns.errors import AdapterError, UsageError
from lifesigns.events.catalogue import HEALTH_STATE_CHANGED
from lifesigns.ports import Event

LOOK_EVERY: Final = 1.0
WATCHERS_MAX: Final = 1000
LISTED_MAX: Final = 100
"""Services in one answer; more is RESOURCE_EXHAUSTED, as the protocol says."""
REQUEST_MAX: Final = 4096
"""Bytes; an id has 128."""
CALLS_MAX: Final = 2 * WATCHERS_MAX
"""Calls at the same time, watchers included; gRPC itself refuses more."""
REFUSED_AFTER: Final = 0.5
"""Seconds after which somebody who asks too much is told so: to refuse costs as much as to answer."""
CLOSE_FOR: Final = 1.0

AGENT: Final = "agent/"
_SERVING: Final = frozenset({Health.HEALTHY, Health.DEGRADED})

log: Final = logging.getLogger("lifesigns.observe")


class HubHealth(Protocol):
    """What the service asks the hub."""

    def ready(self) -> bool:
        """Whether the hub can do its work."""

    def health_of(self, agent_id: str) -> Health | None:
        """The health of an agent; None if it is unknown."""

    def agents(self) -> Iterable[str]:
        """The ids of all agents."""

    def may_list(self, authorization: str) -> bool:
        """Whether the bearer of this header, `Bearer <token>`, may list all agents."""


class GrpcHealth:
    """A gRPC server that answers for the hub."""

    def __init__(
        self,
        hub: HubHealth,
        otlp: TakeBatch | None = None,
        may_ask: Callable[[str], bool] = lambda _address: True,
    ) -> None:
        try:
            import grpc  # type: ignore[import-untyped]
            from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]
        except ModuleNotFoundError as error:
            raise UsageError("gRPC health needs grpcio: pip install 'lifesigns[grpc]'") from error
        self._grpc = grpc
        self._shapes = health_pb2
        self._add_to_server = health_pb2_grpc.add_HealthServicer_to_server
        self._hub = hub
        self._otlp = otlp
        """Takes what exporters of OpenTelemetry send to the same port, if that is wanted."""
        self._may_ask = may_ask
        """Counts a question from this address, which needs no token; False if there were too many."""
        self._watchers: dict[str, set[_Watcher]] = {}
        """The watchers, by service."""
        self._closing = False
        self._server: Any = None
        self._looking: asyncio.Task[None] | None = None

    # --- beginning and end ------------------------------------------------------------------------------

    async def start(self, host: str, port: int) -> int:
        """Listen; returns the port. Not encrypted: for loopback, a pod's own network, or behind a proxy."""
        options = (
            (
                "grpc.so_reuseport",
                0,
            ),  # Otherwise two hubs could share a port, and a client would get the one or the other.
            (
                "grpc.max_receive_message_length",
                REQUEST_MAX if self._otlp is None else grpc_otlp.REQUEST_MAX,
            ),
        )
        server = self._grpc.aio.server(options=options, maximum_concurrent_rpcs=CALLS_MAX)
        self._add_to_server(self, server)
        if self._otlp is not None:
            server.add_generic_rpc_handlers(grpc_otlp.handlers(self._grpc, self._otlp))
        address = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        try:
            bound: int = server.add_insecure_port(address)
        except RuntimeError as error:
            raise AdapterError(f"gRPC health cannot listen on {address}: {error}", transient=False) from error
        await server.start()
        self._server = server
        self._looking = asyncio.create_task(self._look(), name="lifesigns grpc health")
        log.info("gRPC health on %s port %d", host, bound, extra={"action": "grpc_listening"})
        return bound

    async def close(self) -> None:
        """Release the watchers; by the protocol they come again."""
        self._closing = True
        for watchers in self._watchers.values():
            for watcher in watchers:
                watcher.woken.set()
        if self._looking is not None:
            self._looking.cancel()
            await asyncio.gather(self._looking, return_exceptions=True)
        if self._server is not None:
            await self._server.stop(CLOSE_FOR)

    def tell(self, events: Sequence[Event]) -> None:
        """Wake the watchers of the agents in these events."""
        if self._watchers:
            for event in events:
                if event.type == HEALTH_STATE_CHANGED:
                    self._look_at(event.agent_id)
                    self._look_at(AGENT + event.agent_id)

    # --- what clients call; the names are the protocol's ------------------------------------------------

    async def Check(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The current status of a service."""
        await self._begin(context)
        status = self._status(request.service)
        if status == self._shapes.HealthCheckResponse.SERVICE_UNKNOWN:
            await context.abort(
                self._grpc.StatusCode.NOT_FOUND, f"no agent {request.service!r} has been heard of"
            )
        return self._answer(status)

    async def List(self, request: Any, context: Any) -> Any:  # noqa: N802
        """The status of all agents, if they are few, for callers that may see all. Asking about one agent takes its
        name."""
        metadata = await self._begin(context)
        if not self._hub.may_list(metadata.get("authorization", "")):
            detail = "List needs a token that sees all agents, as metadata authorization: Bearer <token>"
            await context.abort(self._grpc.StatusCode.UNAUTHENTICATED, detail)
        names = ["", *self._hub.agents()]
        if len(names) > LISTED_MAX:
            detail = f"there are {len(names) - 1} agents; at most {LISTED_MAX - 1} are listed"
            await context.abort(self._grpc.StatusCode.RESOURCE_EXHAUSTED, detail)
        return self._shapes.HealthListResponse(
            statuses={name: self._answer(self._status(name)) for name in names}
        )

    async def Watch(self, request: Any, context: Any) -> AsyncIterator[Any]:  # noqa: N802
        """The current status of a service, and each change."""
        await self._begin(context)
        if sum(map(len, self._watchers.values())) >= WATCHERS_MAX:
            detail = f"{WATCHERS_MAX} watch already"
            await context.abort(self._grpc.StatusCode.RESOURCE_EXHAUSTED, detail)
        service, watcher = str(request.service), _Watcher()
        watchers = self._watchers.setdefault(service, set())
        watchers.add(watcher)
        try:
            while not self._closing:
                status = self._status(service)
                if status != watcher.sent:
                    watcher.sent = status
                    yield self._answer(status)
                await watcher.woken.wait()
                watcher.woken.clear()
        finally:
            watchers.discard(watcher)
            if not watchers:
                self._watchers.pop(service, None)

    # --- parts ------------------------------------------------------------------------------------------

    async def _begin(self, context: Any) -> dict[str, str]:
        """What else the caller said. Somebody who asks too much is refused."""
        metadata = grpc_requests.begin(context)
        if not self._may_ask(context.peer().rpartition(":")[0]):
            await asyncio.sleep(REFUSED_AFTER)
            await context.abort(self._grpc.StatusCode.RESOURCE_EXHAUSTED, "too many questions in this second")
        return metadata

    async def _look(self) -> None:
        while True:
            await asyncio.sleep(LOOK_EVERY)
            for service in list(self._watchers):
                self._look_at(service)

    def _look_at(self, service: str) -> None:
        watchers = self._watchers.get(service)
        if watchers is not None:
            status = self._status(service)
            for watcher in watchers:
                if watcher.sent != status:
                    watcher.woken.set()

    def _status(self, service: str) -> int:
        shapes = self._shapes.HealthCheckResponse
        if not service:
            return int(shapes.SERVING if self._hub.ready() else shapes.NOT_SERVING)
        # An id may itself begin with `agent/`: then that agent is meant.
        health = self._hub.health_of(service)
        if health is None and service.startswith(AGENT):
            health = self._hub.health_of(service.removeprefix(AGENT))
        if health is None:
            return int(shapes.SERVICE_UNKNOWN)
        return int(shapes.SERVING if health in _SERVING else shapes.NOT_SERVING)

    def _answer(self, status: int) -> Any:
        return self._shapes.HealthCheckResponse(status=status)


class _Watcher:
    """One watcher: the status it was sent last, and the event that wakes it when that has changed."""

    __slots__ = ("sent", "woken")

    def __init__(self) -> None:
        self.sent: int | None = None
        self.woken = asyncio.Event()
