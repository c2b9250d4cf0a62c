"""Commands: templates whose facts come from agents, or from anyone who speaks in an agent's name.

The law: a fact in a command is a name. An agent chooses its incarnation and its task; `rm -rf /work/{incarnation}`
must not delete more because it chose `../..`, nothing at all or ` /`. So a value that is not a name makes us refuse
the whole command.

    a place {like_this}         a name: letters, digits and . _ : @ ~ + -, a letter or digit first, no two dots in a row.
                                Nothing in it means anything to a shell, to ssh or to a path
    free text (reason ...)      has no place, for it can be no name; it is in the environment
    an id in the environment    may have any signs that are seen, but does not lead out of a folder and is no option
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from lifesigns.core import templates

RESPAWN_FACTS: Final[Mapping[str, str]] = {
    "agent_id": "AGENT_ID",
    "agent_slug": "AGENT_SLUG",
    "attempt": "ATTEMPT",
    "checkpoint_id": "CHECKPOINT",
    "checkpoint_url": "CHECKPOINT_URL",
    "handoff": "HANDOFF",
    "new_incarnation": "INCARNATION",
    "task_id": "TASK",
}
"""The facts for a command that respawns an agent: by place, and as `LIFESIGNS_...` in its environment."""

CLEANUP_FACTS: Final[Mapping[str, str]] = {
    "agent_id": "AGENT_ID",
    "agent_slug": "AGENT_SLUG",
    "checkpoint_id": "CHECKPOINT",
    "incarnation": "INCARNATION",
    "reason": "REASON",
    "task_id": "TASK",
}
"""The facts for a command that cleans up after a life."""

FREE_TEXT: Final = frozenset({"handoff", "reason"})
_URL: Final = "checkpoint_url"
"""The hub builds it from its own address and quoted ids."""

_is_name: Final = re.compile(r"(?!.*\.\.)[A-Za-z0-9][A-Za-z0-9._:@~+-]{0,254}").fullmatch
_is_url: Final = re.compile(r"https?://[A-Za-z0-9._~:/@%\[\]-]+").fullmatch
_QUOTED: Final = re.compile(r"""\\.|'[^']*'|"(?:\\.|[^"\\])*"|`[^`]*`""", re.DOTALL)
_VARIABLE: Final = re.compile(r"\$\{*(LIFESIGNS_[A-Z_]+)")
_NAME_IS: Final = (
    "letters, digits and . _ : @ ~ + -, begins with a letter or digit and has no two dots in a row"
)
_SHOWN_MAX: Final = 80


def slug(agent_id: str) -> str:
    """An agent's id as one part of a path: ids contain no `~`, so no two agents share one."""
    return agent_id.replace("/", "~")


def fault(command: str, facts: Mapping[str, str], *, shell: bool) -> str:
    """What is wrong with a command that may name these facts; empty if nothing is."""
    for name, _ in templates.places(command):
        if name in FREE_TEXT and name in facts:
            return f"has {{{name}}}, which is free text: {_free_text_way(facts[name], shell=shell)}"
    if wrong := templates.fault(command, facts.keys() - FREE_TEXT):
        return wrong
    return _shell_fault(command) if shell else ""


def refusal(command: str, facts: Mapping[str, str]) -> str:
    """Why we refuse to start a command with these facts; empty if we do not."""
    named = {name for name, _ in templates.places(command)}
    for name, value in facts.items():
        if name in FREE_TEXT:
            continue
        if name in named and (wrong := _no_name(name, value)):
            return wrong
        if value and _leads_away(value):
            return f"{name} is {_shown(value)}, and a command that is told that could be led astray"
    return ""


# --- parts -------------------------------------------------------------------------------------------------


def _shell_fault(command: str) -> str:
    quoted = [span.span() for span in _QUOTED.finditer(command)]

    def is_quoted(at: int) -> bool:
        return any(begin <= at < end for begin, end in quoted)

    for name, at in templates.places(command):
        if is_quoted(at):
            return f"has {{{name}}} inside quotes: write it outside of them, it comes quoted"
    for variable in _VARIABLE.finditer(command):
        if not is_quoted(variable.start()):
            return f'has ${variable[1]} outside of quotes, where a shell splits it: write "${variable[1]}"'
    return ""


def _free_text_way(variable: str, *, shell: bool) -> str:
    way = f'"$LIFESIGNS_{variable}"'
    return (
        f"write {way}" if shell else f"the command finds it in its environment; with shell: true write {way}"
    )


def _no_name(name: str, value: str) -> str:
    if not value:
        return f"{{{name}}} is empty, so the command would mean something else"
    if _is_url(value) if name == _URL else _is_name(value):
        return ""
    other = "; {agent_slug} has ~ for each /" if name == "agent_id" and _is_name(slug(value)) else ""
    return f"{{{name}}} is {_shown(value)}, but what stands in a command is {_NAME_IS}{other}"


def _leads_away(value: str) -> bool:
    """Whether `FOLDER/value` may lie outside FOLDER, or `value` may be an option or more than one line."""
    parts = [part for part in re.split(r"[/\\]", value) if part]
    return not parts or value.startswith("-") or not value.isprintable() or not {".", ".."}.isdisjoint(parts)


def _shown(value: str) -> str:
    return repr(value if len(value) <= _SHOWN_MAX else f"{value[:_SHOWN_MAX]}…")
