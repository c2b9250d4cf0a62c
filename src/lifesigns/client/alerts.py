"""Alerts, their acknowledgements, silences, and braked groups."""

from __future__ import annotations

from collections.abc import Sequence

from lifesigns.client.call import Call
from lifesigns.client.request import Request, get, nothing, path, post
from lifesigns.views import AlertList
from lifesigns.views.alerts import AcknowledgedAlerts, SilenceList, SilenceView
from lifesigns.views.groups import GroupList, GroupView


class Alerts:
    """The calls about alerts. Reading is for viewers, the rest for operators."""

    @Call
    def alerts(
        self, *, limit: int | None = None, before: int | None = None, severity: str | None = None
    ) -> Request[AlertList]:
        """What people should know: what is wrong right now, then what happened, the newest first."""
        return get("/api/v1/alerts", AlertList, limit=limit, before=before, severity=severity)

    @Call
    def ack_alert(
        self, alert_id: str, reason: str = "", *, for_: float | None = None
    ) -> Request[AcknowledgedAlerts]:
        """Acknowledge an alert, by its `id` or `key`, or all of a `group`: there are no more reminders, or none for so
        many seconds."""
        return post(path("alerts", alert_id, "ack"), AcknowledgedAlerts, {"reason": reason, "for": for_})

    @Call
    def silences(self) -> Request[SilenceList]:
        """The current and future silences."""
        return get("/api/v1/silences", SilenceList)

    @Call
    def silence(
        self,
        for_: float,
        reason: str,
        *,
        agents: Sequence[str] = (),
        kinds: Sequence[str] = (),
        roles: Sequence[str] = (),
    ) -> Request[SilenceView]:
        """Tell nobody of some alerts for so many seconds: of these agents (ids or patterns), of these kinds, of these
        roles."""
        which = {"agents": list(agents), "kinds": list(kinds), "roles": list(roles)}
        return post("/api/v1/silences", SilenceView, {**which, "for": for_, "reason": reason})

    @Call
    def unsilence(self, silence_id: str) -> Request[None]:
        """End a silence: people are told now of what still lasts."""
        return Request("DELETE", path("silences", silence_id), nothing)

    @Call
    def groups(self, *, limit: int | None = None, cursor: str | None = None) -> Request[GroupList]:
        """Groups of agents that share a fate, braked ones first."""
        return get("/api/v1/groups", GroupList, limit=limit, cursor=cursor)

    @Call
    def release_group(self, group: str) -> Request[GroupView]:
        """Let interventions in a braked group continue for an hour."""
        return post(path("groups", group, "release"), GroupView, None)
