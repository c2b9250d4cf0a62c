"""Addresses: several hubs in one text, each a whole address: `https://a:8710,https://b:8710`.

We send a token by plain HTTP to this machine only. Anyone who sees it on a network can act as the agent, or as the
admin, as long as it is valid; so other machines need `https://`, or a user who says that the network is safe
(`LIFESIGNS_INSECURE=1`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from ipaddress import ip_address
from typing import Final
from urllib.parse import urlsplit

INSECURE: Final = "LIFESIGNS_INSECURE"

_BETWEEN: Final = re.compile(r"\s*,\s*(?=[a-z]+://)")
"""No scheme follows a comma inside an address, such as in a bus's list of servers."""


def addresses_of(hub: str) -> list[str]:
    """The addresses, in the order to try them."""
    return _BETWEEN.split(hub.strip())


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine."""
    return is_loopback_host(urlsplit(url).hostname or "")


def is_loopback_host(host: str) -> bool:
    """Whether a name or IP address is this machine's own, judged by its text alone: we ask no name server."""
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        address = ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return (getattr(address, "ipv4_mapped", None) or address).is_loopback


def exposure(url: str, environ: Mapping[str, str] = os.environ) -> str:
    """Why we send no token to this address; empty if we may."""
    if not url.startswith("http://") or is_loopback(url) or environ.get(INSECURE) == "1":
        return ""
    return (
        f"{url}: a token would be sent there unencrypted; use https://, or set {INSECURE}=1 "
        "(--insecure) if nobody else is on that network"
    )
