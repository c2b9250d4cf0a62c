"""Orders over HTTP: what is posted, how its receiver knows it again, and what each answer means."""

from __future__ import annotations

import hashlib
import hmac
import json
from contextlib import suppress
from time import time
from typing import Any

import pytest

from lifesigns.adapters.executors.checkpoint_webhook import CheckpointWebhook
from lifesigns.adapters.executors.orchestrator_webhook import OrchestratorWebhook
from lifesigns.adapters.executors.order_webhook import OrderWebhook
from lifesigns.adapters.executors.webhook import Webhook
from lifesigns.core.effects import Order
from lifesigns.core.signals import (
    CheckpointVerified,
    Decision,
    EscalationDecided,
    NudgeDelivered,
    RespawnStarted,
    Signal,
)
from lifesigns.errors import AdapterError, UsageError
from lifesigns.ports import NotExecuted, OrderExecutor
from tests.adapters.channels.peers import Peer, Reply
from tests.adapters.executors.ground import escalate, nudge, respawn, verify

SECRET = "whsec-1"
CHECKPOINT = "http://hub/api/v1/tasks/t-19/checkpoints/cp-3"


def said(value: Any) -> Reply:
    return Reply(body=json.dumps(value).encode())


async def carried_out(hand: OrderExecutor, order: Order) -> Signal | None:
    try:
        return await hand.carry_out(order)
    finally:
        await hand.close()


def respawning(url: str, **more: Any) -> OrderWebhook:
    return OrderWebhook(Webhook(url, **more), lambda _: {"checkpoint_url": CHECKPOINT})


def asking(url: str) -> OrchestratorWebhook:
    return OrchestratorWebhook(Webhook(url), lambda order: {"decision_url": f"http://hub/{order.order_id}"})


# --- what is posted ----------------------------------------------------------------------------------------


async def test_a_respawn_says_who_what_and_where_from() -> None:
    order = respawn()
    async with Peer() as peer:
        outcome = await carried_out(respawning(f"{peer.url}/start"), order)
    (request,) = peer.requests
    assert request.path == "/start"
    assert request.json == {
        "version": 1,
        "type": "respawn",
        "id": "1-5",
        "epoch": 1,
        "agent_id": "coder-7",
        "incarnation": "one",
        "task_id": "t-19",
        "checkpoint_id": "cp-3",
        "checkpoint_url": CHECKPOINT,
        "new_incarnation": "coder-7~1-4",
        "attempt": 1,
        "handoff": order.handoff,
        "instead_of": [],
    }
    assert outcome == RespawnStarted(agent_id="coder-7", order_id="1-5")


async def test_every_try_has_the_same_key_and_another_order_another_one() -> None:
    """That is how its receiver starts nobody twice; the moment is in it because a new store counts from one again."""
    async with Peer() as peer:
        peer.replies.extend([Reply(503), Reply(hangs_up=True)])
        hand = respawning(peer.url)
        for order in (respawn(), respawn(), respawn(), respawn(at=1.0), respawn(order_id="1-6")):
            with suppress(NotExecuted):
                await hand.carry_out(order)
        await hand.close()
    keys = [request.headers["idempotency-key"] for request in peer.requests]
    assert len(set(keys[:3])) == 1
    assert len(set(keys)) == 3


async def test_what_is_posted_is_signed_and_fenced() -> None:
    async with Peer() as peer:
        await carried_out(respawning(peer.url, secret=SECRET, headers={"X-Team": "a"}), respawn(epoch=7))
    (request,) = peer.requests
    at = request.headers["lifesigns-timestamp"]
    signed = hmac.new(SECRET.encode(), at.encode() + b"." + request.body, hashlib.sha256).hexdigest()
    assert request.headers["lifesigns-signature"] == f"v1={signed}"
    assert abs(time() - int(at)) < 60
    assert (request.headers["lifesigns-epoch"], request.headers["x-team"]) == ("7", "a")


async def test_a_nudge_is_delivered_by_somebody_else() -> None:
    async with Peer() as peer:
        outcome = await carried_out(OrderWebhook(Webhook(peer.url)), nudge())
    assert peer.requests[0].json["text"] == "No checkpoint for 32 min."
    assert outcome == NudgeDelivered(agent_id="coder-7", order_id="1-6")


