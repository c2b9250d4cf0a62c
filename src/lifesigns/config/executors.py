"""Who carries out what is more than a message to an agent: what is written about it, read and checked.

    terminate:    who ends agents that do not end by themselves: a list, the first entry that fits an agent decides
    cleanup:      who cleans up after a life that is over: a list, the first entry that fits an agent decides
    respawn:      who starts agents anew: a list, the first entry that fits an agent decides
    escalation:   whom to ask about an agent that nobody could help
    nudges:       how nudges reach agents that do not fetch them themselves: a list, the first that fits decides
    checkpoints:  how much of their contents is kept, and who to ask about contents that are kept elsewhere

A single entry needs no list. A secret may be written as it is, as `env:NAME` or as `file:/path`; no error repeats it.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from lifesigns.config import readers
from lifesigns.config.channels import named_secrets, secret, secret_url
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.core import templates
from lifesigns.core.policy import Policy

QUIET_MAX: Final = 30.0
SHELLS: Final = frozenset("ash bash csh dash fish ksh nu pwsh sh tcsh zsh".split())


@dataclass(frozen=True, slots=True)
class WebhookSettings:
    """An address orders are posted to. It, the secret and the headers are secrets."""

    url: str = field(repr=False)
    secret: str | None = field(default=None, repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True)
class CommandSettings:
    """A command that starts agents, or cleans up after them."""

    command: str
    shell: bool = False
    cwd: Path | None = None


@dataclass(frozen=True, slots=True)
class TmuxSettings:
    """Panes that nudges are typed into."""

    pane: str
    idle_commands: tuple[str, ...]
    quiet_for: float = 3.0
    socket: str | None = None


@dataclass(frozen=True, slots=True)
class RespawnSettings:
    """Who starts these agents anew; empty is all."""

    by: WebhookSettings | CommandSettings
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class TerminateSettings:
    """Who ends these agents; empty is all."""

    by: WebhookSettings
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CleanupSettings:
    """Who cleans up after these agents; empty is all."""

    by: WebhookSettings | CommandSettings
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NudgeSettings:
    """How nudges reach these agents; empty is all."""

    by: WebhookSettings | TmuxSettings
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EscalationSettings:
    """Whom to ask about these agents; empty is all."""

    by: WebhookSettings
    name: str = "orchestrator"
    agents: tuple[str, ...] = ()
    roles: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CheckpointSettings:
    """How much of checkpoints' contents is kept; None is the default."""

    verify: WebhookSettings | None = None
    content_mb: float | None = None
    task_mb: float | None = None
    total_mb: float | None = None


@dataclass(frozen=True, slots=True)
class ExecutorSettings:
    """Everything about executors."""

    respawn: tuple[RespawnSettings, ...] = ()
    escalation: tuple[EscalationSettings, ...] = ()
    nudges: tuple[NudgeSettings, ...] = ()
    checkpoints: CheckpointSettings = field(default_factory=CheckpointSettings)
    terminate: tuple[TerminateSettings, ...] = ()
    cleanup: tuple[CleanupSettings, ...] = ()


# --- readers of single values ------------------------------------------------------------------------------


def entries(value: object) -> tuple[Mapping[str, object], ...]:
    """One entry, or a list of them, to be read one by one. For the schema."""
    if value is None:
        return ()
    listed = value if isinstance(value, list | tuple) else [value]
    if not all(isinstance(one, Mapping) for one in listed):
        raise ValueError("needs named values (key: value), or a list of such entries")
    return tuple(listed)


def command(*facts: str) -> Reader:
    """A command with places for these facts."""

    def read(value: object) -> str:
        said = readers.text(value)
        if wrong := templates.fault(said, facts):
            raise ValueError(wrong)
        try:
            shlex.split(said)
        except ValueError as error:
            raise ValueError(f"cannot be taken apart: {error}") from None
        return said

    return read


def pane(value: object) -> str:
    """Where an agent's pane is, as tmux names panes. Without `=` tmux takes the beginning of a name for the name."""
    said = readers.text(value)
    if wrong := templates.fault(said, ("agent_id",)):
        raise ValueError(wrong)
    if "{agent_id}" in said.replace("={agent_id}", ""):
        raise ValueError("needs ={agent_id}: without the = tmux would take coder-1 for coder-10 as well")
    return said


