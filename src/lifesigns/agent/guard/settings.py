"""The checked settings of a new breaker: its name, its policy, what it ignores.

A breaker's defaults are those of a policy: `breakers` has some names of its own (`tool_execution`,
`checkpoint_write`), every other name gets `breaker`. Its registry knows which policy.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from lifesigns.core.policy import BreakerPolicy, Policy
from lifesigns.errors import UsageError

if TYPE_CHECKING:
    from lifesigns.agent.guard.guard import Breaker

Predicate = Callable[[Exception], bool]
Ignore = type[BaseException] | tuple[type[BaseException], ...] | Predicate

NAME_MAX: Final = 128


def policy_for(name: str, defaults: Policy) -> BreakerPolicy:
    """A policy's settings for breakers of this name."""
    return defaults.breakers.get(name, defaults.breaker)


def changed(policy: BreakerPolicy, overrides: Mapping[str, Any]) -> BreakerPolicy:
    """The policy with single values changed."""
    return Policy(breaker=policy).with_changes({"breaker": overrides}).breaker


def checked_name(name: str) -> str:
    """The name, if it is valid."""
    if not isinstance(name, str):  # most likely @guard without parentheses
        raise UsageError(f"a breaker needs a name, like guard('search-api'); {name!r} is none")
    if not 0 < len(name) <= NAME_MAX:
        raise UsageError(
            f"a breaker's name has 1 to {NAME_MAX} characters, not {len(name)}: {name[:NAME_MAX]!r}"
        )
    return name


def checked_ignore(ignore: Ignore) -> tuple[type[BaseException], ...] | Predicate:
    """The exceptions to ignore, as types or a predicate."""
    if isinstance(ignore, tuple):
        for kind in ignore:
            _check_exception(kind)
    elif isinstance(ignore, type):
        _check_exception(ignore)
        return (ignore,)
    elif not callable(ignore):
        raise UsageError(f"ignore: {ignore!r} is neither types of exceptions nor a predicate")
    return ignore


def _check_exception(kind: object) -> None:
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        raise UsageError(f"ignore: {kind!r} is not a type of exception")


def differences(
    breaker: Breaker, policy: BreakerPolicy | None, settings: Mapping[str, Any]
) -> tuple[str, str] | None:
    """The settings where a caller's wish differs from the breaker: what it has, what the caller wants. An omitted
    setting is no wish."""
    wished: dict[str, Any] = {
        key: settings[key] for key in ("clock", "ignore", "failure_if") if key in settings
    }
    if "ignore" in wished:
        wished["ignore"] = checked_ignore(wished["ignore"])
    has = {key: getattr(breaker, key) for key in wished}
    overrides = {key: value for key, value in settings.items() if key not in wished}
    wished |= asdict(changed(policy or breaker.policy, overrides))
    has |= asdict(breaker.policy)
    different = [key for key in wished if wished[key] != has[key]]
    if not different:
        return None
    old, new = (", ".join(f"{key}={each[key]!r}" for key in different) for each in (has, wished))
    return old, new
