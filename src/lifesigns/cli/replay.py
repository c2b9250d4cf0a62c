"""`lifesigns replay`: judges the recorded signals again, under another policy."""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from itertools import groupby
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli import INTERRUPTED
from lifesigns.cli.output import counted, number_table
from lifesigns.cli.progress import progress
from lifesigns.cli.say import say
from lifesigns.cli.secret_options import Secret
from lifesigns.core.printable import spelled_out
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from rich.table import Table

    from lifesigns.config.values import Config
    from lifesigns.replay import Difference, ReplayResult

SETTABLE: Final = ("policy.", "fleet.")
LISTED_MAX: Final = 50
"""Agents listed for people; `--json` has all."""


@click.command()
@click.option("--since", metavar="DURATION", help="How far back: 30 min, 2h, 1d.  [1h]")
@click.option(
    "--from", "from_", metavar="TIME", help="The beginning, as 2026-11-15T18:00 (local, if no zone is said)."
)
@click.option("--to", metavar="TIME", help="The end.  [now]")
@click.option("--agent", "agents", multiple=True, metavar="ID", help="Only this one; may be repeated.")
@click.option("--config", "config_file", type=click.Path(path_type=Path), help="The other lifesigns.yaml.")
@click.option(
    "--profile", help="The other profile: swift, balanced, tolerant, swarm, fast_tasks, fleet, long_tasks."
)
@click.option(
    "--set", "sets", multiple=True, metavar="KEY=VALUE", help="policy.silence.timeout=10; may be repeated."
)
@click.option(
    "--store", type=Secret(), metavar="URL", help="sqlite:///path or postgres://...  [that of the hub here]"
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--quiet", is_flag=True, help="No progress bar.")
@click.pass_context
def replay(
    ctx: click.Context,
    since: str | None,
    from_: str | None,
    to: str | None,
    agents: tuple[str, ...],
    config_file: Path | None,
    profile: str | None,
    sets: tuple[str, ...],
    store: str | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Judge recorded signals again, under another policy.

    The hub keeps what it hears for a day. Two engines hear it again: one under the policy in force (the
    configuration as `lifesigns config check` finds it), one under the other. What they judge differently is shown.
    Exits with 1 if there is anything.

    \b
      lifesigns replay --set policy.silence.timeout=10
      lifesigns replay --since 8h --profile tolerant --agent coder-7
      lifesigns replay --from 2026-11-15T18:00 --to 2026-11-15T19:30 --config new.yaml
    """
    begin, end = _span(since, from_, to, time.time())
    in_force, other = _policies(config_file, profile, sets)
    try:
        with progress("replaying", quiet=quiet) as move:
            result = asyncio.run(_replay(in_force, other, store, (begin, end), agents, move))
    except KeyboardInterrupt:
        click.echo("Stopped before the end: nothing is known.", err=True)
        ctx.exit(INTERRUPTED)
    settings = _settings(in_force, other)
    if as_json:
        say(json.dumps(_as_json(result, settings), indent=2))
    else:
        _print(result, settings)
    ctx.exit(1 if result.differences else 0)


async def _replay(
    in_force: Config,
    other: Config,
    url: str | None,
    span: tuple[float, float],
    agents: tuple[str, ...],
    move: Callable[[float], None],
) -> ReplayResult:
    from lifesigns.assembly.hub import store_to_read
    from lifesigns.config.hub_locator import state_folder
    from lifesigns.hub.slots import refuse_divided
    from lifesigns.hub.state_folder import default_store
    from lifesigns.replay import replay

    place = url or in_force.store or default_store(state_folder(os.environ))
    store = store_to_read(place)
    try:
        await refuse_divided(store, "lifesigns replay")
        return await replay(
            store, in_force, other, since=span[0], until=span[1], agents=agents, progress=move
        )
    finally:
        await store.close()


# --- arguments ----------------------------------------------------------------------------------------


def _span(since: str | None, from_: str | None, to: str | None, now: float) -> tuple[float, float]:
    from lifesigns.config import durations

    if since is not None and from_ is not None:
        raise UsageError("--since and --from are two ways to say when it begins: use one")
    end = now if to is None else _moment("--to", to)
    if from_ is not None:
        begin = _moment("--from", from_)
    else:
        try:
            begin = end - durations.parse(since or "1h")
        except ValueError as error:
            raise UsageError(f"--since: {error}") from error
    if not isfinite(begin) or begin >= end:
        raise UsageError("the time to replay ends before it begins")
    return begin, end


def _moment(option: str, text: str) -> float:
    try:
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(
            f"{option}: {text!r} is no time; it would be like 2026-11-15T18:00 or 2026-11-15T18:00:00Z"
        ) from error


def _policies(file: Path | None, profile: str | None, sets: Sequence[str]) -> tuple[Config, Config]:
    from lifesigns.config.load import load

    if file is None and profile is None and not sets:
        raise UsageError("say what the other policy is: --set KEY=VALUE, --profile NAME or --config FILE")
    flags: dict[str, object] = {"profile": profile}
    for setting in sets:
        key, equals, value = setting.partition("=")
        if not equals or not key.startswith(SETTABLE):
            raise UsageError(f"--set: {setting!r} is no setting; it would be like policy.silence.timeout=10")
        flags[key.strip()] = value
    return load(environ=os.environ), load(file, environ=os.environ, flags=flags)


def _settings(in_force: Config, other: Config) -> dict[str, tuple[object, object]]:
    """The settings in which the two policies differ."""
    ours, theirs = in_force.effective, other.effective
    return {
        key: (ours.get(key), theirs.get(key))
        for key in (*ours, *(key for key in theirs if key not in ours))
        if ours.get(key) != theirs.get(key)
        and key.startswith(("profile", "policy.", "fleet.", "roles.", "agents."))
    }


# --- output -------------------------------------------------------------------------------------------


def _as_json(result: ReplayResult, settings: dict[str, tuple[object, object]]) -> dict[str, Any]:
    from lifesigns.views.moments import moment, moment_or_none

    def times(spans: Sequence[tuple[float, float]]) -> list[list[str | None]]:
        return [[moment_or_none(one), moment_or_none(two)] for one, two in spans]

    return {
        "since": moment(result.since),
        "until": moment(result.until),
        "signals": result.survey.signals,
        "missed": result.survey.missed,
        "agents": result.agents,
        "left_out": sorted(result.survey.left_out_until),
        "hub": {
            "away": times(result.survey.away),
            "slept": times(result.survey.slept),
            "blind": times(result.survey.blind),
            "lost_paths": {path: times(spans) for path, spans in result.survey.lost_paths.items()},
        },
        "settings": {key: {"in_force": one, "other": two} for key, (one, two) in settings.items()},
        "noted_then": dict(result.noted),
        "in_force": _side(result.in_force),
        "other": _side(result.other),
        "differences": [
            {
                "agent_id": one.episode.agent_id,
                "change": one.change,
                "by_s": round(one.by, 3) or None,
                "what": one.episode.what,
                "at": moment(one.episode.began_at),
                "until": moment_or_none(one.episode.ended_at),
                "reason": one.episode.text,
                "cause": one.episode.cause,
                "note": one.episode.note,
            }
            for one in result.differences
        ],
    }


def _side(side: Any) -> dict[str, Any]:
    return {"counts": dict(side.counts), "asked": side.asked, "answered": side.answered}


def _print(result: ReplayResult, settings: dict[str, tuple[object, object]]) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True, highlight=False)
    for line in _heading(result, settings):
        console.print(Text(spelled_out(line)))
    by_agent = [
        (agent, list(some)) for agent, some in groupby(result.differences, lambda d: d.episode.agent_id)
    ]
    for agent_id, some in by_agent[:LISTED_MAX]:
        console.print()
        console.print(Text(spelled_out(agent_id), style="bold"))
        for one in _without_repetitions(some):
            console.print(Text(f"  {spelled_out(_line(one, result))}"))
    if len(by_agent) > LISTED_MAX:
        console.print(Text(f"\n... and {len(by_agent) - LISTED_MAX} more agents; --json has them all."))
    console.print()
    console.print(_table(result))
    console.print()
    console.print(Text(_verdict(result, len(by_agent))))


def _heading(result: ReplayResult, settings: dict[str, tuple[object, object]]) -> Iterator[str]:
    from lifesigns.cli.config import shown
    from lifesigns.core.words import duration

    survey = result.survey
    yield (
        f"{counted(survey.signals, 'signal')} of {counted(len(survey.agents), 'agent')}, "
        f"{_clock(result.since, result, day=True)} to {_clock(result.until, result, day=True)}."
    )
    for key, (one, two) in settings.items():
        yield f"  {key}: {shown(key, one)} -> {shown(key, two)}"
    if not settings:
        yield "  Both policies are the same."
    if survey.missed:
        share = survey.signals / (survey.signals + survey.missed)
        yield f"Note: the hub heard more than it writes down: these are {share:.1%} of all signals, a sample of the agents."
    if survey.left_out_until:
        yield f"Note: {len(survey.left_out_until)} agents were not written down all the time; they are left out up to then."
    for what, spans in (("away", survey.away), ("asleep", survey.slept), ("blind", survey.blind)):
        if lasted := _lasted(spans, result):
            yield f"Note: the hub was {what} for {duration(lasted)}: nobody is judged by that."
    for path, spans in survey.lost_paths.items():
        if lasted := _lasted(spans, result):
            yield f"Note: {path} did not answer for {duration(lasted)}: nobody behind it is judged by that."
    if result.in_force.poisoned or result.other.poisoned:
        yield "Note: judging somebody failed, which is a bug of ours; those are set aside. Please report it."


def _lasted(spans: Sequence[tuple[float, float]], result: ReplayResult) -> float:
    """How much of these is within the replayed time."""
    return sum(max(0.0, min(two, result.until) - max(one, result.since)) for one, two in spans)


def _without_repetitions(differences: Sequence[Difference]) -> list[Difference]:
    """Without the findings that repeat a change of health, which was made of them."""
    flips = {
        (one.episode.began_at, one.episode.text) for one in differences if not _is_finding(one.episode.what)
    }
    return [
        one
        for one in differences
        if not _is_finding(one.episode.what) or (one.episode.began_at, one.episode.text) not in flips
    ]


def _is_finding(what: str) -> bool:
    """`looping (stuck)`, and not `stuck`."""
    return "(" in what


def _line(one: Difference, result: ReplayResult) -> str:
    from lifesigns.core.words import duration

    episode = one.episode
    change = {
        "more": "only under the other",
        "less": "only under the one in force",
        "earlier": f"{duration(one.by)} earlier under the other",
        "later": f"{duration(one.by)} later under the other",
    }[one.change]
    lasts = f" for {duration(episode.ended_at - episode.began_at)}" if isfinite(episode.ended_at) else ""
    words = " ".join(part for part in (episode.text, episode.note) if part)
    return f"{_clock(episode.began_at, result)}  {change}: {episode.what}{lasts}. {words}"


def _clock(at: float, result: ReplayResult, *, day: bool = False) -> str:
    """A local time; with its day where that is not clear."""
    same_day = _local(result.since).date() == _local(result.until).date()
    return _local(at).strftime("%H:%M:%S" if same_day and not day else "%Y-%m-%d %H:%M:%S")


def _local(at: float) -> datetime:
    return datetime.fromtimestamp(at, UTC).astimezone()


def _table(result: ReplayResult) -> Table:
    ours, theirs, rows = result.in_force, result.other, []
    for what in sorted({*ours.counts, *theirs.counts}, key=lambda what: (_is_finding(what), what)):
        noted = "" if _is_finding(what) else result.noted[what]
        rows.append((what, noted, ours.counts[what], theirs.counts[what]))
    rows.append(("pings", "", ours.asked, theirs.asked))
    return number_table(("", "noted then", "in force", "other"), rows)


def _verdict(result: ReplayResult, agents: int) -> str:
    if not result.differences:
        return f"Nothing would have been judged differently, of {result.agents:,} agents."
    are = "1 agent" if agents == 1 else f"{agents:,} agents"
    return f"{are} of {result.agents:,} would have been judged differently."
