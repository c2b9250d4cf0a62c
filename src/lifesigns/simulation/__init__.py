"""Simulation: a week of a fleet in a minute, and proof that the engine keeps its laws meanwhile.

    report = simulate(SimulationConfig(agents=40, days=7, seed=1))
    report.ok, report.detections["crash"].p99_s, report.false_findings

    world.py            virtual time, all agents, and the way between them and the monitor
    strikes.py          what goes wrong, and when            faults.py      how often: this can be configured
    scorer.py           findings, held against the truth
    simulated_agent.py  one agent as it really is            truth.py       what is really wrong with it
    lives/              what agents go through               bulk_beats.py  their beats, by the million
    bus.py              the way to the monitor               operators.py   the people and the orchestrator
    monitor.py          the engine, and its bad days         report.py      the results
    trials/             sick agents, and healthy ones that look like them
    invariants.py       the laws, checked on everything the engine says

The same configuration and seed give the same run, event for event.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final

from lifesigns.simulation.faults import Faults
from lifesigns.simulation.report import Detection, Report, Target
from lifesigns.simulation.report import of as report_of
from lifesigns.simulation.trials import Outcome
from lifesigns.simulation.trials import run_all as run_trials
from lifesigns.simulation.world import SimulationConfig, World

__all__ = ["Detection", "Faults", "Report", "SimulationConfig", "Target", "World", "simulate"]

TRIALS_COST: Final = 50.0
"""All trials take as long as so many days of one agent, roughly."""


def simulate(config: SimulationConfig) -> Report:
    """Run it. After an interrupt (Ctrl-C) the report covers the part until then."""
    tell = config.on_progress or (lambda _part: None)
    agent_days = config.agents * config.days
    fleets_share = agent_days / (agent_days + TRIALS_COST) if config.trials else 1.0
    world = World(replace(config, on_progress=lambda part: tell(part * fleets_share)))
    outcomes: list[Outcome] = []
    stopped = True
    with suppress(KeyboardInterrupt):
        world.run()
        if config.trials:
            for part, outcome in run_trials(world.policies, config.seed):
                outcomes.append(outcome)
                tell(fleets_share + part * (1.0 - fleets_share))
        stopped = False
    return report_of(world, tuple(outcomes), stopped=stopped)
