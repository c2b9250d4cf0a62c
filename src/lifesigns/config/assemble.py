"""From single settings to the whole configuration, or to everything that speaks against it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from lifesigns.config import alerting
from lifesigns.config.account import account
from lifesigns.config.channels import channels
from lifesigns.config.errors import ErrorCollector
from lifesigns.config.executors import SECTIONS, executors
from lifesigns.config.fitting import fitted, nested
from lifesigns.config.layers import Layers, Settings, layers, under
from lifesigns.config.values import DEFAULT_ALERTING, AlertRoute, Config, Limits, Listen
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook, profile


def assemble(settings: Settings, file: Mapping[str, Any], complaints: ErrorCollector) -> Config:
    """The configuration. Raises `ConfigErrors` if there are complaints, old ones or new ones."""
    said = layers(settings, file, complaints)
    fleet, _ = fitted(_fleet, _only(settings, "fleet"), complaints, "fleet")
    if not _value(settings, "health_monitoring", "enabled", default=True):
        fleet = replace(fleet, judging=False)
    ways = {path[0]: setting.value for path, setting in under(settings, "channels").items()}
    made = channels(ways, complaints)
    routes = alerting.routes(_value(settings, "routes", default=()), ways, complaints)
    silences = alerting.silences(_value(settings, "silences", default=()), complaints)
    maintenance = alerting.maintenance(_value(settings, "maintenance", default=()), complaints)
    given = {name: _value(settings, name) for name in SECTIONS if (name,) in settings}
    carried_out = executors(given, complaints)
    policies = _policies(said, complaints)
    config = Config(
        policies=policies,
        fleet=fleet,
        profile=said.profile,
        enabled=fleet.judging,
        alerting=_alerting(settings),
        store=_value(settings, "store"),
        bus=_value(settings, "bus"),
        listen=_listen(settings),
        channels=made,
        limits=replace(Limits(), **nested(under(settings, "limits"))),
        effective={},
        sources={},
        routes=routes,
        silences=silences,
        maintenance=maintenance,
        executors=carried_out,
        pacing=replace(alerting.PacingSettings(), **nested(under(settings, "alerting"))),
    )
    rows = list(account(config, said, settings))
    return replace(
        config,
        effective={key: value for key, value, _ in rows},
        sources={key: source for key, _, source in rows},
    )


def _policies(said: Layers, complaints: ErrorCollector) -> PolicyBook:
    """The book, once every layer has been seen to fit those below it."""
    apply = profile(said.profile).but
    default, kept = fitted(apply, said.default, complaints, "policy")
    for group, named in (("roles", said.roles), ("agents", said.agents)):
        for name, layer in named.items():
            fitted(apply, {**kept, **layer}, complaints, f"{group}.{name}")
    complaints.raise_if_any()
    return PolicyBook(
        default,
        roles={role: nested(layer) for role, layer in said.roles.items()},
        agents={pattern: nested(layer) for pattern, layer in said.agents.items()},
    )


def _fleet(changes: Mapping[str, Any]) -> FleetPolicy:
    return replace(FleetPolicy(), **changes.get("fleet", {}))


def _alerting(settings: Settings) -> dict[str, AlertRoute]:
    return {
        kind: replace(route, **nested(under(settings, "health_monitoring", "alerting", kind)))
        for kind, route in DEFAULT_ALERTING.items()
    }


def _listen(settings: Settings) -> Listen:
    """Where to listen: what the file says, and over it the parts that are said outside of it."""
    outside = {path[0]: setting.value for path, setting in under(settings, "listen").items()}
    return replace(Listen(), **{**_value(settings, "listen", default={}), **outside})


def _only(settings: Settings, section: str) -> Settings:
    return {path: setting for path, setting in settings.items() if path[0] == section}


def _value(settings: Settings, *path: str, default: Any = None) -> Any:
    return settings[path].value if path in settings else default
