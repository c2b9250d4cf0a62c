"""Addresses: several hubs in one text, each by a whole address: `http://a:8710,http://b:8710`."""

from __future__ import annotations

import re
from typing import Final

_BETWEEN: Final = re.compile(r"\s*,\s*(?=[a-z]+://)")
"""A comma within an address, such as in the list of servers of one bus, is followed by no scheme."""


def addresses_of(hub: str) -> list[str]:
    """Each of them, in the order they are to be tried."""
    return _BETWEEN.split(hub.strip())
