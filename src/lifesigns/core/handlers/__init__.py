"""Handlers: what each signal changes.

`admission` answers the first questions (which agent, which life, is it a sign of life); then one small method handles
each signal, grouped by topic: `beats`, `work`, `claims_and_messages` (and tasks), `interventions` (what the world,
the outcomes of orders and people say). `incarnations` begins and ends the lives of agents.
"""

from __future__ import annotations

from lifesigns.core.agent import Agent
from lifesigns.core.context import EngineContext
from lifesigns.core.handlers.admission import Admission
from lifesigns.core.handlers.beats import BeatHandlers
from lifesigns.core.handlers.claims_and_messages import ClaimAndMessageHandlers
from lifesigns.core.handlers.incarnations import Incarnations
from lifesigns.core.handlers.interventions import InterventionHandlers
from lifesigns.core.handlers.work import WorkHandlers
from lifesigns.core.signals import AgentSignal, Beat
from lifesigns.core.watching import Watching


class SignalHandlers:
    """Believes a signal, or refuses it."""

    def __init__(self, context: EngineContext, watching: Watching) -> None:
        incarnations, work = Incarnations(context), WorkHandlers(context, watching)
        self._admission = Admission(context, incarnations)
        beats = BeatHandlers(context, work)
        self._hear_beat = beats.beat
        self._handlers = {
            **beats.handlers,
            **work.handlers,
            **ClaimAndMessageHandlers(context, work).handlers,
            **InterventionHandlers(context, watching, incarnations, work).handlers,
        }

    def hear(self, signal: AgentSignal | Beat, now: float) -> Agent | None:
        """The agent the signal was about, if it was believed."""
        agent = self._admission.address(signal, now)
        if agent is not None:
            self._handlers.get(type(signal), self._hear_beat)(agent, signal, now)
        return agent
