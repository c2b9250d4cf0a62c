"""Readers: each reads one value of the file or the environment, or raises a ValueError that says what would be right."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import cache
from math import isfinite
from pathlib import Path
from typing import Any, Final

from lifesigns.config import durations

Reader = Callable[[object], Any]

SECONDS_MAX: Final = 100 * 365 * durations.DAY
NUMBER_MAX: Final = 1e15

_zone: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}").fullmatch


def seconds(value: object) -> float:
    """A duration: a number of seconds, or text with a unit."""
    if isinstance(value, str):
        value = durations.parse(value)
    number_ = _finite(value, f"a duration: {durations.RIGHT}")
    if number_ > SECONDS_MAX:
        raise ValueError(f"{shown(value)} s is longer than a hundred years")
    return number_


def number(value: object) -> float:
    """A number that is neither negative nor absurdly large."""
    return _finite(value, "a number")


def part(value: object) -> float:
    """A part of a whole: more than nothing, at most 1."""
    part_ = _finite(value, "a number up to 1")
    if not 0.01 <= part_ <= 1:
        raise ValueError(f"needs a number from 0.01 to 1, not {shown(value)}")
    return part_


def whole(value: object) -> int:
    """A whole number; `3.0` is one."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"needs a whole number, not {shown(value)}")
    _finite(value, "a whole number")
    return value


def yes_no(value: object) -> bool:
    """True or false; numbers are neither."""
    if not isinstance(value, bool):
        raise ValueError(f"needs true or false, not {shown(value)}")
    return value


def text(value: object) -> str:
    """A name or a line of text."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError(f"needs a text, not {shown(value)}")
    return value


def words(value: object) -> tuple[str, ...]:
    """A list of texts; a single one, or several with commas between, is a list too."""
    return tuple(text(part) for part in _parts(value))


def seconds_list(value: object) -> tuple[float, ...]:
    """A list of durations; a single one, or several with commas between, is a list too."""
    return tuple(seconds(part) for part in _parts(value))


def one_of(*known: str) -> Reader:
    """One of a few words."""

    def read(value: object) -> str:
        if value not in known:
            raise ValueError(f"needs one of {', '.join(known)}, not {shown(value)}")
        return str(value)

    return read


severity = one_of("info", "warning", "error", "critical")


def within(reader: Reader, fits: Callable[[Any], bool], right: str) -> Reader:
    """The same reader for values that fit; `right` says which."""

    def read(value: object) -> Any:
        result = reader(value)
        if not fits(result):
            raise ValueError(f"needs {right}, not {shown(value)}")
        return result

    return read


def store(value: object) -> str:
    """The store's URL."""
    return _url(value, "sqlite:///var/lib/lifesigns/lifesigns.db or postgresql://host/database")


def bus(value: object) -> str:
    """The bus's URL."""
    return _url(value, "nats://host:4222 or redis://host:6379")


def zone(value: object) -> str:
    """The name of a zone."""
    name = text(value)
    if not _zone(name):
        raise ValueError(
            f"is {shown(name)}, but needs to be a name of letters, digits, dots and dashes, such as eu-1"
        )
    return name


def signed(value: object) -> tuple[str, ...]:
    """The agents that have to sign: `optional` is none, `required` is all, else ids and beginnings of ids."""
    if value in ("optional", "required"):
        return ("*",) if value == "required" else ()
    patterns = words(value)
    for pattern in patterns:
        if not re.fullmatch(r"[A-Za-z0-9._:@/-]{1,128}|[A-Za-z0-9._:@/-]{0,127}\*", pattern):
            raise ValueError(
                f"needs optional, required, or ids such as coder-7 or coder-*, not {shown(pattern)}"
            )
    return patterns


def witnesses(value: object) -> tuple[str, ...]:
    """Who keeps the checkpoints of the audit log; a single one is a list, too."""
    return tuple(_witness(part) for part in _parts(value))


def _witness(value: object) -> str:
    # Not repeated: an address may hold a secret.
    if not isinstance(value, str) or not re.match(r"(file:|env:|(post|put):https?://)[^\s]", value):
        raise ValueError("needs file:/path, post:https://host/path, put:https://host/path or env:NAME")
    return value


