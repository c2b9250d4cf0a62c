"""Channel queue: what one channel knows, and when it may get the next notice.

Every attempt counts against the channel's rate, also a failed one. After a failure the queue waits for a time that
doubles, or for as long as the channel asked; it never gives up.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Final, NamedTuple
from urllib.parse import quote

from lifesigns.errors import AdapterError
from lifesigns.events.alert_kinds import LOUDNESS
from lifesigns.hub.alerting.alert_groups import NEVER, AlertGroup, Level
from lifesigns.hub.alerting.alerts import Alert, Alerts
from lifesigns.hub.alerting.rules import MINUTE, Pacing, Rate
from lifesigns.ports import Notice, NoticeSeverity, NoticeStage

RETRY_AFTER: Final = 1.0
RETRY_AFTER_MAX: Final = 5 * MINUTE
"""Doubled from the one to the other: a channel that is back after an hour is tried within five minutes."""

REFUSED_AFTER: Final = 5 * MINUTE
"""A notice refused for good is tried again after this: the others go first, for the fault may be in this one."""

ASKED_AFTER_MAX: Final = 60 * MINUTE
"""The longest `Retry-After` that is obeyed."""


class Attempt(NamedTuple):
    """A notice being sent, and the level it was made at."""

    notice: Notice
    level: Level
    was_uncertain: bool = False


@dataclass(slots=True)
class ChannelFailures:
    """How often in a row a channel failed, since when, and its last error."""

    failures: int
    since: float
    error: str


@dataclass(slots=True)
class ChannelQueue:
    """The state of one channel."""

    name: str
    rate: Rate
    alert_groups: dict[str, AlertGroup] = field(default_factory=dict)
    members: dict[str, dict[str, None]] = field(default_factory=dict)
    """By group the keys of its alerts."""
    sent: deque[float] = field(default_factory=deque)
    """When it got notices in the last minute."""
    missed: int = 0
    """Alerts that ended before the channel got them."""
    not_before: float = 0.0
    trouble: ChannelFailures | None = None
    attempt: Attempt | None = None

    # --- what there is to tell ------------------------------------------------------------------------

    def alerts_of(self, alert_group: AlertGroup, alerts: Alerts) -> list[Alert]:
        found = (alerts.get(key) for key in self.members.get(alert_group.key, ()))
        return [alert for alert in found if alert is not None]

    def next(self, alerts: Alerts, pacing: Pacing, link: str, now: float) -> Notice | None:
        """The notice to send now, the most severe and oldest first; None if there is none, or it is too early."""
        if self.attempt is not None or self.free_at() > now:
            return None
        best: tuple[float, float, AlertGroup, NoticeStage] | None = None
        for alert_group in self.alert_groups.values():
            due = alert_group.due(self.alerts_of(alert_group, alerts), pacing)
            if due is None or due[1] > now or alert_group.not_before > now:
                continue
            order = (-LOUDNESS[alert_group.severity], due[1])
            if best is None or order < best[:2]:
                best = (*order, alert_group, due[0])
        if best is None:
            return self._missed(now)
        _, _, alert_group, stage = best
        members = self.alerts_of(alert_group, alerts)
        where = _page_of(alert_group.agents[0], link) if len(alert_group.agents) == 1 and link else link
        notice = alert_group.notice(stage, members, now, where)
        attempt = Attempt(notice, alert_group.level(members), alert_group.uncertain)
        alert_group.uncertain = alert_group.told_at is None
        return self._try(attempt, now)

    def due_at(self, alerts: Alerts, pacing: Pacing) -> float:
        """When the next notice is due."""
        if self.attempt is not None:
            return NEVER
        first = 0.0 if self.missed else NEVER
        for alert_group in self.alert_groups.values():
            due = alert_group.due(self.alerts_of(alert_group, alerts), pacing)
            if due is not None:
                first = min(first, max(due[1], alert_group.not_before))
        return max(first, self.free_at())

    def free_at(self) -> float:
        """When its rate allows the next notice."""
        free = self.not_before
        if self.sent:
            free = max(free, self.sent[-1] + self.rate.gap)
            if len(self.sent) >= self.rate.per_minute:
                free = max(free, self.sent[-self.rate.per_minute] + MINUTE)
        return free

    def _missed(self, now: float) -> Notice | None:
        if not self.missed:
            return None
        many = "An alert was" if self.missed == 1 else f"{self.missed} alerts were"
        title = f"{many} opened and resolved before anybody could be told here"
        severity, stage = NoticeSeverity.INFO, NoticeStage.RESOLVED
        key, text = f"missed:{self.name}", "They are on record at the hub."
        notice = Notice(key, stage, severity, "missed", title, text, now, now, count=self.missed)
        return self._try(Attempt(notice, Level()), now)

    def _try(self, attempt: Attempt, now: float) -> Notice:
        self.attempt = attempt
        self.sent.append(now)
        while len(self.sent) > self.rate.per_minute:
            self.sent.popleft()
        return attempt.notice

    # --- what became of it ----------------------------------------------------------------------------

    def delivered(self, now: float) -> AlertGroup | None:
        """The channel took the notice. Returns the group that ended with it, if it did."""
        attempt, self.attempt = self.attempt, None
        self._ended(now)
        self.trouble, self.not_before = None, 0.0
        if attempt is None:
            return None
        notice = attempt.notice
        alert_group = self.alert_groups.get(notice.key)
        if alert_group is None:
            self.missed -= min(self.missed, notice.count)
            return None
        if notice.stage is not NoticeStage.RESOLVED:
            alert_group.note_delivered(notice.stage, attempt.level, now)
        elif self.members.get(alert_group.key):
            alert_group.begin_anew(now)  # It came again while its resolution was on the way.
        else:
            self.drop(alert_group.key)
            return alert_group
        return None

    def failed(self, error: AdapterError, now: float) -> None:
        """The channel did not take the notice."""
        attempt, self.attempt = self.attempt, None
        self._ended(now)
        trouble = self.trouble or ChannelFailures(0, now, "")
        self.trouble = ChannelFailures(trouble.failures + 1, trouble.since, str(error))
        wait = min(RETRY_AFTER * 2 ** min(trouble.failures, 20), RETRY_AFTER_MAX)
        asked = getattr(error, "retry_after", None)
        if isinstance(asked, float | int) and asked > 0:
            wait = max(wait, min(float(asked), ASKED_AFTER_MAX))
        self.not_before = now + wait
        alert_group = self.alert_groups.get(attempt.notice.key) if attempt is not None else None
        if attempt is None or alert_group is None:
            return
        if not getattr(error, "uncertain", False):
            alert_group.uncertain = attempt.was_uncertain
        if not error.transient:
            alert_group.not_before = now + REFUSED_AFTER

    def _ended(self, now: float) -> None:
        """An attempt counts from its end: the server got it some time before."""
        if self.sent:
            self.sent[-1] = now

    def drop(self, key: str) -> None:
        """Drop a group."""
        del self.alert_groups[key]
        self.members.pop(key, None)


def _page_of(agent_id: str, dashboard: str) -> str:
    """The address of an agent's page in the dashboard: see `agentHref` in `dashboard/src/route.ts`."""
    return f"{dashboard}/#/agents/{quote(agent_id, safe='')}"
