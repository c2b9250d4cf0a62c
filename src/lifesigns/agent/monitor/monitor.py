"""Monitor: watches the agents of this process. Start here.

    monitor = Monitor(profile="balanced")
    watched = monitor.watch(task)                       # or a thread, a process, an object
    monitor.on("agent-disconnected", callback)
    monitor.health("coder-7"); monitor.metrics("coder-7"); monitor.all()

Everything may be called from any thread. The monitor judges and tells; you decide what to do about a sick agent.
"""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, Self

from msgspec.structs import asdict, replace

from lifesigns.agent.identity import new_incarnation
from lifesigns.agent.monitor.attachment import Ending
from lifesigns.agent.monitor.emitters import NATURAL, EmitterAttachment
from lifesigns.agent.monitor.events import NAMES, AgentMetrics, last_heartbeat_at, metrics, wall
from lifesigns.agent.monitor.listeners import Callback, Listeners
from lifesigns.agent.monitor.monitor_thread import SELF, MonitorThread
from lifesigns.agent.monitor.naming import name_of, tie_to
from lifesigns.agent.monitor.watched import WatchedAgent
from lifesigns.agent.registries import remover
from lifesigns.core.engine import Engine
from lifesigns.core.fleet import least_loaded
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy, Policy, SilencePolicy
from lifesigns.core.profiles import OWN_MAX, ROLES, PolicyBook
from lifesigns.core.profiles import profile as profile_named
from lifesigns.errors import UsageError

TICK_SHARE: Final = 0.75
"""Of the shortest interval. We ask a loop that froze right after a tick one tick later and convict it `freeze.after`
later, 3.3 s in all at `balanced`: enough room within its 5 s for a busy machine. Each tick costs two wake-ups, so
more of them would cost more and win little."""

SLEPT_AFTER: Final = 0.5
"""A tick this late means that we slept."""

STOPS_WITHIN: Final = 5.0
"""How long `stop` waits for a running callback before it gives up on it."""

FORGET_AFTER: Final = 600.0
"""How long the engine remembers a silent or ended agent; our own records do not depend on it."""

POLICIES_MAX: Final = OWN_MAX // 2
"""How many different policies agents may have: each may need two policies in the engine's book, which has its own limit."""

CARRIED: Final = {"silence": {"missed_max": 1_000_000, "timeout": 1_000_000.0}}
"""For agents whose beats we make: their silence would be ours, and watching for it costs more than beating for them.
An agent that beats by itself has the silence of its policy."""

if TYPE_CHECKING:
    from lifesigns.agent.sender.relay import Relay

_monitors: Final[weakref.WeakSet[Monitor]] = weakref.WeakSet()


