"""Apprise: more than a hundred other services, each by its own address. Needs the extra `apprise`."""

from __future__ import annotations

import logging
from importlib import import_module
from typing import Any, Final

from lifesigns.errors import UsageError
from lifesigns.ports import NotDelivered, Notice, NoticeSeverity, NoticeStage

_TYPES: Final = {
    NoticeSeverity.INFO: "info",
    NoticeSeverity.WARNING: "warning",
    NoticeSeverity.ERROR: "failure",
    NoticeSeverity.CRITICAL: "failure",
}


class AppriseChannel:
    """Tells every service in `urls`; apprise does not say which of them failed, nor why."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        try:
            apprise: Any = import_module("apprise")
        except ModuleNotFoundError as error:
            raise UsageError("an apprise channel needs: pip install 'lifesigns[apprise]'") from error
        for name in ("apprise", "urllib3"):
            if logging.getLogger(name).level == logging.NOTSET:
                logging.getLogger(name).setLevel(logging.WARNING)  # Below that they log whole addresses.
        self._apprise: Any = apprise.Apprise()
        for number, url in enumerate(urls, 1):
            if not self._apprise.add(url):  # The message does not repeat the address: it holds secrets.
                raise UsageError(
                    f"apprise does not know the service of address {number}; see its list of services"
                )

    async def tell(self, notice: Notice) -> None:
        over = notice.stage is NoticeStage.RESOLVED
        kind = "success" if over else _TYPES[notice.severity]
        body = "\n".join(part for part in (notice.text, notice.link) if part) or notice.title
        if not await self._apprise.async_notify(
            title=notice.title, body=body, notify_type=kind, body_format="text"
        ):
            raise NotDelivered("at least one of its services did not take it; apprise's own log says which")

    async def close(self) -> None:
        """Nothing to close."""
