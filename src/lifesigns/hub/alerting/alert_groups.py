"""Alert groups: what one channel knows about one alert, or about several together.

A group holds no notice. The difference between what the channel knows and what is true is computed when the channel is
free: so it always gets the newest state, and never an outdated one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from lifesigns.events.alert_kinds import KINDS, LOUDNESS
from lifesigns.hub.alerting import wording
from lifesigns.hub.alerting.alerts import Alert
from lifesigns.hub.alerting.rules import Pacing
from lifesigns.ports import Notice, NoticeSeverity, NoticeStage

NEVER: Final = float("inf")
_TEXTS_MAX: Final = 3
"""Examples in the notice of a group."""


class Level(NamedTuple):
    """How bad it is: more of any part is worse."""

    ever: int = 0
    """How many alerts have been in it."""
    rank: int = 0
    news: int = 0


@dataclass(slots=True)
class AlertGroup:
    """What one channel knows under one key."""

    key: str
    kind: str
    group: str
    """Empty for a single alert."""
    severity: NoticeSeverity
    title: str
    since: float
    made_at: float
    ever: int = 0
    agents: list[str] = field(default_factory=list)
    """The first few."""
    told_at: float | None = None
    uncertain: bool = False
    """No notice was confirmed, but one was sent, and may have arrived."""
    told: Level = field(default_factory=Level)
    opened_at: float | None = None
    """When the first notice was delivered."""
    empty_at: float | None = None
    ending: str = ""
    acknowledged: bool = False
    """Whether the channel knows that a person has acknowledged all alerts in it."""
    ack_over: bool = False
    """An acknowledgement has run out, and the alert lasts: send a reminder at once."""
    not_before: float = 0.0

    def join(self, alert: Alert, severity: NoticeSeverity) -> None:
        """Add an alert."""
        self.ever += alert.count
        self.empty_at = None
        self.since = min(self.since, alert.since)
        self.raise_to(severity)
        if alert.agent_id and alert.agent_id not in self.agents and len(self.agents) < wording.AGENTS_MAX:
            self.agents.append(alert.agent_id)

    def raise_to(self, severity: NoticeSeverity) -> None:
        """It is told at least so loudly."""
        if LOUDNESS[severity] > LOUDNESS[self.severity]:
            self.severity = severity

    def leave(self, alert: Alert, now: float, *, last: bool) -> None:
        """Remove an alert that is over."""
        self.ending = alert.ending
        if last:
            self.empty_at = now

    @property
    def may_be_known(self) -> bool:
        """Whether the channel may have got a notice about it."""
        return self.told_at is not None or self.uncertain

    def level(self, members: Collection[Alert]) -> Level:
        """How bad it is now."""
        rank = max((alert.rank for alert in members if alert.is_open), default=0)
        if self.group:
            return Level(self.ever, rank)
        crowd = max((alert.count for alert in members), default=1)
        return Level(max(self.ever, crowd), rank, max((alert.news for alert in members), default=0))

    def due(self, members: Collection[Alert], pacing: Pacing) -> tuple[NoticeStage, float] | None:
        """The next notice, and when to send it; None if there is nothing to send as things are."""
        lasting = [alert for alert in members if alert.is_open and not alert.silenced_by]
        if not members:
            return (NoticeStage.RESOLVED, self.empty_at or 0.0) if self.may_be_known else None
        if self.told_at is None:
            return (NoticeStage.OPENED, self.made_at) if lasting else None
        if not lasting:
            return None
        taken_on = all(alert.ack is not None for alert in lasting)
        if taken_on and not self.acknowledged:
            return NoticeStage.ACKNOWLEDGED, self.told_at
        level = self.level(lasting)
        if any(now > told for now, told in zip(level, self.told, strict=True)):
            return NoticeStage.WORSE, self.told_at + pacing.update_every
        if taken_on:
            return None
        if self.ack_over:
            return NoticeStage.REMINDER, self.told_at
        return (NoticeStage.REMINDER, self.told_at + pacing.repeat_every) if pacing.repeat_every else None

    def notice(self, stage: NoticeStage, members: Sequence[Alert], now: float, link: str) -> Notice:
        """The notice about the present state."""
        lasting = [alert for alert in members if alert.is_open] or list(members)
        count = sum(alert.count for alert in lasting) or self.ever
        if stage is NoticeStage.RESOLVED:
            title, text, count = self.title, self.ending, self.ever
        elif self.group and count > 1:
            title, text = wording.group_title(count, KINDS[self.kind].many, self.group), _examples(lasting)
        else:
            title, text = lasting[0].title, lasting[0].text
        if stage is NoticeStage.ACKNOWLEDGED:
            text = "\n".join(dict.fromkeys(alert.ack.text() for alert in lasting if alert.ack is not None))
        if stage is not NoticeStage.RESOLVED:
            self.title = title
        agents = tuple(self.agents)
        if self.group and len(agents) > 1:
            text = f"{text}\n{wording.names(agents, max(self.ever, len(agents)))}".strip()
        details = dict(lasting[0].details) if len(lasting) == 1 and not self.group else {}
        return Notice(
            self.key,
            stage,
            self.severity,
            self.kind,
            wording.headline(stage, title, self.since, now),
            text,
            self.since,
            now,
            agents,
            count,
            self.group,
            link,
            details,
        )

    def note_delivered(self, stage: NoticeStage, level: Level, now: float) -> None:
        """The channel took a notice that was made at this level."""
        self.told_at, self.not_before, self.uncertain = now, 0.0, False
        self.told = Level(*(max(pair) for pair in zip(self.told, level, strict=True)))
        if self.opened_at is None:
            self.opened_at = now
        self.acknowledged, self.ack_over = stage is NoticeStage.ACKNOWLEDGED, False

    def begin_anew(self, now: float) -> None:
        """Start again: the channel took the resolution, but the alert has come back."""
        self.told_at = self.opened_at = self.empty_at = None
        self.told, self.made_at = Level(), now
        self.acknowledged = self.ack_over = False


def _examples(alerts: Sequence[Alert]) -> str:
    """The number of each state, and the sentences of a few alerts."""
    states: dict[str, int] = {}
    for alert in alerts:
        state = str(alert.details.get("state", ""))
        if state:
            states[state] = states.get(state, 0) + alert.count
    counted = ", ".join(f"{count} {state}" for state, count in sorted(states.items()))
    some = dict.fromkeys(alert.text.partition("\n")[0] for alert in alerts if alert.text)
    return wording.prose("\n".join(part for part in (counted, *list(some)[:_TEXTS_MAX]) if part))
