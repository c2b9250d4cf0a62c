"""Kinds of errors: those that are the fault of the world, not of the agent."""

from __future__ import annotations

from typing import Final

INFRASTRUCTURE: Final = frozenset(
    "ratelimit ratelimited toomanyrequests 429 408 425 overloaded 5xx server internalserver api "
    "badgateway serviceunavailable unavailable gatewaytimeout deadlineexceeded timeout timedout "
    "apitimeout requesttimeout connecttimeout readtimeout connection apiconnection "
    "connectionreset connectionrefused connect network dns".split()
)
"""Kinds of error that are the world's fault, as `is_infrastructure` spells them."""

KIND_MAX: Final = 64
"""Characters that are looked at."""


def is_infrastructure(kind: str | None) -> bool:
    """`RateLimitError`, `rate_limit`, `http_503` and the like, however they are spelled."""
    if not kind:
        return False
    name = "".join(filter(str.isalnum, kind[:KIND_MAX].lower())).removeprefix("http")
    name = name.removesuffix("exception").removesuffix("error")
    return name in INFRASTRUCTURE or (len(name) == 3 and name[0] == "5" and name.isdecimal())
