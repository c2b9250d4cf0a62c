"""Bundling: which alert is told to which channel with which others."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from lifesigns.hub.alerting import rows
from lifesigns.hub.alerting.alerts import Alert, Alerts
from lifesigns.hub.alerting.bundles import NEVER, Bundle
from lifesigns.hub.alerting.grouping import group_key, parted
from lifesigns.hub.alerting.outlet import Outlet
from lifesigns.hub.alerting.rules import MINUTE, Pacing
from lifesigns.ports import NoticeSeverity


class Bundling:
    """Puts alerts into the bundles of outlets. `touch` is told the kind and key of each row that changes."""

    def __init__(
        self,
        alerts: Alerts,
        outlets: Mapping[str, Outlet],
        pacing: Pacing,
        *,
        is_silenced: Callable[[Alert, float], bool],
        touch: Callable[[str, str], None],
    ) -> None:
        self.routes: dict[str, dict[str, NoticeSeverity]] = {}
        """By alert the channels that are to be told of it and have not been, and how loudly."""
        self._alerts = alerts
        self._outlets = outlets
        self._pacing = pacing
        self._is_silenced = is_silenced
        self._touch = touch

    def due_after(self, now: float) -> float:
        """When the next alert that waits has lasted long enough to be told."""
        first = NEVER
        for key in self.routes:
            alert = self._alerts.get(key)
            if alert is not None and alert.is_open and (due_at := alert.due_at(self._pacing.hold_for)) > now:
                first = min(first, due_at)
        return first

    def gone(self, alert: Alert, now: float) -> None:
        """An alert is over for good."""
        self.routes.pop(alert.key, None)
        for channel, key in alert.bundles.items():
            outlet = self._outlets.get(channel)
            bundle = outlet.bundles.get(key) if outlet is not None else None
            if outlet is None or bundle is None:
                continue
            members = outlet.members.get(key, {})
            members.pop(alert.key, None)
            bundle.leave(alert, now, last=not members)
            self._touch(rows.NOTICE, rows.notice_key(channel, key))

    def bundle(self, outlet: Outlet, now: float) -> None:
        """Put what is to be told into bundles, and let go of those that came and went unheard."""
        self._drop_unheard(outlet)
        waiting: dict[str, list[Alert]] = {}
        for alert in self._waiting_for(outlet.name, now):
            waiting.setdefault(alert.kind, []).append(alert)
        for kind, alerts in waiting.items():
            due = [alert for alert in alerts if alert.due_at(self._pacing.hold_for) <= now]
            if due:
                left = [alert for alert in due if not self._joins(outlet, alert)]
                if left:
                    self._part(outlet, kind, [a for a in alerts if outlet.name not in a.bundles], left, now)

    def _waiting_for(self, channel: str, now: float) -> Iterator[Alert]:
        for key in list(self.routes):
            alert = self._alerts.get(key)
            if alert is None or not self.routes[key]:
                del self.routes[key]
            elif channel in self.routes[key] and alert.is_open and not self._is_silenced(alert, now):
                yield alert

    def _joins(self, outlet: Outlet, alert: Alert) -> bool:
        """Whether its group, or it itself, is being told of already: then it is one more of them."""
        for key in (alert.key, *(group_key(alert.kind, group) for group in alert.groups)):
            bundle = outlet.bundles.get(key)
            if bundle is not None:
                self._join(outlet, bundle, alert)
                return True
        return False

    def _part(self, outlet: Outlet, kind: str, together: list[Alert], due: list[Alert], now: float) -> None:
        """A storm is seen by all that are waiting, also those that have not lasted long enough to be told alone."""
        alone = [b for b in outlet.bundles.values() if b.kind == kind and not b.group]
        told = sum(1 for bundle in alone if bundle.told_at is not None and now - bundle.made_at < MINUTE)
        untold = [bundle for bundle in alone if not bundle.may_be_known]
        group_from = self._pacing.group_from
        many = len(together) + len(untold)
        if many + told < group_from or (many == 1 and told < group_from):
            for alert in due:
                self._join(outlet, self._bundle_for(outlet, alert.key, alert, "", now), alert)
            return
        dissolved = [alert for bundle in untold for alert in self._dissolve(outlet, bundle)]
        ready = {alert.key for alert in (*dissolved, *due)}
        together = [*dissolved, *together]
        for group, alerts in parted(together, min(group_from, len(together))).items():
            for alert in alerts:
                if group or alert.key in ready:
                    key = group_key(kind, group) if group else alert.key
                    self._join(outlet, self._bundle_for(outlet, key, alert, group, now), alert)

    def _dissolve(self, outlet: Outlet, bundle: Bundle) -> list[Alert]:
        """What waits to be told alone is told with the others instead."""
        alerts = outlet.alerts_of(bundle, self._alerts)
        outlet.drop(bundle.key)
        self._touch(rows.NOTICE, rows.notice_key(outlet.name, bundle.key))
        for alert in alerts:
            del alert.bundles[outlet.name]
            self.routes.setdefault(alert.key, {})[outlet.name] = bundle.severity
        return alerts

    def _bundle_for(self, outlet: Outlet, key: str, first: Alert, group: str, now: float) -> Bundle:
        bundle = outlet.bundles.get(key)
        if bundle is None:
            severity = self.routes[first.key][outlet.name]
            bundle = Bundle(key, first.kind, group, severity, first.title, first.since, now)
            outlet.bundles[key] = bundle
        return bundle

    def _join(self, outlet: Outlet, bundle: Bundle, alert: Alert) -> None:
        bundle.join(alert, self.routes[alert.key].pop(outlet.name))
        alert.bundles[outlet.name] = bundle.key
        outlet.members.setdefault(bundle.key, {})[alert.key] = None
        self._touch(rows.NOTICE, rows.notice_key(outlet.name, bundle.key))
        self._touch(rows.ALERT, alert.key)

    def _drop_unheard(self, outlet: Outlet) -> None:
        for key, bundle in list(outlet.bundles.items()):
            if not bundle.may_be_known and not outlet.members.get(key):
                outlet.drop(key)
                outlet.missed += bundle.ever
                self._touch(rows.NOTICE, rows.notice_key(outlet.name, key))
                self._touch(rows.OUTLET, outlet.name)
