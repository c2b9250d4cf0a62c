"""`lifesigns config check`: the effective values, their sources, and all errors."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from lifesigns.cli import USAGE
from lifesigns.cli.say import say
from lifesigns.core.printable import spelled_out

if TYPE_CHECKING:
    from lifesigns.config.document import Source
    from lifesigns.config.errors import ConfigErrors
    from lifesigns.config.values import Config


@click.group()
def config() -> None:
    """Look at the configuration before something runs on it."""


@config.command()
@click.argument("file", required=False, type=click.Path(path_type=Path))
@click.option("--all", "everything", is_flag=True, help="Show the defaults too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def check(ctx: click.Context, file: Path | None, everything: bool, as_json: bool) -> None:
    """Check FILE and LIFESIGNS_* and show what differs from the defaults.

    Without FILE: LIFESIGNS_CONFIG, ./lifesigns.yaml, or ~/.config/lifesigns/lifesigns.yaml. Exits with 2
    if anything is wrong, and names all of it.

    \b
      lifesigns config check lifesigns.yaml
    """
    from lifesigns.config.errors import ConfigErrors
    from lifesigns.config.load import load

    try:
        loaded = load(file, environ=os.environ)
    except ConfigErrors as errors:
        if not as_json:
            raise
        say(json.dumps(_bad(errors), indent=2))
        ctx.exit(USAGE)
    if as_json:
        say(json.dumps(_good(loaded), indent=2))
    else:
        _print(loaded, everything)


def _bad(errors: ConfigErrors) -> dict[str, Any]:
    listed = [{"key": e.key, "detail": e.detail, "where": e.where} for e in errors.errors]
    return {"ok": False, "errors": listed}


def _good(config: Config) -> dict[str, Any]:
    from lifesigns.config.fitting import settable

    return {
        "ok": True,
        "errors": [],
        "notes": list(_notes(config)),
        "file": str(config.path) if config.path else None,
        "profile": config.profile,
        "policy": settable(config.policies.default),
        "fleet": settable(config.fleet),
        "sources": {key: str(source) for key, source in config.sources.items()},
    }


def _print(config: Config, everything: bool) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    rows = _rows(config, everything)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("key", no_wrap=True)
    table.add_column("value", overflow="fold")
    table.add_column("from", style="dim", overflow="fold")
    for row in rows:
        table.add_row(*(Text(spelled_out(cell)) for cell in row))
    console = Console(soft_wrap=False)
    if rows:
        console.print(table)
        console.print()
    for note in _notes(config):
        console.print(Text(f"Note: {spelled_out(note)}", style="yellow"))
    console.print(Text(_verdict(config, len(rows), everything)))


def _rows(config: Config, everything: bool) -> list[tuple[str, str, str]]:
    from lifesigns.config.load import defaults

    usual = defaults().effective
    return [
        (key, shown(key, value), _place(config.sources[key]))
        for key, value in config.effective.items()
        if everything or value != usual.get(key)
    ]


def shown(key: str, value: object) -> str:
    """A value for people."""
    from lifesigns.config import durations
    from lifesigns.config.overrides import PLAIN_NUMBERS

    name = key.rpartition(".")[2]
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case float() if name not in PLAIN_NUMBERS:
            return durations.in_words(value)
        case tuple():
            return ", ".join(shown(key, part) for part in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _place(source: Source) -> str:
    """The source, short enough for a column; `--json` has it in full."""
    if not source.where or source.where in ("environment", "flag"):
        return source.key
    return source.where if source.written or not source.key else f"follows {source.where}"


def _notes(config: Config) -> list[str]:
    """What is allowed, but hardly intended."""
    named = {
        channel
        for kind, route in config.alerting.items()
        if config.sources[f"alerting.{kind}.channels"].written
        for channel in route.channels
    }
    notes = [
        f"alerting names {channel}, which is not under channels: nobody is told there."
        for channel in sorted(named - set(config.channels))
    ]
    if not config.enabled:
        notes.append("health_monitoring.enabled is off: agents are heard and shown, and nobody is judged.")
    return notes


def _verdict(config: Config, shown: int, everything: bool) -> str:
    from lifesigns.config.document import name_of

    place = f"{name_of(config.path)} is good." if config.path else "No file, and nothing wrong."
    if everything:
        return place
    what = f"{shown} settings differ from the defaults" if shown else "All settings are the defaults"
    return f"{place} {what}; --all shows everything."
