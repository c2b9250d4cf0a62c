"""Remote: a hub judges. We report to it over the relay that every sender uses, and hear its orders.

The relay has its own thread; its orders wait in a queue and wake the loop. An absent hub changes nothing for the
child: reports wait, and the user is told once.
"""

from __future__ import annotations

import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import TimeoutError as NotYet
from contextlib import suppress
from typing import Final

from msgspec.structs import replace

from lifesigns.agent.sender.beat_builder import BeatBuilder
from lifesigns.agent.sender.relay import Relay
from lifesigns.agent.sender.rhythm import BeatRhythm
from lifesigns.agent.sender.session import AgentSession, Alert
from lifesigns.agent.sender.vitals import Vitals
from lifesigns.agent.supervise.life import Life
from lifesigns.agent.supervise.status_messages import StatusMessage
from lifesigns.core.effects import Effect, Order, Respawn, Withdraw
from lifesigns.core.policy_changes import merged
from lifesigns.core.signals import (
    ActivitySeen,
    AgentLeft,
    AgentRegistered,
    BeatReceived,
    DoingChanged,
    ProcessExited,
    Report,
    Signal,
)

LAST_WORDS_FOR: Final = 2.0
"""How long our own end waits for the hub to hear of the child's."""
ONLY_WHEN_TOLD: Final = 1e9
"""The relay beats for senders by its own clock; a child's beats go out when the supervisor has checked the child."""


class ChildSession(AgentSession):
    """The session of a child without a sender: its beats carry what we last saw of it."""

    may_repeat = False

    def __init__(self, agent_id: str, tell: Callable[[Alert], None]) -> None:
        builder = BeatBuilder(host=socket.gethostname(), pid=os.getpid())
        super().__init__(agent_id, "", builder, BeatRhythm(ONLY_WHEN_TOLD, ONLY_WHEN_TOLD), tell=tell)
        self.newest = BeatReceived(agent_id)
        self.due_at = math.inf

    def every(self, now: float) -> float:
        return ONLY_WHEN_TOLD

    def beat(self, now: float, vitals: Vitals) -> BeatReceived:
        self.newest.sent_at = time.time()
        return self.newest


class HubWatch:
    """The watch is a hub."""

    remote = True

    def __init__(self, relay: Relay, agent_id: str, beat_every: float, wake: Callable[[], None]) -> None:
        self.beat_every = beat_every
        self._relay = relay
        self._agent_id = agent_id
        self._wake = wake
        self._came: deque[Order | StatusMessage] = deque(maxlen=1000)
        self._introduction: list[Report] = []
        self._joined = False
        self._life: Life | None = None
        self.answers = True
        self._session = ChildSession(agent_id, self._sending_changed)
        self._session.begin(self, relay)

    def tell(self, signal: Signal, now: float) -> Sequence[Effect | StatusMessage]:
        if isinstance(signal, DoingChanged) and signal.until is not None:
            signal = replace(
                signal, until=signal.until - now + time.time()
            )  # On the hub's clock, as it thinks.
        if isinstance(signal, Report):
            self._remember(signal)
            self._session.say(signal)
        elif isinstance(signal, BeatReceived):
            self._session.newest, self._session.due_at = signal, 0.0
            self._relay.hurry()
        if not self._joined:  # With the first report: a child may be gone before its first beat.
            self._joined = True
            self._relay.join(self._session)
        return ()

    def look(self, now: float) -> Sequence[Effect | StatusMessage]:
        came: list[Effect | StatusMessage] = []
        while self._came:
            came.append(self._came.popleft())
        return came

    def wake_at(self) -> float:
        return float("inf")

    def close(self) -> None:
        """Wait a moment for the last reports to arrive."""
        if self._joined:
            self._session.leaving_by = time.monotonic() + LAST_WORDS_FOR
            self._relay.hurry()
            with suppress(NotYet):
                self._session.gone.result(LAST_WORDS_FOR + 1.0)

    def _remember(self, report: Report) -> None:
        """What a hub that lost us must hear again: which life runs, and that it works."""
        if isinstance(report, AgentRegistered):
            before = self._introduction[:1]
            if (
                before
                and isinstance(before[0], AgentRegistered)
                and before[0].incarnation == report.incarnation
            ):
                policy = merged(before[0].policy or {}, report.policy or {})
                self._introduction[0] = replace(before[0], policy=policy)
            else:
                self._introduction = [report]
        elif isinstance(report, ProcessExited | AgentLeft):
            self._introduction = []
        elif isinstance(report, DoingChanged):
            self._introduction[1:2] = [report]
        elif isinstance(report, ActivitySeen) and len(self._introduction) == 2:
            self._introduction.append(report)

    # --- in the relay's thread ------------------------------------------------------------------------------

    def attend(self, life: Life) -> None:
        self._life = life

    def obey(self, order: Order) -> bool:
        """We read every order, but leave those for a sender in the child to that sender."""
        self._came.append(order)
        self._wake()
        return isinstance(order, Respawn | Withdraw) or self._life is None or not self._life.speaks

    def introduce(self) -> None:
        for report in list(self._introduction):
            self._session.say(report)

    def _sending_changed(self, alert: Alert) -> None:
        self.answers = alert.well
        if alert.well:
            text = f"the hub hears of {self._agent_id} again."
        else:
            text = (
                f"the hub cannot be reached ({alert.error}); {self._agent_id} runs on, and is told of later."
            )
        kind = "HUB_REACHED" if alert.well else "HUB_AWAY"
        self._came.append(StatusMessage(kind, text, minor=alert.well, details={"error": alert.error}))
        self._wake()
