"""Finds the file, reads it with the environment and the flags, and makes one configuration of them, or raises all
errors."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec.structs import replace

from lifesigns.config import (
    ai_maestro,
    alerting,
    channels,
    document,
    executors,
    github,
    overrides,
    readers,
    schema,
    tree,
)
from lifesigns.config.account import account
from lifesigns.config.ai_maestro import AiMaestroSettings
from lifesigns.config.alerting import DEFAULT_ALERTING, PacingSettings
from lifesigns.config.errors import ConfigError, ConfigErrors, ErrorCollector
from lifesigns.config.executors import EXECUTORS, CheckpointSettings
from lifesigns.config.fitting import fitted, nested
from lifesigns.config.github import GitHubSettings
from lifesigns.config.layers import Layers, Settings, layers, under
from lifesigns.config.schema import ANY, POLICY, Schema
from lifesigns.config.values import (
    AccessSettings,
    AuditSettings,
    BusSettings,
    Config,
    DeadManSettings,
    HookSettings,
    HubsSettings,
    Limits,
    Listen,
    MemorySettings,
    OtlpSettings,
)
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile

FILE_NAME: Final = "lifesigns.yaml"
SCHEMA: Final[Schema] = {
    **overrides.SCHEMA,
    "health_monitoring": tree.tree_schema(),
    "roles": {ANY: {**POLICY, "profile": readers.text}},
    "agents": {ANY: {**POLICY, "profile": readers.text, "role": readers.text}},
    **channels.SECTIONS,
    **alerting.SECTIONS,
    **executors.SECTIONS,
    **github.SECTIONS,
    **ai_maestro.SECTIONS,
}
"""The whole file."""


def find(environ: Mapping[str, str], cwd: Path) -> Path | None:
    """The file to read: `LIFESIGNS_CONFIG`, `./lifesigns.yaml`, or the one in the user's config folder."""
    if named := environ.get("LIFESIGNS_CONFIG"):
        return Path(named)
    candidates = [cwd / FILE_NAME]
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if folder := environ.get("XDG_CONFIG_HOME") or (home and f"{home}/.config"):
        candidates.append(Path(folder) / "lifesigns" / FILE_NAME)
    return next((path for path in candidates if path.is_file()), None)


def load(
    path: Path | None = None,
    *,
    environ: Mapping[str, str],
    flags: Mapping[str, object] | None = None,
) -> Config:
    """The configuration from a file (or the one `find` finds), then the environment, then flags.

    Raises `ConfigErrors`, which is a `PolicyError`, with everything that is wrong.
    """
    file = path or find(environ, Path.cwd())
    content = _content(file, named_by="" if path else "LIFESIGNS_CONFIG", environ=environ)
    return replace(assemble(content, environ, flags or {}), path=file)


def defaults() -> Config:
    """The configuration without any settings."""
    return assemble(document.EMPTY, {}, {})


def assemble(content: document.Document, environ: Mapping[str, str], flags: Mapping[str, object]) -> Config:
    """The configuration of a file's content, environment and flags. Raises `ConfigErrors` with everything that is
    wrong."""
    errors = ErrorCollector()
    settings = {
        setting.path: setting
        for setting in (
            *schema.read(SCHEMA, content, errors),
            *overrides.environment(environ, errors),
            *overrides.flags(flags, errors),
        )
    }
    policy_layers = layers(settings, content.value if isinstance(content.value, dict) else {}, errors)
    fleet, _ = fitted(
        _fleet, {path: s for path, s in settings.items() if path[0] == "fleet"}, errors, "fleet"
    )
    if not _value(settings, "health_monitoring", "enabled", default=True):
        fleet = replace(fleet, judging=False)
    config = Config(
        policies=_policies(policy_layers, errors),
        fleet=fleet,
        profile=policy_layers.profile,
        enabled=fleet.judging,
        alerting={
            kind: _changed(route, settings, "health_monitoring", "alerting", kind)
            for kind, route in DEFAULT_ALERTING.items()
        },
        store=_value(settings, "store"),
        bus=_changed(BusSettings(), settings, "bus"),
        zone=_value(settings, "zone", default=""),
        hubs=_changed(HubsSettings(), settings, "hubs"),
        dead_man_switch=_changed(DeadManSettings(), settings, "dead_man_switch"),
        access=_changed(AccessSettings(), settings, "access"),
        listen=_changed(Listen(), settings, "listen"),
        channels={channel.name: channel for channel in _entries(settings, "channels")},
        limits=_changed(Limits(), settings, "limits"),
        audit=_changed(AuditSettings(), settings, "audit"),
        otlp=_changed(OtlpSettings(), settings, "otlp"),
        hooks=_changed(HookSettings(), settings, "hooks"),
        memory=_changed(MemorySettings(), settings, "memory"),
        routes=_entries(settings, "routes"),
        silences=_entries(settings, "silences"),
        maintenance=_entries(settings, "maintenance"),
        pacing=_changed(PacingSettings(), settings, "alerting"),
        executors={section: _entries(settings, section) for section in EXECUTORS},
        checkpoints=_value(settings, "checkpoints", default=CheckpointSettings()),
        github=_value(settings, "github", default=GitHubSettings()),
        ai_maestro=_value(settings, "ai_maestro", default=AiMaestroSettings()),
    )
    rows = list(account(config, policy_layers, settings))
    return replace(
        config,
        effective={key: value for key, value, _ in rows},
        sources={key: source for key, _, source in rows},
    )


def _policies(all_layers: Layers, errors: ErrorCollector) -> PolicyBook:
    """The policy book, after checking that every layer fits those below it. Raises all errors found so far."""
    apply = profile(all_layers.profile).with_changes
    default, kept = fitted(apply, all_layers.default, errors, "policy")
    for group, named in (("roles", all_layers.roles), ("agents", all_layers.agents)):
        for name, layer in named.items():
            fitted(apply, {**kept, **layer}, errors, f"{group}.{name}")
    errors.raise_if_any()
    return PolicyBook(
        default,
        roles={role: nested(layer) for role, layer in all_layers.roles.items()},
        agents={pattern: nested(layer) for pattern, layer in all_layers.agents.items()},
        fixed=kept,
        given_roles=all_layers.given_roles,
    )


def _fleet(changes: Mapping[str, Any]) -> FleetPolicy:
    return replace(FleetPolicy(), **changes.get("fleet", {}))


def _changed(value: Any, settings: Settings, *section: str) -> Any:
    return replace(value, **nested(under(settings, *section)))


def _entries(settings: Settings, section: str) -> tuple[Any, ...]:
    return tuple(setting.value for path, setting in settings.items() if path[0] == section)


def _value(settings: Settings, *path: str, default: Any = None) -> Any:
    return settings[path].value if path in settings else default


def _content(file: Path | None, named_by: str, environ: Mapping[str, str]) -> document.Document:
    if file is None:
        return document.EMPTY
    if not file.exists():
        key = named_by if named_by in environ else str(file)
        detail = f"{file} does not exist" if key == named_by else "does not exist"
        raise ConfigErrors([ConfigError(key, detail)])
    from lifesigns.config import (
        yaml_file,
    )  # Without a file, as in every agent that looks for its hub, we need no YAML.

    return yaml_file.read(file)
