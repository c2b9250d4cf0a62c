"""Who carries out what is more than a message to an agent: what is written about it.

    terminate:    who ends agents that do not end by themselves
    cleanup:      who cleans up after a life that is over
    respawn:      who starts agents anew
    escalation:   whom to ask about an agent that nobody could help
    nudges:       how nudges reach agents that do not fetch them themselves
    checkpoints:  how much of their contents is kept, and who to ask about contents that are kept elsewhere

All but the last are lists, of which the first entry that fits an agent decides; a single entry needs no list. A secret may be
written as it is, as `env:NAME` or as `file:/path`; no error repeats it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final

from lifesigns.config import readers
from lifesigns.config.readers import Reader, named_secrets, secret, secret_url
from lifesigns.config.schema import POLICY, Entry, Schema, Section, entry, keys
from lifesigns.core import commands, templates
from lifesigns.core.commands import CLEANUP_FACTS, RESPAWN_FACTS

QUIET_MAX: Final = 30.0
"""Whoever waits for longer than a try may take would wait for ever."""
NO_FACTS: Final[Mapping[str, str]] = {}
SHELLS: Final = frozenset("ash bash csh dash fish ksh nu pwsh sh tcsh zsh".split())


# --- readers of single values ------------------------------------------------------------------------------


def command(value: object) -> str:
    """A command that can be taken apart into words."""
    found = readers.text(value)
    try:
        shlex.split(found)
    except ValueError as error:
        raise ValueError(f"cannot be taken apart: {error}") from None
    return found


def env(value: object) -> tuple[str, ...]:
    """Names of what a command gets of the hub's environment."""
    named = readers.words(value)
    for name in named:
        if name.startswith("LIFESIGNS_"):
            raise ValueError(f"has {name}, but a command is told LIFESIGNS_* of its own, not the hub's")
        if not name.isidentifier():
            raise ValueError(f"has {name!r}, but needs names of variables: their values stay where they are")
    return named


def pane(value: object) -> str:
    """Where an agent's pane is, as tmux names panes. Without `=` tmux takes the beginning of a name for the name."""
    found = readers.text(value)
    if wrong := templates.fault(found, ("agent_id",)):
        raise ValueError(wrong)
    if "{agent_id}" in found.replace("={agent_id}", ""):
        raise ValueError("needs ={agent_id}: without the = tmux would take coder-1 for coder-10 as well")
    return found


def programs(value: object) -> tuple[str, ...]:
    """Programs that read what is typed as text."""
    named = readers.words(value)
    for name in named:
        if name in SHELLS:
            raise ValueError(f"has {name}: a shell would execute the nudge, name the agent's own program")
    return named


quiet_for = readers.within(
    readers.seconds, lambda s: 0 < s <= QUIET_MAX, f"more than nothing and at most {QUIET_MAX:g} s"
)
megabytes = readers.within(
    readers.number, lambda mb: 0 < mb <= 1_000_000, "a number of megabytes greater than 0"
)

# --- what there is to write --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """An address orders are posted to. It, the secret and the headers are secrets."""

    webhook: Annotated[str, secret_url] = field(repr=False)
    secret: Annotated[str | None, secret] = field(default=None, repr=False)
    headers: Annotated[Mapping[str, str], named_secrets] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A command that starts agents, or cleans up after them."""

    command: Annotated[str, command]
    shell: bool = False
    cwd: Annotated[Path | None, readers.file] = None
    env: Annotated[tuple[str, ...], env] = ()
    """What it gets of the hub's environment, by name."""


@dataclass(frozen=True, slots=True)
class TmuxSettings:
    """Panes that nudges are typed into."""

    tmux: Annotated[str, pane]
    idle_commands: Annotated[
        tuple[str, ...], programs, "it names the programs that read a nudge as text, such as claude"
    ]
    quiet_for: Annotated[float, quiet_for] = 3.0
    socket: Annotated[str | None, readers.text] = None


Way = WebhookSettings | CommandSettings | TmuxSettings


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Who carries out the orders about these agents; empty is all."""

    by: Way
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    name: str = "orchestrator"
    """Of who is asked: for escalations."""


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """How much of checkpoints' contents is kept; None is the default."""

    verify: Annotated[str | None, secret_url] = field(default=None, repr=False)
    """Who is asked about contents that are kept elsewhere: a webhook, with its secret and headers."""
    secret: Annotated[str | None, secret] = field(default=None, repr=False)
    headers: Annotated[Mapping[str, str], named_secrets] = field(default_factory=dict, repr=False)
    content_mb: Annotated[float | None, megabytes] = None
    task_mb: Annotated[float | None, megabytes] = None
    total_mb: Annotated[float | None, megabytes] = None


def _executor(
    *ways: type, facts: Mapping[str, str] = NO_FACTS, policy: str = "ladder", **more: Reader
) -> Entry:
    """An entry that is carried out in one of these ways, each known by its first key. A command has places for these facts. What
    is asked for here although it is a threshold is shown its place, in a section of the policy."""
    own = {next(iter(keys(way))): way for way in ways}
    known = {"agents": readers.words, "roles": readers.words, **more}
    known |= {key: reader for way in ways for key, reader in keys(way).items()}
    elsewhere = {key: f"policy.{policy}.{key}" for key in POLICY[policy]}

    def read(section: Section, given: Mapping[str, object]) -> ExecutorSettings | None:
        right = section.read(given, known, elsewhere)
        there = [way for way in own if way in given]
        if len(there) != 1:
            found = f", not {' and '.join(there)}" if there else ""
            section.complain("", f"needs one of {', '.join(own)}{found}")
            return None
        way = own[there[0]]
        for key in given:
            other = next((name for name in own if key in keys(own[name])), "")
            if other and key not in keys(way):
                section.complain(key, f"is for {other}, but this is a {there[0]}")
        by = section.make(way, given, right)
        if isinstance(by, CommandSettings) and (wrong := commands.fault(by.command, facts, shell=by.shell)):
            section.complain("command", wrong)
        rest = {key: right[key] for key in ("agents", "roles", "name") if key in right}
        return None if by is None else ExecutorSettings(by, **rest)

    return Entry(known, read)


def _check_checkpoints(section: Section, made: CheckpointSettings, given: Mapping[str, object]) -> None:
    for key in ("secret", "headers"):
        if key in given and "verify" not in given:
            section.complain(key, "is for verify, which is not there")
    known = [size for size in (made.content_mb, made.task_mb, made.total_mb) if size is not None]
    if known != sorted(known):
        section.complain("", "needs content_mb <= task_mb <= total_mb")


EXECUTORS: Final[Mapping[str, list[Entry]]] = {
    "terminate": [_executor(WebhookSettings)],
    "cleanup": [_executor(WebhookSettings, CommandSettings, facts=CLEANUP_FACTS)],
    "respawn": [_executor(WebhookSettings, CommandSettings, facts=RESPAWN_FACTS, policy="respawn")],
    "escalation": [_executor(WebhookSettings, name=readers.text)],
    "nudges": [_executor(WebhookSettings, TmuxSettings)],
}
SECTIONS: Final[Schema] = {**EXECUTORS, "checkpoints": entry(CheckpointSettings, _check_checkpoints)}
