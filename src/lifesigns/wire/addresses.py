"""Addresses: several hubs in one text, each by a whole address: `https://a:8710,https://b:8710`.

A token is sent by plain HTTP to this machine alone. Whoever sees it on a network can speak for the agent, or as the admin, for as
long as it is valid; so other machines need `https://`, or somebody who says that the network is safe (`LIFESIGNS_INSECURE=1`).
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

INSECURE: Final = "LIFESIGNS_INSECURE"
_is_here: Final = re.compile(r"127(\.[0-9]{1,3}){3}|::1|([a-z0-9-]+\.)*localhost").fullmatch

_BETWEEN: Final = re.compile(r"\s*,\s*(?=[a-z]+://)")
"""A comma within an address, such as in the list of servers of one bus, is followed by no scheme."""


def addresses_of(hub: str) -> list[str]:
    """Each of them, in the order they are to be tried."""
    return _BETWEEN.split(hub.strip())


def is_loopback(url: str) -> bool:
    """Whether an address is on this machine, by what it says and not by what a name server says of it."""
    return _is_here(urlsplit(url).hostname or "") is not None


def exposure(url: str, environ: Mapping[str, str] = os.environ) -> str:
    """Why no token is sent to this address; empty if one may be."""
    if not url.startswith("http://") or is_loopback(url) or environ.get(INSECURE) == "1":
        return ""
    return (
        f"{url}: a token would be sent there unencrypted; use https://, or set {INSECURE}=1 "
        "(--insecure) if nobody else is on that network"
    )
