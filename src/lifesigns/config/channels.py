"""Channels: the settings of the ways to tell people, `channels: name -> {type, ...}`.

A secret is a text, `env:NAME` or `file:/path`; we only check its form here, and no error repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from lifesigns.config import readers
from lifesigns.config.errors import unknown
from lifesigns.config.readers import Reader, named_secrets, secret, secret_url, secrets, url
from lifesigns.config.schema import ANY, Entry, Schema, Section
from lifesigns.config.secretive import Secretive


class ChannelSettings(Secretive, frozen=True):
    """One channel. `options` hold secrets."""

    secrets: ClassVar[tuple[str, ...]] = ("options",)

    name: str
    type: str
    options: Mapping[str, Any]
    per_minute: int | None = None
    gap: float | None = None


TYPES: Final[Mapping[str, Mapping[str, Reader]]] = {
    "log": {},
    "desktop": {},
    "webhook": {"url": secret_url, "secret": secret, "headers": named_secrets},
    "slack": {"url": secret_url, "token": secret, "channel": readers.text, "api": url},
    "pagerduty": {"routing_key": secret, "api": url, "source": readers.text},
    "email": {
        "host": readers.host,
        "port": readers.port,
        "security": readers.one_of("starttls", "tls", "none"),
        "user": readers.text,
        "password": secret,
        "from": readers.text,
        "to": readers.words,
    },
    "apprise": {"urls": secrets},
}
"""The types of channels, and the options of each."""

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "webhook": ("url",),
    "pagerduty": ("routing_key",),
    "email": ("host", "from", "to"),
    "apprise": ("urls",),
}
_FOR_ALL: Final[Mapping[str, Reader]] = {
    "type": readers.text,
    "per_minute": readers.within(readers.whole, lambda number: 1 <= number <= 600, "a number from 1 to 600"),
    "gap": readers.seconds,
}
_KEYS: Final = {**_FOR_ALL, **{key: reader for own in TYPES.values() for key, reader in own.items()}}
SECRETS: Final = frozenset(
    key for key, reader in _KEYS.items() if reader in (secret, secrets, named_secrets, secret_url)
)
"""Options that are secrets, or name their place."""


def _channel(section: Section, given: Mapping[str, object]) -> ChannelSettings | None:
    name = section.path[-1]
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        section.add_error("", "needs a name of letters, digits, dots and dashes")
        return None
    type_ = given.get("type", name)
    if not isinstance(type_, str) or type_ not in TYPES:
        missing = f"is missing; types are {', '.join(sorted(TYPES))}"
        wrong = f"{readers.shown(type_)} {unknown(str(type_), TYPES)}"
        section.add_error("type", wrong if "type" in given else missing)
        return None
    own = TYPES[type_]
    right = section.read(given, {**_FOR_ALL, **own})
    for key in _NEEDED.get(type_, ()):
        if key not in given:
            section.add_error(key, "is missing")
    _check(type_, given, section)
    options = {key: value for key, value in right.items() if key in own}
    return ChannelSettings(name, type_, options, right.get("per_minute"), right.get("gap"))


def _check(type_: str, given: Mapping[str, object], section: Section) -> None:
    """Check options that need or exclude each other."""
    if type_ == "slack" and ("url" in given) == ("token" in given):
        section.add_error("", "needs either url (of an incoming webhook) or token and channel (of a bot)")
    elif type_ == "slack" and "token" in given and "channel" not in given:
        section.add_error("channel", "is missing; a bot needs to know where to post")
    if type_ == "email" and ("user" in given) != ("password" in given):
        section.add_error("", "needs user and password, or neither")
    elif type_ == "email" and "password" in given and given.get("security") == "none":
        section.add_error(
            "security", "is none, and the password could be read by everybody on the way; use starttls or tls"
        )


SECTIONS: Final[Schema] = {"channels": {ANY: Entry(_KEYS, _channel)}}
