"""Messages of one token push out those of no other.

Promise: contents are kept in a bounded room. When it is full, whoever filled it loses its own.
"""

from __future__ import annotations

import pytest

from lifesigns.hub import mailbox
from lifesigns.hub.principals import Role
from tests.web.hub import running_hub


async def test_whoever_writes_most_loses_its_own_messages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mailbox, "BYTES_MAX", 1024 * 1024)
    async with running_hub() as hub:
        tokens = {name: await hub.token_for(Role.AGENT, f"{name}-*") for name in ("good", "evil")}
        await hub.post("/api/v1/beats", [{"agent_id": f"{name}-{n}"} for name in tokens for n in (1, 2)])

        async def sends(name: str, content: str) -> None:
            said = {"agent_id": f"{name}-1", "to": f"{name}-2", "content": {"text": content}}
            async with hub.client(tokens[name]) as client:
                assert (await client.post("/api/v1/messages", json=said)).status_code == 202

        await sends("good", "please look at the build")
        for _ in range(40):
            await sends("evil", "x" * 60_000)
        async with hub.client(tokens["good"]) as client:
            (mail,) = (await client.get("/api/v1/agents/good-2/messages")).json()["messages"]
        assert mail["content"] == {"text": "please look at the build"}
