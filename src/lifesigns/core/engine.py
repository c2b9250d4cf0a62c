"""Engine: signals in, effects out. The heart of lifesigns, and the place to start reading.

    hear(signal, now)   believe what was heard, after growing older up to now
    advance(now)        grow older: everything that fell due by now, in the order it fell due
    wake_at()           when to call advance() next if nothing is heard before

Deterministic: the same signals at the same times give the same effects, bit for bit. The way of a signal:

    hear ──► advance: whose turn it is          due.py          agents, claims, messages, tasks, respawns
         │       └─► agents                     watching.py     silence, stalls, the ladder's waits
         └─► the signal                         handlers/       who is it, which life, what changes
                  │
                  ▼ findings                    detectors/      one file per way of being unwell
              judgement.py                      findings ──► health; how far the evidence lets us go
                  │
                  ▼ unwell
              ladder.py ──► respawn.py          nudge, escalate, terminate; start anew
                  │
                  ▼ outbox.py ──► effects       facts to store, orders to carry out

Every step first asks `awareness.py` whether we can trust ourselves, and `fleet.py` whether too much happens at once.
`beliefs.py` holds what we know, `deadlines.py` when it falls due, `changed_keys.py` what changed and must be stored.

A beat of a *calm* agent (healthy, and nothing is open about it) takes none of these steps: the engine looks the agent up
and notes the beat. Its deadline stays where it is; when it falls due, `_later` moves it by what was heard since.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, cast

from msgspec.structs import replace

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.beliefs import Beliefs
from lifesigns.core.canary import Canary
from lifesigns.core.changed_keys import ChangedKeys, NoChangedKeys
from lifesigns.core.context import EngineContext
from lifesigns.core.deadlines import HasDeadline
from lifesigns.core.detectors import forecast
from lifesigns.core.detectors.silence import CLOSE
from lifesigns.core.due import DueRunner
from lifesigns.core.effects import Effect, Poisoned
from lifesigns.core.fleet import least_loaded
from lifesigns.core.fleet_summary import FleetSummary
from lifesigns.core.handlers.admission import Admission
from lifesigns.core.handlers.beats import BeatHandlers, receive_calm
from lifesigns.core.handlers.claims_and_messages import ClaimAndMessageHandlers
from lifesigns.core.handlers.incarnations import Incarnations
from lifesigns.core.handlers.interventions import InterventionHandlers
from lifesigns.core.handlers.work import WorkHandlers
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import FIRST, PolicyBook
from lifesigns.core.quotas import Quota
from lifesigns.core.signals import (
    AgentSignal,
    Beat,
    CanaryReturned,
    GroupReleased,
    PathLost,
    PathRestored,
    Report,
    Signal,
)
from lifesigns.core.watching import Watching

_ABOUT_NO_AGENT: Final = frozenset({CanaryReturned, PathLost, PathRestored, GroupReleased})


class Engine:
    """Judges agents. Owns its beliefs; not thread-safe; never raises over an agent."""

    def __init__(
        self,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        *,
        epoch: int = 1,
        beliefs: Beliefs | None = None,
        changes: ChangedKeys | None = None,
    ) -> None:
        self.beliefs = beliefs or Beliefs()
        self._changes = changes if changes is not None else NoChangedKeys()
        self._context = EngineContext(
            self.beliefs,
            (policies or PolicyBook()).unused_copy(),
            fleet or FleetPolicy(),
            epoch,
            self._changes,
        )
        self._watching = Watching(self._context)
        incarnations, work = Incarnations(self._context), WorkHandlers(self._context, self._watching)
        beats = BeatHandlers(self._context, work)
        self._admission = Admission(self._context, incarnations)
        self._handle_beat = beats.beat
        self._handlers = {
            **beats.handlers,
            **work.handlers,
            **ClaimAndMessageHandlers(self._context, work).handlers,
            **InterventionHandlers(self._context, self._watching, incarnations, work).handlers,
        }
        self._agents = self.beliefs.agents
        self._awareness = self.beliefs.awareness
        self._deadlines = self._context.deadlines
        self._outbox = self._context.outbox
        self._book = self._context.book
        self._canary = Canary(self._context)
        self._due = DueRunner(self._context, self._watching)
        self._now = self.beliefs.at
        self._look_at = -NEVER
        """When to look next; a new engine looks at once, to learn what time it is."""
        self._tick_at = NEVER
        """When to look although nothing falls due."""
        self._settled_at = -NEVER
        """When our last lapse ended (sleep, blindness, a lost path): it does not concern agents heard since."""

    # --- the three calls ------------------------------------------------------------------------------

    def hear(self, signal: Signal, now: float) -> Sequence[Effect]:
        """Grow older up to `now`, then believe the signal or refuse it."""
        quiet = now < self._look_at
        if not quiet:
            self._grow_older(now)
        if now < self._now:
            if self._now - now > self._context.limits.tick_late_after:
                self._awareness.stand_still(self._now, self._context.limits)
            now = self._now
        else:
            self._now = now
        if (
            not isinstance(signal, Report)
            and receive_calm((signal,), self._agents, self._book, self._awareness, now) is None
        ):
            return () if quiet else self._outbox.take()
        self._hear_closely(signal, now)
        return self._outbox.take()

    def hear_beats(self, beats: Iterable[Beat], now: float) -> Sequence[Effect]:
        """Like `hear` for one beat after the other. A large fleet's beats come in batches, and the calls are what costs."""
        coming = iter(beats)
        beat, effects = next(coming, None), list[Effect]()
        while beat is not None:
            effects += self.hear(beat, now)
            if now < self._look_at:
                beat = receive_calm(coming, self._agents, self._book, self._awareness, self._now)
            else:
                beat = next(coming, None)
        return effects

    def advance(self, now: float) -> Sequence[Effect]:
        """Grow older: everything that fell due by `now`."""
        if now >= self._look_at:
            self._grow_older(now)
        elif now > self._now:
            self._now = now
        return self._outbox.take()

    def wake_at(self) -> float:
        """When to look next. At least once a tick while there are agents, so that we notice when we slept."""
        return self._look_at

    # --- for those who show it ------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The moment of the last signal or look. Nothing is heard at an earlier one."""
        return self._now

    def agent(self, agent_id: str) -> Agent | None:
        """What we believe about an agent. Read it, do not write it."""
        return self._agents.get(agent_id)

    def agents(self) -> Iterable[Agent]:
        return self._agents.values()

    def policy_of(self, agent: Agent) -> Policy:
        return self._context.policy(agent)

    def self_doubt(self, now: float) -> int:
        """How much we doubt ourselves, 0 to 8."""
        return self._awareness.score_now(now, self._context.limits)

    def quota_refusal(self, quota: Quota, agent: Agent) -> str | None:
        """Why the source of this agent can keep no more of these here, or None."""
        return self._context.quotas.refusal(quota, agent.source)

    def quota_refusals(self) -> Mapping[Quota, int]:
        """How often a source had used up what it may keep here."""
        return self._context.quotas.refused

    def least_loaded(self, count: int = 1) -> list[Agent]:
        """The agents best placed for more work."""
        return least_loaded(self._agents.values(), count)

    def clean_up_after(self, whom: Callable[[Agent], bool]) -> None:
        """Which agents' lives the hub cleans up after. Until it says so, none."""
        self._context.side_orders.cleans_up = whom

    def canary_comes_by(self, source: str) -> None:
        """The door our canaries come back through: they vouch only for agents that speak through it. Until the hub
        names a door, they vouch for all agents."""
        self._awareness.canary_by = source

    def lives_on(self, host: str) -> None:
        """The host we run on: while we are awake, it is neither asleep nor cut off from us."""
        self._context.host = host

    # --- one of several engines -----------------------------------------------------------------------

    def judges_a_part(self, share: float) -> None:
        """Other engines judge the rest of the fleet. Nobody is ended or started anew unasked unless it was heard lately how
        the rest is, silence on a host is taken for the host's own at first, and of each speed limit this part is ours."""
        self._context.fleet.judges_a_part(share)

    def summary(self, now: float) -> FleetSummary:
        """This part of the fleet, for the other engines."""
        return self._context.fleet.summary(now)

    def hear_of_others(self, others: FleetSummary, age: float, now: float) -> Sequence[Effect]:
        """What the other engines say of theirs, all together, the oldest of it this old. It counts for some seconds."""
        effects = [*self.advance(now)]
        self._context.fleet.hear_of_others(others, age, max(now, self._now), self._outbox)
        return [*effects, *self._outbox.take()]

    # --- what the hub says of itself ------------------------------------------------------------------

    def has_zones(self, others: Iterable[str]) -> None:
        """The zones beside our own that have a hub, or had one that was neither stopped nor forgotten. Until the hub names
        some, nobody is asked for a second opinion."""
        self._context.other_zones = tuple(sorted(others))

    def convict_none_until(self, moment: float) -> None:
        """The agents of the hub before may still be looking for this one: until then their silence means nothing."""
        self._awareness.truce_until = max(self._awareness.truce_until, moment)

    def fall_behind(self, since: float, now: float) -> Sequence[Effect]:
        """The hub had no idle moment between `since` and `now`: signals sent then may still wait to be heard, so the
        engine convicts no agent for its silence."""
        self._canary.fall_behind(since, now)
        return self._outbox.take()

    def catch_up(self, now: float) -> Sequence[Effect]:
        """The hub has handed over everything that was sent."""
        self._canary.catch_up(now)
        return self._outbox.take()

    def put_off(self, source: str, now: float, first_part: str = "", wait_for: float = 0.0) -> None:
        """The hub did not take what this source said, because it said too much, and told it to wait so long. Until it has had
        the time to say it again no agent of it is convicted of silence; or only none whose id has this first part."""
        self._awareness.put_off(source, now, first_part, wait_for)

    # --- snapshot and restore -------------------------------------------------------------------------

    def snapshot(self) -> Beliefs:
        """The whole memory, live: encode it before the next call."""
        self.beliefs.at = self._now
        self.beliefs.numbered = self._outbox.numbered
        self.beliefs.canary_due_at = self._canary.armed_at
        return self.beliefs

    @classmethod
    def restore(
        cls,
        beliefs: Beliefs,
        now: float,
        policies: PolicyBook | None = None,
        fleet: FleetPolicy | None = None,
        *,
        epoch: int = 1,
        changes: ChangedKeys | None = None,
    ) -> Engine:
        """An engine that continues from a snapshot. The time in between counts against no agent."""
        engine = cls(policies, fleet, epoch=epoch, beliefs=beliefs, changes=changes)
        now = max(now, beliefs.at)
        engine._canary.catch_up(now)  # The load of the last engine says nothing about this one.
        if now > beliefs.at:
            beliefs.awareness.resume(beliefs.at, now, engine._context.limits)
            beliefs.awareness.lost_paths.clear()  # The hub has not looked at any path yet.
            engine._watching.forget_questions()
        engine._now = now
        engine._rearm_everything()
        engine._tick_at = now + engine._context.limits.tick_every
        engine._look_again()
        return engine

    # --- hearing --------------------------------------------------------------------------------------

    def _hear_closely(self, signal: Signal, now: float) -> None:
        if type(signal) in _ABOUT_NO_AGENT:  # Faster than to ask for an instance of a struct.
            self._hear_of_the_world(signal, now)
        else:
            agent_signal = cast("AgentSignal | Beat", signal)
            try:
                agent = self._admission.address(agent_signal, now)
                if agent is not None:
                    self._handlers.get(type(signal), self._handle_beat)(agent, agent_signal, now)
                if isinstance(signal, Report) and agent_signal.agent_id in self._agents:
                    self._changes.agents[agent_signal.agent_id] = None
                if agent is not None:
                    self._watching.follow_up(agent, now)
            except Exception as error:  # noqa: BLE001 -- a bug of ours costs one agent, not the fleet
                self._poison(agent_signal.agent_id, error, now)
        if (next_at := self._deadlines.next_at) <= now:
            self._run_due(now)
            next_at = self._deadlines.next_at
        if self._tick_at == NEVER and self._agents:
            self._tick_at = now + self._context.limits.tick_every
        self._look_at = next_at if next_at < self._tick_at else self._tick_at  # As `_look_again`.

    def _hear_of_the_world(self, signal: Signal, now: float) -> None:
        if isinstance(signal, CanaryReturned):
            self._canary.returned(signal.seq, now)
        elif isinstance(signal, PathLost):
            self._awareness.path_lost(signal.path, now)
        elif isinstance(signal, PathRestored):
            self._awareness.path_restored(signal.path, now)
        elif isinstance(signal, GroupReleased):
            self._context.fleet.release(signal.group, signal.by or "a person", now, self._outbox)
            self._changes.fleet = True

    # --- growing older ----------------------------------------------------------------------------------

    def _grow_older(self, now: float) -> None:
        """Everything that fell due up to `now`; first of all, whether we slept."""
        limits = self._context.limits
        if self._look_at == -NEVER:
            self._canary.start(now)
        elif now - max(self._look_at, self._now) > limits.tick_late_after:
            self._awareness.slept(self._now, now, limits)
        self._now = max(now, self._now)
        self._run_due(self._now)
        self._tick_at = self._now + limits.tick_every if self._agents else NEVER
        self._look_again()

    def _look_again(self) -> None:
        """Look again when something falls due, and once a tick while there are agents, so that we notice when we slept."""
        self._look_at = min(self._deadlines.next_at, self._tick_at)

    def _run_due(self, now: float) -> None:
        self._settled_at = self._awareness.settled_at
        while (due := self._deadlines.pop(now, self._later)) is not None:
            at, item = due
            try:
                self._due.fall_due(item, at, now)
            except Exception as error:  # noqa: BLE001 -- a bug of ours costs one agent, not the fleet
                self._poison(getattr(item, "agent_id", getattr(item, "id", "")), error, now)

    def _later(self, item: HasDeadline) -> float:
        """When an item that is armed for now really falls due: a calm agent has usually beaten since. `-NEVER` means now."""
        if type(item) is not Agent or not item.calm:
            return -NEVER
        book, number = self._book, item.policy_no
        if item.slowing:
            if item.trend is None and forecast.is_slow(item.interval, book.policies[number]):
                return -NEVER
            item.slowing = False  # Jitter, or it is followed already: no change to store.
        fixed = book.suspect_after[number]
        if (
            item.margin >= fixed - CLOSE * item.interval
            and item.beats < item.refit_at
            and item.heard_at > self._settled_at
        ):
            # The same as `silence_at`, for nearly all agents: what we learned of its rhythm would hardly win anything.
            at = item.heard_at + fixed
        else:
            try:
                at = self._watching.silence_at(item, book.policies[number])
            except Exception:  # noqa: BLE001 -- it falls due, fails there once more, and is set aside
                return -NEVER
        if item.other_at <= item.armed_at:
            item.other_at = self._watching.other_due(item, book.policies[number], item.armed_at)
        return at if at < item.other_at else item.other_at

    # --- parts ------------------------------------------------------------------------------------------

    def _poison(self, agent_id: str, error: Exception, now: float) -> None:
        """Our bug must not stop the other agents: set this one aside and record it."""
        agent = self._agents.get(agent_id)
        if agent is not None:
            agent.past = replace(agent.past, poisoned=True)
            agent.calm = False
        self._outbox.fact(Poisoned(now, agent_id, f"{type(error).__name__}: {error}"))

    def _rearm_everything(self) -> None:
        """After a restore: look policies up again, keep the deadlines as they were."""
        due_at = self.beliefs.canary_due_at
        self._canary.start(self._now if due_at == NEVER else due_at)
        timed: tuple[HasDeadline, ...] = (
            *self._agents.values(),
            *self.beliefs.lineages.values(),
            *self.beliefs.claims.values(),
            *self.beliefs.messages.values(),
            *self.beliefs.tasks.values(),
            *self.beliefs.moves.offers.values(),
            *(side_order for mine in self.beliefs.side_orders.values() for side_order in mine.values()),
        )
        armed = [(item, item.armed_at) for item in timed]
        for agent in self._agents.values():
            agent.policy_no = FIRST
            agent.role = self._book.role_of(agent.id, agent.role)
            self._context.look_up_policy(agent, self._now)  # This may arm its claims.
        self._settled_at = self._awareness.settled_at
        for place, (item, armed_at) in enumerate(armed):
            # Silence starts from zero for all agents at once, so they would all come up at once. A calm one comes up
            # earlier instead, spread over half the time until then: most have beaten by then, and move on.
            item.armed_at = armed_at
            wait = (self._later(item) - self._now) * (1 + place / len(armed)) / 2
            item.armed_at = NEVER
            self._deadlines.arm(item, max(armed_at, self._now + wait))
