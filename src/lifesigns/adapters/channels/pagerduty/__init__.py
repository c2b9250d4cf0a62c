"""PagerDuty, by its Events API v2: an alert is triggered, acknowledged and resolved under one `dedup_key`.

News and reminders are triggers again: PagerDuty adds them to the incident that is open, and opens a new one if somebody
has resolved it there although it lasts.
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
    """A notice as PagerDuty's event, within its limits. Our severities are theirs."""
    action = _ACTIONS[notice.stage]
    made: dict[str, Any] = {"event_action": action, "dedup_key": dedup_key(notice.key)}
    if action != "trigger":
        return made
    details = {**notice.details, "text": notice.text, "stage": str(notice.stage), "count": notice.count}
    made["payload"] = {
        "summary": cut(notice.title, SUMMARY_MAX),
        "source": cut(notice.agents[0] if len(notice.agents) == 1 else source, SOURCE_MAX),
        "severity": str(notice.severity),
        "timestamp": written(notice.since),
        "component": cut(", ".join(notice.agents) or "hub", SOURCE_MAX),
        "group": cut(notice.group or "lifesigns", SOURCE_MAX),
        "class": notice.kind,
        "custom_details": {**details, "agents": list(notice.agents)},
    }
    made["client"] = "lifesigns"
    if notice.link:
        made["client_url"] = notice.link
        made["links"] = [{"href": notice.link, "text": "at the hub"}]
    return made


def dedup_key(key: str) -> str:
    """The key as PagerDuty takes it: one that is too long keeps its beginning, and stays one of a kind."""
    if len(key) <= KEY_MAX:
        return key
    digest = hashlib.sha256(key.encode()).hexdigest()[:32]
    return f"{key[: KEY_MAX - 33]}-{digest}"


def cut(text: str, length_max: int) -> str:
    """Not longer than this."""
    return text if len(text) <= length_max else f"{text[: length_max - 1]}…"
