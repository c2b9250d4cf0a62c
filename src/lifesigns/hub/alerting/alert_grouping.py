"""Alert grouping: which alerts go to which channel in one notice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lifesigns.hub.alerting import rows
from lifesigns.hub.alerting.alert_groups import NEVER, AlertGroup
from lifesigns.hub.alerting.alerts import Alert, Alerts
from lifesigns.hub.alerting.channel_queue import ChannelQueue
from lifesigns.hub.alerting.grouping import group_key, parted
from lifesigns.hub.alerting.rules import MINUTE, Pacing
from lifesigns.ports import NoticeSeverity


class AlertGrouping:
    """Puts alerts into the groups of the channels. `mark_row` gets the kind and key of each row that changes."""

    def __init__(
        self,
        alerts: Alerts,
        queues: Mapping[str, ChannelQueue],
        pacing: Pacing,
        *,
        is_silenced: Callable[[Alert, float], bool],
        mark_row: Callable[[str, str], None],
    ) -> None:
        self.routes: dict[str, dict[str, NoticeSeverity]] = {}
        """By alert the channels that have not got it yet, and the severity for each."""
        self._alerts = alerts
        self._queues = queues
        self._pacing = pacing
        self._is_silenced = is_silenced
        self._mark_row = mark_row

    def due_after(self, now: float) -> float:
        """When the next waiting alert has lasted long enough for a notice."""
        first = NEVER
        for key in self.routes:
            alert = self._alerts.get(key)
            if alert is not None and alert.is_open and (due_at := alert.due_at(self._pacing.hold_for)) > now:
                first = min(first, due_at)
        return first

    def remove(self, alert: Alert, now: float) -> None:
        """Remove an alert that is over for good."""
        self.routes.pop(alert.key, None)
        for channel, key in alert.alert_groups.items():
            queue = self._queues.get(channel)
            alert_group = queue.alert_groups.get(key) if queue is not None else None
            if queue is None or alert_group is None:
                continue
            members = queue.members.get(key, {})
            members.pop(alert.key, None)
            alert_group.leave(alert, now, last=not members)
            self._mark_row(rows.NOTICE, rows.notice_key(channel, key))

    def form_groups(self, queue: ChannelQueue, now: float) -> None:
        """Put waiting alerts into groups, and drop the groups that ended before the channel got them."""
        self._drop_undelivered(queue)
        waiting: dict[str, list[Alert]] = {}
        for alert in self._waiting_for(queue.name, now):
            waiting.setdefault(alert.kind, []).append(alert)
        for kind, alerts in waiting.items():
            due = [alert for alert in alerts if alert.due_at(self._pacing.hold_for) <= now]
            if due:
                left = [alert for alert in due if not self._joins(queue, alert)]
                if left:
                    self._part(
                        queue, kind, [a for a in alerts if queue.name not in a.alert_groups], left, now
                    )

    def _waiting_for(self, channel: str, now: float) -> Iterator[Alert]:
        for key in list(self.routes):
            alert = self._alerts.get(key)
            if alert is None or not self.routes[key]:
                del self.routes[key]
            elif channel in self.routes[key] and alert.is_open and not self._is_silenced(alert, now):
                yield alert

    def _joins(self, queue: ChannelQueue, alert: Alert) -> bool:
        """Add it to a group that the channel has already, if there is one."""
        for key in (alert.key, *(group_key(alert.kind, group) for group in alert.groups)):
            alert_group = queue.alert_groups.get(key)
            if alert_group is not None:
                self._join(queue, alert_group, alert)
                return True
        return False

    def _part(
        self, queue: ChannelQueue, kind: str, together: list[Alert], due: list[Alert], now: float
    ) -> None:
        """Form groups. All waiting alerts count for a storm, also those that have not lasted long enough for a notice
        of their own."""
        alone = [b for b in queue.alert_groups.values() if b.kind == kind and not b.group]
        told = sum(
            1
            for alert_group in alone
            if alert_group.told_at is not None and now - alert_group.made_at < MINUTE
        )
        untold = [alert_group for alert_group in alone if not alert_group.may_be_known]
        group_from = self._pacing.group_from
        many = len(together) + len(untold)
        if many + told < group_from or (many == 1 and told < group_from):
            for alert in due:
                self._join(queue, self._group_for(queue, alert.key, alert, "", now), alert)
            return
        dissolved = [alert for alert_group in untold for alert in self._dissolve(queue, alert_group)]
        ready = {alert.key for alert in (*dissolved, *due)}
        together = [*dissolved, *together]
        for group, alerts in parted(together, min(group_from, len(together))).items():
            for alert in alerts:
                if group or alert.key in ready:
                    key = group_key(kind, group) if group else alert.key
                    self._join(queue, self._group_for(queue, key, alert, group, now), alert)

    def _dissolve(self, queue: ChannelQueue, alert_group: AlertGroup) -> list[Alert]:
        """Take apart the group of a single alert, to put it with the others."""
        alerts = queue.alerts_of(alert_group, self._alerts)
        queue.drop(alert_group.key)
        self._mark_row(rows.NOTICE, rows.notice_key(queue.name, alert_group.key))
        for alert in alerts:
            del alert.alert_groups[queue.name]
            self.routes.setdefault(alert.key, {})[queue.name] = alert_group.severity
        return alerts

    def _group_for(self, queue: ChannelQueue, key: str, first: Alert, group: str, now: float) -> AlertGroup:
        alert_group = queue.alert_groups.get(key)
        if alert_group is None:
            severity = self.routes[first.key][queue.name]
            alert_group = AlertGroup(key, first.kind, group, severity, first.title, first.since, now)
            queue.alert_groups[key] = alert_group
        return alert_group

    def _join(self, queue: ChannelQueue, alert_group: AlertGroup, alert: Alert) -> None:
        alert_group.join(alert, self.routes[alert.key].pop(queue.name))
        alert.alert_groups[queue.name] = alert_group.key
        queue.members.setdefault(alert_group.key, {})[alert.key] = None
        self._mark_row(rows.NOTICE, rows.notice_key(queue.name, alert_group.key))
        self._mark_row(rows.ALERT, alert.key)

    def _drop_undelivered(self, queue: ChannelQueue) -> None:
        for key, alert_group in list(queue.alert_groups.items()):
            if not alert_group.may_be_known and not queue.members.get(key):
                queue.drop(key)
                queue.missed += alert_group.ever
                self._mark_row(rows.NOTICE, rows.notice_key(queue.name, key))
                self._mark_row(rows.OUTLET, queue.name)
