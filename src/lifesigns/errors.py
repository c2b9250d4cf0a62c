"""Errors, sorted by whose fault they are.

    LifesignsError
    ├── UsageError            you: a call or a setting that cannot work
    │   └── PolicyError       you: a policy with an unknown key or an impossible relation; `.key`
    ├── WireError             the peer: malformed or oversized input; `.field`; count it, answer it, go on
    ├── AdapterError          the world: a server, a disk, a network; `.transient` says whether to retry
    │   ├── Deposed           the world, to a hub: another hub has taken over the store
    │   └── HubError          the world, to a client: a hub that said no (`.status`, `.detail`, `.field`) or nothing
    ├── BreakerOpen           the world, known to be down: refused without trying; `.retry_after`
    ├── RunStopped            nobody: the hub ended a framework's run; `.reason`
    └── Bug                   us: a state the design calls impossible

The docstring of a class is its default message. A sick agent is never an exception.
"""

from __future__ import annotations

from math import isfinite
from typing import Any


class LifesignsError(Exception):
    """Something in lifesigns went wrong."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (type(self).__doc__ or "").strip())

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross process pools, whatever arguments their constructors take."""
        return _revived, (type(self), self.args, vars(self))


def _revived(kind: type[LifesignsError], args: tuple[Any, ...], values: dict[str, Any]) -> LifesignsError:
    error = kind.__new__(kind)
    error.args = args
    vars(error).update(values)
    return error


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


class Deposed(AdapterError):
    """Another hub has taken over the store."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message, transient=False)


class HubError(AdapterError):
    """The hub did not do what it was asked."""

    def __init__(
        self,
        message: str | None = None,
        *,
        status: int | None = None,
        detail: str = "",
        field: str | None = None,
        code: str | None = None,
        request_id: str | None = None,
        retry_after: float | None = None,
        transient: bool = True,
    ) -> None:
        super().__init__(message, transient=transient)
        self.status = status
        """The status of its answer; None if there was none."""
        self.detail = detail
        self.field = field
        self.code = code
        """For programs, where several problems share a status."""
        self.request_id = request_id
        """What the request is called in the hub's log."""
        self.retry_after = retry_after


class BreakerOpen(LifesignsError):
    """The breaker is open: the call was refused without being tried."""

    def __init__(self, name: str, until: float, now: float) -> None:
        self.name = name
        self.until = until
        """On the breaker's clock."""
        self.retry_after = max(0.0, until - now)
        when = f"in {self.retry_after:.1f} s" if isfinite(until) else "when somebody closes it"
        super().__init__(f"breaker {name!r} is open: it will be tried again {when}")


class RunStopped(LifesignsError):
    """The hub ended this run."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(f"lifesigns stopped this run: {reason}")


class Bug(LifesignsError):
    """lifesigns reached a state its design calls impossible. Please report this."""
