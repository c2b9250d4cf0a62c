"""A simulated agent: one agent as it really is. This is the body; `lives/` has what it lives through,
`simulated_orders.py` what it is told.

A life is a generator that yields how many seconds pass until its next turn. Between turns the body acts by itself: it
beats, obeys orders, is stopped and respawned. An end of a life (a crash, a termination) replaces the
generator.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from math import inf
from random import Random
from typing import TYPE_CHECKING, Final

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.health import Doing
from lifesigns.core.policy import Policy
from lifesigns.simulation.simulated_claims import SimulatedClaims
from lifesigns.simulation.simulated_orders import SimulatedOrderHandler
from lifesigns.simulation.truth import Failure, Illness

if TYPE_CHECKING:
    from lifesigns.simulation.world import World

Life = Iterator[float]

CHAIN_MAX: Final = 8


class SimulatedAgent:
    """One agent: its process, its link to the bus, its work."""

    def __init__(self, world: World, index: int, host: str, chance: Random) -> None:
        self.world = world
        self.index = index
        self.id = f"agent-{index:04d}"
        self.host = host
        self.chance = chance
        self.policy: Policy = world.policies.of(self.id)
        self.interval = self.policy.silence.interval
        self.phase = self.interval * (0.02 + 0.93 * chance.random())
        self.capped = index % 5 == 0
        """Whether it has a budget, and may therefore overspend."""
        self.skew = chance.uniform(-6, 6) * 3600.0 if index % 20 == 7 else 0.0
        """The error of its own clock."""
        self.incarnation: str | None = ""
        self.heard_life: str | None = ""
        self.births = 0
        self.running = False
        self.speaking = False
        self.heeds = True
        """Whether it reads the nudges it gets."""
        self.last_words: Callable[[], None] | None = None
        """What it reports when it is told to stop and ends by itself."""
        self.plain: Callable[[SimulatedAgent], s.BeatReceived] | None = None
        """How it writes a beat with only the fields of a document; then it reports nothing else."""
        self.supervised = index % 7 == 3
        """Whether a supervisor watches its output and its CPU, beside the sender inside it."""
        self.suspicious: Mapping[e.Kind, e.Severity] = {}
        """Findings about it that are excusable although it is well, and their highest severity: it gives reason for
        them."""
        self.suspicious_until = -inf
        """Until when it last gave reason."""
        self.leaving = False
        """Whether it has said good-bye: what becomes of its process now concerns nobody."""
        self.goes_on = False
        """Whether its process lives on between two lives, and will begin the next one itself."""
        self.cuts = 0
        self.splits = 0
        """Those of its cuts that only the monitor's side is behind: others hear it, and reach it."""
        self.orders = SimulatedOrderHandler(self)
        self.claims: SimulatedClaims | None = None
        """Of a worker, its jobs beside its task."""
        self.spool: list[s.Signal] = []
        """Reports that it cannot send now."""
        self.line_at = 0.0
        self.frozen_at: float | None = None
        self.failure: Failure | None = None
        self.unreachable: Failure | None = None
        self.well_since: float | None = None
        self.ill_until = -inf
        self.sick_until = -inf
        """When it was last truly sick. Being cut off does not count."""
        self.heals_unheard = False
        """Whether it got well while its earlier reports could not be sent."""
        self.unlucky_at = -inf
        """When the bus last lost or delayed one of its beats."""
        self.accused_of: set[e.Kind] = set()
        """The monitor's open findings about it."""
        self.well_for = 0.0
        self.doom: Illness | None = None
        self.task_id: str | None = None
        self.lost_task: str | None = None
        self.task_at = 0.0
        self.tasks = 0
        self.calls = 0
        self.model_call = ""
        """Its open model call: an interruption ends it."""
        self.checkpoints: list[str] = []
        self.checkpoint_at = 0.0
        self.thought_at = 0.0
        self.beat = s.BeatReceived(self.id)
        self._life: Life | None = None
        self._turn_no = 0
        self._beat_no = 0
        self._paced_from: tuple[float, int] | None = None
        """Since when it follows an interval of the monitor's, and its sequence then."""

    @property
    def now(self) -> float:
        return self.world.now

    @property
    def well(self) -> bool:
        """Truly healthy and reachable."""
        return self.well_since is not None

    @property
    def remembered_until(self) -> float:
        """When it last gave reason for a finding."""
        return max(self.sick_until, self.suspicious_until)

    @property
    def room(self) -> int | None:
        """How many more jobs it can take; None if it is no worker."""
        return None if self.claims is None else max(0, self.claims.room)

    @property
    def gives_reason(self) -> bool:
        """Whether a nudge is excusable although it is well."""
        return e.Severity.FAILING in self.suspicious.values()

    # --- living -------------------------------------------------------------------------------------

    def live(self, life: Life) -> None:
        """Begin another life; the previous one is over."""
        self._life = life
        self.last_words, self.suspicious = None, {}
        self._turn_no += 1
        self.world.at(self.now, self._turn, self._turn_no)

    def _turn(self, number: int) -> None:
        if number == self._turn_no and self._life is not None:
            wait = next(self._life, None)
            if wait is not None and number == self._turn_no:
                self.world.at(self.now + wait, self._turn, number)

    def start(self, incarnation: str = "") -> None:
        """Its process starts. It has not spoken yet."""
        self.births += 1
        self.incarnation = incarnation or f"{self.id}.{self.births}"
        self.running = True
        self.model_call = ""
        self.leaving = False
        self.plain = None
        self.interval, self._paced_from = self.policy.silence.interval, None
        self.beat = s.BeatReceived(
            self.id,
            incarnation=self.incarnation,
            loop_lag_ms=2.0,
            load=0.4,
            host=self.host,
            capacity_available=self.room,
        )
        self._reckon()

    def speak_up(self) -> None:
        """Its first signal: from here on it beats."""
        self.speaking = True
        self.recover()
        self.phase = min(max(self.now % self.interval, 0.02 * self.interval), 0.95 * self.interval)
        self.send_beat()
        self.keep_beating()
        if self.supervised:
            self.beat.metrics = s.Metrics(cpu_percent=1.0)
            self.say(s.ActivitySeen(agent_id=self.id, incarnation=self.incarnation, kind="output"))
        if self.lost_task is not None:
            self.say(s.TaskDone(agent_id=self.id, incarnation=self.incarnation, task_id=self.lost_task))
            self.lost_task = None

    def keep_beating(self) -> None:
        """Join the agents with routine beats, or send its own beats if they carry more."""
        self._beat_no += 1
        alone = self.frozen_at is not None or self.plain is not None or self._paced_from is not None
        if alone or self.interval != self.world.bulk_beats.interval:
            self.world.bulk_beats.leave(self.index, self.now)
            if self.speaking:
                self._schedule_beat(self._beat_no)
        elif self.speaking and not self.cuts:
            self.world.bulk_beats.join(self)
        else:
            self.world.bulk_beats.leave(self.index, self.now)

    def _schedule_beat(self, number: int) -> None:
        slot = (self.now - self.phase + 1e-6) // self.interval + 1
        self.world.at(slot * self.interval + self.phase, self._beat_alone, number)

    def _beat_alone(self, number: int) -> None:
        if number == self._beat_no and self.speaking:
            if not self.cuts and not self.world.bus.loses():
                self.send_beat()
            self._schedule_beat(number)

    def send_beat(self, seq: int | None = None) -> None:
        """One beat of its own, with everything in it."""
        if self.plain is not None:
            self.world.carry_beat(self, self.plain(self))
            return
        lag = 2.0 if self.frozen_at is None else (self.now - self.frozen_at) * 1000.0
        self.world.carry_beat(
            self,
            s.BeatReceived(
                self.id,
                self._next_seq() if seq is None else seq,
                self.incarnation,
                sent_at=self.now + self.skew,
                loop_lag_ms=lag,
                load=0.4,
                host=self.host,
                capacity_available=self.room,
            ),
        )

    def _next_seq(self) -> int:
        """By the time; by its own count since it follows another interval."""
        if self._paced_from is None:
            return int(self.now // self.interval)
        at, seq = self._paced_from
        return seq + int((self.now - at + 1e-6) // self.interval) + 1

    def follow_interval(self, interval: float) -> None:
        """Beat by itself, at another rhythm; its sequence counts its own beats from here on."""
        self._paced_from = self.now, self._next_seq()
        self.interval = interval
        self.phase = self.now % interval
        self.keep_beating()

    def stop(self) -> None:
        """Its process ends."""
        self.running = self.speaking = False
        self.frozen_at = None
        if self.claims is not None:
            self.claims.lose_all()
        for unsaid in self.spool:
            if isinstance(unsaid, s.TaskDone):
                self.lost_task = unsaid.task_id
        self.spool.clear()
        self.keep_beating()
        self._reckon()

    # --- health -------------------------------------------------------------------------------------

    def fall_ill(self, illness: Illness) -> Failure:
        """From now on it is really unwell."""
        failure = self.failure = self.world.scorer.failing(self, illness)
        self._reckon()
        return failure

    def recover(self) -> None:
        """It is well again, and shows it."""
        if self.failure is not None:
            if self.unreachable is not None:  # Nobody could find it as long as nobody could hear it.
                self.failure.due_at += self.now - max(self.unreachable.since, self.failure.since)
            self.heals_unheard = bool(self.spool) or self.world.monitor.down or self.world.bus.cut
            if self.heals_unheard:  # The monitor learns of both at once, and need not find it in between.
                self.failure.due_at = inf
            self.failure.ended_at = self.ill_until = self.sick_until = self.now
            self.failure = None
        self._reckon()

    def cut_off(self) -> None:
        """Its link breaks."""
        self.cuts += 1
        if self.cuts == 1:
            if self.speaking:
                self.unreachable = self.world.scorer.failing(self, Illness.CUT)
            self.keep_beating()
            self._reckon()

    def reconnect(self) -> None:
        """Its link is back; it sends what waited first."""
        self.cuts -= 1
        if self.cuts:
            return
        if self.unreachable is not None:
            self.unreachable.ended_at = self.ill_until = self.now
            if self.world.deaf_since() < self.unreachable.due_at:
                self.unreachable.due_at = inf  # Nobody could hear anybody, so nobody could miss it.
            if self.failure is not None:
                self.failure.due_at += self.now - self.unreachable.since
            self.unreachable = None
        self.orders.obey_waiting()
        self.flush()
        if self.speaking and self.plain is None:
            self.speak_at_once()
        self.keep_beating()
        self._reckon()

    def split_off(self) -> None:
        """It does not reach the monitor any more, but others."""
        self.splits += 1
        self.cut_off()

    def unite(self) -> None:
        self.splits -= 1
        self.reconnect()

    def speak_at_once(self) -> None:
        """As a sender does after an outage, and after a termination for its silence: its next beat may be minutes away."""
        self.say(s.PongReceived(agent_id=self.id, incarnation=self.incarnation, seq=0))

    def flush(self) -> None:
        """Send what could not be sent."""
        waiting, self.spool = self.spool, []
        if self.heals_unheard:
            self.ill_until, self.heals_unheard = self.now, False
        for signal in waiting:
            self.world.carry(self, signal)

    def _reckon(self) -> None:
        well = self.running and self.failure is None and not self.cuts
        if well and self.well_since is None:
            self.well_since = self.now
        elif not well and self.well_since is not None:
            self.well_for += self.now - self.well_since
            self.well_since = None

    def well_time(self) -> float:
        """How long it has been well so far, in all its lives."""
        return self.well_for + (self.now - self.well_since if self.well_since is not None else 0.0)

    # --- its acts -----------------------------------------------------------------------------------

    def say(self, signal: s.Signal) -> None:
        self.world.carry(self, signal)

    def register(self, grace: float | None = None) -> None:
        policy = {"spending": {"task_tokens_max": TASK_TOKENS_MAX}} if self.capped else None
        self.say(
            s.AgentRegistered(
                agent_id=self.id,
                incarnation=self.incarnation,
                host=self.host,
                grace=grace,
                policy=policy,
                follows_interval=self.index % 3 != 0,  # The others are of an older version.
            )
        )

    def take_task(self) -> None:
        """Take a new task from a dispatcher."""
        self.tasks += 1
        self.task_id = f"{self.id}/t{self.tasks}"
        self.checkpoints.clear()
        self.task_at = self.checkpoint_at = self.now
        expected = self.chance.uniform(6, 8) * 3600.0
        self.say(
            s.TaskAssigned(
                agent_id=self.id, incarnation=self.incarnation, task_id=self.task_id, expected_for=expected
            )
        )
        if self.beat.doing is Doing.IDLE:
            self.do(Doing.WORKING)  # Whatever cut its rest short: it no longer reports idle.

    def finish_task(self) -> None:
        if self.task_id is not None:
            self.say(s.TaskDone(agent_id=self.id, incarnation=self.incarnation, task_id=self.task_id))
            self.task_id = None

    def lose_task(self) -> None:
        """Lose its task to another agent; it reports that when it can."""
        if self.task_id is not None:
            self.lost_task, self.task_id = self.task_id, None

    def do(self, doing: Doing, until: float | None = None, note: str = "") -> None:
        """`until` is in the monitor's time: decoding translates it."""
        moment = None if until is None else until + self.world.monitor.offset
        self.say(
            s.DoingChanged(
                agent_id=self.id, incarnation=self.incarnation, doing=doing, until=moment, note=note
            )
        )
        self.beat.doing, self.beat.until = (
            doing,
            moment,
        )  # Its beats say so too, in case a report is lost or repeated.

    def start_tool(self, tool: str, args: str, bound: float | None = None) -> str:
        """Announce a tool call; returns its id."""
        self.calls += 1
        call = f"c{self.calls}"
        self.say(
            s.ToolStarted(
                agent_id=self.id,
                incarnation=self.incarnation,
                call_id=call,
                tool=tool,
                args_digest=args,
                bound=bound,
            )
        )
        return call

    def start_model_call(self, call_id: str) -> None:
        """Announce a model call."""
        self.model_call = call_id
        self.say(s.ModelStarted(agent_id=self.id, incarnation=self.incarnation, call_id=call_id))

    def end_model_call(self, tokens_in: int = 0, tokens_out: int = 0) -> None:
        """End its open model call, if there is one."""
        call_id, self.model_call = self.model_call, ""
        if call_id:
            ended = s.ModelFinished(
                agent_id=self.id,
                incarnation=self.incarnation,
                call_id=call_id,
                tokens_in=tokens_in,
                tokens_out=tokens_out,
            )
            self.say(ended)

    def use_tool(
        self,
        tool: str,
        args: str,
        result: str,
        *,
        error: str | None = None,
        error_kind: str | None = None,
        call_id: str = "",
        retry: bool = False,
    ) -> None:
        """End a tool call, announced or not."""
        self.calls += not call_id
        self.say(
            s.ToolFinished(
                agent_id=self.id,
                incarnation=self.incarnation,
                call_id=call_id or f"c{self.calls}",
                tool=tool,
                args_digest=args,
                result_digest=result,
                ok=error is None,
                error=error,
                error_kind=error_kind,
                retry=retry,
            )
        )

    def work_a_little(self) -> None:
        """A unique tool call."""
        luck = self.chance.random()
        what = str(luck)
        self.use_tool(TOOLS[int(luck * len(TOOLS))], what, what)

    def think(self, tokens: float) -> None:
        """A model call, reported at its end."""
        self.thought_at = self.now
        used = int(tokens * (0.6 + 0.8 * self.chance.random()))
        self.say(s.ModelFinished(agent_id=self.id, incarnation=self.incarnation, tokens_out=used))

    def save(self) -> None:
        """A checkpoint, linked to the previous one."""
        parent = self.checkpoints[-1] if self.checkpoints else None
        name = f"{self.task_id}/{self.now:.0f}"
        self.checkpoints.append(name)
        del self.checkpoints[:-CHAIN_MAX]
        self.checkpoint_at = self.now
        self.say(
            s.CheckpointSaved(
                agent_id=self.id,
                incarnation=self.incarnation,
                checkpoint_id=name,
                task_id=self.task_id,
                parent_id=parent,
                digest=name,
            )
        )

    def come_round(self) -> None:
        """Recover, by itself or by a nudge: it acts at once, and continues its life."""
        from lifesigns.simulation.lives import biography

        self.frozen_at = None
        self.keep_beating()
        self.recover()
        self.end_model_call()
        if self.task_id is None:
            self.take_task()
        self.do(Doing.WORKING)
        self.work_a_little()
        self.think(4000)
        self.save()
        self.live(biography(self))


TASK_TOKENS_MAX: Final = 600_000
TOOLS: Final = ("read", "edit", "grep", "bash", "search", "write")
