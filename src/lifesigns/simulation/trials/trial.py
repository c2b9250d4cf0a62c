"""Trial: one agent lives one life, and the real engine judges it.

A detector must find a sick life, and keep its finding until the life is ended. It must spare a similar healthy one: no
finding beyond those it allows, and no act. Nobody reads a nudge here, nobody answers an escalation, no person comes:
left alone, the engine faces the hardest test of whom it spares.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import inf
from typing import Any, Final

from msgspec import Struct

from lifesigns.core import effects as e
from lifesigns.core.effects import Kind, Severity
from lifesigns.core.health import Health
from lifesigns.core.judgement import RANK
from lifesigns.core.policy import HOUR, FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile
from lifesigns.simulation.faults import NONE
from lifesigns.simulation.simulated_agent import Life, SimulatedAgent
from lifesigns.simulation.strikes import DAY
from lifesigns.simulation.world import SimulationConfig, World

NEVER_FAILS: Final = 1e12

TICK: Final = 5.0
"""How often the engine looks: with one agent that is most of the cost."""

HELD_MIN: Final = 0.9
"""The part of the time after the finding during which a sickness must stay found: a finding that opens and closes again
does not count."""

NOTICE_HELD_MIN: Final = 0.6
"""The same for a notice, which nobody acts on. A forecast of noisy numbers comes and goes with them."""

DETECTORS: Final[Mapping[str, frozenset[Kind]]] = {
    "silence": frozenset({Kind.SILENCE, Kind.NEVER_STARTED, Kind.EXIT}),
    "freeze": frozenset({Kind.FREEZE}),
    "stall: checkpoint": frozenset({Kind.NO_CHECKPOINT}),
    "stall: tool call": frozenset({Kind.NO_TOOL_CALL}),
    "stall: tokens": frozenset({Kind.NO_TOKENS}),
    "stall: output": frozenset({Kind.NO_OUTPUT}),
    "stall: repeated output": frozenset({Kind.REPEATED_OUTPUT}),
    "stall: spinning": frozenset({Kind.SPINNING}),
    "stall: long call": frozenset({Kind.LONG_CALL}),
    "stall: task": frozenset({Kind.TASK_STALLED}),
    "looping: same": frozenset({Kind.LOOPING}),
    "looping: error": frozenset({Kind.LOOPING}),
    "looping: cycle": frozenset({Kind.LOOPING}),
    "looping: changing": frozenset({Kind.LOOPING}),
    "looping: recent": frozenset({Kind.LOOPING}),
    "looping: talk": frozenset({Kind.LOOPING}),
    "erring": frozenset({Kind.ERRORS}),
    "context": frozenset({Kind.CONTEXT}),
    "spending": frozenset({Kind.SPENDING}),
    "overload": frozenset({Kind.OVERLOAD}),
    "forecast": frozenset({Kind.FORECAST}),
    "own word": frozenset({Kind.SELF_REPORTED}),
}
"""The detectors, by the rules that people tell apart, and the findings each of them makes."""


class Trial(Struct, frozen=True):
    """One life, and the verdict that the engine must reach."""

    detector: str
    name: str
    life: Callable[[SimulatedAgent], Life]
    sick: bool
    severity: Severity = Severity.DEGRADED
    """Sick: the lowest severity to find. Healthy: findings of the detector must be milder than this."""
    ended: bool = False
    """Sick: the engine must also end it, and respawn it (or tell a person that it cannot)."""
    asked: bool = False
    """Healthy: findings, nudges and questions are excusable, because it gives every reason; but it must not be ended.
    """
    profile: str | None = None
    """A profile it needs instead of the tried one: the seed's own rhythm."""
    hours: float = 1.0


class Outcome(Struct, frozen=True):
    """The result of a trial."""

    trial: Trial
    found_after_s: float | None
    """From the beginning of its illness; None if it was not found."""
    findings: tuple[str, ...]
    """Its findings, mild or not, each kind of sentence once."""
    done: tuple[str, ...]
    """The acts: nudge, escalate, terminate, respawn."""
    wrong: str
    """Why the trial failed; empty if it did not."""

    @property
    def ok(self) -> bool:
        return not self.wrong


def sick(detector: str, name: str, life: Callable[..., Life], *how: object, **more: Any) -> Trial:
    """A life that must be found; `how` are the life's arguments, `more` the trial's."""
    return Trial(detector, name, lambda agent: life(agent, *how), sick=True, **more)


def healthy(detector: str, name: str, life: Callable[..., Life], *how: object, **more: Any) -> Trial:
    """A life that must be spared."""
    return Trial(detector, name, lambda agent: life(agent, *how), sick=False, **more)


