"""Channels: what is written about the ways to tell people, `channels: name -> {type, ...}`, read and checked.

A secret may be written as it is, as `env:NAME` or as `file:/path`; only its form is looked at here, and no error repeats it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from lifesigns.config import readers
from lifesigns.config.errors import ErrorCollector, unknown
from lifesigns.config.readers import Reader
from lifesigns.config.sections import Section, in_a_row, one_of


@dataclass(frozen=True, slots=True)
class ChannelSettings:
    """One way to tell people. `options` hold secrets."""

    name: str
    type: str
    options: Mapping[str, Any] = field(repr=False)
    per_minute: int | None = None
    gap: float | None = None


# --- readers of single values ------------------------------------------------------------------------------


def secret(value: object) -> str:
    """A secret, or where it is. Never repeated."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("needs a text, or where it is kept: env:NAME or file:/path")
    if value.startswith("env:") and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value[4:]):
        raise ValueError("needs the name of a variable after env:, such as env:SLACK_URL")
    if value.startswith("file:") and not value[5:].strip():
        raise ValueError("needs the name of a file after file:, such as file:/run/secrets/slack")
    return value


def secrets(value: object) -> tuple[str, ...]:
    """One secret, or a list of them. Commas do not part them: they may be in one."""
    return tuple(secret(part) for part in (value if isinstance(value, list | tuple) else [value]))


def named_secrets(value: object) -> dict[str, str]:
    """Headers and their values."""
    if not isinstance(value, Mapping):
        raise ValueError(f"needs named values (key: value), not {readers.kind(value)}")
    for name in value:
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", str(name)):
            raise ValueError(f"has {readers.said(name)}, which is no name of a header")
    return {str(name): secret(part) for name, part in value.items()}


def url(value: object) -> str:
    """Where a server is. A secret may be in it, so it is not repeated."""
    if not isinstance(value, str) or not re.match(r"https?://[^/]", value):
        raise ValueError("needs an address such as https://example.org")
    return value


def secret_url(value: object) -> str:
    """An address that is a secret, or where it is kept."""
    said = secret(value)
    return said if said.startswith(("env:", "file:")) else url(said)


def security(value: object) -> str:
    """How the way to a mail server is made safe."""
    return one_of(value, ("starttls", "tls", "none"))


def per_minute(value: object) -> int:
    """Notices a minute."""
    number = readers.whole(value)
    if not 1 <= number <= 600:
        raise ValueError(f"needs a number from 1 to 600, not {number}")
    return number


# --- what there is to write --------------------------------------------------------------------------------

TYPES: Final[Mapping[str, Mapping[str, Reader]]] = {
    "log": {},
    "desktop": {},
    "webhook": {"url": secret_url, "secret": secret, "headers": named_secrets},
    "slack": {"url": secret_url, "token": secret, "channel": readers.text, "api": url},
    "pagerduty": {"routing_key": secret, "api": url, "source": readers.text},
    "email": {
        "host": readers.host,
        "port": readers.port,
        "security": security,
        "user": readers.text,
        "password": secret,
        "from": readers.text,
        "to": readers.words,
    },
    "apprise": {"urls": secrets},
}
"""The types of channels, and what each can be told."""

_NEEDED: Final[Mapping[str, tuple[str, ...]]] = {
    "webhook": ("url",),
    "pagerduty": ("routing_key",),
    "email": ("host", "from", "to"),
    "apprise": ("urls",),
}
_FOR_ALL: Final[Mapping[str, Reader]] = {
    "type": readers.text,
    "per_minute": per_minute,
    "gap": readers.seconds,
}


def channels(
    given: Mapping[str, Mapping[str, object]], complaints: ErrorCollector, where: str = ""
) -> dict[str, ChannelSettings]:
    """Every channel that is right; what is wrong with the others goes to the complaints."""
    made = {}
    for name, said in given.items():
        channel = _channel(name, said, Section(complaints, f"channels.{name}", where))
        if channel is not None:
            made[name] = channel
    return made


def _channel(name: str, said: Mapping[str, object], section: Section) -> ChannelSettings | None:
    if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
        section.complain("", "needs a name of letters, digits, dots and dashes")
        return None
    type_ = said.get("type", name)
    if type_ not in TYPES:
        problem = f"{readers.said(type_)} {unknown(str(type_), TYPES)}"
        section.complain("type", problem if "type" in said else f"is missing; types are {in_a_row(TYPES)}")
        return None
    own = TYPES[str(type_)]
    read = section.read(said, {**_FOR_ALL, **own})
    needed = _NEEDED.get(str(type_), ())
    if not section.complete(said, read, needed) or not _fits(str(type_), said, section):
        return None
    options = {key: value for key, value in read.items() if key in own}
    return ChannelSettings(name, str(type_), options, read.get("per_minute"), read.get("gap"))


def _fits(type_: str, said: Mapping[str, object], section: Section) -> bool:
    """What must stand together, or must not."""
    if type_ == "slack" and ("url" in said) == ("token" in said):
        section.complain("", "needs either url (of an incoming webhook) or token and channel (of a bot)")
        return False
    if type_ == "slack" and "token" in said and "channel" not in said:
        section.complain("channel", "is missing; a bot needs to know where to post")
        return False
    if type_ == "email" and ("user" in said) != ("password" in said):
        section.complain("", "needs user and password, or neither")
        return False
    if type_ == "email" and "password" in said and said.get("security") == "none":
        section.complain(
            "security", "is none, and the password could be read by everybody on the way; use starttls or tls"
        )
        return False
    return True
