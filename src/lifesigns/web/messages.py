"""Messages between agents: they travel elsewhere, and are acknowledged here, so that the hub notices a missing
acknowledgement.
"""

from __future__ import annotations

from typing import Annotated, Final
from uuid import uuid4

import msgspec

from lifesigns.core.messages import PendingMessage
from lifesigns.core.quotas import Quota
from lifesigns.core.signals import MessageAcked, MessageSent, MessageWithdrawn, Priority
from lifesigns.hub.ownership import may_know
from lifesigns.views import MessageList, MessageView
from lifesigns.views.messages import message_view
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId, MessageId
from lifesigns.web.paging import PageQuery, page
from lifesigns.web.routes import READERS, SPEAKERS, Request, Route
from lifesigns.web.speaking_rights import check_may_speak, check_owner


class MessagesQuery(PageQuery):
    """Which messages: every condition that is given must hold."""

    agent: AgentId | None = None
    """Who sent it."""
    to: AgentId | None = None
    priority: tuple[Priority, ...] = ()


class MessageBody(msgspec.Struct, kw_only=True):
    """A message that was sent, and wants to be acknowledged."""

    agent_id: AgentId
    """Who sent it."""
    to: Annotated[AgentId, msgspec.Meta(examples=["reviewer-1"])]
    priority: Priority = Priority.NORMAL
    message_id: MessageId | None = None
    """The hub makes one if there is none."""


class AcknowledgementBody(msgspec.Struct):
    """Who acknowledges: the recipient."""

    agent_id: Annotated[AgentId, msgspec.Meta(examples=["reviewer-1"])]


async def messages(request: Request) -> Answer:
    """Messages that are neither acknowledged nor withdrawn, oldest first; the overdue ones among them have `overdue_at`."""
    query, engine = request.query, request.service.engine
    wanted = (
        message
        for message in engine.beliefs.messages.values()
        if (query.agent is None or message.sender == query.agent)
        and (query.to is None or message.to == query.to)
        and (not query.priority or message.priority in query.priority)
    )
    found, cursor = page(wanted, request.query)
    return answer(MessageList(tuple(message_view(engine, message) for message in found), cursor))


async def send(request: Request) -> Answer:
    """A message was sent. If it is not acknowledged in time, the hub reminds its recipient and tells people, as its
    priority says. The hub sees only its id, not the message."""
    said, engine = request.body, request.service.engine
    check_may_speak(request, said.agent_id)
    if engine.agent(said.to) is None:
        raise Problem(404, f"is {said.to!r}, of which nobody has heard", field="to")
    message_id = said.message_id or f"m-{uuid4().hex}"
    sent = MessageSent(
        agent_id=said.agent_id,
        message_id=message_id,
        to=said.to,
        priority=said.priority,
        source=request.principal.token_id,
    )
    check_owner(request, sent)
    await request.service.http_receiver.store_reports([sent])
    message = engine.beliefs.messages.get(message_id)
    if message is None:
        request.site.quotas.check(Quota.MESSAGES, said.agent_id)
        raise Problem(
            409, f"message {message_id!r} was refused: {said.agent_id!r} has ended, or too many are open"
        )
    if (message.sender, message.to) != (said.agent_id, said.to):
        raise Problem(
            409, f"is {message_id!r}, which {message.sender!r} sent to {message.to!r}", field="message_id"
        )
    return answer(message_view(engine, message), 202)


async def acknowledge(request: Request) -> Answer:
    """The recipient has understood a message."""
    agent_id, message_id = request.body.agent_id, request.path["message_id"]
    check_may_speak(request, agent_id)
    messages, message = request.service.engine.beliefs.messages, _known(request)
    if message.to != agent_id:
        raise Problem(409, f"message {message_id!r} was sent to {message.to!r}", field="agent_id")
    await request.service.http_receiver.store_reports(
        [MessageAcked(agent_id=agent_id, message_id=message_id)]
    )
    if messages.get(message_id) is message:
        raise Problem(409, f"the acknowledgement was refused: {agent_id!r} has ended")
    return Answer(status=204)


async def withdraw(request: Request) -> Answer:
    """The sender no longer waits for an acknowledgement: no reminders, and it is not listed."""
    message_id = request.path["message_id"]
    messages, message = request.service.engine.beliefs.messages, _known(request)
    check_may_speak(request, message.sender)
    await request.service.http_receiver.store_reports(
        [MessageWithdrawn(agent_id=message.sender, message_id=message_id)]
    )
    if messages.get(message_id) is message:
        raise Problem(409, f"the withdrawal was refused: {message.sender!r} has ended")
    return Answer(status=204)


def _known(request: Request) -> PendingMessage:
    """The message of the path. A client that may not know of it does not learn whether it exists."""
    message_id = request.path["message_id"]
    message = request.service.engine.beliefs.messages.get(message_id)
    if message is None or not may_know(request.principal, message):
        raise Problem(404, f"no message {message_id!r} waits for an acknowledgement")
    return message


CALLS: Final = (
    Route("GET", "/api/v1/messages", READERS, messages, MessageList, query=MessagesQuery),
    Route(
        "POST",
        "/api/v1/messages",
        SPEAKERS,
        send,
        MessageView,
        body=MessageBody,
        status=202,
        also={
            404: "nobody has heard of the recipient",
            429: "the token of the sender has too many that are not acknowledged",
            409: "this id is another message's, or the sender has too many that are not acknowledged",
        },
    ),
    Route(
        "POST",
        "/api/v1/messages/{message_id}/ack",
        SPEAKERS,
        acknowledge,
        body=AcknowledgementBody,
        status=204,
        also={404: "no such message waits", 409: "it was sent to somebody else"},
    ),
    Route(
        "DELETE",
        "/api/v1/messages/{message_id}",
        SPEAKERS,
        withdraw,
        status=204,
        also={404: "no such message waits"},
    ),
)