class Monitor:
    """The health of agents in this very process.

    `profile` names a policy, `policy` is one (or changes to the profile); `fleet` holds for all agents together. The
    monitor removes dead agents from a `registry` (a mapping by name, or an object with `remove(name)` or
    `unregister(name)`). It starts with the first `watch` and ends with `stop`, its `with` block or the interpreter.
    """

    natural_events: tuple[str, ...] = NATURAL

    def __init__(
        self,
        profile: str = "balanced",
        *,
        policy: Policy | Mapping[str, Any] | None = None,
        fleet: FleetPolicy | None = None,
        registry: Any = None,
        hub: str | None = None,
    ) -> None:
        self._policy = _in_process(
            policy if isinstance(policy, Policy) else profile_named(profile).with_changes(policy or {})
        )
        tick = TICK_SHARE * self._policy.silence.interval
        limits = replace(
            fleet or FleetPolicy(), canary_every=0.0, tick_every=tick, tick_late_after=tick + SLEPT_AFTER
        )
        self._policies: dict[tuple[str | None, str, float | None], tuple[Policy, Mapping[str, Any]]] = {}
        """Policies in use, by the caller's arguments: a check takes a millisecond."""
        self._listeners = Listeners(self._loop_of)
        book = PolicyBook(self._policy.with_changes(CARRIED))
        self._rounds = MonitorThread(Engine(book, limits), tick, self._listeners.tell)
        self._hub = hub
        self._lock = threading.RLock()
        self._started = self._stopped = self._muted = False
        if registry is not None:
            remove = remover(registry)
            for event in (NAMES[Health.DISCONNECTED], NAMES[Health.TERMINATED]):
                self.on(event, lambda dead: remove(dead.agent))
        _monitors.add(self)

    # --- its own life -----------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin to watch. `watch` does so by itself."""
        with self._lock:
            if self._stopped and not self._muted:
                raise UsageError("this monitor was stopped: make another")
            if not self._started and not self._muted:
                self._started = True
                self._rounds.start(self._way_to_hub())
                atexit.register(self.stop)

    def stop(self) -> None:
        """Stop watching, after telling what was found. The agents themselves get no event."""
        with self._lock:
            stops = self._started and not self._stopped
            self._stopped = True
        if stops and not self._muted:
            atexit.unregister(self.stop)
            self._rounds.stop(STOPS_WITHIN)
            self._listeners.stop(STOPS_WITHIN)

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    # --- who is watched ---------------------------------------------------------------------------------------------

    def watch(
        self,
        what: Any,
        name: str | None = None,
        *,
        role: str | None = None,
        policy: Mapping[str, Any] | None = None,
        beats_every: float | None = None,
        events: Iterable[str] | None = None,
        answers: bool | None = None,
    ) -> WatchedAgent:
        """Watch an agent: an asyncio task, an event loop, a thread, a process or its pid, or any object with a name.

        With `beats_every` it promises to call `beat()` on the returned handle (or `activity()`, or to emit one of its
        `events`) at least that often; only then can a thread or a process be found frozen. An object that is watched
        outside of an event loop has to beat every interval of its policy.

        `answers` is for objects with `.on(event, handler)`: True if it answers every `heartbeat-ping`, so that one
        which never does is disconnected although its loop lives; False if it is never to be pinged. By default it
        has to go on answering once it has answered.
        """
        called = name_of(what, name)
        with self._lock:
            known = self._rounds.records.get(called)
            if known is not None and known.what is what and known.ending is None:
                return known
            if called == SELF:
                raise UsageError(f"{SELF!r} is the monitor's own name: choose another")
            if known is not None and _is_there(known):
                raise UsageError(
                    f"{called!r} is watched already, as {known.what!r}: unwatch it or choose another name"
                )
            attachment = tie_to(what, (*self.natural_events, *(events or ())))
            watched = WatchedAgent(self._rounds, what, called, role, new_incarnation(), attachment)
            watched.named = name is not None
            try:
                _set_answers(watched, answers)
                self._set_policy(watched, role, policy, beats_every)
                self.start()
            except UsageError:
                attachment.detach()
                raise
            if self._muted:
                attachment.detach()
            else:
                self._enter(watched, known)
            return watched

    def watch_all(self, agents: Iterable[Any] | Mapping[str, Any]) -> list[WatchedAgent]:
        """Watch many; of a mapping the values, by the names they have there."""
        if isinstance(agents, Mapping):
            return [self.watch(agent, name) for name, agent in agents.items()]
        return [self.watch(agent) for agent in agents]

    def unwatch(self, name: str) -> bool:
        """Stop watching an agent and forget it, without an event. False if it is unknown."""
        watched = self._rounds.records.pop(name, None)
        if watched is None:
            return False
        watched.ending = None
        self._rounds.ended(watched, Ending(False, "unwatched", forget=True))
        return True

    def _enter(self, watched: WatchedAgent, before: WatchedAgent | None) -> None:
        attachment = watched.attachment
        if before is not None:
            _succeed(before, watched)
            self._rounds.replaced(before)
        if attachment.loop is not None:
            watched.loop_watch = self._rounds.loop_watch(attachment.loop)
        if isinstance(attachment, EmitterAttachment):
            attachment.acts = watched.activity
            attachment.answers = lambda: self._answered(watched)
        self._rounds.records[watched.name] = watched
        self._rounds.begin(watched)
        try:
            attachment.attach(lambda ending: self._rounds.ended(watched, ending))
        except BaseException:
            self.unwatch(watched.name)
            raise

    def _answered(self, watched: WatchedAgent) -> None:
        watched.beat()
        if not watched.by_itself:
            self._rounds.speaks_for_itself(watched)

    def _set_policy(
        self,
        watched: WatchedAgent,
        role: str | None,
        own: Mapping[str, Any] | None,
        beats_every: float | None,
    ) -> None:
        """Its policy, checked here so that the caller sees a mistake."""
        if beats_every is not None:
            if not beats_every > 0:
                raise UsageError(f"beats_every: {beats_every!r} is not a number of seconds greater than 0")
            watched.by_itself = True
        key = (role, repr(own), beats_every)
        known = self._policies.get(key)
        if known is None:
            if len(self._policies) >= POLICIES_MAX:
                raise UsageError(f"more than {POLICIES_MAX} different policies: let agents share some")
            known = self._policies[key] = self._work_out(role, own or {}, beats_every)
        policy, watched.policy_alone = known
        watched.own_policy = own or {}
        watched.freeze_after = policy.freeze.after
        watched.suspect_after = policy.silence.suspect_after
        watched.call_max = policy.stall.call_max
        self._rounds.tick = min(self._rounds.tick, TICK_SHARE * policy.silence.interval)

    def _work_out(
        self, role: str | None, own: Mapping[str, Any], beats_every: float | None
    ) -> tuple[Policy, Mapping[str, Any]]:
        """The policy, and how to tell the engine about it if the agent beats by itself."""
        policy = self._policy.with_changes(ROLES.get(role or "", {})).with_changes(own)
        if beats_every is not None:
            policy = policy.with_changes(_promised(policy, beats_every)).with_changes(own)
        claim = {**own.get("claim", {}), "lease": policy.claim.lease}
        return policy, {**own, "silence": _spelled_out(policy.silence), "claim": claim}

    # --- events -----------------------------------------------------------------------------------------------------

    def on(self, event: str, callback: Callback) -> None:
        """Call `callback(event)` at each change: `agent-healthy`, `agent-degraded`, `agent-stuck`, `agent-failing`,
        `agent-disconnected`, `agent-reconnected`, `agent-left`, or `*` for all.

        It runs in a thread of the monitor, one at a time and in order; a coroutine function on the loop that runs
        where `on` is called, else on the agent's. An error in one is logged and disturbs nothing else.
        """
        self._listeners.on(event, callback)

    def off(self, event: str, callback: Callback) -> None:
        """Undo `on`."""
        self._listeners.off(event, callback)

    def on_dead(self, callback: Callback) -> None:
        """Call `callback(event)` once for each death, that is for each disconnected agent."""
        self.on(NAMES[Health.DISCONNECTED], callback)

    # --- what is known ----------------------------------------------------------------------------------------------

    def health(self, name: str) -> Health | None:
        """An agent's judged health; None if no agent of this name is or was lately watched."""
        watched = self._rounds.records.get(name)
        return None if watched is None else watched.health

    def metrics(self, name: str) -> AgentMetrics | None:
        """An agent's counts; None if it is unknown."""
        watched = self._rounds.records.get(name)
        return None if watched is None else metrics(watched, self._rounds.engine.agent(name), monotonic())

    def all(self) -> dict[str, Health]:
        """The health of every agent."""
        return {name: watched.health for name, watched in self._rounds.records.copy().items()}

    def is_alive(self, name: str) -> bool:
        """Whether the agent is watched, and neither disconnected nor gone."""
        return self.health(name) in _LIVING

    def last_heartbeat(self, name: str) -> float | None:
        """When the agent last answered, beat or was seen alive, in seconds since 1970; None if it is unknown."""
        watched = self._rounds.records.get(name)
        return None if watched is None else wall(last_heartbeat_at(watched))

    def least_loaded(self, count: int = 1) -> list[str]:
        """The names of the agents best placed for more work: well, and with the least reported `load`."""
        known = (self._rounds.engine.agent(name) for name in self._rounds.records.copy())
        return [agent.id for agent in least_loaded((agent for agent in known if agent is not None), count)]

    def _way_to_hub(self) -> Callable[[], Relay | None]:
        """Finds the hub. A named one at once, because a wrong address is the caller's mistake; one on this machine in the
        monitor's thread, so that nobody waits for a hub that may not be there."""
        if self._hub is None and not os.environ.get("LIFESIGNS_HUB"):
            return lambda: self._relay_to(None)
        relay = self._relay_to(self._hub)
        return lambda: relay

    def _relay_to(self, hub: str | None) -> Relay | None:
        """The way to the hub where its agents are seen, too; None if it is alone. `assembly` knows hubs."""
        return None

    def _loop_of(self, name: str) -> asyncio.AbstractEventLoop | None:
        watched = self._rounds.records.get(name)
        return None if watched is None else watched.attachment.loop

    def _mute(self) -> None:
        """In a forked child: agents and watching belong to the parent."""
        self._muted = True
        self._lock = threading.RLock()
        atexit.unregister(self.stop)
        self._rounds.mute()
        self._listeners.mute()


