"""Errors, sorted by whose fault they are.

    LifesignsError
    ├── UsageError            you: a call or a setting that cannot work
    │   └── PolicyError       you: a policy with an unknown key or an impossible relation; `.key`
    ├── WireError             the peer: malformed or oversized input; `.field`; count it, answer it, go on
    ├── AdapterError          the world: a server, a disk, a network; `.transient` says whether to retry
    ├── BreakerOpen           the world, known to be down: refused without trying; `.until`
    └── Bug                   us: a state the design calls impossible

The docstring of a class is its default message. A sick agent is never an exception.
"""

from __future__ import annotations


class LifesignsError(Exception):
    """Something in lifesigns went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())


class UsageError(LifesignsError):
    """This call or setting cannot work."""


class PolicyError(UsageError):
    """This policy cannot work."""

    def __init__(self, key: str, detail: str) -> None:
        super().__init__(f"{key}: {detail}")
        self.key = key
        self.detail = detail


class WireError(LifesignsError):
    """The peer sent something we cannot read."""

    def __init__(self, field: str, detail: str) -> None:
        super().__init__(f"{field}: {detail}" if field else detail)
        self.field = field
        self.detail = detail


class AdapterError(LifesignsError):
    """A server, a disk or a network failed us."""

    def __init__(self, message: str | None = None, *, transient: bool = True) -> None:
        super().__init__(message)
        self.transient = transient


class BreakerOpen(LifesignsError):
    """The breaker is open: the call was refused without being tried."""

    def __init__(self, name: str, until: float) -> None:
        super().__init__(f"breaker {name!r} is open until {until:.3f}")
        self.name = name
        self.until = until


class Bug(LifesignsError):
    """lifesigns reached a state its design calls impossible. Please report this."""
