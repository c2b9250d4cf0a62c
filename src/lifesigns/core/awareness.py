"""Awareness: the monitor doubts itself before it doubts an agent.

Five things make the monitor unreliable, and each has its answer:

    * it slept (a tick came much too late): the gap is added to every deadline, and it convicts no agent for a while;
    * it is behind (the hub does not keep up with what is sent): as if it had slept, and after a while it is blind to all
      agents, for a beat that waits in a socket is not silence;
    * it is blind (its own canary does not come back): no suspicion advances until it does, of any agent that sends by the
      way the canary takes: a dead bus is not the death of its agents;
    * a path of some agents is lost (a server between us and them does not answer): the same, for these agents;
    * it is confused (late ticks, missed canaries, refuted suspicions): a score of 0 to 8 stretches every wait. What the
      agents of one source refute stretches the waits of that source only, unless other sources confirm it (`source_counts.py`).

After blindness, a restart or a takeover every agent's silence starts from zero: our downtime is no agent's death. The
idea of the score is Lifeguard's (Dadgar, Phillips, Currey 2018).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, field
from typing import Final

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.policy import FleetPolicy

SCORE_MAX: Final = 8

TRUCE_MAX: Final = 30.0
"""The gap itself counts against no agent already. The truce is for senders that gave up on us meanwhile: every link of
ours looks for the hub again at least every few seconds, so half a minute is plenty, however long we slept."""

LAPSES_MAX: Final = 64
"""Lapses remembered. Beyond that the two oldest become one: deadlines only grow by that."""


PUT_OFF_FOR: Final = 5.0
"""Every link of ours tries again after a second or two."""

PUT_OFF_MAX: Final = 1_000
"""Sources that are put off at once. If there are more, the trouble is ours, and everyone is."""

EVERYONE: Final = ("", "")

REFUTED_SHARE: Final = 0.02
"""Refuted suspicions per agent and calm spell that point at us: a bus that loses one beat in a thousand
stays below it at any interval of a second or more."""


REFUTED_BY: Final = 3
"""So many sources, and this share of them, raise the doubt for all: one of them may lie."""


@dataclass(slots=True)
class Doubt:
    """How far we doubt ourselves about the agents of one source, for general reasons and its own."""

    score: int = 0
    score_at: float = 0.0
    refuted: int = 0
    refuted_from: float = -NEVER


@dataclass(slots=True)
class Lapse:
    """A time in which we stood still."""

    began_at: float
    ended_at: float
    awake_at: float = 0.0
    """The reading of the awake clock all through it; see `Awareness.due`."""


@dataclass(slots=True)
class Awareness:
    """How far the monitor trusts itself."""

    score: int = 0
    score_at: float = 0.0
    """When the score last changed: it falls by one for every calm spell since."""
    lapses: list[Lapse] = field(default_factory=list)
    truce_until: float = -NEVER
    silence_from: float = -NEVER
    """Silence counts from here at the earliest."""
    heard_at: float = -NEVER
    """When we last heard any agent, or the canary."""
    blind_since: float | None = None
    behind_since: float | None = None
    """Since when we do not keep up with what is sent."""
    overloaded: bool = False
    """Behind for so long that we are blind to all agents."""
    canary_seq: int = 0
    canary_at: float = NEVER
    """When the oldest canary still out was sent."""
    canary_out: int = 0
    """The number of that canary."""
    canary_by: str = ""
    """The receiver that canaries come back through; empty if they vouch for every way."""
    canary_back_at: float = -NEVER
    """When one last came back."""
    carried_from: float = -NEVER
    """Since when the canary's way works without a gap: for agents that send by it silence counts from here."""
    lost_paths: dict[str, float] = field(default_factory=dict)
    """Since when each path is lost that has no canary: the hub asks the server there itself."""
    restored_paths: dict[str, float] = field(default_factory=dict)
    """Since when each of them works again."""
    refuted: int = 0
    refuted_from: float = -NEVER
    doubts: dict[str, Doubt] = field(default_factory=dict)
    """By source, for those that refuted suspicions lately."""
    refuted_by: dict[str, float] = field(default_factory=dict)
    """When each of several sources last refuted a suspicion."""
    put_off_until: dict[tuple[str, str], float] = field(default_factory=dict)
    """Until when no agent of this source is convicted, because the hub did not take what it said. Where many senders share
    a source, as on a bus: only those whose id has this first part; empty for all."""

    def __post_init__(self) -> None:
        lapses, self.lapses = self.lapses, []
        for lapse in lapses:  # Lapses of an older snapshot may overlap, and lack the awake clock.
            self._add_lapse(lapse.began_at, lapse.ended_at)
        self._wind_awake_clock()

    @property
    def settled_at(self) -> float:
        """Our lapses do not concern an agent heard after this."""
        lapsed = self.lapses[-1].ended_at if self.lapses else -NEVER
        return max(lapsed, self.silence_from, self.carried_from, *self.restored_paths.values())

    @property
    def blind(self) -> bool:
        return self.blind_since is not None

    def vouches_for(self, agent: Agent) -> bool:
        """Whether this agent sends by the way the canary takes, as far as we know."""
        return not self.canary_by or (agent.via or agent.source) in ("", self.canary_by)

    def blind_to(self, agent: Agent) -> bool:
        if self.lost_paths and (agent.via or agent.source) in self.lost_paths:
            return True
        return self.blind_since is not None and (self.overloaded or self.vouches_for(agent))

    def silent_from(self, agent: Agent) -> float:
        """From when on, at the earliest, this agent's silence counts."""
        silent_from = self.silence_from
        if self.carried_from > silent_from and self.vouches_for(agent):
            silent_from = self.carried_from
        return max(silent_from, self.restored_at(agent)) if self.restored_paths else silent_from

    def restored_at(self, agent: Agent) -> float:
        """Since when this agent's path works again; long ago if it was never lost."""
        return self.restored_paths.get(agent.via or agent.source, -NEVER)

    def path_lost(self, path: str, now: float) -> None:
        """The server by which these agents speak does not answer."""
        self.lost_paths.setdefault(path, now)

    def path_restored(self, path: str, now: float) -> None:
        """It answers again: the silence of its agents starts anew."""
        if self.lost_paths.pop(path, None) is not None:
            self.restored_paths[path] = now

    def truce_for(self, agent: Agent) -> float:
        """Until when this agent is not convicted for its silence."""
        if not self.put_off_until:
            return self.truce_until
        source, until = agent.via or agent.source, self.put_off_until.get
        keys = EVERYONE, (source, ""), (source, agent.id.partition(".")[0])
        return max(self.truce_until, *(until(key, -NEVER) for key in keys))

    def put_off(self, source: str, now: float, first_part: str = "", wait_for: float = 0.0) -> None:
        """We did not take what this source said, and told it to wait so long: its agents get the time to say it again."""
        key, until = (source, first_part), now + wait_for + PUT_OFF_FOR
        if key not in self.put_off_until and len(self.put_off_until) >= PUT_OFF_MAX:
            waiting = {one: ends_at for one, ends_at in self.put_off_until.items() if ends_at > now}
            self.put_off_until = waiting if len(waiting) < PUT_OFF_MAX else {EVERYONE: until}
        self.put_off_until[key] = max(until, self.put_off_until.get(key, until))

    def canary_sent(self, now: float) -> int:
        """The number of the next canary."""
        self.canary_seq += 1
        if self.canary_at == NEVER:
            self.canary_at, self.canary_out = now, self.canary_seq
        return self.canary_seq

    def canary_returned(self, seq: int, now: float, policy: FleetPolicy) -> None:
        """The canary's way works. If an earlier canary was lost or took longer than until the next, it did not for a
        while: agents that send by it may not be back yet."""
        if self.canary_at != NEVER and (
            seq > self.canary_out or now > self.due(self.canary_at, policy.canary_every)
        ):
            self.carried_from = now
        self.canary_at = NEVER
        self.canary_back_at = self.heard_at = now

    def score_now(self, now: float, policy: FleetPolicy) -> int:
        """The score after the calm since, of the source that we doubt ourselves about most; without changing it."""
        return max(_calmed(doubt, now, policy)[0] for doubt in self._all_doubts())

    def factor(self, now: float, policy: FleetPolicy, source: str = "") -> int:
        """By how much a suspicion of an agent of this source waits longer than usual."""
        doubt = self.doubts.get(source, self)
        doubt.score, doubt.score_at = _calmed(doubt, now, policy)
        return 1 + doubt.score

    def doubt(self, now: float, policy: FleetPolicy) -> None:
        """Count one more reason to doubt ourselves."""
        for doubt in self._all_doubts():
            _raise(doubt, now, policy)

    def _all_doubts(self) -> list[Awareness | Doubt]:
        return [self, *self.doubts.values()]

    def refute(
        self, now: float, agents: int, policy: FleetPolicy, source: str = "", other_sources: int = 0
    ) -> None:
        """A suspicion of an agent of this source, which has so many agents, was wrong. One is a lost beat; many at once
        are our fault."""
        if not other_sources:
            if _is_many(self, now, agents, policy):
                self.doubt(now, policy)
            return
        self._forget_calm(now, policy)
        own = self.doubts.get(source)
        if own is None:
            own = self.doubts[source] = Doubt(self.score, self.score_at, self.refuted, self.refuted_from)
        if _is_many(own, now, agents, policy):
            _raise(own, now, policy)
        self.refuted_by[source] = now
        if len(self.refuted_by) >= max(REFUTED_BY, REFUTED_SHARE * (1 + other_sources)):
            self.refuted_by.clear()
            self.doubt(now, policy)

    def _forget_calm(self, now: float, policy: FleetPolicy) -> None:
        """Drop sources that refuted nothing for a while and leave no doubt."""
        for source, at in list(self.refuted_by.items()):
            if now - at > policy.calm_after:
                del self.refuted_by[source]
        for source, doubt in list(self.doubts.items()):
            if now - doubt.refuted_from > policy.calm_after and not _calmed(doubt, now, policy)[0]:
                del self.doubts[source]

    def slept(self, since: float, now: float, policy: FleetPolicy) -> None:
        """We stood still between `since` and `now`: our own fault."""
        self._lapse(since, now)
        truce = min(max(policy.truce_min, now - since), TRUCE_MAX)
        self.truce_until = max(self.truce_until, now + truce)
        self.doubt(now, policy)

    def stand_still(self, now: float, policy: FleetPolicy) -> None:
        """Our clock was set back and waits until it has caught up: the time between signals is unknown."""
        self.truce_until = max(self.truce_until, now + policy.truce_min)

    def fall_behind(self, since: float, now: float) -> None:
        """We may not have heard all that was sent between `since` and `now`. Afterwards senders that gave up meanwhile
        get as long to come back."""
        self._lapse(since, now)
        if self.behind_since is None:
            self.behind_since = since
        self.truce_until = max(self.truce_until, now + min(now - self.behind_since, TRUCE_MAX))

    def resume(self, since: float, now: float, policy: FleetPolicy) -> None:
        """We were away (restart, takeover) or blind: every silence starts anew, which is truce enough."""
        self._lapse(since, now)
        self.truce_until = max(self.truce_until, now + policy.truce_min)
        self.silence_from = now
        self.doubt(now, policy)

    def lose_sight(self, now: float) -> None:
        self.blind_since = now

    def regain_sight(self, now: float, policy: FleetPolicy) -> None:
        if self.blind_since is not None:
            since, self.blind_since = self.blind_since, None
            self.resume(since, now, policy)

    def due(self, start: float, wait: float) -> float:
        """When a wait that began at `start` is over, not counting our lapses.

        The awake clock stops during a lapse, and a wait is over when that clock has advanced by it. Each lapse has its
        reading, so the answer takes a search and no walk, however often we slept.
        """
        lapses = self.lapses
        if not lapses or start >= lapses[-1].ended_at:
            return start + wait
        past = bisect_right(lapses, start, key=_ended_at)
        if lapses[past].began_at < start:
            start = lapses[past].ended_at
            past += 1
        awake_until = start + wait if not past else start - _offset(lapses[past - 1]) + wait
        counted = bisect_left(lapses, awake_until, lo=past, key=_awake_at)
        return start + wait if counted == past else awake_until + _offset(lapses[counted - 1])

    def lapsed(self, since: float, until: float) -> float:
        """The total of our lapses within this time."""
        if not self.lapses or since >= self.lapses[-1].ended_at:
            return 0.0
        overlaps = (min(lapse.ended_at, until) - max(lapse.began_at, since) for lapse in self.lapses)
        return sum(overlap for overlap in overlaps if overlap > 0)

    def _lapse(self, since: float, now: float) -> None:
        self._add_lapse(since, now)
        self._wind_awake_clock()

    def _add_lapse(self, since: float, now: float) -> None:
        """Add a lapse; merge it with those it overlaps, as blindness may overlap a sleep."""
        lapses = self.lapses
        while lapses and lapses[-1].ended_at >= since:
            last = lapses.pop()
            since, now = min(since, last.began_at), max(now, last.ended_at)
        lapses.append(Lapse(since, now))
        if len(lapses) > LAPSES_MAX:
            first, second = lapses[:2]
            lapses[:2] = [Lapse(first.began_at, second.ended_at)]

    def _wind_awake_clock(self) -> None:
        asleep = 0.0
        for lapse in self.lapses:
            lapse.awake_at = lapse.began_at - asleep
            asleep += lapse.ended_at - lapse.began_at