_LIVING: Final = frozenset({Health.HEALTHY, Health.DEGRADED, Health.STUCK, Health.FAILING})


def _set_answers(watched: WatchedAgent, answers: bool | None) -> None:
    if answers is None:
        return
    if not isinstance(watched.attachment, EmitterAttachment):
        raise UsageError(f"answers is for objects with .on(event, handler); {watched.what!r} has none")
    watched.attachment.pings = answers
    watched.by_itself = watched.by_itself or answers


def _is_there(watched: WatchedAgent) -> bool:
    return watched.ending is None and watched.health is not Health.DISCONNECTED


def _succeed(before: WatchedAgent, after: WatchedAgent) -> None:
    """A new life under a known name: its counts continue, and a lost agent is back."""
    after.disconnections = before.disconnections
    after.heartbeats_before = before.heartbeats_before
    after.lost_at = before.lost_at


def _in_process(policy: Policy) -> Policy:
    """A policy for agents in this process: the monitor acts on no agent, and the rhythm is ours, so there is nothing
    to adapt to."""
    return policy.with_changes(
        {
            "silence": {"adaptive": False, "forget_after": min(FORGET_AFTER, policy.silence.forget_after)},
            "ladder": {"enabled": False},
            "respawn": {"enabled": False},
        }
    )


def _promised(policy: Policy, beats_every: float) -> dict[str, Any]:
    """The waits for an agent that beats less often than usual, in proportion."""
    silence = policy.silence
    longer = max(1.0, beats_every / silence.interval)
    patience = {"interval": longer * silence.interval, "timeout": longer * silence.timeout}
    return {"silence": patience, "claim": {"lease": max(policy.claim.lease, 2 * longer * silence.interval)}}


def _spelled_out(silence: SilencePolicy) -> dict[str, Any]:
    """All values, for an agent whose policy differs from the book's."""
    return asdict(silence)


def _mute_all() -> None:
    for monitor in list(_monitors):
        monitor._mute()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_mute_all)
