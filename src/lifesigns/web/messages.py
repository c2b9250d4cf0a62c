"""Messages between agents, acknowledged here, so that the hub notices a missing acknowledgement.

With a content they travel here, too: the recipient finds them in its inbox. Sent, delivered, read and acknowledged are four
things. Without one they travel elsewhere, and the hub sees only their ids.
"""

from __future__ import annotations

from typing import Annotated, Any, Final
from uuid import uuid4

import msgspec

from lifesigns.core.agent import Agent
from lifesigns.core.health import Health
from lifesigns.core.messages import PendingMessage
from lifesigns.core.quotas import Quota
from lifesigns.core.signals import MessageAcked, MessageSent, MessageWithdrawn, Priority
from lifesigns.hub.http_receiver import InboxFull, NotStored
from lifesigns.hub.mailbox import CONTENT_MAX, Mail
from lifesigns.hub.ownership import may_know
from lifesigns.views import Inbox, InboxMessage, MessageList, MessageView
from lifesigns.views.builders.messages import inbox_message, message_view
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId, MessageId
from lifesigns.web.paging import PageQuery, page
from lifesigns.web.routes import READERS, SPEAKERS, Request, Route
from lifesigns.web.speaking_rights import check_may_speak, check_owner

INBOX_MAX: Final = 500


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
    subject: Annotated[str, msgspec.Meta(max_length=1024)] = ""
    content: dict[str, Any] | None = None
    """What it says, at most 64 KiB: the hub keeps it in memory for the recipient. None: it travels elsewhere."""


class AcknowledgementBody(msgspec.Struct):
    """Who acknowledges it, or has read it: the recipient."""

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
    mailbox = request.service.mailbox
    shown = tuple(message_view(engine, message, mailbox.get(message.id)) for message in found)
    return answer(MessageList(shown, cursor))


async def send(request: Request) -> Answer:
    """A message was sent. If it is not acknowledged in time, the hub reminds its recipient and tells people, as its
    priority says. What cannot be delivered is a problem with a `code`: `agent_not_found`, `agent_offline`, `timeout`."""
    said, engine = request.body, request.service.engine
    check_may_speak(request, said.agent_id)
    size = 0 if said.content is None else len(msgspec.json.encode(said.content))
    if size > CONTENT_MAX:
        raise Problem(400, f"has {size} bytes, over the limit of {CONTENT_MAX}", field="content")
    _check_recipient(engine.agent(said.to), said.to)
    message_id = said.message_id or f"m-{uuid4().hex}"
    sent = MessageSent(
        agent_id=said.agent_id,
        message_id=message_id,
        to=said.to,
        priority=said.priority,
        source=request.principal.token_id,
    )
    check_owner(request, sent)
    try:
        await request.service.http_receiver.store_reports([sent])
    except (InboxFull, NotStored) as error:
        raise Problem(503, str(error.__doc__), headers={"Retry-After": "1"}, code="timeout") from None
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
    mailbox = request.service.mailbox
    if said.content is not None and mailbox.get(message_id) is None:
        mailbox.put(
            Mail(
                *(message_id, said.agent_id, said.to, said.subject, str(said.priority), said.content),
                *(None, request.now, size),
                wants_ack=True,
                source=request.principal.token_id,
            )
        )
    return answer(message_view(engine, message, mailbox.get(message_id)), 202)


async def inbox(request: Request) -> Answer:
    """The messages to an agent that came with their content, for the agent itself: they are delivered by that, and not yet
    read."""
    agent_id = request.path["agent_id"]
    check_may_speak(request, agent_id)
    mails = [mail for mail in request.service.mailbox.to(agent_id) if mail.acknowledged_at is None][
        :INBOX_MAX
    ]
    for mail in mails:
        mail.deliver(request.now)
    return answer(Inbox(tuple(map(inbox_message, mails))))


async def read(request: Request) -> Answer:
    """The recipient opens a message. It is read, and not yet acknowledged."""
    agent_id, message_id = request.body.agent_id, request.path["message_id"]
    check_may_speak(request, agent_id)
    mail = request.service.mailbox.get(message_id)
    if mail is None or mail.to != agent_id:
        raise Problem(404, f"no message {message_id!r} to {agent_id!r} is here")
    mail.read(request.now)
    return answer(inbox_message(mail))


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
    if (mail := request.service.mailbox.get(message_id)) is not None:
        mail.acknowledge(request.now)
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


def _check_recipient(agent: Agent | None, name: str) -> None:
    if agent is None:
        raise Problem(404, f"is {name!r}, of which nobody has heard", field="to", code="agent_not_found")
    if agent.health in (Health.DISCONNECTED, Health.TERMINATED):
        raise Problem(409, f"is {name!r}, which is {agent.health}", field="to", code="agent_offline")


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
            404: "nobody has heard of the recipient (`agent_not_found`)",
            429: "the token of the sender has too many that are not acknowledged",
            409: "the recipient is lost or has ended (`agent_offline`), this id is another message's, or the sender has too many that are not acknowledged",
        },
    ),
    Route("GET", "/api/v1/agents/{agent_id}/messages", SPEAKERS, inbox, Inbox),
    Route(
        "POST",
        "/api/v1/messages/{message_id}/read",
        SPEAKERS,
        read,
        InboxMessage,
        body=AcknowledgementBody,
        also={404: "there is no such message to this agent"},
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