def _calmed(doubt: Awareness | Doubt, now: float, policy: FleetPolicy) -> tuple[int, float]:
    """A score after the calm since, and since when it holds."""
    calm = int((now - doubt.score_at) // policy.calm_after) if doubt.score else 0
    if calm <= 0:
        return doubt.score, doubt.score_at
    return max(0, doubt.score - calm), doubt.score_at + calm * policy.calm_after


def _raise(doubt: Awareness | Doubt, now: float, policy: FleetPolicy) -> None:
    score, _ = _calmed(doubt, now, policy)
    doubt.score, doubt.score_at = min(SCORE_MAX, score + 1), now


def _is_many(doubt: Awareness | Doubt, now: float, agents: int, policy: FleetPolicy) -> bool:
    """Whether this refuted suspicion is one too many for so many agents."""
    if now - doubt.refuted_from > policy.calm_after:
        doubt.refuted, doubt.refuted_from = 0, now
    doubt.refuted += 1
    if doubt.refuted < max(2.0, REFUTED_SHARE * agents):
        return False
    doubt.refuted, doubt.refuted_from = 0, now
    return True


def _ended_at(lapse: Lapse) -> float:
    return lapse.ended_at


def _awake_at(lapse: Lapse) -> float:
    return lapse.awake_at


def _offset(lapse: Lapse) -> float:
    """By how much the awake clock is slow after this lapse."""
    return lapse.ended_at - lapse.awake_at
