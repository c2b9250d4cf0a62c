"""The error of an outside party that did not take what we sent."""

from __future__ import annotations

from lifesigns.errors import AdapterError


class NotTaken(AdapterError):
    """The other side did not take it."""

    def __init__(
        self,
        message: str | None = None,
        *,
        transient: bool = True,
        retry_after: float | None = None,
        uncertain: bool = False,
    ) -> None:
        super().__init__(message, transient=transient)
        self.retry_after = retry_after
        """Seconds, if the other side said when to retry."""
        self.uncertain = uncertain
        """The other side may have taken it after all: no answer came."""
