"""Channels, assembled from the configuration, and the rules of alerting.

Secrets are looked up here (`env:NAME`, `file:/path`), once, when the hub starts. An error names the key and never the
secret.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from msgspec.structs import asdict

from lifesigns.config.alerting import (
    MaintenanceSettings,
    MatcherSettings,
    PacingSettings,
    RouteSettings,
    SilenceSettings,
)
from lifesigns.config.channels import SECRETS, ChannelSettings
from lifesigns.errors import UsageError
from lifesigns.hub.alerting.rules import Matcher, Pacing, Rate, Route, Rules, Silence, Window
from lifesigns.ports import Channel, NoticeSeverity

SECRET_MAX: Final = 64 * 1024

NOBODY_CONFIGURED: Final = {"log": ChannelSettings("log", "log", {})}
"""Without configured channels, alerts go to the hub's log."""


def channels_of(settings: Mapping[str, ChannelSettings], environ: Mapping[str, str]) -> dict[str, Channel]:
    """The configured channels. Imports only the drivers they need."""
    return {name: _channel(one, environ) for name, one in (settings or NOBODY_CONFIGURED).items()}


def rules_of(
    channels: Mapping[str, ChannelSettings],
    *,
    alerting: Mapping[str, RouteSettings],
    routes: Sequence[RouteSettings] = (),
    silences: Sequence[SilenceSettings] = (),
    maintenance: Sequence[MaintenanceSettings] = (),
    pacing: PacingSettings | None = None,
    link: str = "",
) -> Rules:
    """The rules of alerting. `alerting` is the tree of IMPL-REQ-003."""
    made_of_maintenance = [_maintenance(number, one) for number, one in enumerate(maintenance, 1)]
    return Rules(
        channels={name: _rate(one) for name, one in (channels or NOBODY_CONFIGURED).items()},
        routes=[_route(route) for route in routes],
        by_kind={kind: _route(route) for kind, route in alerting.items()},
        silences=[
            *(
                Silence(f"config-{number}", _matcher(one), one.until, one.by, one.why, one.from_)
                for number, one in enumerate(silences, 1)
            ),
            *(made for made in made_of_maintenance if isinstance(made, Silence)),
        ],
        windows=[made for made in made_of_maintenance if isinstance(made, Window)],
        pacing=Pacing(**asdict(pacing or PacingSettings())),
        link=link.rstrip("/"),
    )


def secret(written: str, key: str, environ: Mapping[str, str]) -> str:
    """A secret: literal, from a variable, or from a file (without the newline at its end)."""
    if written.startswith("env:"):
        value = environ.get(written[4:], "").strip()
        if not value:
            raise UsageError(f"{key} is {written}, but this variable is not set")
        return value
    if written.startswith("file:"):
        path = Path(written[5:]).expanduser()
        try:
            with path.open("rb") as file:
                value = file.read(SECRET_MAX).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is no text"
            raise UsageError(f"{key} is {written}, which cannot be read: {why}") from None
        if not value:
            raise UsageError(f"{key} is {written}, which is empty")
        return value
    return written


def _channel(settings: ChannelSettings, environ: Mapping[str, str]) -> Channel:
    key = f"channels.{settings.name}"
    options = {
        name: _looked_up(value, f"{key}.{name}", environ) if name in SECRETS else value
        for name, value in settings.options.items()
    }
    try:
        return _TYPES[settings.type](options)
    except UsageError as error:
        raise UsageError(f"{key}: {error}") from error


def _looked_up(value: Any, key: str, environ: Mapping[str, str]) -> Any:
    """One secret, a list of them, or several by name."""
    if isinstance(value, Mapping):
        return {name: secret(part, f"{key}.{name}", environ) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(secret(part, key, environ) for part in value)
    return secret(value, key, environ)


def _rate(settings: ChannelSettings) -> Rate:
    usual = Rate()
    gap = usual.gap if settings.gap is None else settings.gap
    return Rate(settings.per_minute or usual.per_minute, gap)


def _matcher(settings: MatcherSettings) -> Matcher:
    return Matcher(settings.alerts, settings.agents, settings.roles)


def _route(settings: RouteSettings) -> Route:
    severity = NoticeSeverity(settings.severity) if settings.severity else None
    return Route(settings.channels, _matcher(settings), NoticeSeverity(settings.at_least), severity)


def _maintenance(number: int, settings: MaintenanceSettings) -> Silence | Window:
    name, which = settings.name or f"maintenance {number}", _matcher(settings)
    if settings.until is not None:
        from_at = settings.from_ or 0.0
        return Silence(f"maintenance-{number}", which, settings.until, "maintenance", name, from_at)
    assert settings.at is not None
    assert settings.for_ is not None
    return Window(name, which, settings.days, settings.at, settings.for_, settings.zone)


# --- the types of channels ---------------------------------------------------------------------------------

Options = Mapping[str, Any]


def _log(_: Options) -> Channel:
    from lifesigns.adapters.channels.log import LogChannel

    return LogChannel()


def _desktop(_: Options) -> Channel:
    from lifesigns.adapters.channels.desktop import DesktopChannel

    return DesktopChannel()


def _webhook(options: Options) -> Channel:
    from lifesigns.adapters.channels.webhook import WebhookChannel

    return WebhookChannel(options["url"], secret=options.get("secret"), headers=options.get("headers"))


def _slack(options: Options) -> Channel:
    from lifesigns.adapters.channels.slack import API, SlackBot, SlackWebhook

    if "url" in options:
        return SlackWebhook(options["url"])
    return SlackBot(options["token"], options["channel"], api=options.get("api", API))


def _pagerduty(options: Options) -> Channel:
    from lifesigns.adapters.channels.pagerduty import PagerDutyChannel

    return PagerDutyChannel(**options)


def _email(options: Options) -> Channel:
    from lifesigns.adapters.channels.email import EmailChannel, Security, Server

    server = Server(
        options["host"],
        options.get("port"),
        Security(options.get("security", Security.STARTTLS)),
        options.get("user"),
        options.get("password"),
    )
    return EmailChannel(server, options["from"], options["to"])


def _apprise(options: Options) -> Channel:
    from lifesigns.adapters.channels.apprise import AppriseChannel

    return AppriseChannel(options["urls"])


_TYPES: Final[Mapping[str, Callable[[Options], Channel]]] = {
    "log": _log,
    "desktop": _desktop,
    "webhook": _webhook,
    "slack": _slack,
    "pagerduty": _pagerduty,
    "email": _email,
    "apprise": _apprise,
}
