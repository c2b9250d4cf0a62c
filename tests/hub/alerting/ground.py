"""Alerting on a clock that moves when it is told to, with channels that take what they are told, or do not."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from lifesigns.core import effects as e
from lifesigns.core.health import Cause, Health
from lifesigns.errors import AdapterError
from lifesigns.events import event_of
from lifesigns.hub.alerting.alerting import Alerting
from lifesigns.hub.alerting.alerts import Alert, AlertSubject
from lifesigns.hub.alerting.rules import Rate, Rules
from lifesigns.ports import Belief, Event, Notice, NoticeStage

START = 1_800_000_000.0
STEPS_MAX = 100_000


class Fleet:
    """A lookup over agents that are what the test says."""

    def __init__(self) -> None:
        self.agents: dict[str, AlertSubject] = {}
        self.finished: dict[str, str] = {}

    def who(self, agent_id: str) -> AlertSubject | None:
        return self.agents.get(agent_id, AlertSubject())

    def over(self, alert: Alert) -> str:
        return self.finished.get(alert.key, "")


class Ground:
    """One `Alerting` after the other over the same rows."""

    def __init__(self, rules: Rules | None = None, **changes: object) -> None:
        self.rules = rules or Rules({"ops": Rate()}, **changes)  # type: ignore[arg-type]
        self.now = START
        self.fleet = Fleet()
        self.alerting = Alerting(self.rules, self.fleet)
        self.rows: dict[tuple[str, str], bytes] = {}
        self.told: list[tuple[str, float, Notice]] = []
        self.tried: dict[str, list[float]] = {}
        self.broken: Mapping[str, Callable[[Notice], AdapterError | None]] = {}
        self.last_event = 0

    # --- what happens ---------------------------------------------------------------------------------

    def happen(self, *facts: e.Fact) -> None:
        """Facts as the hub tells them: encoded and decoded."""
        events = []
        for fact in facts:
            self.last_event += 1
            events.append(event_of(self.last_event, fact))
        self.alerting.hear(events)

    def said(self, kind: str, data: bytes = b"{}", *, kept: bool = True) -> None:
        """The hub about itself."""
        self.last_event += kept
        self.alerting.hear([Event(self.last_event if kept else 0, self.now, kind, "", data)])

    def flip(
        self, agent_id: str, now: Health, was: Health = Health.HEALTHY, cause: Cause | None = None
    ) -> None:
        self.happen(e.Flip(self.now, agent_id, was, now, f"{agent_id} went {now}.", cause))

    def fall(self, agent_ids: Iterable[str], state: Health = Health.DISCONNECTED) -> None:
        for agent_id in agent_ids:
            self.flip(agent_id, state)

    def heal(self, agent_ids: Iterable[str]) -> None:
        for agent_id in agent_ids:
            self.flip(agent_id, Health.HEALTHY, Health.DISCONNECTED)

    # --- time -----------------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Let time pass; every channel is told what is due when it is due."""
        end = self.now + seconds
        for _ in range(STEPS_MAX):
            self._tell_all()
            wake_at = min(self.alerting.wake_at(name) for name in self.rules.channels)
            assert wake_at > self.now, "it wants to be asked again at once, and has nothing to say"
            if wake_at > end:
                break
            self.now = wake_at
        else:
            raise AssertionError("it wakes without end")
        self.now = end

    def _tell_all(self) -> None:
        for name in self.rules.channels:
            while (notice := self.alerting.next(name, self.now)) is not None:
                self.tried.setdefault(name, []).append(self.now)
                if notice.stage is NoticeStage.OPENED:
                    self.keep()  # As the teller does: what is begun is known to the next hub.
                fault = self.broken[name](notice) if name in self.broken else None
                if fault is not None:
                    self.alerting.failed(name, fault, self.now)
                else:
                    self.told.append((name, self.now, notice))
                    self.alerting.delivered(name, self.now)

    # --- the store ------------------------------------------------------------------------------------

    def keep(self) -> None:
        """A page is kept."""
        for row in self.alerting.changed():
            if row.value is None:
                self.rows.pop((row.kind, row.key), None)
            else:
                self.rows[row.kind, row.key] = row.value

    def restart(self, rules: Rules | None = None) -> None:
        """The hub ends in the middle of everything; another one goes on from the last page."""
        self.rules = rules or self.rules
        self.alerting = Alerting(self.rules, self.fleet)
        self.alerting.recall([Belief(kind, key, value) for (kind, key), value in self.rows.items()], self.now)

    # --- what was told --------------------------------------------------------------------------------

    def notices(self, channel: str = "ops") -> list[Notice]:
        return [notice for name, _, notice in self.told if name == channel]

    def stages(self, channel: str = "ops") -> list[str]:
        return [str(notice.stage) for notice in self.notices(channel)]

    def open_at(self, channel: str = "ops") -> set[str]:
        """What a channel believes to be open."""
        open_: set[str] = set()
        for notice in self.notices(channel):
            if notice.stage is NoticeStage.RESOLVED:
                open_.discard(notice.key)
            else:
                open_.add(notice.key)
        return open_
