"""Aliases: the monitor as seed 000 (SmallTalk's `AgentHealthMonitor`) names it, with its configuration."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from lifesigns.agent.monitor.events import AgentMetrics
from lifesigns.agent.monitor.monitor import Monitor
from lifesigns.agent.monitor.naming import is_emitter
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.errors import UsageError

DURATIONS: Final[Mapping[str, float]] = {
    "activity_timeout": 5.0,
    "heartbeat_interval": 2.0,
    "heartbeat_timeout": 1.0,
}
NUMBERS: Final[Mapping[str, int]] = {"max_missed_beats": 2}
SWITCHES: Final[Mapping[str, bool]] = {"enable_activity_tracking": True, "enable_heartbeats": True}

FREEZE_SHARE: Final = 0.9
"""Of the interval: a loop that has not answered one heartbeat when the next is due is frozen, as at `balanced`."""

VERDICT_SHARE: Final = 0.9
"""Of the activity timeout: the seed promises the event *within* it, so the verdict leaves the rest to a busy machine."""


class AgentHealthMonitor(Monitor):
    """A `Monitor` with the names and the configuration of seed 000; its methods have both spellings.

    Keys in camelCase are milliseconds, as they are there (`activityTimeout: 5000`); in snake_case, like everywhere
    else here, seconds (`activity_timeout=5`).
    """

    def __init__(self, config: Mapping[str, Any] | None = None, *, registry: Any = None, **more: Any) -> None:
        known = _read({**(config or {}), **more})
        super().__init__(policy=_policy(known), registry=registry)
        self._asks = bool(known["enable_heartbeats"])
        self._every = float(known["heartbeat_interval"])
        if not known["enable_activity_tracking"]:
            self.natural_events = ()

    def register_agent(self, agent: Any) -> WatchedAgent:
        """Watch an agent, which answers every `heartbeat-ping` as in the seed. Without heartbeats it is never pinged, and
        only its own activity shows that it lives."""
        emits = is_emitter(agent)
        if self._asks:
            return self.watch(agent, answers=emits or None)
        return self.watch(agent, beats_every=self._every, answers=False if emits else None)

    def unregister_agent(self, agent_name: str) -> None:
        self.unwatch(agent_name)

    def get_health(self, agent_name: str) -> AgentMetrics | None:
        """An agent's state, with `status`; None if it is unknown."""
        return self.metrics(agent_name)

    def get_metrics(self, agent_name: str) -> AgentMetrics | None:
        return self.metrics(agent_name)

    def get_all_health(self) -> dict[str, AgentMetrics]:
        """The state of every agent."""
        states = {name: self.metrics(name) for name in self.all()}
        return {name: state for name, state in states.items() if state is not None}

    registerAgent = register_agent  # noqa: N815 - the names of the seed
    unregisterAgent = unregister_agent  # noqa: N815
    getHealth = get_health  # noqa: N815
    getMetrics = get_metrics  # noqa: N815
    getAllHealth = get_all_health  # noqa: N815


def _read(config: Mapping[str, Any]) -> dict[str, float | bool]:
    known: dict[str, float | bool] = {**DURATIONS, **NUMBERS, **SWITCHES}
    for key, value in config.items():
        name = "".join(f"_{sign.lower()}" if sign.isupper() else sign for sign in key)
        if name not in known:
            raise UsageError(f"{key} is unknown; known are {', '.join(known)}, also in camelCase")
        if value is None:
            continue  # As in the seed, where an undefined value is the default.
        known[name] = _value(key, name, value)
    return known


def _value(key: str, name: str, value: Any) -> float | bool:
    if name in SWITCHES:
        if not isinstance(value, bool):
            raise UsageError(f"{key} is {value!r}, but has to be true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
        raise UsageError(f"{key} is {value!r}, but has to be a number greater than 0")
    return value / 1000 if name in DURATIONS and name != key else value


def _policy(known: Mapping[str, float | bool]) -> dict[str, Any]:
    interval, timeout = known["heartbeat_interval"], known["activity_timeout"]
    if known["enable_heartbeats"]:
        timeout *= VERDICT_SHARE
    # Two pings have to fit between the first missed beat and the timeout.
    ping_wait = min(known["heartbeat_timeout"], max(0.0, (timeout - 1.25 * interval) / 2))
    return {
        "silence": {
            "interval": interval,
            "timeout": timeout,
            "ping_wait": ping_wait,
            "missed_max": known["max_missed_beats"],
        },
        "freeze": {"after": FREEZE_SHARE * interval},
    }
