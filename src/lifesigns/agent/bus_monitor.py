"""Bus monitor: who lives on a message bus, without a hub. It hears the beats on `heartbeat.>` and calls you back.

    with BusMonitor("nats://127.0.0.1:4222", on_dead=reassign) as monitor:
        monitor.agents(); monitor.is_alive("coder-7"); monitor.least_loaded(3)

It only detects: an agent is dead after `timeout` without a beat, told once for each death, and alive again with its next
beat. Whose last beat has the status `stopping` has left, and its silence is no death. Beats are heard in a thread of its
own, callbacks run in another one, in order; every method may be called from any thread.

No agent is dead because the bus is: our own canary goes out and comes back the same way, and while it does not, the
engine convicts nobody. The monitor believes what the bus carries and verifies no signature: a hub does.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
import threading
from collections.abc import Iterable, Mapping
from contextlib import suppress
from enum import StrEnum
from time import monotonic, time
from types import MappingProxyType
from typing import Any, Final, Self

from msgspec import Struct, field
from msgspec.structs import replace

from lifesigns import wire
from lifesigns.agent.ordered_calls import OrderedCalls
from lifesigns.agent.registries import remover
from lifesigns.agent.sender.callbacks import Callback
from lifesigns.core.effects import Effect, Flip, Refusal, SendCanary
from lifesigns.core.engine import Engine
from lifesigns.core.fleet import least_loaded
from lifesigns.core.health import Health
from lifesigns.core.policy import FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.signals import CanaryReturned
from lifesigns.errors import AdapterError, PolicyError, UsageError, WireError
from lifesigns.ports import Bus
from lifesigns.wire import WireBeat, signed, subjects

log: Final = logging.getLogger("lifesigns.monitor")

SOURCE: Final = "bus"
TIMEOUT_SHARE: Final = 3.0
"""Of the interval, if no timeout is said: two beats may be lost."""
PING_SHARE: Final = 0.1
"""Nobody is pinged: others than our senders would not answer. The engine's waits for answers only have to fit into the
timeout."""
CANARY_SHARE: Final = 0.9
"""Of the timeout: if the bus dies, we know it before we would convict the first agent."""
RETRY_AFTER: Final = 2.0
STOPS_WITHIN: Final = 5.0
COMPLAIN_EVERY: Final = 60.0
FORGET_AFTER: Final = 3600.0


class Presence(StrEnum):
    """Whether an agent is there."""

    ALIVE = "alive"
    DEAD = "dead"
    LEFT = "left"


class BusAgent(Struct, frozen=True):
    """One agent as its last beat shows it."""

    agent_id: str
    presence: Presence
    last_seen: float
    """When we heard its last beat, in seconds since 1970, by our clock."""
    status: str | None = None
    load: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    incarnation: str | None = None
    reason: str = ""
    """Why it is dead."""
    downtime: float | None = None
    """Of an agent that is back: how long nothing was heard of it. None at its first beat."""


class BusMonitor:
    """Watches a bus. `lifesigns.assembly.bus_monitors` adds addresses, and the docs for users."""

    def __init__(
        self,
        bus: Bus,
        *,
        on_dead: Callback[BusAgent] | None = None,
        on_alive: Callback[BusAgent] | None = None,
        on_left: Callback[BusAgent] | None = None,
        registry: Any = None,
        interval: float = 5.0,
        timeout: float | None = None,
    ) -> None:
        self._bus = bus
        self._engine = _engine(interval, TIMEOUT_SHARE * interval if timeout is None else timeout)
        self._callbacks: Mapping[Presence, Callback[BusAgent] | None] = {
            Presence.DEAD: on_dead,
            Presence.ALIVE: on_alive,
            Presence.LEFT: on_left,
        }
        self._remove = None if registry is None else remover(registry)
        self._agents: dict[str, BusAgent] = {}
        self._heard_at: dict[str, float] = {}
        self._calls = OrderedCalls("lifesigns-bus-callbacks")
        self._canary_subject = f"lifesigns.canary.monitor-{secrets.token_hex(8)}"
        self._complained_at = -COMPLAIN_EVERY
        self._started = self._stopped = False
        self._ready = threading.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wake: asyncio.Event | None = None
        self._thread = threading.Thread(target=self._run, name="lifesigns-bus-monitor", daemon=True)

    # --- its own life -----------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Begin to listen. A bus that is away is looked for, for as long as it takes."""
        if self._started:
            raise UsageError("this monitor was started before: it lives once, make another")
        self._started = True
        self._calls.start()
        self._thread.start()
        self._ready.wait(STOPS_WITHIN)
        return self

    def stop(self) -> None:
        """Stop listening, after telling what was found."""
        if not self._started or self._stopped:
            return
        self._stopped = True
        if self._loop is not None and self._wake is not None:
            with suppress(RuntimeError):  # It has ended by itself.
                self._loop.call_soon_threadsafe(self._wake.set)
        self._thread.join(STOPS_WITHIN)
        self._calls.stop(STOPS_WITHIN)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        await asyncio.to_thread(self.stop)

    # --- what is known ----------------------------------------------------------------------------------------------

    def agents(self) -> dict[str, BusAgent]:
        """Every agent that is alive, by its id: the registry. Who is dead or has left is not in it."""
        known = self._agents.copy()
        return {name: agent for name, agent in known.items() if agent.presence is Presence.ALIVE}

    def agent(self, agent_id: str) -> BusAgent | None:
        """An agent as last heard, also if it is dead or has left; None if it is unknown."""
        return self._agents.get(agent_id)

    def is_alive(self, agent_id: str) -> bool:
        agent = self._agents.get(agent_id)
        return agent is not None and agent.presence is Presence.ALIVE

    def least_loaded(self, count: int = 1) -> list[str]:
        """The ids of the agents best placed for more work. Whoever does not say its load comes after all that say they
        have room."""
        known = (self._engine.agent(name) for name in self.agents())
        return [agent.id for agent in least_loaded((agent for agent in known if agent is not None), count)]

    # --- the thread -------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except Exception:
            log.exception("a bug of ours in the bus monitor; it has ended")
        finally:
            self._ready.set()

    async def _live(self) -> None:
        self._loop, self._wake = asyncio.get_running_loop(), asyncio.Event()
        try:
            if await self._reach():
                self._ready.set()
                while not self._stopped:
                    self._note(self._engine.advance(monotonic()))
                    await self._rest(self._engine.wake_at() - monotonic())
        finally:
            with suppress(AdapterError, TimeoutError, OSError):
                await asyncio.wait_for(self._bus.close(), STOPS_WITHIN)

    async def _reach(self) -> bool:
        """Listen on the bus. False if we are stopped meanwhile."""
        while not self._stopped:
            try:
                await self._bus.connect()
                await self._bus.subscribe(f"{subjects.BEATS}.>", self._hear)
                await self._bus.subscribe(self._canary_subject, self._canary)
            except AdapterError as error:
                self._ready.set()
                self._complain(f"the bus is not reached: {error}")
                await self._rest(RETRY_AFTER)
            else:
                return True
        return False

    async def _rest(self, wait_for: float) -> None:
        assert self._wake is not None
        with suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), max(0.0, wait_for))

    # --- hearing ----------------------------------------------------------------------------------------------------

    def _hear(self, subject: str, payload: bytes) -> None:
        now, place = monotonic(), subjects.of_beats(subject)
        try:
            message = signed.opened(payload).message if signed.is_signed(payload) else payload
            beats: Iterable[WireBeat] = wire.decode_beats(message, SOURCE, now).accepted
        except WireError as error:
            self._complain(f"a message on {subject} cannot be read: {error}")
            return
        for beat in beats:
            if place.speaker in (None, beat.agent_id):
                self._believe(beat, now)

    def _believe(self, beat: WireBeat, now: float) -> None:
        effects = self._engine.hear(beat, now)
        self._note(effects)
        if any(isinstance(effect, Refusal) for effect in effects):
            return
        before = self._agents.get(beat.agent_id)
        presence = Presence.LEFT if beat.status == subjects.STOPPING else Presence.ALIVE
        heard_before, self._heard_at[beat.agent_id] = self._heard_at.get(beat.agent_id), now
        agent = BusAgent(
            beat.agent_id,
            presence,
            time(),
            beat.status,
            beat.load,
            MappingProxyType(beat.metadata or {}),
            beat.incarnation,
        )
        if before is not None and before.presence is Presence.DEAD and heard_before is not None:
            agent = replace(agent, downtime=now - heard_before)
        self._agents[beat.agent_id] = agent
        if before is None or before.presence is not presence:
            self._tell(agent)

    def _canary(self, subject: str, payload: bytes) -> None:
        with suppress(ValueError):
            self._note(self._engine.hear(CanaryReturned(seq=int(payload)), monotonic()))

    def _note(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, SendCanary):
                asyncio.get_running_loop().create_task(self._send_canary(effect.seq))
            elif isinstance(effect, Flip) and effect.now is Health.DISCONNECTED:
                self._die(effect)

    def _die(self, flip: Flip) -> None:
        agent = self._agents.get(flip.agent_id)
        if agent is not None and agent.presence is Presence.ALIVE:
            self._agents[flip.agent_id] = agent = replace(
                agent, presence=Presence.DEAD, reason=flip.reason, downtime=None
            )
            self._tell(agent)

    async def _send_canary(self, seq: int) -> None:
        self._forget()
        with suppress(AdapterError):  # If the bus is away it will not return, and that is what it is for.
            await self._bus.publish(self._canary_subject, str(seq).encode())

    def _forget(self) -> None:
        """Whom the engine has forgotten: it was silent for an hour."""
        for agent_id in [name for name in self._agents if self._engine.agent(name) is None]:
            del self._agents[agent_id]
            self._heard_at.pop(agent_id, None)

    # --- telling ----------------------------------------------------------------------------------------------------

    def _tell(self, agent: BusAgent) -> None:
        if self._remove is not None and agent.presence is not Presence.ALIVE:
            remove = self._remove
            self._calls.put(lambda dead: remove(dead.agent_id), agent)
        callback = self._callbacks[agent.presence]
        if callback is not None:
            self._calls.put(callback, agent)

    def _complain(self, what: str) -> None:
        now = monotonic()
        if now - self._complained_at >= COMPLAIN_EVERY:
            self._complained_at = now
            log.warning("%s", what)


def _engine(interval: float, timeout: float) -> Engine:
    """An engine that judges silence and acts on nobody."""
    try:
        policy = Policy().with_changes(
            {
                "silence": {
                    "interval": interval,
                    "timeout": timeout,
                    "missed_max": 1_000_000,
                    "ping_wait": PING_SHARE * timeout,
                    "adaptive": False,
                    "forget_after": max(FORGET_AFTER, 10 * timeout),
                },
                "claim": {"lease": max(Policy().claim.lease, 2 * interval)},
                "ladder": {"enabled": False},
                "respawn": {"enabled": False},
            }
        )
    except PolicyError as error:
        raise UsageError(f"interval {interval:g} and timeout {timeout:g}: {error}") from None
    limits = FleetPolicy(canary_every=timeout / 3, canary_late_after=CANARY_SHARE * timeout)
    engine = Engine(PolicyBook(policy), limits)
    engine.canary_comes_by(SOURCE)
    return engine
