"""Hub locator: the hub's state folder on this machine, and how its clients find it.

`serve` writes its address into the state folder, beside the admin's token; so on one machine a client needs no
configuration. Elsewhere there are `LIFESIGNS_HUB` and `LIFESIGNS_TOKEN`.

We send the admin's token only to its own hub. An address from the environment or a command line gets it only if it is
that hub's address.
"""

from __future__ import annotations

import os
import socket
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Final
from urllib.parse import urlsplit

from lifesigns.config.secretive import Secretive
from lifesigns.errors import UsageError
from lifesigns.wire.addresses import is_loopback_host

HUB: Final = "http://127.0.0.1:8710"
NO_HUB: Final = "none"
"""Instead of an address: stay alone, whatever runs on this machine."""
ANSWERS_WITHIN: Final = 0.3
URL_FILE: Final = "hub.url"
TOKEN_FILE: Final = "admin.token"  # noqa: S105 -- the name of a file
FILE_MAX: Final = 4096

_PORTS: Final = {"http": 80, "https": 443}


class HubLocator(Secretive, frozen=True):
    """A hub's address, and the token for it."""

    secrets: ClassVar[tuple[str, ...]] = ("token",)

    hub: str
    token: str | None


def find(environ: Mapping[str, str], hub: str | None = None, token: str | None = None) -> HubLocator:
    """Hub and token: the arguments, else the environment, else the state folder."""
    address = hub or hub_address(environ)
    return HubLocator(address, token or token_for(environ, address))


def state_folder(environ: Mapping[str, str], platform: str = sys.platform) -> Path:
    """The folder of this user's hub: its database, its keys and its admin's token."""
    if named := environ.get("LIFESIGNS_STATE"):
        return Path(named).expanduser()
    home = environ.get("HOME") or environ.get("USERPROFILE")
    if platform == "win32" and (local := environ.get("LOCALAPPDATA")):
        return Path(local) / "lifesigns"
    if platform == "darwin" and home and not environ.get("XDG_STATE_HOME"):
        return Path(home) / "Library" / "Application Support" / "lifesigns"
    if (state := environ.get("XDG_STATE_HOME")) and Path(state).is_absolute():
        return Path(state) / "lifesigns"
    if home:
        return Path(home) / ".local" / "state" / "lifesigns"
    raise UsageError("there is no home folder to keep state in; name one with LIFESIGNS_STATE or --state")


def hub_address(environ: Mapping[str, str]) -> str:
    """`LIFESIGNS_HUB`, else the hub that this user started last, else the default address."""
    return environ.get("LIFESIGNS_HUB") or _own_hub(environ) or HUB


def running_hub(environ: Mapping[str, str]) -> str | None:
    """`LIFESIGNS_HUB`, else the hub that this user started if somebody listens there; None to stay alone.

    An address stays behind after a crash. Who can do without a hub must not wait for one that is not there.
    """
    named = environ.get("LIFESIGNS_HUB")
    if named:
        return None if named == NO_HUB else named
    url = _own_hub(environ)
    parts = None if url is None else urlsplit(url)
    if parts is None or parts.hostname is None:
        return None
    try:
        with socket.create_connection((parts.hostname, parts.port or _PORTS[parts.scheme]), ANSWERS_WITHIN):
            return url
    except OSError:
        return None


def token_for(environ: Mapping[str, str], hub: str) -> str | None:
    """`LIFESIGNS_TOKEN`; else the admin's, but only for the hub of the state folder."""
    if token := environ.get("LIFESIGNS_TOKEN"):
        return token
    return _read(environ, TOKEN_FILE) if _same(hub, _own_hub(environ) or HUB) else None


def _own_hub(environ: Mapping[str, str]) -> str | None:
    url = _read(environ, URL_FILE)
    return url if url and _place(url) is not None else None


def _read(environ: Mapping[str, str], name: str) -> str | None:
    """A line of the state folder; None if it is missing or unreadable, or if another user made or could have changed
    it: such a file would lead the token elsewhere."""
    try:
        with (state_folder(environ) / name).open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _is_ours(status):
                return None
            text = file.read(FILE_MAX).decode("ascii").strip()
    except (OSError, UnicodeDecodeError, UsageError):
        return None
    return text if text.isprintable() and text else None


def _is_ours(status: os.stat_result) -> bool:
    if not hasattr(os, "geteuid"):
        return True  # Windows: everything below the user's profile is the user's.
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & 0o022


def _same(one: str, other: str) -> bool:
    """Whether two addresses are the same hub's: all names of loopback are the same."""
    first, second = _place(one), _place(other)
    return first is not None and first == second


def _place(url: str) -> tuple[str, str, int] | None:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if port is None or not parts.hostname or parts.scheme not in _PORTS:
        return None
    return parts.scheme, "loopback" if is_loopback_host(parts.hostname) else parts.hostname, port
