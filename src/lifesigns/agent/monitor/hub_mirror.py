"""Hub mirror: the watched agents as a hub sees them, if there is one.

Each agent has a session on the relay that every sender of this process uses, so the monitor's thread and the agents wait for
nothing. The hub hears what the agents report and their ends, and a beat carries our own judgement of a freeze. It cannot act on
them: the monitor tells, and its owner decides.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from lifesigns.agent.sender.beat_builder import BeatBuilder
from lifesigns.agent.sender.relay import Relay
from lifesigns.agent.sender.rhythm import BeatRhythm
from lifesigns.agent.sender.session import AgentSession
from lifesigns.agent.sender.vitals import Vitals
from lifesigns.core.effects import Order, SendPing
from lifesigns.core.health import Health
from lifesigns.core.signals import (
    AgentRegistered,
    AgentSignal,
    BeatReceived,
    DoingChanged,
    PongReceived,
    Report,
)

if TYPE_CHECKING:
    from lifesigns.agent.monitor.watched import WatchedAgent

EVERY: Final = 5.0
"""Seconds between beats, as of a sender about which nobody said anything."""
LEAVE_WITHIN: Final = 2.0
"""How long a good-bye may take to arrive; nobody waits for it but the end of the monitor."""
NOBODY_ACTS: Final = {"ladder": {"enabled": False}, "respawn": {"enabled": False}}


class MirroredSession(AgentSession):
    """The session of one watched agent."""

    def __init__(self, agent_id: str, watched: WatchedAgent, builder: BeatBuilder) -> None:
        super().__init__(agent_id, watched.incarnation, builder, BeatRhythm(EVERY, EVERY))
        self.watched = watched

    def beat(self, now: float, vitals: Vitals) -> BeatReceived:
        beat = super().beat(now, vitals)
        lost_at = self.watched.lost_at
        if self.watched.health is Health.DISCONNECTED and lost_at is not None:
            beat.loop_lag_ms = 1000 * (now - lost_at)
        return beat

    def obey(self, order: Order) -> bool:
        """A ping is answered by the relay, as a beat is: that the process lives. Everything else is for nobody."""
        if isinstance(order, SendPing):
            self.say(PongReceived(agent_id=self.agent_id, incarnation=self.incarnation, seq=order.seq))
        return isinstance(order, SendPing)

    def introduce(self) -> None:
        self.say(
            AgentRegistered(
                agent_id=self.agent_id,
                incarnation=self.incarnation,
                role=self.watched.role,
                host=socket.gethostname(),
                policy=NOBODY_ACTS,
            )
        )


class HubMirror:
    """Shows the agents of one monitor at a hub. Only the monitor's thread calls it."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._sessions: dict[str, MirroredSession] = {}
        """By the name of the agent."""

    def begin(self, watched: WatchedAgent, builder: BeatBuilder) -> None:
        """An agent is watched from now on."""
        builder.host, builder.pid = socket.gethostname(), os.getpid()
        session = MirroredSession(_id_of(watched), watched, builder)
        if self._speaks(session):
            return
        session.begin(session, self._relay)
        session.introduce()
        self._sessions[watched.name] = session
        self._relay.join(session)

    def say(self, report: Report, now: float) -> None:
        """What an agent reports."""
        session = self._sessions.get(report.agent_id) if isinstance(report, AgentSignal) else None
        if (
            session is None
            or not isinstance(report, AgentSignal)
            or report.incarnation != session.incarnation
        ):
            return
        if isinstance(report, DoingChanged) and report.until is not None:
            report = replace(report, until=report.until - now + time.time())
        session.say(replace(report, agent_id=session.agent_id))

    def end(self, watched: WatchedAgent, last: AgentSignal | None) -> None:
        """It ended; or somebody else has its name now, then there is nothing to say."""
        session = self._sessions.get(watched.name)
        if session is None or session.incarnation != watched.incarnation:
            return
        del self._sessions[watched.name]
        if last is None:
            self._relay.dismiss(session)
        else:
            session.say_last(replace(last, agent_id=session.agent_id), time.monotonic() + LEAVE_WITHIN)

    def look(self) -> None:
        """An agent that has a sender of its own by now speaks for itself: two lives of one agent would be a quarrel."""
        for session in list(self._sessions.values()):
            if self._speaks(session):
                self.end(session.watched, None)

    def stop(self, last: Callable[[WatchedAgent], AgentSignal]) -> None:
        """The monitor ends, and with it our knowledge: that is no failure of theirs."""
        sessions = list(self._sessions.values())
        for session in sessions:
            self.end(session.watched, last(session.watched))
        until = time.monotonic() + LEAVE_WITHIN
        for session in sessions:
            session.wait_until_gone(max(0.0, until - time.monotonic()))

    def mute(self) -> None:
        """In a forked child: all of it goes on in the parent."""
        for session in self._sessions.values():
            session.mute = True

    def _speaks(self, ours: MirroredSession) -> bool:
        others = (session for session in self._relay.sessions if session is not ours)
        return any(other.agent_id == ours.agent_id for other in others)


def _id_of(watched: WatchedAgent) -> str:
    """Its name; one that was not chosen for it, like `Task-1`, also says where it is: other processes have one, too."""
    if watched.named:
        return watched.name
    return f"{watched.name[:64]}@{socket.gethostname()[:40]}:{os.getpid()}"
