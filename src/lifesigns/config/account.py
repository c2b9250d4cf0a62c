"""The account of a configuration: every value under its dotted key, and its source."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import asdict

from lifesigns.config.document import DEFAULT, Source, dotted
from lifesigns.config.fitting import flat, settable
from lifesigns.config.layers import Layers, Settings
from lifesigns.config.values import Config
from lifesigns.core.profiles import PROFILES

Row = tuple[str, object, Source]


def account(config: Config, layers: Layers, settings: Settings) -> Iterator[Row]:
    """Key, value and source of everything, without secrets."""
    yield "profile", config.profile, layers.profile_source
    yield "enabled", config.enabled, _source(settings, "health_monitoring", "enabled")
    yield "store", masked(config.store), _source(settings, "store")
    yield "bus", masked(config.bus.url), _source(settings, "bus", "url")
    yield "bus.relays", config.bus.relays, _source(settings, "bus", "relays")
    yield "bus.other_hubs", config.bus.other_hubs, _source(settings, "bus", "other_hubs")
    yield "zone", config.zone, _source(settings, "zone")
    yield from _section("hubs", settable(config.hubs), settings)
    pinged = config.dead_man_switch
    yield "dead_man_switch", host_only(pinged.url), _source(settings, "dead_man_switch", "url")
    yield "dead_man_switch.every", pinged.every, _source(settings, "dead_man_switch", "every")
    yield from _section("access", settable(config.access), settings)
    port, host = (_source(settings, "listen", part) for part in ("port", "host"))
    yield "listen", str(config.listen), host if port == DEFAULT else port
    listen = settable(config.listen)
    parts = {part: listen[part] for part in listen if part not in ("host", "port")}
    yield from _section("listen", parts, settings)
    yield from _policy(config, layers)
    yield from _written(settings, "roles", "agents")
    yield from _section("fleet", settable(config.fleet), settings)
    for kind, route in config.alerting.items():
        for key, value in (("channels", route.channels), ("severity", route.severity)):
            source = _source(settings, "health_monitoring", "alerting", kind, key)
            yield f"alerting.{kind}.{key}", value, source
    yield from _section("alerting", settable(config.pacing), settings)
    for name, channel in config.channels.items():
        yield f"channels.{name}", channel.type, _source(settings, "channels", name)
    for section, entries in {
        "routes": config.routes,
        "silences": config.silences,
        "maintenance": config.maintenance,
        **config.executors,
    }.items():
        first = next((setting.source for path, setting in settings.items() if path[0] == section), DEFAULT)
        yield section, len(entries), first
    yield from _section("checkpoints", config.checkpoints.shown(), settings)
    yield from _section("github", config.github.shown(), settings)
    yield from _section("ai_maestro", asdict(config.ai_maestro), settings)
    yield from _section("limits", settable(config.limits), settings)
    yield "audit.key", config.audit.key and str(config.audit.key), _source(settings, "audit", "key")
    witnesses = tuple(masked(one) for one in config.audit.witnesses)
    yield "audit.witnesses", witnesses, _source(settings, "audit", "witnesses")
    yield from _section("otlp", settable(config.otlp), settings)
    yield from _section("hooks", settable(config.hooks), settings)
    yield from _section("memory", settable(config.memory), settings)


def masked(url: str | None) -> str | None:
    """A URL without user, password, and the values of its parameters."""
    if url is None:
        return None
    return re.sub(r"=[^&#]*", "=***", re.sub(r"//[^/]*@", "//***@", url))


def host_only(url: str | None) -> str | None:
    """A URL whose path is a secret; or where the URL is kept, as it is."""
    return url and re.sub(r"(://)(?:[^/?#]*@)?([^/?#]*).*", r"\1\2/***", url)


def _policy(config: Config, layers: Layers) -> Iterator[Row]:
    named = Source("", f"profile {config.profile}")
    from_profile = flat(PROFILES[config.profile])
    for path, value in flat(settable(config.policies.default)).items():
        source = named if path in from_profile else DEFAULT
        if path in layers.default:
            source = layers.default[path].source
        yield ".".join(("policy", *path)), value, source


def _written(settings: Settings, *groups: str) -> Iterator[Row]:
    """Of roles and agents only what was written: their effective policies are endless."""
    for group in groups:
        for path, setting in settings.items():
            if path[0] == group:
                yield dotted(path), setting.value, setting.source


def _section(name: str, values: Mapping[str, Any], settings: Settings) -> Iterator[Row]:
    for key, value in values.items():
        shown = str(value) if isinstance(value, Path) else value
        yield f"{name}.{key}", shown, _source(settings, name, key)


def _source(settings: Settings, *path: str) -> Source:
    """The source of a key, or of its whole entry."""
    setting = settings.get(path) or settings.get(path[:1])
    return setting.source if setting else DEFAULT