# --- what an answer means ----------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504])
async def test_come_again_means_come_again(status: int) -> None:
    async with Peer() as peer:
        peer.replies.append(Reply(status, headers={"Retry-After": "17"}))
        with pytest.raises(NotExecuted) as caught:
            await carried_out(respawning(peer.url), respawn())
    assert (caught.value.transient, caught.value.retry_after) == (True, 17.0)


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 409, 410, 422])
async def test_anything_else_is_for_good_and_is_quoted(status: int) -> None:
    async with Peer() as peer:
        peer.replies.append(Reply(status, b'{"error": "no such image"}', {"Location": "http://elsewhere/"}))
        with pytest.raises(AdapterError) as caught:
            await carried_out(respawning(peer.url), respawn())
    assert not caught.value.transient
    assert str(caught.value) == f'127.0.0.1 answered {status}: {{"error": "no such image"}}'


async def test_nobody_there_and_no_answer_are_tried_again() -> None:
    async with Peer() as peer:
        peer.replies.append(Reply(hangs=True))
        with pytest.raises(NotExecuted) as hung:
            await carried_out(respawning(peer.url, timeout=0.2), respawn())
        url = peer.url
    with pytest.raises(NotExecuted) as gone:
        await carried_out(respawning(url), respawn())
    assert hung.value.transient
    assert gone.value.transient


async def test_no_error_repeats_a_secret() -> None:
    async with Peer(lambda r: Reply(400, f"{r.path} {r.headers['authorization']}".encode())) as peer:
        hand = respawning(f"{peer.url}/hooks/T0123456789", headers={"Authorization": "Bearer tiger"})
        with pytest.raises(AdapterError) as caught:
            await carried_out(hand, respawn())
    assert "T0123456789" not in str(caught.value)
    assert "tiger" not in str(caught.value)


@pytest.mark.parametrize("url", ["", "ftp://x/", "not an address", "http://"])
def test_a_wrong_address_is_told_at_once_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError, match="needs to look like"):
        Webhook(url)


# --- escalations -------------------------------------------------------------------------------------------


async def test_an_escalation_comes_with_its_evidence_and_what_can_be_decided() -> None:
    async with Peer() as peer:
        assert await carried_out(asking(peer.url), escalate()) is None
    question = peer.requests[0].json
    assert question["type"] == "escalation"
    assert question["options"] == ["more_time", "handoff", "terminate", "ignore"]
    assert question["answer_by"] == "2027-01-15T08:15:00.000Z"
    assert question["decision_url"] == "http://hub/1-7"
    assert question["findings"] == [
        {
            "kind": "freeze",
            "since": "2027-01-15T07:59:00.000Z",
            "severity": "stuck",
            "text": "Its loop stands still.",
            "numbers": {"lag_ms": 60000.0},
            "conclusive": True,
        }
    ]


@pytest.mark.parametrize("decision", list(Decision))
async def test_the_answer_may_decide_at_once(decision: Decision) -> None:
    async with Peer() as peer:
        peer.replies.append(said({"decision": decision, "note": "it builds", "by": "conductor"}))
        outcome = await carried_out(asking(peer.url), escalate())
    assert outcome == EscalationDecided(
        agent_id="coder-7", order_id="1-7", decision=decision, by="conductor", note="it builds"
    )


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"ok",
        b"[]",
        b"null",
        b'{"decision": null}',
        b'{"decision": "explode"}',
        b'{"decision": 1}',
        b"\xff",
    ],
)
async def test_an_answer_without_a_decision_leaves_it_open(answer: bytes) -> None:
    """Whatever a server says by mistake, no agent ends because of it."""
    async with Peer() as peer:
        peer.replies.append(Reply(body=answer))
        assert await carried_out(asking(peer.url), escalate()) is None


# --- checkpoints elsewhere ---------------------------------------------------------------------------------


@pytest.mark.parametrize("valid", [True, False])
async def test_somebody_elses_word_about_a_checkpoint_counts(valid: bool) -> None:
    async with Peer() as peer:
        peer.replies.append(said({"valid": valid}))
        outcome = await carried_out(CheckpointWebhook(Webhook(peer.url)), verify("etag:9"))
    assert peer.requests[0].json["digest"] == "etag:9"
    assert isinstance(outcome, CheckpointVerified)
    assert (outcome.valid, outcome.read_back) == (valid, True)


@pytest.mark.parametrize("answer", [b"ok", b"{}", b'{"valid": "yes"}'])
async def test_an_answer_that_says_nothing_is_no_yes(answer: bytes) -> None:
    async with Peer() as peer:
        peer.replies.append(Reply(body=answer))
        with pytest.raises(AdapterError, match="says nothing"):
            await carried_out(CheckpointWebhook(Webhook(peer.url)), verify())
