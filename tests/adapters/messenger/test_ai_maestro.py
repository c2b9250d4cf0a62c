"""AI Maestro's API as it is, against a small one in a process of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest

from lifesigns.adapters.messenger.ai_maestro import AiMaestro
from lifesigns.core.signals import Priority
from lifesigns.ports.messenger import MessengerError, OutgoingMessage, SessionState, UnknownRecipient
from tests.servers.ai_maestro import CHIEF, FakeMaestro, ai_maestro


@pytest.fixture(scope="module")
def maestro(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FakeMaestro]:
    with ai_maestro(Path(tmp_path_factory.mktemp("maestro"))) as running:
        running.session("worker")
        running.session("gone", session=False)
        yield running


@pytest.fixture
def client(maestro: FakeMaestro) -> AiMaestro:
    return AiMaestro(maestro.url, CHIEF, timeout=2.0)


def note(to: str, kind: str = "nudge") -> OutgoingMessage:
    return OutgoingMessage(to, "Hello", Priority.HIGH, kind, "are you there?", {"sequence": 7})


async def test_a_message_is_sent_read_and_answered(maestro: FakeMaestro, client: AiMaestro) -> None:
    sent = await client.send(note("worker"))
    assert sent.notified
    (kept,) = [one for one in maestro.messages("worker") if one["id"] == sent.id]
    assert (kept["from"], kept["priority"], kept["content"]["context"]) == (CHIEF, "high", {"sequence": 7})
    assert not await client.is_read("worker", sent.id)
    await asyncio.to_thread(maestro.ask, "PATCH", f"/api/messages?agent=worker&id={sent.id}&action=read")
    assert await client.is_read("worker", sent.id)
    await asyncio.to_thread(
        maestro.send, "worker", "status", "busy with tests", inReplyTo=sent.id, status="busy"
    )
    (reply,) = await client.unread()
    assert (reply.sender, reply.kind, reply.text) == ("worker", "status", "busy with tests")
    assert (reply.in_reply_to, reply.context["status"]) == (sent.id, "busy")
    await client.mark_read(reply.id)
    assert not await client.unread()
    await client.close()


async def test_offline_is_taken_without_a_notice_and_unknown_is_an_error(client: AiMaestro) -> None:
    assert not (await client.send(note("gone"))).notified
    assert not (await client.send(note("worker", "heartbeat"))).notified
    with pytest.raises(UnknownRecipient, match="knows no agent 'nobody'") as unknown:
        await client.send(note("nobody"))
    assert not unknown.value.transient
    await client.close()


async def test_sessions_are_online_offline_or_unknown(maestro: FakeMaestro, client: AiMaestro) -> None:
    states = [await client.session(name) for name in ("worker", "gone", "nobody", "a/../b?c")]
    assert states == [
        SessionState.ONLINE,
        SessionState.OFFLINE,
        SessionState.NOT_FOUND,
        SessionState.NOT_FOUND,
    ]
    await asyncio.to_thread(maestro.session, "worker", status="waiting", notificationType="permission_prompt")
    activity = await client.activity()
    assert (activity["worker"].waiting, activity["worker"].waits_for) == (True, "permission_prompt")
    assert "gone" not in activity
    await client.close()


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        ("hang", "within 0.3 s"),
        ("cut", "not reached"),
        ("500", "answered 500"),
        ("nonsense", "no JSON object"),
    ],
)
async def test_what_fails_is_an_error_that_may_pass(maestro: FakeMaestro, fault: str, says: str) -> None:
    """Never `UnknownRecipient`: an AI Maestro that fails says nothing about its agents."""
    client = AiMaestro(maestro.url, CHIEF, timeout=0.3)
    await asyncio.to_thread(maestro.fails, fault, "/api/")
    try:
        for ask in (
            client.activity,
            client.unread,
            lambda: client.session("worker"),
            lambda: client.send(note("x")),
        ):
            with pytest.raises(MessengerError, match=says) as failed:
                await ask()
            assert failed.value.transient
            assert not isinstance(failed.value, UnknownRecipient)
    finally:
        await asyncio.to_thread(maestro.fails, "")
        await client.close()


async def test_slow_is_slow_and_works(maestro: FakeMaestro, client: AiMaestro) -> None:
    await asyncio.to_thread(maestro.fails, "slow", "/api/")
    try:
        sent = await asyncio.gather(*(client.send(note("worker")) for _ in range(6)))
    finally:
        await asyncio.to_thread(maestro.fails, "")
        await client.close()
    assert len({one.id for one in sent}) == 6
