"""Alerting: from events to notices. Pure: `now` comes in, and the notifier asks for notices.

    hear(events)          what happened
    next(channel, now)    the notice to send there now, if there is one; then `delivered` or `failed`
    wake_at(channel)      when to ask again
    changed(), recall()   the rows of the store

A channel that fails affects no other. When it is back it gets the state as it is then.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from lifesigns.core.words import duration
from lifesigns.errors import AdapterError, UsageError
from lifesigns.events.alert_kinds import KINDS
from lifesigns.hub.alerting import rows
from lifesigns.hub.alerting.agent_lookup import AgentLookup
from lifesigns.hub.alerting.alert_grouping import AlertGrouping
from lifesigns.hub.alerting.alert_groups import NEVER, AlertGroup
from lifesigns.hub.alerting.alerts import Ack, Alert, Alerts
from lifesigns.hub.alerting.channel_queue import ChannelQueue
from lifesigns.hub.alerting.reading import AlertClosing, AlertOpening, changes, key_of
from lifesigns.hub.alerting.rules import MINUTE, Rules, Silence, silenced
from lifesigns.ports import Belief, Event, Notice

CHECK_EVERY: Final = 10.0
"""How often silences, windows and what no event says are checked, while any alert is open."""

DOWN_AFTER: Final = 2 * MINUTE
"""How long a channel may fail before the others get an alert about it."""

SILENCES_MAX: Final = 1000

STORM_FROM: Final = 200
STORM_ADVANCE_EVERY: Final = 0.5
"""With `STORM_FROM` alerts open, new ones are handled together, this often."""

_OF_THIS_LIFE: Final = (
    *("hub_store_lost", "hub_bus_lost", "hub_tokens_refused", "hub_connections_full", "hub_rows_unreadable"),
    "hub_truce_long",
    "hub_messages_forged",
    "hub_tokens_forged",
    "token_expiring",
    "audit_broken",
)
"""Alerts of a hub about itself: another hub has to raise them anew."""

log: Final = logging.getLogger("lifesigns.alerting")


class Alerting:
    """The open alerts, and what each channel knows of them."""

    def __init__(self, rules: Rules, lookup: AgentLookup) -> None:
        self.rules = rules
        self.cursor = 0
        """The id of the last event read."""
        self._lookup = lookup
        self.alerts = Alerts(lookup.who, self._mark_alert)
        self.queues = {name: ChannelQueue(name, rate) for name, rate in rules.channels.items()}
        self._grouping = AlertGrouping(
            self.alerts, self.queues, rules.pacing, is_silenced=self._is_silenced, mark_row=self._mark
        )
        self._silences: dict[str, Silence] = {}
        self._marked: dict[tuple[str, str], None] = {}
        self._news = False
        self._cursor_stored = 0
        self._advance_at = self._advanced_at = 0.0
        self._checked_at = -NEVER

    # --- what happened --------------------------------------------------------------------------------

    def hear(self, events: Iterable[Event]) -> bool:
        """Read events that are stored (those without an id never will be). Whether any alert has changed."""
        self._news = False
        for event in events:
            if event.id:
                if event.id <= self.cursor:
                    continue
                self.cursor = event.id
            for change in changes(event):
                try:
                    self._apply(change)
                except Exception:  # a bug of ours about one event must not stop the others
                    log.exception("%s of %s", event.type, event.agent_id, extra={"action": "alerting_raised"})
        if self._news:
            # In a storm more follows in a moment, and a pass after every commit would be most of the cost.
            in_storm = len(self.alerts) >= STORM_FROM
            self._advance_at = min(
                self._advance_at, self._advanced_at + STORM_ADVANCE_EVERY if in_storm else 0.0
            )
        return self._news

    def _apply(self, change: AlertOpening | AlertClosing) -> None:
        if isinstance(change, AlertClosing):
            self.alerts.close(change)
        else:
            self.alerts.open(change)
            alert = self.alerts.get(change.key)
            if alert is not None and change.severity is not None:
                self._raise(alert)

    def _raise(self, alert: Alert) -> None:
        """It has become more urgent than it was when it was first told."""
        for channel, severity in self.rules.channels_for(alert).items():
            key = alert.alert_groups.get(channel, "")
            if (alert_group := self.queues[channel].alert_groups.get(key)) is not None:
                alert_group.raise_to(severity)
                self._mark(rows.NOTICE, rows.notice_key(channel, key))

    def acknowledge(self, key: str, ack: Ack) -> Sequence[Alert]:
        """A person acknowledged an alert, or all in the group with this key: no more reminders, unless it gets worse.
        Returns the acknowledged ones."""
        found = [alert for alert in self._under(key) if alert.is_open]
        for alert in found:
            alert.ack = ack
            self._mark(rows.ALERT, alert.key)
            for alert_group in self._groups_of(alert):
                alert_group.acknowledged = False
        return found

    def _under(self, key: str) -> Sequence[Alert]:
        alert = self.alerts.get(key)
        if alert is not None:
            return [alert]
        keys = {name for queue in self.queues.values() for name in queue.members.get(key, ())}
        return [alert for alert in self.alerts if alert.key in keys]

    def _groups_of(self, alert: Alert) -> Iterator[AlertGroup]:
        """The groups it is in, marked as changed."""
        for channel, key in alert.alert_groups.items():
            if (
                channel in self.queues
                and (alert_group := self.queues[channel].alert_groups.get(key)) is not None
            ):
                self._mark(rows.NOTICE, rows.notice_key(channel, key))
                yield alert_group

    def about(self, event: Event) -> Alert | None:
        """The alert that an event opened or updated, if it still lasts."""
        alert = self.alerts.get(key_of(event))
        return alert if alert is not None and alert.is_open and event.at >= alert.since else None

    # --- silences -------------------------------------------------------------------------------------

    def silence(self, silence: Silence) -> None:
        """Add a person's silence."""
        if len(self._silences) >= SILENCES_MAX and silence.id not in self._silences:
            raise UsageError(f"there are {SILENCES_MAX} silences already; end one of them first")
        self._silences[silence.id] = silence
        self._silences_changed(silence.id)
        log.info("%s", silence.text(), extra={"action": "silence_made", "silence": silence.id})

    def end_silence(self, silence_id: str) -> bool:
        """Whether there was one."""
        ended = self._silences.pop(silence_id, None) is not None
        if ended:
            self._silences_changed(silence_id)
        return ended

    def silences(self) -> list[Silence]:
        """The configured silences and those that people made."""
        return [*self.rules.silences, *self._silences.values()]

    def _silences_changed(self, silence_id: str) -> None:
        self._mark(rows.SILENCE, silence_id)
        self._checked_at, self._advance_at = -NEVER, 0.0

    def is_over(self, alert: Alert) -> bool:
        """Whether its reason is gone, though only the next check closes it."""
        return bool(self._lookup.over(alert))

    # --- time passing ---------------------------------------------------------------------------------

    def advance(self, now: float) -> None:
        """Run what is due."""
        if now < self._advance_at:
            return
        pacing = self.rules.pacing
        if now - self._checked_at >= CHECK_EVERY:
            self._checked_at = now
            self._check(now)
        for alert in self.alerts.drop_gone(now, pacing.hold_for):
            self._grouping.remove(alert, now)
        for queue in self.queues.values():
            self._grouping.form_groups(queue, now)
        self._advance_at, self._advanced_at = self._next_advance(now), now

    def _next_advance(self, now: float) -> float:
        if not len(self.alerts) and not self._silences:
            return NEVER
        hold_for, first = self.rules.pacing.hold_for, self._checked_at + CHECK_EVERY
        for alert in self.alerts.closing:
            first = min(first, alert.gone_at(hold_for))
        return min(first, self._grouping.due_after(now))

    def _check(self, now: float) -> None:
        """Check what no event says: silences that began or ended, forgotten agents, waits that are over."""
        for silence in [s for s in self._silences.values() if s.until_at <= now]:
            self.end_silence(silence.id)
        self.alerts.lapse(now)
        for alert in list(self.alerts):
            if alert.ack is not None and alert.ack.until_at <= now:
                self._end_ack(alert)
            if alert.is_open:
                if ending := self._lookup.over(alert):
                    self.alerts.close(AlertClosing((alert.key,), now, ending))
                self._is_silenced(alert, now)

    def _end_ack(self, alert: Alert) -> None:
        alert.ack = None
        self._mark(rows.ALERT, alert.key)
        for alert_group in self._groups_of(alert):
            alert_group.ack_over = True

    def _is_silenced(self, alert: Alert, now: float) -> bool:
        """Whether an alert is silenced now; records why."""
        why = silenced(alert, (*self.silences(), *self.rules.windows), now)
        if why != alert.silenced_by:
            alert.silenced_by = why
            self._mark_alert(alert.key)
            if why:
                log.info("%s: %s", alert.title, why, extra={"action": "alert_silenced", "alert": alert.key})
        return bool(why)

    # --- telling --------------------------------------------------------------------------------------

    def next(self, channel: str, now: float) -> Notice | None:
        """The notice to send there now. `delivered` or `failed` has to follow."""
        self.advance(now)
        notice = self.queues[channel].next(self.alerts, self.rules.pacing, self.rules.link, now)
        if notice is not None:
            self._mark(rows.OUTLET, channel)
            self._mark(rows.NOTICE, rows.notice_key(channel, notice.key))
        return notice

    def wake_at(self, channel: str) -> float:
        """When to ask this channel's queue again."""
        due_at = self.queues[channel].due_at(self.alerts, self.rules.pacing)
        return min(self._advance_at, due_at)

    def delivered(self, channel: str, now: float) -> None:
        """The channel took the notice."""
        queue = self.queues[channel]
        self._mark_attempt(queue)
        if queue.trouble is not None:
            log.warning(
                "%s takes notices again", channel, extra={"action": "channel_back", "channel": channel}
            )
            self.alerts.close(
                AlertClosing((f"channel_down:{channel}",), now, f"{channel} takes notices again")
            )
            self._advance_at = 0.0
        queue.delivered(now)
        self._mark(rows.OUTLET, channel)

    def failed(self, channel: str, error: AdapterError, now: float) -> None:
        """The channel did not take the notice."""
        queue = self.queues[channel]
        first = queue.trouble is None
        self._mark_attempt(queue)
        queue.failed(error, now)
        self._advance_at = 0.0
        trouble = queue.trouble
        if first or not error.transient:
            extra = {"action": "channel_failed", "channel": channel}
            log.error("%s takes no notices: %s", channel, error, extra=extra)
        if trouble is not None and now - trouble.since >= DOWN_AFTER:
            title = f"channel {channel} has taken no notice for {duration(now - trouble.since)}"
            key, kind = f"channel_down:{channel}", "channel_down"
            if self.alerts.get(key) is None:
                down = AlertOpening(key, kind, now, "", title, str(error), details={"channel": channel})
                self.alerts.open(down)

    # --- what is kept ---------------------------------------------------------------------------------

    def changed(self) -> Sequence[Belief]:
        """The rows changed since the last call, for the next commit."""
        marked, self._marked = self._marked, {}
        changed = [rows.row(kind, key, self._row(kind, key)) for kind, key in marked]
        if self.cursor != self._cursor_stored:
            self._cursor_stored = self.cursor
            changed.append(rows.row(rows.CURSOR, "", self.cursor))
        return changed

    @property
    def has_changes(self) -> bool:
        """Whether there are rows to commit."""
        return bool(self._marked)

    def recall(self, beliefs: Iterable[Belief], now: float) -> bool:
        """Continue from the rows of the store. False if there was none."""
        notices: list[rows.NoticeRow] = []
        known = False
        for belief in beliefs:
            value = rows.read(belief)
            match value:
                case Alert() if value.kind in KINDS:
                    self._recall_alert(value)
                case rows.NoticeRow():
                    notices.append(value)
                case rows.ChannelQueueRow() if belief.key in self.queues:
                    self.queues[belief.key].sent.extend(value.sent)
                    self.queues[belief.key].missed = value.missed
                case Silence():
                    self._silences[value.id] = value
                case int():
                    self.cursor = self._cursor_stored = value
                    known = True
                case _:
                    continue
        for notice in notices:
            self._recall_group(notice)
        self._mend(now)
        return known

    def _recall_alert(self, alert: Alert) -> None:
        self.alerts.put(alert)
        self._grouping.routes[alert.key] = dict(self.rules.channels_for(alert))

    def _recall_group(self, row: rows.NoticeRow) -> None:
        queue = self.queues.get(row.channel)
        if queue is None:
            self._mark(rows.NOTICE, rows.notice_key(row.channel, row.alert_group.key))
            return
        queue.alert_groups[row.alert_group.key] = row.alert_group

    def _mend(self, now: float) -> None:
        """Adapt to changed channels, and close what the hub before said about itself."""
        for alert in list(self.alerts):
            for channel, key in list(alert.alert_groups.items()):
                queue = self.queues.get(channel)
                if queue is None or key not in queue.alert_groups:
                    del alert.alert_groups[channel]
                    self._mark_alert(alert.key)
                else:
                    queue.members.setdefault(key, {})[alert.key] = None
                    self._grouping.routes[alert.key].pop(channel, None)
        self.close_older(NEVER, now)
        down = tuple(f"channel_down:{name}" for name in self.queues)
        self.alerts.close(AlertClosing(down or ("",), now, "the hub was started anew"))
        self._advance_at = 0.0

    def close_older(self, before: float, now: float) -> None:
        """Close what an older hub said about itself before then: no hub is left to close it."""
        old = tuple(a.key for a in self.alerts if a.kind in _OF_THIS_LIFE and a.news_at < before)
        if old:
            self.alerts.close(AlertClosing(old, now, "the hub was started anew"))

    def _row(self, kind: str, key: str) -> object:
        if kind == rows.ALERT:
            return self.alerts.get(key)
        if kind == rows.SILENCE:
            return self._silences.get(key)
        if kind == rows.OUTLET:
            queue = self.queues[key]
            return rows.ChannelQueueRow(list(queue.sent), queue.missed)
        channel, _, group_key = key.partition("\n")
        alert_group = self.queues[channel].alert_groups.get(group_key) if channel in self.queues else None
        return None if alert_group is None else rows.NoticeRow(channel, alert_group)

    def _mark(self, kind: str, key: str) -> None:
        self._marked[(kind, key)] = None

    def _mark_attempt(self, queue: ChannelQueue) -> None:
        if queue.attempt is not None:
            self._mark(rows.NOTICE, rows.notice_key(queue.name, queue.attempt.notice.key))

    def _mark_alert(self, key: str) -> None:
        self._mark(rows.ALERT, key)
        self._news = True
        alert = self.alerts.get(key)
        if alert is not None and not alert.alert_groups and key not in self._grouping.routes:
            self._grouping.routes[key] = dict(self.rules.channels_for(alert))
