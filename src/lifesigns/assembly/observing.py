"""Observing: gRPC health and tracing of a running hub, each if wanted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from lifesigns.adapters.observe.grpc_health import GrpcHealth
from lifesigns.adapters.observe.grpc_otlp import TakeBatch
from lifesigns.adapters.observe.tracing import Tracing
from lifesigns.core.health import Health
from lifesigns.hub.service import Service


@asynccontextmanager
async def observed(
    service: Service,
    grpc_port: int | None,
    trace: float | None,
    *,
    host: str = "127.0.0.1",
    otlp: TakeBatch | None = None,
    may_ask: Callable[[str], bool] = lambda _address: True,
) -> AsyncIterator[None]:
    """gRPC health on a port, spans of a share of the health checks: each if it is given. The service has started. `otlp`
    takes what exporters send to that port; `may_ask` counts every other question there."""
    async with AsyncExitStack() as stack:
        if trace is not None:
            tracing = Tracing(trace)
            stack.push_async_callback(tracing.close)
            service.feed.observe(tracing.tell)
            service.hub.counters.witness = tracing.looked
        if grpc_port is not None:
            health = GrpcHealth(ServiceHealth(service), otlp, may_ask)
            stack.push_async_callback(health.close)
            service.feed.observe(health.tell)
            await health.start(host, grpc_port)
        yield


class ServiceHealth:
    """Answers gRPC health for a service."""

    def __init__(self, service: Service) -> None:
        self._service = service

    def ready(self) -> bool:
        service = self._service
        blind = service.engine.beliefs.awareness.blind
        return service.store_state == "ok" and service.bus_state in ("ok", "none") and not blind

    def health_of(self, agent_id: str) -> Health | None:
        agent = self._service.engine.agent(agent_id)
        return None if agent is None else agent.health

    def agents(self) -> Iterable[str]:
        return self._service.engine.beliefs.agents

    def may_list(self, authorization: str) -> bool:
        scheme, _, token = authorization.partition(" ")
        if scheme.lower() != "bearer":
            return False
        principal = self._service.access.principal(token.strip().encode(), self._service.clock())
        return principal is not None and principal.sees_all
