"""A policy with some values changed: nested and checked; errors name the wrong key."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from lifesigns.core.policy_rules import check_number
from lifesigns.errors import PolicyError


def changed(value: Any, changes: Mapping[str, Any], blank: Any, path: str = "") -> Any:
    """A copy of a policy with nested changes; errors name unknown keys and wrong types.

    A new entry under a name of the user's choice begins as `blank`.
    """
    if not isinstance(changes, Mapping):
        raise PolicyError(path.rstrip("."), f"needs named values, not {changes!r}")
    known = dict(zip(value.__struct_fields__, value.__struct_defaults__, strict=True))
    made: dict[str, Any] = {}
    for name, change in changes.items():
        key = f"{path}{name}"
        if name not in known:
            raise PolicyError(key, f"is unknown; known are {', '.join(sorted(known))}")
        optional = known[name] is None and change is None
        made[name] = None if optional else _new_value(getattr(value, name), change, blank, key)
    return replace(value, **made)


def merged(changes: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Two sets of changes as one; the second wins where they differ."""
    made = dict(changes)
    for name, change in more.items():
        known = made.get(name)
        both = isinstance(known, Mapping) and isinstance(change, Mapping)
        made[name] = merged(known, change) if both else change  # type: ignore[arg-type]
    return made


def _new_value(old: Any, new: Any, blank: Any, key: str) -> Any:
    if isinstance(old, Struct):
        return changed(old, new, blank, f"{key}.")
    if isinstance(old, Mapping):
        if not isinstance(new, Mapping):
            raise PolicyError(key, f"needs named values, not {new!r}")
        parts = {
            name: changed(old.get(name, blank), part, blank, f"{key}.{name}.") for name, part in new.items()
        }
        return {**old, **parts}
    if isinstance(old, bool):
        if not isinstance(new, bool):
            raise PolicyError(key, f"needs true or false, not {new!r}")
    elif isinstance(old, str):
        if not isinstance(new, str):
            raise PolicyError(key, f"needs a text, not {new!r}")
    elif isinstance(old, tuple):
        return _changed_list(old, new, key)
    elif isinstance(new, bool) or not isinstance(new, int | float):
        raise PolicyError(key, f"needs a number, not {new!r}")
    elif isinstance(old, int) and isinstance(new, float):
        if not new.is_integer():
            raise PolicyError(key, f"needs a whole number, not {new!r}")
        return int(new)
    else:
        check_number(key, new)
    return new


def _changed_list(old: tuple[Any, ...], new: Any, key: str) -> tuple[Any, ...]:
    if not isinstance(new, list | tuple):
        raise PolicyError(key, f"needs a list, not {new!r}")
    words = not old or isinstance(old[0], str)  # The only list that may be empty is one of words.
    kind = str if words else int | float
    for item in new:
        if isinstance(item, bool) or not isinstance(item, kind):
            raise PolicyError(key, f"needs a list of {'words' if words else 'numbers'}, not {new!r}")
    return tuple(new)