class Witness:
    """Records what the engine says about the agent on trial."""

    def __init__(self, world: World, trial: Trial) -> None:
        self._world = world
        self._kinds = DETECTORS[trial.detector]
        self._least = RANK[trial.severity]
        self._subject = world.agents[0].id
        self.found_at = inf
        self.held_for = 0.0
        self._open: dict[Kind, Severity] = {}
        self._held_from = inf
        self.over_at = inf
        """When it was ended."""
        self.texts: dict[str, e.Finding] = {}
        self.done: list[str] = []
        self.person_called_for: list[str] = []
        """What a person was called for after its end."""

    def see(self, effects: Sequence[e.Effect]) -> None:
        for effect in effects:
            if getattr(effect, "agent_id", None) == self._subject:
                self._see(effect)

    def _see(self, effect: e.Effect) -> None:
        match effect:
            case e.FindingOpened(finding=finding):
                self.texts.setdefault(f"{finding.severity}: {finding.text}", finding)
                self._open[finding.kind] = finding.severity
                self._look()
            case e.FindingClosed(kind=kind):
                self._open.pop(kind, None)
                self._look()
            case e.Flip(now=Health.TERMINATED):
                self.over_at = min(self.over_at, self._world.now)
                self._look()
            case e.SendNudge() | e.Escalate() | e.Terminate() | e.Respawn():
                self.done.append(ACTS[type(effect)])
            case e.NeedsHuman() if self.over_at < inf:
                self.person_called_for.append(effect.reason)
            case _:
                pass

    def _look(self) -> None:
        """Whether it is found now, and for how long it has been."""
        now = min(self._world.now, self.over_at)
        if self._held_from < inf:
            self.held_for += now - self._held_from
        self._held_from = inf
        holds = any(RANK[self._open[kind]] >= self._least for kind in self._kinds & self._open.keys())
        if holds and self.over_at == inf:
            self.found_at, self._held_from = min(self.found_at, now), now

    def end(self) -> None:
        self._look()


ACTS: Final[Mapping[type[e.Effect], str]] = {
    e.SendNudge: "nudge",
    e.Escalate: "escalate",
    e.Terminate: "terminate",
    e.Respawn: "respawn",
}


def run(trial: Trial, policies: PolicyBook, seed: int) -> Outcome:
    """Live it, and judge the judge."""
    if trial.profile is not None:
        policies = PolicyBook(profile(trial.profile))
    config = SimulationConfig(
        agents=1,
        days=trial.hours * HOUR / DAY,
        seed=seed,
        policies=policies,
        fleet=FleetPolicy(tick_every=TICK),
        faults=NONE,
        failure_every=NEVER_FAILS,
        first=trial.life,
        answered=False,
        quiet_for=0.0,
    )
    world = World(config)
    world.agents[0].heeds = world.agents[0].capped = False
    witness = Witness(world, trial)
    world.witnesses.append(witness.see)
    world.run()
    witness.end()
    since = next((f.since for f in world.scorer.failures if f.agent_id == world.agents[0].id), inf)
    wrong = _not_found(trial, witness, world.now) if trial.sick else _not_spared(trial, witness)
    if not wrong and world.invariants.violations:
        wrong = str(world.invariants.violations[0])
    return Outcome(
        trial,
        round(witness.found_at - since, 1) if witness.found_at < inf and since < inf else None,
        tuple(witness.texts),
        tuple(dict.fromkeys(witness.done)),
        wrong,
    )


def _not_found(trial: Trial, witness: Witness, now: float) -> str:
    if witness.found_at == inf:
        return "it was not found"
    lasted = min(now, witness.over_at) - witness.found_at
    held_min = NOTICE_HELD_MIN if trial.severity is Severity.NOTICE else HELD_MIN
    if lasted > 0 and witness.held_for / lasted < held_min:
        return f"it was found for {witness.held_for / lasted:.0%} of the time only"
    if trial.ended and witness.over_at == inf:
        return "it was not ended"
    if trial.ended and "respawn" not in witness.done and not witness.person_called_for:
        return "it was ended, not started again, and nobody was told"
    return ""


def _not_spared(trial: Trial, witness: Witness) -> str:
    if trial.asked:
        return "it was ended" if "terminate" in witness.done else ""
    kinds = DETECTORS[trial.detector]
    for text, finding in witness.texts.items():
        mild = trial.severity if finding.kind in kinds else Severity.DEGRADED
        if RANK[finding.severity] >= RANK[mild]:
            return text
    return f"{witness.done[0]} reached it" if witness.done else ""
