"""Executors: the settings of what is more than a message to an agent.

    terminate:    ends agents that do not end by themselves
    cleanup:      cleans up after an ended life
    respawn:      starts agents again
    escalation:   decides about an agent that nothing else helped
    nudges:       brings nudges to agents that do not fetch them
    checkpoints:  how much of their contents the hub stores, and which server verifies contents stored elsewhere

All but the last are lists, in which the first entry that matches an agent decides; a single entry needs no list. A
secret is a text, `env:NAME` or `file:/path`; no error repeats it.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Final

from msgspec import Struct, field

from lifesigns.config import readers
from lifesigns.config.readers import Reader, named_secrets, secret, secret_url
from lifesigns.config.schema import POLICY, Entry, Schema, Section, entry, keys
from lifesigns.config.secretive import Secretive
from lifesigns.core import commands, templates
from lifesigns.core.commands import CLEANUP_FACTS, RESPAWN_FACTS

QUIET_MAX: Final = 30.0
"""A longer wait than one try may take would never end."""
NO_FACTS: Final[Mapping[str, str]] = {}
SHELLS: Final = frozenset("ash bash csh dash fish ksh nu pwsh sh tcsh zsh".split())


# --- readers of single values ------------------------------------------------------------------------------


def command(value: object) -> str:
    """A command that can be split into words."""
    text = readers.text(value)
    try:
        shlex.split(text)
    except ValueError as error:
        raise ValueError(f"cannot be taken apart: {error}") from None
    return text


def env(value: object) -> tuple[str, ...]:
    """Names of variables that a command gets from the hub's environment."""
    named = readers.words(value)
    for name in named:
        if name.startswith("LIFESIGNS_"):
            raise ValueError(f"has {name}, but a command is told LIFESIGNS_* of its own, not the hub's")
        if not name.isidentifier():
            raise ValueError(f"has {name!r}, but needs names of variables: their values stay where they are")
    return named


def pane(value: object) -> str:
    """An agent's pane in tmux's syntax. Without `=` tmux takes the beginning of a name for the name."""
    target = readers.text(value)
    if wrong := templates.fault(target, ("agent_id",)):
        raise ValueError(wrong)
    if "{agent_id}" in target.replace("={agent_id}", ""):
        raise ValueError("needs ={agent_id}: without the = tmux would take coder-1 for coder-10 as well")
    return target


def programs(value: object) -> tuple[str, ...]:
    """Programs that read typed text."""
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

# --- settings ----------------------------------------------------------------------------------------------


class WebhookSettings(Secretive, frozen=True):
    """An address to post orders to. It, the secret and the headers are secrets."""

    secrets: ClassVar[tuple[str, ...]] = (
        "webhook",
        "secret",
        "headers",
    )

    webhook: Annotated[str, secret_url]
    secret: Annotated[str | None, secret] = None
    headers: Annotated[Mapping[str, str], named_secrets] = field(default_factory=dict)


class CommandSettings(Struct, frozen=True):
    """A command that starts agents, or cleans up after them."""

    command: Annotated[str, command]
    shell: bool = False
    cwd: Annotated[Path | None, readers.file] = None
    env: Annotated[tuple[str, ...], env] = ()
    """Names of variables that it gets from the hub's environment."""


class TmuxSettings(Struct, frozen=True):
    """Panes to type nudges into."""

    tmux: Annotated[str, pane]
    idle_commands: Annotated[
        tuple[str, ...], programs, "it names the programs that read a nudge as text, such as claude"
    ]
    quiet_for: Annotated[float, quiet_for] = 3.0
    socket: Annotated[str | None, readers.text] = None


Way = WebhookSettings | CommandSettings | TmuxSettings


class ExecutorSettings(Struct, frozen=True):
    """Carries out the orders for these agents; empty means all."""

    by: Way
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()
    name: str = "orchestrator"
    """The decider's name, for escalations."""


class CheckpointSettings(Secretive, frozen=True):
    """How much of checkpoints' contents the hub stores; None is the default."""

    secrets: ClassVar[tuple[str, ...]] = (
        "verify",
        "secret",
        "headers",
    )

    verify: Annotated[str | None, secret_url] = None
    """A webhook, with its secret and headers, that verifies contents stored elsewhere."""
    secret: Annotated[str | None, secret] = None
    headers: Annotated[Mapping[str, str], named_secrets] = field(default_factory=dict)
    content_mb: Annotated[float | None, megabytes] = None
    task_mb: Annotated[float | None, megabytes] = None
    total_mb: Annotated[float | None, megabytes] = None


def _executor(
    *ways: type, facts: Mapping[str, str] = NO_FACTS, policy: str = "ladder", **more: Reader
) -> Entry:
    """An entry with one of these ways, each known by its first key. A command may use these facts. An error about a key
    that is a threshold names its place, in a section of the policy."""
    own = {next(iter(keys(way))): way for way in ways}
    known = {"agents": readers.words, "roles": readers.words, **more}
    known |= {key: reader for way in ways for key, reader in keys(way).items()}
    elsewhere = {key: f"policy.{policy}.{key}" for key in POLICY[policy]}

    def read(section: Section, given: Mapping[str, object]) -> ExecutorSettings | None:
        right = section.read(given, known, elsewhere)
        chosen = [way for way in own if way in given]
        if len(chosen) != 1:
            both = f", not {' and '.join(chosen)}" if chosen else ""
            section.add_error("", f"needs one of {', '.join(own)}{both}")
            return None
        way = own[chosen[0]]
        for key in given:
            other = next((name for name in own if key in keys(own[name])), "")
            if other and key not in keys(way):
                section.add_error(key, f"is for {other}, but this is a {chosen[0]}")
        by = section.make(way, given, right)
        if isinstance(by, CommandSettings) and (wrong := commands.fault(by.command, facts, shell=by.shell)):
            section.add_error("command", wrong)
        rest = {key: right[key] for key in ("agents", "roles", "name") if key in right}
        return None if by is None else ExecutorSettings(by, **rest)

    return Entry(known, read)


def _check_checkpoints(section: Section, made: CheckpointSettings, given: Mapping[str, object]) -> None:
    for key in ("secret", "headers"):
        if key in given and "verify" not in given:
            section.add_error(key, "is for verify, which is not there")
    sizes = [size for size in (made.content_mb, made.task_mb, made.total_mb) if size is not None]
    if sizes != sorted(sizes):
        section.add_error("", "needs content_mb <= task_mb <= total_mb")


EXECUTORS: Final[Mapping[str, list[Entry]]] = {
    "terminate": [_executor(WebhookSettings)],
    "cleanup": [_executor(WebhookSettings, CommandSettings, facts=CLEANUP_FACTS)],
    "respawn": [_executor(WebhookSettings, CommandSettings, facts=RESPAWN_FACTS, policy="respawn")],
    "escalation": [_executor(WebhookSettings, name=readers.text)],
    "nudges": [_executor(WebhookSettings, TmuxSettings)],
}
SECTIONS: Final[Schema] = {**EXECUTORS, "checkpoints": entry(CheckpointSettings, _check_checkpoints)}
