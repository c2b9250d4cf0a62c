"""The layers of policy: profile < health_monitoring < policy < role < agent pattern."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from lifesigns.config import tree
from lifesigns.config.document import DEFAULT, Source
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.fitting import flat
from lifesigns.config.schema import Path, Setting
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import DEFAULT_PROFILE, PROFILES, ROLES, profile

Settings = Mapping[Path, Setting]
Layer = Mapping[Path, Setting]

_VARIED: Final = sorted({path for changes in PROFILES.values() for path in flat(changes)})
"""The values in which profiles differ. A role or an agent with a profile takes over exactly these."""


class Layers(Struct, frozen=True):
    """All settings about policies, each under the path it changes."""

    profile: str
    profile_source: Source
    default: Layer
    """Laid over the profile for all agents."""
    roles: Mapping[str, Layer]
    agents: Mapping[str, Layer]
    given_roles: Mapping[str, str]
    """By pattern of an agent's id."""


def layers(settings: Settings, file: Mapping[str, Any], errors: ErrorCollector) -> Layers:
    """Sort the settings into layers. `file` is the raw file: an empty section counts too."""
    name, source = _profile(settings, "health_monitoring" in file, errors)
    roles = _roles(settings, file.get("roles"), errors)
    return Layers(
        profile=name,
        profile_source=source,
        default={
            **tree.to_policy(under(settings, "health_monitoring"), profile(name)),
            **under(settings, "policy"),
        },
        roles=roles,
        agents=_agents(settings, roles, errors),
        given_roles={
            path[1]: str(setting.value)
            for path, setting in settings.items()
            if path[0] == "agents" and path[2:] == ("role",)
        },
    )


def under(settings: Settings, *prefix: str) -> dict[Path, Setting]:
    """The settings below a prefix, by the rest of their path; each gets its new path."""
    depth = len(prefix)
    return {
        path[depth:]: Setting(path[depth:], setting.value, setting.source)
        for path, setting in settings.items()
        if path[:depth] == prefix and len(path) > depth
    }


def _profile(settings: Settings, has_tree: bool, errors: ErrorCollector) -> tuple[str, Source]:
    """The configured profile; else that of the tree, if there is a tree; else the default."""
    named = settings.get(("profile",))
    if named is not None and _is_known(named, PROFILES, errors):
        return str(named.value), named.source
    if has_tree:
        return tree.PROFILE, Source("health_monitoring", "")
    return DEFAULT_PROFILE, DEFAULT


def _roles(settings: Settings, in_file: object, errors: ErrorCollector) -> dict[str, Layer]:
    given = list(in_file) if isinstance(in_file, Mapping) else []
    made: dict[str, Layer] = {}
    for role in dict.fromkeys([*ROLES, *given]):
        built_in = _taken_over(flat(ROLES.get(role, {})), Source(f"roles.{role}", "built in"))
        own = under(settings, "roles", role)
        made[role] = {**built_in, **_own_profile(own, errors), **own}
    return made


def _agents(settings: Settings, roles: Mapping[str, Layer], errors: ErrorCollector) -> dict[str, Layer]:
    patterns = dict.fromkeys(path[1] for path in settings if path[0] == "agents")
    made: dict[str, Layer] = {}
    for pattern in patterns:
        own = under(settings, "agents", pattern)
        from_profile = _own_profile(own, errors)
        role = own.pop(("role",), None)
        from_role = (
            _taken_over({path: s.value for path, s in roles[role.value].items()}, role.source)
            if role is not None and _is_known(role, roles, errors)
            else {}
        )
        made[pattern] = {**from_profile, **from_role, **own}
    return made


def _own_profile(words: dict[Path, Setting], errors: ErrorCollector) -> Layer:
    """Take the profile out of a role's or an agent's settings, and return the profile's values."""
    named = words.pop(("profile",), None)
    if named is None or not _is_known(named, PROFILES, errors):
        return {}
    policy = profile(named.value)
    return _taken_over({path: _at(policy, path) for path in _VARIED}, named.source)


def _taken_over(values: Mapping[Path, Any], source: Source) -> Layer:
    """Values that were not written one by one but came with a name."""
    unwritten = Source(source.key, source.where)
    return {path: Setting(path, value, unwritten) for path, value in values.items()}


def _is_known(named: Setting, known: Mapping[str, Any], errors: ErrorCollector) -> bool:
    if named.value in known:
        return True
    detail = f"{named.value!r} {unknown(named.value, known)}"
    errors.add(named.source.key, detail, named.source.where)
    return False


def _at(policy: Policy, path: Path) -> Any:
    value: Any = policy
    for name in path:
        value = getattr(value, name)
    return value
