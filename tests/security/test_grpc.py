"""The port of gRPC is held to what holds for HTTP.

Promise: whoever asks there without end, with a token or without, waits; and `/metrics` tells.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import Any

import grpc  # type: ignore[import-untyped]
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc  # type: ignore[import-untyped]

from lifesigns.config.values import Limits
from lifesigns.web.otlp_grpc import OverGrpc
from tests.journeys.outside import Hub, free_port, serving
from tests.web.hub import running_hub

EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
LIMITS = {"limits": {"unknown_requests_per_second": 20, "requests_per_second": 20}}


def over_limit(hub: Hub, limit: str) -> float:
    (count,) = re.findall(rf'requests_over_limit_total{{limit="{limit}"}} (.+)', hub.get("/metrics"))
    return float(count)


def asked_at_once(channel: Any, method: str, metadata: tuple[tuple[str, str], ...]) -> list[str]:
    """How fifty calls that come at once are answered."""
    call = channel.unary_unary(method)
    asked = [call.future(b"", metadata=metadata, timeout=60) for _ in range(50)]
    return [str(one.code().name) for one in asked]


@pytest.mark.parametrize(
    ("method", "refusal", "limit"),
    [
        pytest.param("/grpc.health.v1.Health/Check", "RESOURCE_EXHAUSTED", "unknown_requests", id="health"),
        pytest.param(EXPORT, "UNAVAILABLE", "requests", id="spans"),
    ],
)
def test_whoever_asks_too_much_waits(tmp_path: Path, method: str, refusal: str, limit: str) -> None:
    with serving(tmp_path, LIMITS, "--grpc", str(port := free_port())) as hub:
        made = hub.post("/api/v1/tokens", {"role": "agent", "name": "evil", "agents": "evil"})
        said = (("authorization", f"Bearer {made['token']}"),) if method == EXPORT else ()
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            began = time.monotonic()
            answers = asked_at_once(channel, method, said)
            assert set(answers) == {"OK", refusal}, answers
            assert answers.count(refusal) >= 20
            assert time.monotonic() - began >= 0.5, "who is refused at once asks again at once"
        assert over_limit(hub, limit) >= 20


async def test_a_flood_from_one_address_refuses_no_other() -> None:
    """An orchestrator restarts a healthy agent that it cannot ask about."""
    async with running_hub(limits=Limits(unknown_requests_per_second=5)) as hub:
        over_grpc = OverGrpc(hub.service, hub.web.site)
        assert not all(over_grpc.may_ask("ipv4:198.51.100.1") for _ in range(100))
        assert over_grpc.may_ask("ipv4:198.51.100.2")


def test_a_probe_is_answered_as_ever(tmp_path: Path) -> None:
    with serving(tmp_path, None, "--grpc", str(port := free_port())) as hub:
        hub.post("/api/v1/beats", {"agent_id": "coder-7"})
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            answer = health_pb2_grpc.HealthStub(channel).Check(
                health_pb2.HealthCheckRequest(service="coder-7"), timeout=30
            )
        assert answer.status == health_pb2.HealthCheckResponse.SERVING
