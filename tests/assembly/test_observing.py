"""A running hub is looked at from outside: by a real gRPC client, and a collector of spans."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from lifesigns.assembly.observing import observed
from lifesigns.core.signals import BeatReceived, NudgeRequested
from tests.adapters.observe.collector import collector, said
from tests.web.observed import WAIT_MAX, Observed

Response = health_pb2.HealthCheckResponse


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def status(call: Any) -> int:
    async with asyncio.timeout(WAIT_MAX):
        return int((await call.read()).status)


async def test_who_watches_an_agent_by_grpc_sees_it_die_and_come_back() -> None:
    port = free_port()
    async with Observed() as seen, observed(seen.service, port, None):
        await seen.hear(BeatReceived("a", 1, "one"), BeatReceived("b", 1, "one"))
        async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            hub = await stub.Check(health_pb2.HealthCheckRequest(), timeout=WAIT_MAX)
            assert hub.status == Response.SERVING
            watch = stub.Watch(health_pb2.HealthCheckRequest(service="agent/a"))
            assert await status(watch) == Response.SERVING
            await seen.pass_time(10, "b")
            assert await status(watch) == Response.NOT_SERVING
            await seen.hear(BeatReceived("a", 2, "one"))
            assert await status(watch) == Response.SERVING


async def test_a_running_hub_sends_its_interventions_and_looks_as_spans(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with collector() as received:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", received.url)
        async with Observed() as seen:
            async with observed(seen.service, None, 1.0):
                await seen.hear(BeatReceived("a", 1, "one"), BeatReceived("b", 1, "one"))
                await seen.hear(NudgeRequested(agent_id="a", by="me", message="hello"))
                await seen.pass_time(10, "b")
            await seen.hear(NudgeRequested(agent_id="b", by="me", message="too late to be traced"))
        assert [said(span)["agent_id"] for span in received.named("lifesigns.nudge.ordered")] == ["a"]
        assert "disconnected" in {said(span)["to"] for span in received.named("lifesigns.flip")}
        assert received.named("lifesigns.health_check")


async def test_nothing_is_switched_on_unless_it_is_asked_for() -> None:
    async with Observed() as seen, observed(seen.service, None, None):
        await seen.hear(BeatReceived("a", 1, "one"))
        assert seen.service.hub.counters.witness is None
