"""Values that must fit each other: applies changes to a policy, and blames the user's own key when they do not.

The policy knows its relations and raises errors in its own words (`silence.timeout: ...`). The error shows the user the
key that the user wrote, such as `health_monitoring.heartbeat.timeout_seconds`. A relation can also break at a value
that nobody wrote; then we find the change that breaks it by leaving each out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import asdict

from lifesigns.config.errors import ErrorCollector
from lifesigns.config.schema import Path, Setting
from lifesigns.errors import PolicyError

T = TypeVar("T")
Apply = Callable[[Mapping[str, Any]], T]
Changes = Mapping[Path, Setting]


def fitted(apply: Apply[T], changes: Changes, errors: ErrorCollector, whole: str) -> tuple[T, Changes]:
    """What `apply` makes of the changes, and those that fit: a section that does not fit becomes an error and is left
    out. `whole` is the key to name when no change is to blame."""
    left = dict(changes)
    while True:
        try:
            return apply(nested(left)), left
        except PolicyError as error:
            blamed = _blamed(apply, left, error.key)
            _complain(errors, error, blamed, whole)
            left = _without(left, error.key, blamed)


def nested(changes: Changes) -> dict[str, Any]:
    """The changes as nested names, for `Policy.with_changes`."""
    made: dict[str, Any] = {}
    for path, setting in changes.items():
        *branches, leaf = path
        here = made
        for branch in branches:
            here = here.setdefault(branch, {})
        here[leaf] = setting.value
    return made


def flat(value: Mapping[str, Any], path: Path = ()) -> dict[Path, Any]:
    """Nested names as paths: the reverse."""
    made: dict[Path, Any] = {}
    for name, part in value.items():
        inner = flat(part, (*path, name)) if isinstance(part, Mapping) else {(*path, name): part}
        made.update(inner)
    return made


def settable(value: Any) -> Any:
    """A policy as nested names, with all that can be set and nothing computed."""
    if isinstance(value, Struct):
        value = asdict(value)
    if isinstance(value, Mapping):
        return {name: settable(part) for name, part in value.items()}
    return value


def _blamed(apply: Apply[T], changes: Changes, key: str) -> Setting | None:
    """The setting to blame: the one at the key, else one without which all is well, else one without which this error
    goes away. What the user wrote comes before what follows from it."""
    own = [setting for path, setting in changes.items() if ".".join(path) == key]
    left = [(setting, _left_without(apply, changes, setting)) for setting in changes.values()]
    mending = [setting for setting, complaint in left if complaint is None]
    helping = [setting for setting, complaint in left if complaint not in (None, key)]
    suspects = [*own, *reversed(mending), *reversed(helping)]
    written = [setting for setting in suspects if setting.source.written]
    return next(iter([*written, *suspects]), None)


def _left_without(apply: Apply[T], changes: Changes, setting: Setting) -> str | None:
    """The key of the error without this setting; None if all is well then."""
    try:
        apply(nested({path: other for path, other in changes.items() if other is not setting}))
    except PolicyError as error:
        return error.key
    return None


def _complain(errors: ErrorCollector, error: PolicyError, blamed: Setting | None, whole: str) -> None:
    detail = re.sub(r"(\d)\.0\b", r"\1", error.detail)
    if blamed is None:
        errors.add(whole, f"does not fit the rest; {error.key}: {detail}")
        return
    if errors.about(blamed.source.key):
        return  # What follows from a wrong value is wrong too, but the user can correct only the value.
    if ".".join(blamed.path) != error.key:
        detail = f"does not fit {whole}.{error.key}: {detail}"
    elif not blamed.source.written:
        detail = f"{error.key}: {detail}"
    errors.add(blamed.source.key, detail, blamed.source.where)


def _without(changes: Changes, key: str, blamed: Setting | None) -> dict[Path, Setting]:
    """The changes outside the sections in question: fewer every time, none if nothing else helps."""
    sections = {key.split(".")[0]} | ({blamed.path[0]} if blamed else set())
    left = {path: setting for path, setting in changes.items() if path[0] not in sections}
    return left if len(left) < len(changes) else {}
