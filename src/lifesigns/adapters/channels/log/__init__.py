"""The hub's own log as a channel, for users who have set up nothing else."""

from __future__ import annotations

import logging
from typing import Final

from lifesigns.ports import Notice, NoticeSeverity, NoticeStage

log = logging.getLogger("lifesigns.alerts")

_LEVELS: Final = {
    NoticeSeverity.INFO: logging.INFO,
    NoticeSeverity.WARNING: logging.WARNING,
    NoticeSeverity.ERROR: logging.ERROR,
    NoticeSeverity.CRITICAL: logging.CRITICAL,
}


class LogChannel:
    """Logs notices: `action` is `alert_opened`, `alert_worse`, `alert_acknowledged`, `alert_reminder`, `alert_resolved`."""

    async def tell(self, notice: Notice) -> None:
        level = logging.INFO if notice.stage is NoticeStage.RESOLVED else _LEVELS[notice.severity]
        extra = {
            "action": f"alert_{notice.stage}",
            "alert": notice.key,
            "kind": notice.kind,
            "severity": str(notice.severity),
            "count": notice.count,
            "group": notice.group,
        }
        log.log(level, "%s", notice.title, extra=extra)

    async def close(self) -> None:
        """Nothing to close."""
