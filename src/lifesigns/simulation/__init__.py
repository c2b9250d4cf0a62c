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

from lifesigns.simulation.faults import Faults
from lifesigns.simulation.report import Detection, Report, Target
from lifesigns.simulation.report import of as report_of
from lifesigns.simulation.world import SimulationConfig, World

__all__ = ["Detection", "Faults", "Report", "SimulationConfig", "Target", "World", "simulate"]


def simulate(config: SimulationConfig) -> Report:
    """Run it. After an interrupt (Ctrl-C) the report covers the part until then."""
    world = World(config)
    with suppress(KeyboardInterrupt):
        world.run()
    return report_of(world)
