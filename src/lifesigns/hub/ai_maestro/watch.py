"""MessengerWatch: pings the agents of a messenger, reads what they answer, and takes their sessions' activity as evidence.

It decides nothing about agents. The engine counts missed pings and suspects; then it orders a ping, which `executor.py`
turns into a look at the agent's session and a status inquiry. While the messenger does not answer, the engine hears that
this path is lost, and convicts none of its agents.

One look after the other, each with bounded requests, beside the hub's own work. A look that fails is tried again, later
each time.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import count
from typing import Final

from msgspec import Struct

from lifesigns.core.agent import Agent
from lifesigns.core.effects import Kind
from lifesigns.core.health import Doing, Health
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import (
    ActivitySeen,
    AgentRegistered,
    DoingChanged,
    NudgeSeen,
    PathLost,
    PathRestored,
    Signal,
)
from lifesigns.errors import AdapterError
from lifesigns.hub.ai_maestro import outgoing
from lifesigns.hub.ai_maestro.questions import Questions
from lifesigns.hub.ai_maestro.replies import PONG, signals_of
from lifesigns.hub.hub import Hub
from lifesigns.ports.messenger import (
    IncomingMessage,
    Messenger,
    MessengerError,
    SessionActivity,
    SessionState,
    UnknownRecipient,
)

SOURCE: Final = "messenger"
"""The source of what comes by this path."""

LOST_FROM: Final = 2
"""So many failed looks in a row, and the path is lost: one may be a hiccup."""
TELL_AFTER: Final = 60.0
"""Since when the messenger does not answer before people are told."""
RETRY_MAX: Final = 60.0
NAME_CHECK_EVERY: Final = 60.0
ECHO_FOR: Final = 30.0
"""A message that is announced to a session moves it: for so long its activity is our own echo."""
EVIDENCE_EVERY: Final = 15.0
"""An agent that was heard so lately needs no other sign of life."""
DISCONNECTED_FACTOR: Final = 5
"""A disconnected agent is pinged this many times more rarely: nobody reads its inbox."""
AGENTS_MAX: Final = 1000
PINGS_MAX: Final = 100
"""In one look: in between we read what came."""
SEEN_MAX: Final = 10_000

log: Final = logging.getLogger("lifesigns.hub")


class MessengerRules(Struct, frozen=True):
    """Which agents are watched, and how."""

    agents: tuple[str, ...] = ("*",)
    """Names, or patterns of names."""
    role: str = "active-development"
    """Of agents that no configuration gives a role."""
    look_every: float = 5.0
    inquiry_wait: float = 300.0
    """How long a silent agent has to answer a status inquiry."""


class MessengerWatch:
    """Watches the agents of one messenger."""

    def __init__(
        self,
        messenger: Messenger,
        rules: MessengerRules,
        hub: Hub,
        policies: PolicyBook,
        questions: Questions,
    ) -> None:
        self._messenger = messenger
        self._rules = rules
        self._hub = hub
        self._policies = policies
        self._questions = questions
        self._sequence = count(1)
        self._ping_at: dict[str, float] = {}
        """When each agent is pinged next."""
        self._active_at: dict[str, str] = {}
        """The last activity of each session that was seen."""
        self._waiting: set[str] = set()
        self._seen: deque[str] = deque(maxlen=SEEN_MAX)
        """Messages that we have heard and leave unread: they may be for somebody else."""
        self._failures = 0
        self._failing_since: float | None = None
        self._why = ""
        self._lost = True
        self._begun = False
        self._name_checked_at = float("-inf")

    # --- beside the hub -------------------------------------------------------------------------------

    async def run(self) -> None:
        """Look, for ever."""
        await self._tell([PathLost(path=SOURCE)])  # Until the first look has shown that it is there.
        while True:
            wait = await self._look_once()
            await asyncio.sleep(wait)

    def why_lost(self, now: float) -> str:
        """Why the messenger does not answer for so long; empty if it does."""
        lost = self._failing_since is not None and now - self._failing_since >= TELL_AFTER
        return self._why if lost else ""

    def serves(self, agent_id: str) -> bool:
        """Whether messages reach this agent by this messenger: it was last heard by it."""
        agent = self._hub.engine.agent(agent_id)
        return agent is not None and (agent.via or agent.source) == SOURCE

    async def close(self) -> None:
        await self._messenger.close()

    # --- looking --------------------------------------------------------------------------------------

    async def _look_once(self) -> float:
        """Look, and return after how many seconds to look again."""
        try:
            await self.look()
        except AdapterError as error:
            await self._failed(str(error))
            return min(RETRY_MAX, self._rules.look_every * 2.0 ** min(self._failures - 1, 8))
        except Exception:  # A bug of ours: no reason to leave all agents alone for ever.
            log.exception("AI Maestro was not looked at", extra={"action": "messenger_look_failed"})
            await self._failed("a bug of lifesigns: its log has it")
            return RETRY_MAX
        self._failures, self._failing_since = 0, None
        return self._rules.look_every

    async def look(self) -> None:
        """Look at everything once: what agents wrote, what their sessions do; then ping those whose turn it is."""
        if not self._hub.is_storing:
            return
        activity = await self._messenger.activity()
        await self._check_own_name()
        await self._read()
        if self._lost:
            await self._tell([PathRestored(path=SOURCE)])
            self._lost = False
        await self._tell([*self._news(activity)])
        await self._ping_due()
        await self._look_for_receipts()

    async def _failed(self, why: str) -> None:
        self._failures += 1
        if self._failing_since is None or why != self._why:
            log.warning("AI Maestro cannot be asked: %s", why, extra={"action": "messenger_failed"})
        self._why = why
        if self._failing_since is None:
            self._failing_since = self._hub.clock()
        if self._failures >= LOST_FROM:
            await self._lose(why)

    async def _lose(self, why: str) -> None:
        if not self._lost:
            self._lost = True
            self._name_checked_at = float("-inf")
            log.warning("AI Maestro's agents are not judged: %s", why, extra={"action": "messenger_lost"})
            await self._tell([PathLost(path=SOURCE)])

    async def _check_own_name(self) -> None:
        """Without an agent of our name no answer reaches us: that is our fault, and no agent's silence."""
        now = self._hub.clock()
        if now - self._name_checked_at < NAME_CHECK_EVERY:
            return
        name = self._messenger.name
        if await self._messenger.session(name) is SessionState.NOT_FOUND:
            raise MessengerError(
                f"AI Maestro knows no agent {name!r}, so no answer can reach the hub: register one of that name there, "
                "or name another in ai_maestro.name"
            )
        self._name_checked_at = now

    # --- what agents wrote ----------------------------------------------------------------------------

    async def _read(self) -> None:
        first, self._begun = not self._begun, True
        for message in await self._messenger.unread():
            asked = self._questions.about(message.in_reply_to)
            ours = asked is not None or message.kind == PONG
            # What was written before this hub began says nothing about now.
            if message.id not in self._seen and not first and self._is_watched(message.sender):
                await self._tell(self._signals(message))
            if ours:
                await self._messenger.mark_read(message.id)
            if message.id not in self._seen:
                self._seen.append(message.id)

    def _signals(self, message: IncomingMessage) -> Sequence[Signal]:
        asked = self._questions.about(message.in_reply_to)
        if asked is not None and asked.agent_id == message.sender:
            order = asked.order
            self._questions.answered(asked)
            if order is None:  # A ping: whatever it says, it is a pong.
                message = IncomingMessage(message.id, message.sender, PONG, message.text, message.context)
            return signals_of(message, order, source=SOURCE)
        return signals_of(message, None, source=SOURCE)

    # --- what sessions do -----------------------------------------------------------------------------

    def _news(self, activity: Mapping[str, SessionActivity]) -> Sequence[Signal]:
        engine = self._hub.engine
        signals: list[Signal] = []
        named = [name for name in self._rules.agents if not set(name) & set("*?[")]
        for name in [*named, *activity]:
            agent = engine.agent(name)
            if not self._is_watched(name):
                continue
            if agent is None and len(self._active_at) < AGENTS_MAX:
                signals.append(self._registration(name))
            elif agent is not None and name in activity and _is_offline(agent):
                signals.append(self._registration(name))  # Its session is back.
            elif agent is not None and name in activity:
                signals += self._evidence(agent, activity[name])
            if name in activity:
                self._active_at[name] = activity[name].active_at
        return signals

    def _registration(self, name: str) -> AgentRegistered:
        """An agent that is pinged: it has missed as many as its role says before it is asked, and then the inquiry's wait."""
        book = self._policies
        silence = book.of(name, book.role_of(name, self._rules.role)).silence
        wait = self._rules.inquiry_wait
        policy = {
            "adaptive": False,
            "pings": 1,
            "ping_wait": wait,
            "timeout": (silence.missed_max + 0.5) * silence.interval + wait,
        }
        return AgentRegistered(
            agent_id=name, role=self._rules.role, policy={"silence": policy}, source=SOURCE
        )

    def _evidence(self, agent: Agent, session: SessionActivity) -> Sequence[Signal]:
        now, name = self._hub.clock(), agent.id
        if session.waiting:
            signals: list[Signal] = [ActivitySeen(agent_id=name, kind="waiting", source=SOURCE)]
            if name not in self._waiting:
                self._waiting.add(name)
                signals = [_doing(name, Doing.WAITING_FOR_HUMAN, session.waits_for)]
            return signals
        if name in self._waiting:
            self._waiting.discard(name)
            return [_doing(name, Doing.UNKNOWN)]
        moved = session.active_at != self._active_at.get(name, session.active_at)
        is_echo = now - self._questions.announced_at(name) < ECHO_FOR
        if moved and not is_echo and now - agent.heard_at >= min(EVIDENCE_EVERY, self._interval(agent) / 2):
            return [ActivitySeen(agent_id=name, kind="session", source=SOURCE)]
        return ()

    # --- pings ----------------------------------------------------------------------------------------

    async def _ping_due(self) -> None:
        now = self._hub.clock()
        for name, at in [*self._ping_at.items()]:
            if at <= now - RETRY_MAX and not self.serves(name):
                del self._ping_at[name]
        due = [
            agent
            for agent in self._hub.engine.agents()
            if (agent.via or agent.source) == SOURCE
            and self._is_watched(agent.id)
            and agent.health is not Health.TERMINATED
            and not _is_offline(agent)
            and self._ping_at.get(agent.id, now) <= now
        ]
        due.sort(key=lambda agent: self._ping_at.get(agent.id, now))
        try:
            async with asyncio.TaskGroup() as group:
                for agent in due[:PINGS_MAX]:
                    group.create_task(self._ping(agent))
        except ExceptionGroup as failed:
            raise failed.exceptions[0] from None
        late = [agent for agent in due if now - self._ping_at.get(agent.id, now) > self._interval(agent)]
        if late:
            await self._lose(f"AI Maestro takes too long: {len(late)} agents are pinged too late")

    async def _ping(self, agent: Agent) -> None:
        now = self._hub.clock()
        try:
            sent = await self._messenger.send(outgoing.ping(agent.id, next(self._sequence), now))
        except UnknownRecipient:
            pass  # It misses this one: the engine counts, and asks for its session.
        else:
            self._questions.sent(sent.id, agent.id, None, now)
        factor = DISCONNECTED_FACTOR if agent.health is Health.DISCONNECTED else 1
        self._ping_at[agent.id] = now + factor * self._interval(agent)

    async def _look_for_receipts(self) -> None:
        """Nudges that were read: delivered and read are two things."""
        for question in self._questions.unread_nudges():
            if await self._messenger.is_read(question.agent_id, question.message_id):
                assert question.order is not None
                question.seen = True
                await self._tell(
                    [NudgeSeen(agent_id=question.agent_id, nudge_id=question.order.order_id, source=SOURCE)]
                )

    # --- parts ----------------------------------------------------------------------------------------

    def _interval(self, agent: Agent) -> float:
        return self._hub.engine.policy_of(agent).silence.interval

    def _is_watched(self, name: str) -> bool:
        return name != self._messenger.name and any(fnmatchcase(name, one) for one in self._rules.agents)

    async def _tell(self, signals: Sequence[Signal]) -> None:
        while signals and not self._hub.hear(signals):  # noqa: ASYNC110 -- nobody tells when there is room
            await asyncio.sleep(1.0)


def _is_offline(agent: Agent) -> bool:
    """Whether its session was found gone."""
    return agent.finding(Kind.EXIT) is not None


def _doing(agent_id: str, doing: Doing, note: str = "") -> DoingChanged:
    return DoingChanged(agent_id=agent_id, doing=doing, note=note, source=SOURCE)
