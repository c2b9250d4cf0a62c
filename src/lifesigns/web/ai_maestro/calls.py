"""AI Maestro's calls, as its documents type them, answered by this hub.

A message is a `MessageSent` of ours; an answer (`inReplyTo`, or the response to a heartbeat) acknowledges it. A response
to a heartbeat is a beat. An agent that is first heard here beats as often as it is asked, so it gets a role with long
intervals, unless the file gives it one.

On the loopback these calls need no token, as AI Maestro's need none: whoever can open a port of this machine can speak
for any agent here. Elsewhere they need one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Literal
from uuid import uuid4

import msgspec

from lifesigns import __version__
from lifesigns.core.agent import Agent
from lifesigns.core.detectors.silence import missed
from lifesigns.core.effects import SendNudge
from lifesigns.core.health import Cause, Doing, Health
from lifesigns.core.messages import PendingMessage
from lifesigns.core.signals import (
    AgentRegistered,
    MessageAcked,
    MessageSent,
    NudgeDelivered,
    NudgeSeen,
    Priority,
    Signal,
)
from lifesigns.hub.ai_maestro.questions import Question, Questions
from lifesigns.hub.ai_maestro.replies import signals_of
from lifesigns.hub.http_receiver import InboxFull, NotStored
from lifesigns.hub.mailbox import CONTENT_MAX, Mail, Mailbox
from lifesigns.hub.principals import Principal, Role
from lifesigns.ports.correlation import correlation_id
from lifesigns.ports.messenger import IncomingMessage
from lifesigns.web.access import check_page, headers_of
from lifesigns.web.answers import Answer, Problem, answer
from lifesigns.web.ids import AgentId, MessageId
from lifesigns.web.routes import NO_TOKEN, SPEAKERS, Handler, Request, Route
from lifesigns.web.speaking_rights import check_may_speak

ANYBODY: Final = Principal("ai-maestro", "the door for AI Maestro", Role.OPERATOR)
"""Who comes without a token."""

BEATS_AS: Final = "active-development"
SENDS_AS: Final = "standby"
"""The roles of agents that are first heard here, by a heartbeat or by a message."""

LISTED_MAX: Final = 500
GONE: Final = frozenset({Health.DISCONNECTED, Health.TERMINATED})

Short = Annotated[str, msgspec.Meta(max_length=1024)]


class MaestroMessage(msgspec.Struct, kw_only=True):
    """A message as AI Maestro takes it."""

    sender: AgentId = msgspec.field(name="from")
    to: AgentId
    subject: Short = ""
    priority: Priority = Priority.NORMAL
    in_reply_to: MessageId | None = msgspec.field(name="inReplyTo", default=None)
    content: dict[str, Any]


class MaestroQuery(msgspec.Struct):
    """Which messages of an agent."""

    agent: AgentId
    action: Literal["list", "inbox", "sent", "read", "acknowledge"] = "list"
    status: Literal["all", "unread", "read", "acknowledged", "unacknowledged"] = "all"
    id: MessageId | None = None
    limit: Annotated[int, msgspec.Meta(ge=1, le=LISTED_MAX)] = 100


class MaestroHeartbeat(msgspec.Struct, kw_only=True):
    """A heartbeat of an agent's session."""

    status: Short = "healthy"
    session: Short | None = msgspec.field(name="claudeSessionId", default=None)
    role: Short | None = None
    host: Short | None = None


