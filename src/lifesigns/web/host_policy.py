"""Host policy: the names of this hub, and the pages that may send requests to it.

Any page can make a browser send requests. Two checks keep other pages out:

    Host      a page of evil.example may have its name resolve to 127.0.0.1 and then be *same-origin* with us (DNS
              rebinding); but its requests carry that name. Addresses cannot be rebound, so they are fine.
    Origin    other pages on this machine (another port is another origin, but the same *site*) may post with our
              cookie; but the browser says where they come from.

There is no CORS: no other page has any business here.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from ipaddress import ip_address
from typing import Any, Final

from lifesigns.config.values import Listen
from lifesigns.web.answers import Problem

KNOWN_MAX: Final = 1000

_host_of: Final = re.compile(rb"([A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?").fullmatch


@dataclass(slots=True)
class HostPolicy:
    """How this hub is reached."""

    tls: bool = False
    behind_proxy: bool = False
    names: frozenset[str] = frozenset()
    """Names of this hub beside those of the machine."""
    _known: set[bytes] = field(default_factory=set, repr=False)
    """`Host` headers that passed: there are only ever a few."""

    @classmethod
    def of(cls, listen: Listen) -> HostPolicy:
        """The host policy of a hub that listens there."""
        names = frozenset(name.lower().rstrip(".") for name in (*listen.names, listen.host))
        return cls(listen.tls_cert is not None, listen.behind_proxy, names)

    @classmethod
    def checked(cls, host: bytes, *, tls: bool, behind_proxy: bool) -> HostPolicy:
        """The host policy of another hub, which has checked this `Host` already."""
        policy = cls(tls, behind_proxy)
        policy._known.add(host)
        return policy

    def check_host(self, host: bytes | None) -> None:
        """Raises a `Problem` if this is not a name of ours."""
        if host in self._known:
            return
        if host is None:
            raise Problem(400, "the request has no Host header")
        found = _host_of(host)
        if found is None:
            raise Problem(400, "Host is not a name or an address, with or without a port")
        name = found[1].decode("ascii").lower().rstrip(".")
        if not self._is_ours(name):
            raise Problem(
                421,
                f"Host is {name!r}, which is no name of this hub; if it should be one, start it with --allow-host {name}",
            )
        if len(self._known) < KNOWN_MAX:
            self._known.add(host)

    def _is_ours(self, name: str) -> bool:
        return (
            name == "localhost"
            or name.endswith(".localhost")
            or name in self.names
            or _is_address(name.strip("[]"))
            or name in machine_names()
        )

    def same_origin(self, origin: bytes, host: bytes) -> bool:
        """Whether a page of this origin is ours. A proxy may use TLS where we do not."""
        scheme, _, place = origin.lower().partition(b"://")
        mine = (b"https", b"http") if self.behind_proxy else (b"https",) if self.tls else (b"http",)
        return scheme in mine and place == host.lower()

    def is_secure(self, headers: Mapping[bytes, bytes]) -> bool:
        """Whether the browser reaches us over TLS."""
        return self.tls or (self.behind_proxy and headers.get(b"x-forwarded-proto", b"").lower() == b"https")

    def strict_transport(self, scope: Mapping[str, Any]) -> bool:
        """Whether a browser must use only TLS here. Not for localhost: that would break the machine's other servers."""
        headers = dict(scope["headers"])
        host = headers.get(b"host", b"").lower().partition(b":")[0]
        return self.is_secure(headers) and host != b"localhost" and not host.endswith(b".localhost")

    def address(self, scope: Mapping[str, Any]) -> str:
        """Where a request comes from. Behind a proxy it is the last address that the proxy wrote: the client itself may
        have written the earlier ones, and without a proxy all of them."""
        client = scope.get("client")
        peer = str(client[0]) if client else ""
        if not self.behind_proxy:
            return peer
        forwarded = b",".join(value for name, value in scope["headers"] if name == b"x-forwarded-for")
        for said in reversed(forwarded.decode("latin-1").split(",")):
            bare = said.strip()
            if _is_address(bare) and not ip_address(bare).is_loopback:
                return bare
        return peer


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True


@cache
def machine_names() -> frozenset[str]:
    """The names of this machine. Asked once, and of no name server: that might take its time."""
    whole = socket.gethostname().lower().rstrip(".")
    return frozenset({whole, whole.partition(".")[0]} - {""})
