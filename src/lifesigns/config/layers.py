"""The layers of policy: profile < health_monitoring < policy < role < agent pattern."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

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
"""What tells profiles apart. A role or an agent with a profile takes over exactly these values."""


@dataclass(frozen=True, slots=True)
class Layers:
    """Everything said about policies, each word under the path it changes."""

    profile: str
    profile_source: Source
    default: Layer
    """What is laid over the profile for everybody."""
    roles: Mapping[str, Layer]
    agents: Mapping[str, Layer]
    given_roles: Mapping[str, str]
    """By pattern of an agent's id."""


def layers(settings: Settings, file: Mapping[str, Any], complaints: ErrorCollector) -> Layers:
    """Sort the settings into layers. `file` is the file as it stands: an empty section is a word too."""
    name, source = _profile(settings, "health_monitoring" in file, complaints)
    roles = _roles(settings, file.get("roles"), complaints)
    return Layers(
        profile=name,
        profile_source=source,
        default={
            **tree.to_policy(under(settings, "health_monitoring"), profile(name)),
            **under(settings, "policy"),
        },
        roles=roles,
        agents=_agents(settings, roles, complaints),
        given_roles={
            path[1]: str(setting.value)
            for path, setting in settings.items()
            if path[0] == "agents" and path[2:] == ("role",)
        },
    )


def under(settings: Settings, *prefix: str) -> dict[Path, Setting]:
    """The settings below a prefix, by the rest of their path; each knows its new path."""
    depth = len(prefix)
    return {
        path[depth:]: Setting(path[depth:], setting.value, setting.source)
        for path, setting in settings.items()
        if path[:depth] == prefix and len(path) > depth
    }


def _profile(settings: Settings, has_tree: bool, complaints: ErrorCollector) -> tuple[str, Source]:
    """The profile somebody named; else that of the tree, if there is a tree; else the usual one."""
    named = settings.get(("profile",))
    if named is not None and _known(named, PROFILES, complaints):
        return str(named.value), named.source
    if has_tree:
        return tree.PROFILE, Source("health_monitoring", "")
    return DEFAULT_PROFILE, DEFAULT


def _roles(settings: Settings, in_file: object, complaints: ErrorCollector) -> dict[str, Layer]:
    given = list(in_file) if isinstance(in_file, Mapping) else []
    made: dict[str, Layer] = {}
    for role in dict.fromkeys([*ROLES, *given]):
        built_in = _taken_over(flat(ROLES.get(role, {})), Source(f"roles.{role}", "built in"))
        words = under(settings, "roles", role)
        made[role] = {**built_in, **_own_profile(words, complaints), **words}
    return made


def _agents(settings: Settings, roles: Mapping[str, Layer], complaints: ErrorCollector) -> dict[str, Layer]:
    patterns = dict.fromkeys(path[1] for path in settings if path[0] == "agents")
    made: dict[str, Layer] = {}
    for pattern in patterns:
        words = under(settings, "agents", pattern)
        from_profile = _own_profile(words, complaints)
        role = words.pop(("role",), None)
        from_role = (
            _taken_over({path: s.value for path, s in roles[role.value].items()}, role.source)
            if role is not None and _known(role, roles, complaints)
            else {}
        )
        made[pattern] = {**from_profile, **from_role, **words}
    return made


def _own_profile(words: dict[Path, Setting], complaints: ErrorCollector) -> Layer:
    """Takes the profile out of a role's or an agent's words, and gives what it says."""
    named = words.pop(("profile",), None)
    if named is None or not _known(named, PROFILES, complaints):
        return {}
    policy = profile(named.value)
    return _taken_over({path: _at(policy, path) for path in _VARIED}, named.source)


def _taken_over(values: Mapping[Path, Any], source: Source) -> Layer:
    """Values that were not written one by one but came with a name."""
    unwritten = Source(source.key, source.where)
    return {path: Setting(path, value, unwritten) for path, value in values.items()}


def _known(named: Setting, known: Mapping[str, Any], complaints: ErrorCollector) -> bool:
    if named.value in known:
        return True
    detail = f"{named.value!r} {unknown(named.value, known)}"
    complaints.add(named.source.key, detail, named.source.where)
    return False


def _at(policy: Policy, path: Path) -> Any:
    value: Any = policy
    for name in path:
        value = getattr(value, name)
    return value