class MaestroCalls:
    """The calls, with the mailbox behind them."""

    def __init__(self, mailbox: Mailbox, questions: Questions) -> None:
        self.mailbox = mailbox
        self.questions = questions
        """What the hub itself wrote to agents."""

    def routes(self, *, open_to_all: bool) -> tuple[Route, ...]:
        """The rows of this door. `open_to_all`: without tokens."""
        who = NO_TOKEN if open_to_all else SPEAKERS
        wrapped: Callable[[Handler], Handler] = _as_anybody if open_to_all else lambda handle: handle
        return (
            Route("POST", "/api/messages", who, wrapped(self.send), body=MaestroMessage, status=201),
            Route("GET", "/api/messages", who, wrapped(self.list), query=MaestroQuery),
            Route("PATCH", "/api/messages", who, wrapped(self.mark), query=MaestroQuery),
            Route("GET", "/api/agents/{agent_id}/status", who, wrapped(self.status)),
            Route(
                "POST",
                "/api/agents/{agent_id}/heartbeat",
                who,
                wrapped(self.heartbeat),
                body=MaestroHeartbeat,
            ),
            Route("GET", "/health", NO_TOKEN, health),
            Route("GET", "/api/v1/health", NO_TOKEN, health),
        )

    # --- messages -------------------------------------------------------------------------------------

    async def send(self, request: Request) -> Answer:
        """Send a message. What cannot be delivered is an error with a code: `agent_not_found`, `agent_offline`, `timeout`."""
        said: MaestroMessage = request.body
        check_may_speak(request, said.sender, field="from")
        size = len(msgspec.json.encode(said.content))
        if size > CONTENT_MAX:
            raise Problem(400, f"has {size} bytes, over the limit of {CONTENT_MAX}", field="content")
        pong = said.content.get("type") == "heartbeat-response"
        mail = Mail(
            *(f"msg-{uuid4().hex}", said.sender, said.to, said.subject, str(said.priority), said.content),
            *(said.in_reply_to, request.now, size),
            wants_ack=not pong,
            source=request.principal.token_id,
        )
        try:
            if (
                asked := self.questions.about(said.in_reply_to)
            ) is not None and asked.agent_id == said.sender:
                mail.wants_ack = False
                await self._answered(request, mail, asked)
            elif pong:
                await self._pong(request, mail)
            elif (fault := _undeliverable(request.service.engine.agent(said.to), said.to)) is not None:
                return fault
            else:
                await _keep(request, [*_introduced(request, said.sender), _sent(mail, request)])
                if mail.id not in request.service.engine.beliefs.messages:
                    raise Problem(409, f"{said.sender!r} has ended, or too many of its messages are open")
            await self._reply(request, mail)
        except (InboxFull, NotStored) as error:
            return _error(504, "timeout", str(error.__doc__))
        self.mailbox.put(mail)
        return answer({"message": self._shown(request, mail), "notified": True}, 201)

    async def _answered(self, request: Request, mail: Mail, asked: Question) -> None:
        """An answer to something the hub wrote."""
        content, context = mail.content, mail.content.get("context")
        said = IncomingMessage(
            mail.id,
            mail.sender,
            str(content.get("type", "")),
            str(content.get("message", "")),
            {**content, **(context if isinstance(context, dict) else {})},
        )
        source = request.principal.token_id
        await _keep(request, signals_of(said, asked.order, source=source))
        if (question := self.mailbox.get(asked.message_id)) is not None:
            question.acknowledge(request.now)
        self.questions.answered(asked)

    async def _pong(self, request: Request, mail: Mail) -> None:
        """The response to a heartbeat is a beat, and acknowledges the request."""
        status, task = str(mail.content.get("status") or "healthy"), mail.content.get("current_task")
        await _beat(request, mail.sender, status, progress=str(task) if task else None)
        await self._acknowledge(request, self.mailbox.pings_before(mail), mail.sender)

    async def _reply(self, request: Request, mail: Mail) -> None:
        answered = None if mail.in_reply_to is None else self.mailbox.get(mail.in_reply_to)
        if answered is not None and answered.to == mail.sender:
            await self._acknowledge(request, [answered], mail.sender)

    async def _acknowledge(self, request: Request, mails: Iterable[Mail], by: str) -> None:
        known = request.service.engine.beliefs.messages
        waiting = [mail for mail in mails if mail.acknowledged_at is None]
        acks = [MessageAcked(agent_id=by, message_id=mail.id) for mail in waiting if mail.id in known]
        if acks:
            await _keep(request, acks)
        for mail in waiting:
            if mail.id not in known:
                mail.acknowledge(request.now)

    async def list(self, request: Request) -> Answer:
        """The messages to an agent, or those it sent (`action=sent`). One that is named (`id`) is read by that."""
        query: MaestroQuery = request.query
        _check_sight(request, query.agent)
        if query.action == "sent":
            found = self._sent_by(request, query.agent)
        else:
            found = ((mail, None) for mail in self.mailbox.to(query.agent))
        shown, known = [], request.service.engine.beliefs.messages
        steps: list[Signal] = []
        for mail, pending in found:
            if query.id in (None, mail.id) and _fits(mail, query.status, waits=mail.id in known):
                if query.action != "sent":
                    steps += self._taken(mail, read=query.id is not None)
                    (mail.read if query.id else mail.deliver)(request.now)
                shown.append(self._shown(request, mail, pending))
        if steps:
            await _keep(request, steps)
        return answer({"messages": shown[-query.limit :], "count": len(shown)})

    def _taken(self, mail: Mail, *, read: bool) -> Sequence[Signal]:
        """How far a nudge of the hub's came by this."""
        asked = self.questions.about(mail.id)
        order = None if asked is None else asked.order
        if not isinstance(order, SendNudge):
            return []
        steps: list[Signal] = []
        if mail.delivered_at is None:
            steps.append(NudgeDelivered(agent_id=mail.to, order_id=order.order_id))
        if read and mail.read_at is None:
            steps.append(NudgeSeen(agent_id=mail.to, nudge_id=order.order_id))
        return steps

    def _sent_by(self, request: Request, agent_id: str) -> Iterator[tuple[Mail, PendingMessage | None]]:
        """With those of which only the engine knows: sent by our own API, or before a restart."""
        for mail in self.mailbox.sent_by(agent_id):
            yield mail, None
        for pending in request.service.engine.beliefs.messages.values():
            if pending.sender == agent_id and self.mailbox.get(pending.id) is None:
                yield _without_content(pending), pending

    async def mark(self, request: Request) -> Answer:
        """The recipient has read a message (`action=read`), or acknowledges it (`action=acknowledge`)."""
        query: MaestroQuery = request.query
        check_may_speak(request, query.agent, field="agent")
        mail = None if query.id is None else self.mailbox.get(query.id)
        if mail is None or mail.to != query.agent:
            return _error(404, "message_not_found", f"{query.agent} has no message {query.id}")
        if query.action == "acknowledge":
            await self._acknowledge(request, [mail], query.agent)
        elif query.action == "read":
            mail.read(request.now)
        else:
            raise Problem(400, "is neither read nor acknowledge", field="action")
        return answer({"message": self._shown(request, mail)})

    def _shown(self, request: Request, mail: Mail, pending: PendingMessage | None = None) -> dict[str, Any]:
        pending = pending or request.service.engine.beliefs.messages.get(mail.id)
        return {
            "id": mail.id,
            "from": mail.sender,
            "to": mail.to,
            "subject": mail.subject,
            "priority": mail.priority,
            "timestamp": stamp(mail.sent_at),
            "status": mail.status,
            "inReplyTo": mail.in_reply_to,
            "content": mail.content,
            "delivered_at": stamp(mail.delivered_at),
            "read_at": stamp(mail.read_at),
            "acknowledged_at": stamp(mail.acknowledged_at),
            "reminded_at": stamp(pending.reminded_at) if pending else None,
            "overdue_at": stamp(pending.overdue_at) if pending else None,
        }

    # --- agents ---------------------------------------------------------------------------------------

    async def status(self, request: Request) -> Answer:
        """Whether an agent is online, and how many messages it has not read."""
        name = request.path["agent_id"]
        agent = request.service.engine.agent(name)
        if agent is None:
            return answer({"session_name": name, "status": "not_found", "error": "agent_not_found"}, 404)
        shown = {
            "session_name": name,
            "status": online_status(agent),
            "last_seen": stamp(agent.heard_at),
            "registered_at": stamp(agent.started_at or agent.since),
            "host": agent.host or "",
            "unread_messages": sum(mail.status == "unread" for mail in self.mailbox.to(name)),
            "consecutive_missed": _missed(agent, request.now),
            "failure_class": agent.failure_class,
        }
        if shown["status"] == "offline":
            shown["offline_since"] = stamp(agent.since)
            gone = agent.health is Health.TERMINATED or agent.cause is Cause.CRASH
            shown["failure"] = "OFFLINE" if gone else "UNRESPONSIVE"
        return answer(shown)

    async def heartbeat(self, request: Request) -> Answer:
        """A heartbeat of an agent, unasked."""
        name, said = request.path["agent_id"], request.body
        check_may_speak(request, name)
        try:
            await _beat(request, name, said.status, role=said.role, host=said.host)
        except (InboxFull, NotStored) as error:
            return _error(504, "timeout", str(error.__doc__))
        return answer({"success": True, "agentId": name})


