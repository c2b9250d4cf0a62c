"""Links: selects the link to a hub by the scheme of its address."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from secrets import token_hex
from typing import Final

from lifesigns.agent.sender.bus_link import BusLink
from lifesigns.config.hub_locator import NO_HUB
from lifesigns.errors import UsageError
from lifesigns.ports import Bus, Link, Signer
from lifesigns.wire.addresses import addresses_of


def link_to(url: str, token: str | None = None, signer: Signer | None = None, name: str = "") -> Link:
    """The link to a hub, or to one of several, which all know it by one name. Imports only the driver it needs."""
    if url == NO_HUB:
        from lifesigns.agent.sender.no_link import NoLink

        return NoLink()
    hubs = addresses_of(url)
    if len(hubs) > 1:
        from lifesigns.agent.sender.failover_link import FailoverLink

        name = token_hex(8)
        ways = [(without_password(hub), partial(link_to, hub, token, signer, name)) for hub in hubs]
        return FailoverLink(ways)
    scheme, separator, _ = url.partition("://")
    if separator and scheme in ("http", "https"):
        from lifesigns.adapters.link.http import HttpLink

        return HttpLink(url, token, signer, name)
    return BusLink(bus_at(url), signer)


def without_password(url: str) -> str:
    """An address for logs."""
    return ", ".join(hub.partition("@")[2] or hub for hub in addresses_of(url))


def bus_at(url: str) -> Bus:
    """The bus at this address."""
    scheme, separator, _ = url.partition("://")
    if not separator or scheme not in _BUSES:
        known = ", ".join(f"{name}://" for name in ("http", "https", *_BUSES))
        raise UsageError(f"hub is {url!r}, but its address begins with one of {known}")
    return _BUSES[scheme](url)


def _memory(url: str) -> Bus:
    from lifesigns.adapters.bus.memory import MemoryBus

    return MemoryBus(url)


def _nats(url: str) -> Bus:
    from lifesigns.adapters.bus.nats import NatsBus

    return NatsBus(url)


def _redis(url: str) -> Bus:
    from lifesigns.adapters.bus.redis import RedisBus

    return RedisBus(url)


_BUSES: Final[Mapping[str, Callable[[str], Bus]]] = {
    "nats": _nats,
    "tls": _nats,
    "redis": _redis,
    "rediss": _redis,
    "valkey": _redis,
    "memory": _memory,
}
