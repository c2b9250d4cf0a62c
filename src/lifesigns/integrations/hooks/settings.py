"""Settings: our hooks in a program's settings file, put there and taken away without a change to anything else.

Pure: texts in, texts out. What we cannot read we do not touch. Ours are known by the comment at the end of their command.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, Final

from lifesigns.errors import UsageError
from lifesigns.integrations.hooks.json_text import changed_text

MARK: Final = "# lifesigns"
TIMEOUT: Final = 2
"""Seconds after which the program gives a hook up. Ours gives up long before."""

_STATES: Final = (
    '"$LIFESIGNS_STATE" "$XDG_STATE_HOME/lifesigns" "$HOME/.local/state/lifesigns" '
    '"$HOME/Library/Application Support/lifesigns"'
)


def command(program: str, client: str) -> str:
    """The command of a hook for one user: where the client is, is known. If it is not there any more, nothing happens."""
    path = shlex.quote(client)
    return f"[ ! -x {path} ] || exec {path} {program} {MARK}"


def shared_command(program: str) -> str:
    """The command of a hook in a file that several people share: without a path or a secret of any of them."""
    return (
        f'for d in {_STATES}; do [ ! -x "$d/hooks/client" ] || exec "$d/hooks/client" {program}; done {MARK}'
    )


def hooks_of(events: Sequence[str], command: str, timeout: int = TIMEOUT) -> dict[str, Any]:
    """The part of the settings that is ours."""
    hook = {"type": "command", "command": command, "timeout": timeout}
    return {event: [{"hooks": [dict(hook)]}] for event in events}


def installed(text: str, path: str) -> tuple[str, ...]:
    """The events that have a hook of ours."""
    return tuple(event for event, groups in _hooks(_read(text, path), path).items() if _has_ours(groups))


def disabled(text: str, path: str) -> bool:
    """Whether these settings run no hook at all."""
    return _read(text, path).get("disableAllHooks") is True


def with_hooks(text: str, path: str, events: Sequence[str], command: str, timeout: int = TIMEOUT) -> str:
    """The settings with our hooks, each once; as they are if nothing has to change."""
    settings = _read(text, path)
    hooks = _hooks(settings, path)
    ours = hooks_of(events, command, timeout)
    new = {event: _without(groups) for event, groups in hooks.items()}
    for event, groups in ours.items():
        new[event] = [*new.get(event, []), *groups]
    new = {event: groups for event, groups in new.items() if groups or not hooks.get(event)}
    if all(new[event] == hooks.get(event) for event in new) and len(new) == len(hooks):
        return text
    return changed_text(text, {**settings, "hooks": new})


def without_hooks(text: str, path: str) -> str:
    """The settings without our hooks, and without the lists that held nothing else."""
    settings = _read(text, path)
    hooks = _hooks(settings, path)
    if not any(map(_has_ours, hooks.values())):
        return text
    left = {event: _without(groups) for event, groups in hooks.items()}
    left = {event: groups for event, groups in left.items() if groups or not hooks[event]}
    settings["hooks"] = left
    if not left:
        del settings["hooks"]
    return changed_text(text, settings)


# --- parts --------------------------------------------------------------------------------------------


def _read(text: str, path: str) -> dict[str, Any]:
    if not text.strip():
        return {}
    try:
        settings = json.loads(text, object_pairs_hook=_object)
    except ValueError as error:
        raise UsageError(
            f"{path} cannot be read as JSON ({error}), so it is left as it is; "
            "put in by hand what --print shows"
        ) from None
    if not isinstance(settings, dict):
        raise UsageError(f"{path} has no settings in it, but {type(settings).__name__}; it is left as it is")
    return settings


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key stands twice")
    return found


def _hooks(settings: dict[str, Any], path: str) -> dict[str, list[Any]]:
    hooks = settings.get("hooks", {})
    if not isinstance(hooks, dict) or not all(isinstance(groups, list) for groups in hooks.values()):
        raise UsageError(f"hooks in {path} are not what we know as hooks; the file is left as it is")
    return hooks


def _is_ours(hook: object) -> bool:
    return isinstance(hook, dict) and str(hook.get("command", "")).endswith(MARK)


def _has_ours(groups: list[Any]) -> bool:
    return any(_is_ours(hook) for group in groups for hook in _of(group))


def _of(group: Any) -> list[Any]:
    hooks = group.get("hooks") if isinstance(group, dict) else None
    return hooks if isinstance(hooks, list) else []


def _without(groups: list[Any]) -> list[Any]:
    """The groups without our hooks; a group of ours alone is dropped whole."""
    left = []
    for group in groups:
        others = [hook for hook in _of(group) if not _is_ours(hook)]
        if len(others) == len(_of(group)):
            left.append(group)
        elif others:
            left.append({**group, "hooks": others})
    return left