def listen(value: object) -> dict[str, object]:
    """`host:port`, `[::1]:port` or a port alone, as parts of `Listen`."""
    if isinstance(value, str) and ":" in value:
        name, _, number_ = value.rpartition(":")
        return {"host": host(name), "port": port(number_)}
    try:
        return {"port": port(value)}
    except ValueError as error:
        raise ValueError(f"needs host:port, or a port from 0 to 65535, not {shown(value)}") from error


def host(value: object) -> str:
    """A host name or address; IPv6 addresses may have brackets."""
    name = text(value).strip()
    bare = name[1:-1] if name.startswith("[") and name.endswith("]") else name
    if not re.fullmatch(r"[A-Za-z0-9._:%-]+", bare) or (":" in bare and bare == name):
        raise ValueError(f"needs host:port such as 127.0.0.1:8710 or [::1]:8710, not {shown(value)}")
    return bare


def port(value: object) -> int:
    """A TCP port; 0 takes any free one."""
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,5}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 65535:
        raise ValueError(f"needs a port from 0 to 65535, not {shown(value)}")
    return value


def file(value: object) -> Path:
    """The name of a file; we check later whether it exists."""
    return Path(text(value)).expanduser()


def host_names(value: object) -> tuple[str, ...]:
    """Names of the hub, without port."""
    names = words(value)
    for name in names:
        if not re.fullmatch(r"[A-Za-z0-9._-]{1,253}", name):
            raise ValueError(f"needs names such as hub.example.org, without port or *, not {shown(name)}")
    return tuple(name.lower().rstrip(".") for name in names)


def secret(value: object) -> str:
    """A secret, or its place. Errors never repeat it."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("needs a text, or where it is kept: env:NAME or file:/path")
    if value.startswith("env:") and not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", value[4:]):
        raise ValueError("needs the name of a variable after env:, such as env:SLACK_URL")
    if value.startswith("file:") and not value[5:].strip():
        raise ValueError("needs the name of a file after file:, such as file:/run/secrets/slack")
    return value


def secrets(value: object) -> tuple[str, ...]:
    """One secret, or a list of them. Commas do not separate them: a secret may contain one."""
    return tuple(secret(part) for part in (value if isinstance(value, list | tuple) else [value]))


def named_secrets(value: object) -> dict[str, str]:
    """Headers and their values."""
    if not isinstance(value, Mapping):
        raise ValueError(f"needs named values (key: value), not {kind(value)}")
    for name in value:
        if not re.fullmatch(r"[A-Za-z0-9-]{1,64}", str(name)):
            raise ValueError(f"has {shown(name)}, which is no name of a header")
    return {str(name): secret(part) for name, part in value.items()}


def url(value: object) -> str:
    """A server's address. It may contain a secret, so errors do not repeat it."""
    if not isinstance(value, str) or not re.match(r"https?://[^/]", value):
        raise ValueError("needs an address such as https://example.org")
    return value


def secret_url(value: object) -> str:
    """An address that is a secret, or its place."""
    address = secret(value)
    return address if address.startswith(("env:", "file:")) else url(address)


@cache
def optional(reader: Reader) -> Reader:
    """The same reader, which also takes nothing (`null`, or `none` in the environment)."""
    return lambda value: None if value is None or value == "none" else reader(value)


def shown(value: object) -> str:
    """A value for an error message, cut to size."""
    text_ = repr(value) if isinstance(value, str | int | float | None) else kind(value)
    return text_ if len(text_) <= 60 else f"{text_[:57]}..."


def kind(value: object) -> str:
    """The sort of a value, in words."""
    match value:
        case None:
            return "nothing"
        case bool():
            return "true or false"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case Mapping():
            return "named values"
    return "a list"


def _finite(value: object, right: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"needs {right}; not {shown(value)}")
    if not -NUMBER_MAX < value < NUMBER_MAX or not isfinite(value) or value < 0:
        raise ValueError(f"{shown(value)} is not a finite number >= 0")
    return float(value)


def _parts(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    if isinstance(value, str):
        return [part.strip() for part in value.split(",")]
    if value is None or isinstance(value, Mapping | bool):
        raise ValueError(f"needs a list, not {shown(value)}")
    return [value]


def _url(value: object, such_as: str) -> str:
    # The error does not repeat the value: a URL may hold a password.
    if not isinstance(value, str) or not re.match(r"[a-z][a-z0-9+.-]*://", value):
        raise ValueError(f"needs a URL such as {such_as}")
    return value
