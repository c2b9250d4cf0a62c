"""Admission: which agent a signal is about, which life of it, and whether to believe it.

An unknown agent may introduce itself. A signal belongs to the agent's current life, begins a new one, or comes from a
retired one and is refused. Only signals from the agent itself are signs of life.

One agent must never have two lives at once. If the engine started both, the one we hear first stays, and we stop the
latecomer as soon as we hear the first again beside it. If someone else started them (one id on two hosts), the newer
one counts, people are told, and when it is gone the older one becomes the agent again if it still beats.
"""

from __future__ import annotations

from typing import Any, Final

from msgspec.structs import replace

from lifesigns.core import signals as s
from lifesigns.core.agent import Agent
from lifesigns.core.beliefs import DuplicateLife
from lifesigns.core.context import COMPLAINTS_MAX, EngineContext
from lifesigns.core.detectors.call_history import BACKLOG
from lifesigns.core.effects import Kind, NeedsHuman, StopStranger
from lifesigns.core.handlers.incarnations import Incarnations, ended
from lifesigns.core.health import Health
from lifesigns.core.policy import MINUTE
from lifesigns.core.policy_bounds import OwnPolicy
from lifesigns.core.respawn import Lineage
from lifesigns.core.words import duration

OWN_REPORTS: Final = frozenset(
    {
        s.ActivitySeen,
        s.ToolStarted,
        s.ToolFinished,
        s.ModelStarted,
        s.ModelFinished,
        s.CheckpointSaved,
        s.ProgressMade,
        s.ErrorReported,
        s.DoingChanged,
        s.PongReceived,
        s.NudgeSeen,
        s.NudgeAnswered,
        s.TaskDone,
        s.TaskFailed,
        s.TaskClaimed,
        s.TaskReleased,
        s.MessageSent,
        s.MessageAcked,
        s.BreakerReported,
        s.AgentLeft,
    }
)
"""Reports that only the agent itself can send. Like its beats they are signs of life and may introduce it."""

INTRODUCES: Final = OWN_REPORTS - {s.AgentLeft} | {s.AgentRegistered, s.TaskAssigned}

RETIRED: Final = "retired incarnation"
LATECOMER: Final = "started twice, and the other one was first"

DUPLICATE_BEATS: Final = 3
DOUBLE_TIMEOUTS: Final = 4
"""A replaced life that beats on for four silence timeouts, and at least a minute, really lives. In a rolling restart
the old one drains for less time, and beats that a bus delivers late or twice do not count upwards for that long."""

STRAYS_MAX: Final = 3
"""Beats in a row that count upwards from below are a restart, not a replay."""

LEAP_MAX: Final = 1_000_000
"""A sequence may leap by the beats of a long outage, not by more than any outage could have held."""