async def health(request: Request) -> Answer:
    """Whether this hub is there."""
    engine = request.service.engine
    online = sum(agent.alive for agent in engine.agents())
    return answer({"status": "healthy", "version": __version__, "agents_online": online})


def online_status(agent: Agent) -> str:
    """An agent's state in AI Maestro's words."""
    if agent.health in GONE or (agent.health is Health.STARTING and not agent.beats):
        return "offline"
    if agent.busy:
        return "busy"
    return "idle" if agent.doing is Doing.IDLE else "online"


def stamp(at: float | None) -> str | None:
    """A moment as these documents write it: whole seconds."""
    return None if at is None else datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


# --- parts --------------------------------------------------------------------------------------------


def _as_anybody(handle: Handler) -> Handler:
    """Who shows no token speaks as anybody. Who shows one is who that says. A page of a browser is nobody, also when it only GETs: to
    fetch a message is to be given it."""

    async def wrapped(request: Request) -> Any:
        if request.who is None:
            check_page(headers_of(request.scope), request.site.host_policy)
            request = replace(request, who=ANYBODY)
        return await handle(request)

    wrapped.__doc__ = handle.__doc__
    return wrapped


async def _beat(
    request: Request,
    agent_id: str,
    status: str,
    *,
    role: str | None = None,
    host: str | None = None,
    progress: str | None = None,
) -> None:
    if role is None and request.service.engine.agent(agent_id) is None:
        role = BEATS_AS
    said = {"agent_id": agent_id, "status": status, "role": role, "host": host, "progress": progress}
    beat = msgspec.json.encode({name: value for name, value in said.items() if value is not None})
    result = await request.service.http_receiver.take_beats(beat, request.principal)
    if result.rejected:
        raise Problem(400, f"the heartbeat is refused: {result.rejected[0].detail}")


