"""The webhook: JSON that others can check is ours."""

from __future__ import annotations

import hashlib
import hmac
from time import time

from lifesigns.adapters.channels.webhook import WebhookChannel
from tests.adapters.channels.peers import Peer, notice

SECRET = "whsec-1"


async def test_the_notice_comes_as_json_with_all_it_says() -> None:
    async with Peer() as peer:
        channel = WebhookChannel(f"{peer.url}/hook?x=1", headers={"Authorization": "Bearer t"})
        await channel.tell(notice())
        await channel.close()
    (request,) = peer.requests
    assert request.path == "/hook?x=1"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["authorization"] == "Bearer t"
    assert "lifesigns-signature" not in request.headers
    assert request.json == {
        "version": 1,
        "key": "stuck_agent:coder-7",
        "stage": "opened",
        "severity": "warning",
        "kind": "stuck_agent",
        "title": "coder-7 is disconnected (crash)",
        "text": "No beat for 15 s.",
        "since": "2027-01-15T08:00:00.000Z",
        "at": "2027-01-15T08:00:05.000Z",
        "agents": ["coder-7"],
        "count": 1,
        "group": "",
        "link": "http://127.0.0.1:8710/agents/coder-7",
        "details": {"state": "disconnected", "attempts": 3.0},
    }


async def test_its_signature_covers_the_time_and_the_body() -> None:
    async with Peer() as peer:
        channel = WebhookChannel(peer.url, secret=SECRET)
        await channel.tell(notice(text="snow ☃"))
        await channel.close()
    (request,) = peer.requests
    at = request.headers["lifesigns-timestamp"]
    signed = hmac.new(SECRET.encode(), at.encode() + b"." + request.body, hashlib.sha256).hexdigest()
    assert request.headers["lifesigns-signature"] == f"v1={signed}"
    assert abs(time() - int(at)) < 60
