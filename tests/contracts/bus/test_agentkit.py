"""Beats exactly as a Go agentkit sender publishes them are understood as they are."""

import asyncio
import json

from lifesigns.adapters.bus.nats import NatsBus
from lifesigns.core.engine import Engine
from lifesigns.core.health import Health
from lifesigns.wire import decode_beat
from tests.contracts.bus.ground import eventually
from tests.servers.nats import NatsServer


async def test_a_go_senders_beats_make_a_healthy_agent_with_its_tokens_counted(
    nats_server: NatsServer,
) -> None:
    """Through a real server, by a client that is not ours: five fields, nanoseconds, metadata of strings."""
    engine, bus = Engine(), NatsBus(nats_server.url)
    loop = asyncio.get_running_loop()

    def hear(subject: str, payload: bytes) -> None:
        beat = decode_beat(payload)
        assert subject == f"heartbeat.{beat.agent_id}"
        engine.hear(beat, loop.time())

    await bus.connect()
    await bus.subscribe("heartbeat.*", hear)
    await _publish_like_go(nats_server.port, tokens_in=1200, second=0)
    await _publish_like_go(nats_server.port, tokens_in=1500, second=5)
    await eventually(lambda: (agent := engine.agent("go-coder-1")) is not None and agent.beats == 2)
    agent = engine.agent("go-coder-1")
    assert agent is not None
    assert agent.health is Health.HEALTHY
    assert agent.load == 0.25
    assert agent.spending is not None
    assert agent.spending.reported == 1500 + 340
    await bus.close()


async def _publish_like_go(port: int, *, tokens_in: int, second: int) -> None:
    beat = {
        "agent_id": "go-coder-1",
        "timestamp": f"2026-11-15T18:00:0{second}.123456789Z",
        "status": "busy",
        "load": 0.25,
        "metadata": {"tokens_in": str(tokens_in), "tokens_out": "340", "llm_calls": "7", "sup_approved": "2"},
    }
    payload = json.dumps(beat, separators=(",", ":")).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    await reader.readline()
    writer.write(b'CONNECT {"verbose":false,"lang":"go","version":"1.38.0","protocol":1}\r\n')
    writer.write(b"PUB heartbeat.go-coder-1 %d\r\n%s\r\nPING\r\n" % (len(payload), payload))
    assert await asyncio.wait_for(reader.readline(), 10) == b"PONG\r\n"
    writer.close()
    await writer.wait_closed()