async def _keep(request: Request, signals: Iterable[Signal]) -> None:
    await request.service.http_receiver.store_reports([*signals])


def _introduced(request: Request, sender: str) -> list[Signal]:
    """Who only sends messages is no agent that owes a beat every few seconds."""
    if request.service.engine.agent(sender) is not None:
        return []
    return [AgentRegistered(agent_id=sender, role=SENDS_AS, source=request.principal.token_id)]


def _sent(mail: Mail, request: Request) -> MessageSent:
    return MessageSent(
        agent_id=mail.sender,
        message_id=mail.id,
        to=mail.to,
        priority=Priority(mail.priority),
        source=request.principal.token_id,
    )


def _undeliverable(agent: Agent | None, name: str) -> Answer | None:
    if agent is None:
        return _error(404, "agent_not_found", f"there is no agent {name!r}")
    if online_status(agent) == "offline":
        return _error(503, "agent_offline", f"{name!r} is not connected since {stamp(agent.since)}")
    return None


def _without_content(pending: PendingMessage) -> Mail:
    return Mail(
        *(pending.id, pending.sender, pending.to, "", str(pending.priority), {}, None, pending.sent_at, 0),
        wants_ack=True,
    )


def _fits(mail: Mail, status: str, *, waits: bool) -> bool:
    if status == "unacknowledged":
        return waits
    return status in ("all", mail.status)


def _check_sight(request: Request, agent_id: str) -> None:
    if not request.principal.may_see(agent_id):
        raise Problem(
            403, f"is {agent_id!r}, about which {request.principal.name!r} may not ask", field="agent"
        )


def _missed(agent: Agent, now: float) -> int:
    return missed(agent, now) if agent.beats and agent.health is not Health.TERMINATED else 0


def _error(status: int, code: str, text: str) -> Answer:
    return answer({"error": code, "message": text, "request_id": correlation_id.get()}, status)
