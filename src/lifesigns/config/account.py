"""The account a configuration gives of itself: every value under its dotted key, and where it came from."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lifesigns.config.fitting import flat, settable
from lifesigns.config.layers import Layers, Settings
from lifesigns.config.values import DEFAULT, Config, Listen, Source
from lifesigns.core.profiles import PROFILES

Row = tuple[str, object, Source]


def account(config: Config, layers: Layers, settings: Settings) -> Iterator[Row]:
    """Key, value and source of everything, fit to be shown to anybody."""
    yield "profile", config.profile, layers.profile_source
    yield "enabled", config.enabled, _source(settings, "health_monitoring", "enabled")
    yield "store", masked(config.store), _source(settings, "store")
    yield "bus", masked(config.bus), _source(settings, "bus")
    yield from _listen(config.listen, settings)
    yield from _policy(config, layers)
    yield from _said(settings, "roles")
    yield from _said(settings, "agents")
    yield from _section("fleet", settable(config.fleet), settings)
    yield from _alerting(config, settings)
    for name, channel in config.channels.items():
        yield f"channels.{name}", channel.type, _source(settings, "channels", name)
    yield from _section("limits", settable(config.limits), settings)


def masked(url: str | None) -> str | None:
    """A URL without what is nobody's business: user, password, and the values of its parameters."""
    if url is None:
        return None
    return re.sub(r"=[^&#]*", "=***", re.sub(r"//[^/]*@", "//***@", url))


def _policy(config: Config, layers: Layers) -> Iterator[Row]:
    named = Source("", f"profile {config.profile}")
    from_profile = flat(PROFILES[config.profile])
    for path, value in flat(settable(config.policies.default)).items():
        source = named if path in from_profile else DEFAULT
        if path in layers.default:
            source = layers.default[path].source
        yield ".".join(("policy", *path)), value, source


def _said(settings: Settings, group: str) -> Iterator[Row]:
    """Of roles and agents only what was written: their effective policies have no end."""
    for path, setting in settings.items():
        if path[0] == group:
            yield ".".join(path), setting.value, setting.source


def _section(name: str, values: Mapping[str, Any], settings: Settings) -> Iterator[Row]:
    for key, value in values.items():
        yield f"{name}.{key}", value, _source(settings, name, key)


def _alerting(config: Config, settings: Settings) -> Iterator[Row]:
    for kind, route in config.alerting.items():
        for key, value in (("channels", route.channels), ("severity", route.severity)):
            source = _source(settings, "health_monitoring", "alerting", kind, key)
            yield f"alerting.{kind}.{key}", value, source


def _listen(listen: Listen, settings: Settings) -> Iterator[Row]:
    yield "listen", str(listen), _listen_source(settings, "port", "host")
    for part in ("tls_cert", "tls_key", "behind_proxy", "names"):
        value = getattr(listen, part)
        shown = str(value) if isinstance(value, Path) else value
        yield f"listen.{part}", shown, _listen_source(settings, part)


def _listen_source(settings: Settings, *parts: str) -> Source:
    """Where one of these parts was said: outside of the file, else in it."""
    for part in parts:
        if ("listen", part) in settings:
            return settings["listen", part].source
    in_file = settings.get(("listen",))
    return in_file.source if in_file and any(part in in_file.value for part in parts) else DEFAULT


def _source(settings: Settings, *path: str) -> Source:
    return settings[path].source if path in settings else DEFAULT