def programs(value: object) -> tuple[str, ...]:
    """Programs that read what is typed as text."""
    named = readers.words(value)
    for name in named:
        if name in SHELLS:
            raise ValueError(f"has {name}: a shell would execute the nudge, name the agent's own program")
    return named


def quiet_for(value: object) -> float:
    """How long a pane has to be quiet; whoever waits for longer than a try may take would wait for ever."""
    seconds = readers.seconds(value)
    if not 0 < seconds <= QUIET_MAX:
        raise ValueError(f"needs more than nothing and at most {QUIET_MAX:g} s, not {readers.said(value)}")
    return seconds


def megabytes(value: object) -> float:
    """More than nothing."""
    number = readers.number(value)
    if not 0 < number <= 1_000_000:
        raise ValueError(f"needs a number of megabytes greater than 0, not {readers.said(value)}")
    return number


# --- what there is to write --------------------------------------------------------------------------------

_WHO: Final[Mapping[str, Reader]] = {"agents": readers.words, "roles": readers.words}
_WEBHOOK: Final[Mapping[str, Reader]] = {"webhook": secret_url, "secret": secret, "headers": named_secrets}
_COMMAND: Final[Mapping[str, Reader]] = {"shell": readers.yes_no, "cwd": readers.file}
_RESPAWN: Final[Mapping[str, Reader]] = {
    **_WHO,
    **_WEBHOOK,
    **_COMMAND,
    "command": command(*templates.RESPAWN_FACTS),
}
_CLEANUP: Final[Mapping[str, Reader]] = {
    **_WHO,
    **_WEBHOOK,
    **_COMMAND,
    "command": command(*templates.CLEANUP_FACTS),
}
_NUDGE: Final[Mapping[str, Reader]] = {
    **_WHO,
    **_WEBHOOK,
    "tmux": pane,
    "idle_commands": programs,
    "quiet_for": quiet_for,
    "socket": readers.text,
}
_ESCALATION: Final[Mapping[str, Reader]] = {**_WHO, **_WEBHOOK, "name": readers.text}
_CHECKPOINTS: Final[Mapping[str, Reader]] = {
    "verify": secret_url,
    "secret": secret,
    "headers": named_secrets,
    "content_mb": megabytes,
    "task_mb": megabytes,
    "total_mb": megabytes,
}

SECTIONS: Final[Mapping[str, Reader]] = {
    "terminate": entries,
    "cleanup": entries,
    "respawn": entries,
    "escalation": entries,
    "nudges": entries,
    "checkpoints": readers.opaque,
}
"""For the schema: each is read as it stands, and given to `executors` below."""


def executors(given: Mapping[str, Any], complaints: ErrorCollector, where: str = "") -> ExecutorSettings:
    """What is right of these sections; what is wrong goes to the complaints."""

    def each(section: str, read: Callable[[Mapping[str, object], _Complain], Any]) -> tuple[Any, ...]:
        said: Sequence[Mapping[str, object]] = given.get(section, ())
        names = [section] if len(said) == 1 else [f"{section}[{n}]" for n in range(1, len(said) + 1)]
        made = (read(one, _Complain(complaints, name, where)) for name, one in zip(names, said, strict=True))
        return tuple(one for one in made if one is not None)

    return ExecutorSettings(
        each("respawn", _respawn),
        each("escalation", _escalation),
        each("nudges", _nudge),
        _checkpoints(given.get("checkpoints", {}), _Complain(complaints, "checkpoints", where)),
        each("terminate", _terminate),
        each("cleanup", _cleanup),
    )


# --- parts -------------------------------------------------------------------------------------------------


class _Complain:
    """Complains about the keys of one entry."""

    def __init__(self, complaints: ErrorCollector, section: str, where: str) -> None:
        self._complaints = complaints
        self._section = section
        self._where = where

    def __call__(self, key: str, detail: str) -> None:
        self._complaints.add(f"{self._section}.{key}" if key else self._section, detail, self._where)


def _respawn(said: Mapping[str, object], complain: _Complain) -> RespawnSettings | None:
    read = _read(said, _RESPAWN, complain, section="respawn")
    by = _webhook_or_command(said, read, complain)
    return None if by is None else RespawnSettings(by, read.get("agents", ()), read.get("roles", ()))


def _cleanup(said: Mapping[str, object], complain: _Complain) -> CleanupSettings | None:
    read = _read(said, _CLEANUP, complain, section="ladder")
    by = _webhook_or_command(said, read, complain)
    return None if by is None else CleanupSettings(by, read.get("agents", ()), read.get("roles", ()))