class Admission:
    """Believes signals, or refuses them."""

    def __init__(self, context: EngineContext, incarnations: Incarnations) -> None:
        self._context = context
        self._incarnations = incarnations

    def address(self, signal: Any, now: float) -> Agent | None:
        """The agent a signal is about; None if we refuse the signal."""
        agent = self._find(signal, now)
        if agent is not None and _is_from_itself(signal) and not _is_belated(agent, signal):
            agent.via = signal.source or agent.via
            self._sign_of_life(agent, now)
        return agent

    def _find(self, signal: Any, now: float) -> Agent | None:
        agent_id: str = signal.agent_id
        agent = self._context.beliefs.agents.get(agent_id)
        if agent is None:
            if isinstance(signal, s.Report) and type(signal) not in INTRODUCES:
                self._context.refuse(agent_id, "unknown agent", now)
                return None
            return self._incarnations.admit_new(signal, now)
        if agent.past.poisoned and type(signal) is not s.ClearRequested:
            return None
        return agent if self._admit(agent, signal, now) else None

    def _admit(self, agent: Agent, signal: Any, now: float) -> bool:
        """Whether the signal belongs to the agent's current life, or begins a new one."""
        life, known, over = signal.incarnation, agent.incarnation, ended(agent)
        if life == known and not over and isinstance(signal, s.Report) and life not in agent.past.retired:
            return True  # The usual case.
        own = _is_from_itself(signal)
        # A good-bye that arrives after the next life has begun ends the life it names and begins none.
        begins = (own and not isinstance(signal, s.AgentLeft)) or isinstance(signal, s.AgentRegistered)
        if life is not None and life in agent.past.retired:
            return self._stranger(agent, signal, now)
        if over and isinstance(signal, s.AgentLeft):
            return self._refuse(
                agent, "this life has ended", now
            )  # The one who ended it knows more about its end.
        if life is not None and life != known and (known is not None or self._is_started(agent, life)):
            # Work for the life after one that has ended: it overtook that life's first signal. What others say never
            # replaces a life that goes on.
            if not begins and not (isinstance(signal, s.TaskAssigned) and over):
                return self._is_unborn(agent, signal) or self._refuse(agent, "unknown incarnation", now)
            if (lineage := self._started_twice(agent, life)) is not None:
                return self._latecomer(agent, lineage, life, now)
            self._begin(agent, signal, now)
        elif over and (begins or (isinstance(signal, s.TaskAssigned) and life is not None)):
            named = life is not None and known is None
            recent = now - agent.since < self._context.policy(agent).silence.timeout
            repeated = life is not None and life == known  # A repetition of what it said before its end.
            if repeated or (own and not named and (life is not None or recent)):
                return self._refuse(agent, "this life has ended", now)
            self._begin(agent, signal, now)
        elif not isinstance(signal, s.Report) and agent.seq >= 0 and (stray := self._stray(agent, signal)):
            if life is None or known is not None:
                return self._refuse(agent, stray, now)
            self._incarnations.begin(agent, life, now)
        elif known is None and not over:  # Otherwise we would take the next life for the one that has ended.
            agent.incarnation = life
        return True

    def _begin(self, agent: Agent, signal: Any, now: float) -> None:
        """A new life. If it announces itself, it names the policy it wants anew; an operator's values stay until an
        operator changes them."""
        self._incarnations.begin(agent, signal.incarnation, now)
        own_policies = self._context.beliefs.own_policies
        if isinstance(signal, s.AgentRegistered) and (own := own_policies.pop(agent.id, None)) is not None:
            if signal.bounded and own.granted:
                own_policies[agent.id] = OwnPolicy({}, own.granted)
            self._context.look_up_policy(agent, now)

    def _is_unborn(self, agent: Agent, signal: Any) -> bool:
        """Whether this reports the end of a life that we started and that has not spoken yet."""
        lineage = self._context.beliefs.lineages.get(agent.id)
        return (
            isinstance(signal, s.ProcessExited)
            and lineage is not None
            and signal.incarnation in lineage.starts
        )

    def _is_started(self, agent: Agent, life: str) -> bool:
        """Whether we ordered the start of this life. An agent that never named its life has not just named it then: this is its
        successor."""
        lineage = self._context.beliefs.lineages.get(agent.id)
        return lineage is not None and life in lineage.starts

    def _started_twice(self, agent: Agent, life: str) -> Lineage | None:
        """The agent's lineage, if we started this life and another one lives."""
        lives = agent.alive and agent.suspicion is None
        return self._context.beliefs.lineages[agent.id] if lives and self._is_started(agent, life) else None

    def _latecomer(self, agent: Agent, lineage: Lineage, life: str, now: float) -> bool:
        """We stop this one once we hear the other after it. Until then the other may have died a moment ago: as soon
        as we doubt it, this one is the agent."""
        if lineage.latecomer != life:
            lineage.latecomer, lineage.latecomer_at = life, now
        elif agent.heard_at > lineage.latecomer_at:
            why = f"{life} was started twice; {agent.incarnation} was first"
            self._context.outbox.order(StopStranger, agent, now, reason=why, retired=life)
            lineage.latecomer_at = now + MINUTE  # If it does not obey, we tell it again.
        return self._refuse(agent, LATECOMER, now)

    def _stray(self, agent: Agent, beat: s.Beat) -> str:
        """Why a beat of the same life does not follow the one before it; empty if it does.

        Without an incarnation a restarted sender counts from the beginning again. Its clock distinguishes it from a
        replay; without a clock, a third beat in a row that counts upwards does.
        """
        seq = beat.seq
        if seq is None or agent.seq < seq <= agent.seq + LEAP_MAX:
            agent.strays = 0
            return ""
        if beat.incarnation is None and seq <= agent.seq:
            newer = beat.sent_at is not None and agent.sent_at is not None and beat.sent_at > agent.sent_at
            agent.strays += 1
            if newer or agent.strays >= STRAYS_MAX:
                agent.seq, agent.strays = seq - 1, 0
                return ""
        return "replayed, out of order or leaping sequence"

    def _stranger(self, agent: Agent, signal: Any, now: float) -> bool:
        """A retired life still speaks. If we replaced it, tell it so."""
        life: str = signal.incarnation
        duplicate = None if isinstance(signal, s.Report) else self._duplicate(agent, signal, now)
        if duplicate is not None and self._is_there(agent, duplicate, now):
            if agent.health in (Health.DISCONNECTED, Health.TERMINATED):
                self._readmit(agent, life, now)
                return True
            self._report_duplicate(agent, duplicate, now)
        if agent.past.respawned:
            complaint = self._context.beliefs.complaints.get(f"{agent.id} {RETIRED}")
            if complaint is None or now - complaint.told_at >= MINUTE:
                self._context.outbox.order(
                    StopStranger, agent, now, reason=f"{life} was replaced", retired=life
                )
        return self._refuse(agent, RETIRED, now)

    def _duplicate(self, agent: Agent, beat: s.Beat, now: float) -> DuplicateLife:
        """Note that a retired life beats on."""
        duplicates = self._context.beliefs.duplicates
        duplicate, life = duplicates.get(agent.id), beat.incarnation or ""
        if (
            duplicate is None
            or duplicate.incarnation != life
            or now - duplicate.heard_at > self._there_for(agent)
        ):
            if len(duplicates) >= COMPLAINTS_MAX:
                duplicates.clear()
            duplicate = duplicates[agent.id] = DuplicateLife(life, now, now)
        duplicate.heard_at = now
        if beat.seq is None or beat.seq > duplicate.seq:
            duplicate.beats += 1
            duplicate.seq = duplicate.seq if beat.seq is None else beat.seq
        return duplicate

    def _is_there(self, agent: Agent, duplicate: DuplicateLife, now: float) -> bool:
        """Whether it really lives, and its beats are not just late."""
        return duplicate.beats >= DUPLICATE_BEATS and now - duplicate.since >= self._there_for(agent)

    def _there_for(self, agent: Agent) -> float:
        return max(MINUTE, DOUBLE_TIMEOUTS * self._context.policy(agent).silence.timeout)

    def _report_duplicate(self, agent: Agent, duplicate: DuplicateLife, now: float) -> None:
        if not duplicate.told:
            duplicate.told = True
            text = (
                f"Two lives speak as {agent.id}: {agent.incarnation} on {agent.host or 'an unknown host'}, and "
                f"{duplicate.incarnation}, which it replaced and which has been speaking beside it for "
                f"{duration(now - duplicate.since)}. Stop one of them, or give it an id of its own."
            )
            self._context.outbox.fact(NeedsHuman(now, agent.id, "one id twice", text))

    def _readmit(self, agent: Agent, life: str, now: float) -> None:
        """Its successor is gone, and this life was there all the time: it becomes the agent again."""
        self._context.beliefs.duplicates.pop(agent.id, None)
        lineage = self._context.beliefs.lineages.get(agent.id)
        if lineage is not None:
            self._context.respawns.returned(lineage, now)
        retired = tuple(one for one in agent.past.retired if one != life)
        agent.past = replace(agent.past, retired=retired)
        self._incarnations.begin(agent, life, now)

    def _refuse(self, agent: Agent, reason: str, now: float) -> bool:
        self._context.refuse(agent.id, reason, now)
        return False

    def _sign_of_life(self, agent: Agent, now: float) -> None:
        context = self._context
        silent = bool(agent.findings) and agent.finding(Kind.SILENCE) is not None
        if silent and agent.work is not None:
            agent.work.skip(agent.heard_at, now, context.awareness.lapsed)
        context.awareness.heard_at = now
        agent.heard_at = now
        if agent.call_history is not None and (silent or agent.suspicion is not None):
            agent.call_history.backlog_until = now + BACKLOG
        if agent.suspicion is not None:
            agent.suspicion = None
            own, other_sources = context.fleet.sources_beside(agent)
            context.awareness.refute(now, own, context.limits, agent.source, other_sources)
        if agent.findings:
            if silent or agent.finding(Kind.NEVER_STARTED) is not None:
                lineage = context.beliefs.lineages.get(agent.id)
                if lineage is not None:
                    context.respawns.returned(lineage, now)
            context.judge.clear(agent, Kind.SILENCE, now)
            context.judge.clear(agent, Kind.NEVER_STARTED, now)
            context.fleet.heard_again(agent, now, context.outbox)
        if agent.health is Health.STARTING:
            self._incarnations.note_first_signal(agent, now)


def _is_from_itself(signal: s.Signal) -> bool:
    return type(signal) in OWN_REPORTS or not isinstance(signal, s.Report)


def _is_belated(agent: Agent, signal: Any) -> bool:
    """Whether this reports what an agent did a while ago. One that beats says itself whether it lives now."""
    return agent.beats > 0 and getattr(signal, "ended_at", None) is not None
