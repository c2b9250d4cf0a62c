"""Hearing: what each signal changes.

`admission` answers the first questions (who is it, which life of it, is it a sign of life); then one small method
per signal, by what it is about: `beats`, `work`, `duties` (tasks, claims, messages), `acts` (the world, outcomes
of orders, people). `lives` begins and ends the lives of agents.
"""

from __future__ import annotations

from lifesigns.core.agent import Agent
from lifesigns.core.desk import Desk
from lifesigns.core.hearing.acts import ActHearing
from lifesigns.core.hearing.admission import Admission
from lifesigns.core.hearing.beats import BeatHearing
from lifesigns.core.hearing.duties import DutyHearing
from lifesigns.core.hearing.lives import Lives
from lifesigns.core.hearing.work import WorkHearing
from lifesigns.core.signals import AgentSignal, Beat
from lifesigns.core.watching import Watching


class Hearing:
    """Believes a signal, or refuses it."""

    def __init__(self, desk: Desk, watching: Watching) -> None:
        lives, work = Lives(desk), WorkHearing(desk, watching)
        self._admission = Admission(desk, lives)
        beats = BeatHearing(desk, work)
        self._hear_beat = beats.beat
        self._handlers = {
            **beats.handlers,
            **work.handlers,
            **DutyHearing(desk, lives, work).handlers,
            **ActHearing(desk, watching, lives, work).handlers,
        }

    def hear(self, signal: AgentSignal | Beat, now: float) -> Agent | None:
        """The agent the signal was about, if it was believed."""
        agent = self._admission.address(signal, now)
        if agent is not None:
            self._handlers.get(type(signal), self._hear_beat)(agent, signal, now)
        return agent
