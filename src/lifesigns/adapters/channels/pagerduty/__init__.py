"""PagerDuty, by its Events API v2: one `dedup_key` triggers, acknowledges and resolves an alert.

Updates and reminders are triggers again: PagerDuty adds them to the open incident, and opens a new one if somebody
resolved it there although it lasts.
"""

from __future__ import annotations

import hashlib
from typing import Any, Final

import msgspec

from lifesigns.adapters.posting import Poster
from lifesigns.ports import NotDelivered, Notice, NoticeStage
from lifesigns.wire.codec import written

API: Final = "https://events.pagerduty.com"
SUMMARY_MAX: Final = 1024
KEY_MAX: Final = 255
SOURCE_MAX: Final = 255

_ACTIONS: Final = {
    NoticeStage.OPENED: "trigger",
    NoticeStage.WORSE: "trigger",
    NoticeStage.REMINDER: "trigger",
    NoticeStage.ACKNOWLEDGED: "acknowledge",
    NoticeStage.RESOLVED: "resolve",
}


class PagerDutyChannel:
    """Tells a service of PagerDuty, by its integration's routing key."""

    def __init__(self, routing_key: str, *, api: str = API, source: str = "lifesigns") -> None:
        self._routing_key = routing_key
        self._source = source
        self._poster = Poster(api, NotDelivered, secrets=(routing_key,))

    async def tell(self, notice: Notice) -> None:
        body = {"routing_key": self._routing_key, **event(notice, self._source)}
        await self._poster.post("/v2/enqueue", msgspec.json.encode(body), {})

    async def close(self) -> None:
        await self._poster.close()


def event(notice: Notice, source: str) -> dict[str, Any]:
    """A notice as a PagerDuty event, within its limits. PagerDuty has the same severities."""
    action = _ACTIONS[notice.stage]
    fields: dict[str, Any] = {"event_action": action, "dedup_key": dedup_key(notice.key)}
    if action != "trigger":
        return fields
    details = {**notice.details, "text": notice.text, "stage": str(notice.stage), "count": notice.count}
    fields["payload"] = {
        "summary": cut(notice.title, SUMMARY_MAX),
        "source": cut(notice.agents[0] if len(notice.agents) == 1 else source, SOURCE_MAX),
        "severity": str(notice.severity),
        "timestamp": written(notice.since),
        "component": cut(", ".join(notice.agents) or "hub", SOURCE_MAX),
        "group": cut(notice.group or "lifesigns", SOURCE_MAX),
        "class": notice.kind,
        "custom_details": {**details, "agents": list(notice.agents)},
    }
    fields["client"] = "lifesigns"
    if notice.link:
        fields["client_url"] = notice.link
        fields["links"] = [{"href": notice.link, "text": "at the hub"}]
    return fields


def dedup_key(key: str) -> str:
    """The key within PagerDuty's limit: a longer one keeps its beginning, and stays unique."""
    if len(key) <= KEY_MAX:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    return f"{key[: KEY_MAX - 33]}-{digest}"


def cut(text: str, length_max: int) -> str:
    """Not longer than this."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"