def _webhook_or_command(
    said: Mapping[str, object], read: Mapping[str, Any], complain: _Complain
) -> WebhookSettings | CommandSettings | None:
    way = _one_way(said, read, {"webhook": ("secret", "headers"), "command": ("shell", "cwd")}, complain)
    if way is None:
        return None
    if way == "webhook":
        return _webhook(read)
    return CommandSettings(read["command"], read.get("shell", False), read.get("cwd"))


def _nudge(said: Mapping[str, object], complain: _Complain) -> NudgeSettings | None:
    read = _read(said, _NUDGE, complain, section="ladder")
    ways = {"webhook": ("secret", "headers"), "tmux": ("idle_commands", "quiet_for", "socket")}
    way = _one_way(said, read, ways, complain)
    if way is None:
        return None
    by: WebhookSettings | TmuxSettings
    if way == "webhook":
        by = _webhook(read)
    elif "idle_commands" not in read:
        if "idle_commands" not in said:
            complain("idle_commands", "is missing: the programs that read a nudge as text, such as claude")
        return None
    else:
        by = TmuxSettings(read["tmux"], read["idle_commands"], read.get("quiet_for", 3.0), read.get("socket"))
    return NudgeSettings(by, read.get("agents", ()), read.get("roles", ()))


def _escalation(said: Mapping[str, object], complain: _Complain) -> EscalationSettings | None:
    read = _read(said, _ESCALATION, complain, section="ladder")
    if _one_way(said, read, {"webhook": ("secret", "headers")}, complain) is None:
        return None
    name = read.get("name", "orchestrator")
    return EscalationSettings(_webhook(read), name, read.get("agents", ()), read.get("roles", ()))


def _terminate(said: Mapping[str, object], complain: _Complain) -> TerminateSettings | None:
    read = _read(said, {**_WHO, **_WEBHOOK}, complain, section="ladder")
    if _one_way(said, read, {"webhook": ("secret", "headers")}, complain) is None:
        return None
    return TerminateSettings(_webhook(read), read.get("agents", ()), read.get("roles", ()))


def _checkpoints(said: Mapping[str, object], complain: _Complain) -> CheckpointSettings:
    read = _read(said, _CHECKPOINTS, complain)
    if "verify" not in said:
        for key in ("secret", "headers"):
            if key in said:
                complain(key, "is for verify, which is not there")
    sizes = [read.get(key) for key in ("content_mb", "task_mb", "total_mb")]
    known = [size for size in sizes if size is not None]
    if known != sorted(known):
        complain("", "needs content_mb <= task_mb <= total_mb")
    verify = _webhook({**read, "webhook": read["verify"]}) if "verify" in read else None
    return CheckpointSettings(verify, *sizes)


def _webhook(read: Mapping[str, Any]) -> WebhookSettings:
    return WebhookSettings(read["webhook"], read.get("secret"), read.get("headers", {}))


def _one_way(
    said: Mapping[str, object],
    read: Mapping[str, Any],
    ways: Mapping[str, Sequence[str]],
    complain: _Complain,
) -> str | None:
    """Which way is written down; None if there is not one, or it is not right. Its own keys stand with it alone."""
    there = [way for way in ways if way in said]
    if len(there) != 1:
        complain("", f"needs one of {', '.join(ways)}" + (f", not {' and '.join(there)}" if there else ""))
        return None
    for way, own in ways.items():
        for key in own:
            if way != there[0] and key in said and key not in ways[there[0]]:
                complain(key, f"is for {way}, but this is a {there[0]}")
    return there[0] if there[0] in read else None


def _read(
    said: Mapping[str, object], known: Mapping[str, Reader], complain: _Complain, section: str = ""
) -> dict[str, Any]:
    read: dict[str, Any] = {}
    for key, value in said.items():
        reader = known.get(key)
        if reader is None:
            complain(str(key)[:64], _unknown(str(key), known, section))
            continue
        try:
            read[key] = reader(value)
        except ValueError as error:
            complain(key, str(error))
    return read


def _unknown(key: str, known: Mapping[str, Reader], section: str) -> str:
    """The usual sentence; but a threshold is shown its place."""
    if section and hasattr(getattr(Policy(), section), key):
        return f"is unknown here; did you mean policy.{section}.{key}?"
    return unknown(key, known)
