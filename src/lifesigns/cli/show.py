"""`lifesigns show ID`: everything about one agent, in words."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from lifesigns.cli import output
from lifesigns.cli.output import amount, counted, seconds, since, words
from lifesigns.cli.requests import NOT_THERE, asks_a_hub, exit_if, prints_json
from lifesigns.core.words import duration
from lifesigns.errors import HubError

if TYPE_CHECKING:
    from rich.console import Console

    from lifesigns.client import Client
    from lifesigns.views import AgentHealth, History, InterventionView, LastBeat, Point

EVENTS_SHOWN: Final = 10
MINUTES: Final = 60


@click.command()
@click.argument("agent_id", metavar="ID")
@prints_json
@asks_a_hub
def show(client: Client, agent_id: str, as_json: bool) -> None:
    """Show everything about one agent: its state, since when and why, and its last hour.

    Exits with 1 if it is stuck, failing, disconnected or not judged any more.

    \b
      lifesigns show coder-7
    """
    agent = client.agent(agent_id)
    beat = _last_beat(client, agent_id)
    history = client.history(agent_id, for_="1h")
    if as_json:
        output.print_json({"agent": agent, "heartbeat": beat, "history": history})
    else:
        _print(output.console(), agent, beat, history)
    exit_if(agent.unwell)


def _last_beat(client: Client, agent_id: str) -> LastBeat | None:
    """None if the hub has just started and has no beat of it yet."""
    try:
        return client.heartbeat(agent_id)
    except HubError as error:
        if error.status == NOT_THERE:
            return None
        raise


def _print(console: Console, agent: AgentHealth, beat: LastBeat | None, history: History) -> None:
    from rich.text import Text

    now = time.time()
    head = Text.assemble(
        words(agent.agent_id, "bold"),
        " is ",
        words(agent.state, output.STYLES[agent.state]),
        f" for {since(agent.state_changed_at, now)}",
    )
    if agent.cause:
        head.append(f" ({agent.cause})")
    console.print(head)
    if agent.failure_class:
        console.print(words(f"  Its failure is {agent.failure_class}: {agent.class_reason}."))
    if agent.set_aside:
        console.print(words(f"  {output.why(agent)}", "red"))
    elif agent.state == "terminated" and agent.why:
        console.print(words(f"  {agent.why}"))
    for finding in agent.findings:
        console.print(Text("  ").append_text(words(finding.text, output.STYLES.get(finding.severity, ""))))
        numbers = ", ".join(f"{name} {value}" for name, value in finding.numbers.items())
        proof = "conclusive" if finding.conclusive else "weak evidence"
        seen = f"{finding.kind}, {proof}, for {since(finding.since, now)}"
        seen += f": {numbers}" if numbers else ""
        console.print(Text("    ").append_text(words(seen, "dim")), soft_wrap=True)
    console.print()
    rows = output.table("", "")
    rows.show_header = False
    for name, value in _facts(agent, beat, now):
        if value:
            rows.add_row(Text(name, style="dim"), words(value))
    console.print(rows)
    _print_hour(console, history, now)


def _facts(agent: AgentHealth, beat: LastBeat | None, now: float) -> Iterator[tuple[str, str]]:
    """Names and values; the value is empty where nothing is known."""
    fields: dict[str, Any] = beat.beat if beat is not None and isinstance(beat.beat, dict) else {}
    numbers, step = agent.metrics, agent.intervention
    if agent.state != "terminated":  # It does nothing any more.
        yield "doing", f"{agent.doing}{_until(fields, now)}{_in_its_words(agent, now)}"
    yield "task", f"{agent.task_id}{_progress(fields)}" if agent.task_id else ""
    yield "last beat", _heard(agent, now)
    yield "role", agent.role or ""
    yield (
        "host",
        f"{agent.host}{', process ' + str(fields['pid']) if fields.get('pid') else ''}" if agent.host else "",
    )
    up_for = f", up for {duration(numbers.uptime_seconds)}" if numbers.uptime_seconds else ""
    yield "life", f"{agent.incarnation or 'unnamed'}{up_for}"
    yield "load", _load(agent)
    yield (
        "used",
        f"{amount(numbers.token_count)} tokens, {numbers.cost_usd:.2f} USD, {counted(numbers.tool_call_count, 'tool call')}",
    )
    yield "errors", str(numbers.error_count) if numbers.error_count else ""
    yield "checkpoint", f"{since(agent.last_checkpoint, now)} ago" if agent.last_checkpoint else ""
    yield "breakers", ", ".join(f"{one.name} {one.state}" for one in agent.circuit_breakers)
    if step is not None:
        yield "intervention", f"{_step(step, now)}: {step.reason}"
    if agent.paused:
        left = (
            f"for {duration(seconds(agent.paused_until) - now)}"
            if agent.paused_until
            else "until it is resumed"
        )
        yield "paused", f"left alone {left}"
    if numbers.disconnection_count or numbers.intervention_count:
        yield (
            "so far",
            f"{counted(numbers.disconnection_count, 'disconnection')}, "
            f"{counted(numbers.intervention_count, 'intervention')}",
        )


def _step(step: InterventionView, now: float) -> str:
    """The step of the ladder that an agent is on, or the one that is about to be taken."""
    left = duration(max(0.0, seconds(step.next_at) - now)) if step.next_at else ""
    if not step.id:
        return f"{step.rung} in {left or 'a moment'}"
    return f"{step.rung} {step.attempt}, for {since(step.since, now)}{left and f', next in {left}'}"


def _in_its_words(agent: AgentHealth, now: float) -> str:
    lasts = "" if agent.doing_since is None else f", for {since(agent.doing_since, now)}"
    return f"{lasts}: {agent.doing_note}" if agent.doing_note else lasts


def _heard(agent: AgentHealth, now: float) -> str:
    numbers = agent.metrics
    if agent.last_heartbeat is None:
        return "never"
    missed = f", {numbers.missed_heartbeats} missed" if numbers.missed_heartbeats else ""
    return f"{since(agent.last_heartbeat, now)} ago, {numbers.total_heartbeats} in all{missed}, φ {agent.phi:.1f}"


def _load(agent: AgentHealth) -> str:
    room = f", room for {agent.capacity_available} more" if agent.capacity_available is not None else ""
    return "" if agent.load is None else f"{agent.load:.0%}{room}"


def _progress(fields: dict[str, Any]) -> str:
    parts = [str(fields[name]) for name in ("phase", "progress") if fields.get(name)]
    return f" ({', '.join(parts)})" if parts else ""


def _until(fields: dict[str, Any], now: float) -> str:
    until = fields.get("until")
    return f", for another {duration(until - now)}" if isinstance(until, float) and until > now else ""


# --- the last hour ------------------------------------------------------------------------------------


def _print_hour(console: Console, history: History, now: float) -> None:
    from rich.text import Text

    beats, tokens = _by_minute(history.points, now)
    if any(beats):
        console.print()
        console.print(f"The last hour, beats a minute   {output.sparkline(beats)}")
    if any(tokens):
        console.print(f"              tokens a minute   {output.sparkline(tokens)}")
    points = [point for point in history.points if _in_words(point)][-EVENTS_SHOWN:]
    if points:
        console.print()
    for point in points:
        console.print(
            Text(f"{since(point.at, now):>12} ago  ").append_text(words(_in_words(point))), soft_wrap=True
        )


def _by_minute(points: Sequence[Point], now: float) -> tuple[list[float | None], list[float | None]]:
    """Beats and tokens in each of the last sixty minutes; None where there is no sample."""
    from lifesigns.views import SamplePoint

    beats: list[float | None] = [None] * MINUTES
    tokens: list[float | None] = [None] * MINUTES
    before: int | None = None
    for point in points:
        if not isinstance(point, SamplePoint):
            continue
        minute = MINUTES - 1 - int((now - seconds(point.at)) // 60)
        if 0 <= minute < MINUTES:
            beats[minute] = float(point.beats)
            if point.token_count is not None and before is not None:
                tokens[minute] = float(max(0, point.token_count - before))
        before = point.token_count
    return beats, tokens


def _in_words(point: Point) -> str:
    """What happened at this point, in words; nothing for a sample."""
    from lifesigns.views import FindingPoint, FlipPoint, InterventionPoint

    match point:
        case FlipPoint():
            return f"{point.was} → {point.to}: {point.reason}"
        case FindingPoint(open=True):
            return f"{point.kind}: {point.text}"
        case FindingPoint():
            return f"{point.kind} is over"
        case InterventionPoint():
            attempt = f" {point.attempt}" if point.attempt else ""
            by = f" by {point.by}" if point.by else ""
            return f"{point.rung}{attempt} {point.stage}{by}{': ' if point.text else ''}{point.text}"
    return ""
