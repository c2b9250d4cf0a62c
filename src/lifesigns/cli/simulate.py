"""`lifesigns simulate`: a week of your fleet under your policy, in a minute."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING

import click

from lifesigns.cli import INTERRUPTED
from lifesigns.cli.output import number_table
from lifesigns.cli.progress import progress
from lifesigns.cli.say import say
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.simulation import Report, SimulationConfig


@click.command()
@click.option("--agents", type=click.IntRange(1, 100_000), default=40, show_default=True)
@click.option("--days", type=click.FloatRange(0.01, 366), default=7.0, show_default=True)
@click.option("--seed", type=int, help="Replay a run. Without it, a new one every time.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="A lifesigns.yaml.")
@click.option("--profile", help="swift, balanced, tolerant, swarm, fast_tasks, fleet, long_tasks.")
@click.option("--zones", type=click.IntRange(1, 9), default=1, show_default=True, help="With a hub each.")
@click.option("--faults", default="default", show_default=True, metavar="LIST", help="What else goes wrong.")
@click.option(
    "--trials/--no-trials",
    default=True,
    show_default=True,
    help="Show each detector the sick it must find, and the healthy that look like them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.pass_context
def simulate(
    ctx: click.Context,
    agents: int,
    days: float,
    seed: int | None,
    config_file: Path | None,
    profile: str | None,
    zones: int,
    faults: str,
    trials: bool,
    as_json: bool,
    quiet: bool,
) -> None:
    """Live through a week of a fleet in a minute.

    Simulated agents work, idle, crash, freeze, hang, loop and overspend; the real engine watches them with
    your policy. What it found, missed and did is shown against the truth. Exits with 1 if a law was broken.

    --faults takes a comma list: loss=P delay=S duplicate=P reorder=P (per message), and partition stall
    restart crash blind clock host half split zone, each with or without =TIMES_A_DAY; or none, default, all.

    \b
      lifesigns simulate --agents 20 --days 1 --seed 7
      lifesigns simulate --config lifesigns.yaml --faults loss=0.01,partition
    """
    from lifesigns.simulation import simulate as live_through

    if seed is None:
        seed = int.from_bytes(os.urandom(4))
    config = replace(_config(agents, days, seed, config_file, profile, faults), trials=trials, zones=zones)
    began = perf_counter()
    with progress(f"{agents} agents, {days:g} days", quiet=quiet) as move:
        report = live_through(replace(config, on_progress=move))
    if as_json:
        say(json.dumps(report.to_json(), indent=2))
    else:
        _print(report, perf_counter() - began, _command(report, config_file, profile, zones, trials=trials))
    if not report.complete:
        ctx.exit(INTERRUPTED)
    ctx.exit(0 if report.ok else 1)


def _config(
    agents: int, days: float, seed: int, config_file: Path | None, profile: str | None, faults: str
) -> SimulationConfig:
    from lifesigns.config.load import load
    from lifesigns.core.profiles import PROFILES
    from lifesigns.simulation import Faults, SimulationConfig

    if profile is not None and profile not in PROFILES:
        raise UsageError(f"--profile: {profile!r} is unknown; known are {', '.join(PROFILES)}")
    flags = {"profile": profile} if profile else None
    loaded = load(config_file, environ=os.environ, flags=flags)
    return SimulationConfig(
        agents=agents,
        days=days,
        seed=seed,
        policies=loaded.policies,
        fleet=loaded.fleet,
        faults=Faults.parse(faults),
    )


def _command(
    report: Report, config_file: Path | None, profile: str | None, zones: int, *, trials: bool
) -> str:
    """The command that replays this very run."""
    words = f"lifesigns simulate --agents {report.agents} --days {report.days:g} --seed {report.seed}"
    if config_file:
        words += f" --config {config_file}"
    if profile:
        words += f" --profile {profile}"
    if zones > 1:
        words += f" --zones {zones}"
    return f"{words} --faults {report.faults}" + ("" if trials else " --no-trials")


def _print(report: Report, took: float, command: str) -> None:
    from rich.console import Console
    from rich.markup import escape
    from rich.table import Table

    console = Console(soft_wrap=True)
    detections = [
        (kind, d.happened, d.found, d.missed, d.late, *map(_seconds, (d.p50_s, d.p99_s, d.bound_s)))
        for kind, d in report.detections.items()
    ]
    headings = ("failure", "happened", "found", "missed", "late", "p50", "p99", "bound")
    console.print(number_table(headings, detections))
    console.print()
    if report.pairs:
        pairs = [
            (p.detector, f"{p.found} of {p.sick}", _seconds(p.slowest_s), f"{p.spared} of {p.healthy}")
            for p in report.pairs
        ]
        console.print(number_table(("detector", "sick found", "slowest", "healthy spared"), pairs))
        console.print()
    done = f"{report.nudges} nudges, {report.escalations} escalations, {report.terminations} terminations"
    console.print(f"{done}, {report.recoveries} recoveries.")
    console.print()
    targets = Table(box=None, pad_edge=False, show_header=False)
    for target in report.targets:
        mark = "[green]✓[/]" if target.met else "[red]✗[/]"
        targets.add_row(mark, target.name, target.got, f"[dim]{target.wanted}[/]")
    console.print(targets)
    console.print()
    for violation in report.violations[:20]:
        console.print(f"[red]✗[/] {violation}", markup=True, highlight=False)
    for text in report.false_finding_texts[:5]:
        console.print(f"[yellow]false[/] {text}", highlight=False)
    for text in report.unfound_texts[:5]:
        console.print(f"[yellow]late[/] {text}", highlight=False)
    for outcome in report.trials:
        if not outcome.ok:
            shape = f"{outcome.trial.detector}: {'sick' if outcome.trial.sick else 'healthy'}: {outcome.trial.name}"
            console.print(f"[yellow]trial[/] {escape(shape)}: {escape(outcome.wrong)}", highlight=False)
    if not report.complete:
        console.print("[yellow]Stopped before the end.[/]")
    speed = report.events / took if took else 0.0
    console.print(f"{report.events:,} events in {took:.1f} s ({speed:,.0f} a second). Replay with:")
    console.print(f"  {command}", markup=False, highlight=False)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:.1f} s" if value < 120 else f"{value / 60:.1f} min"
