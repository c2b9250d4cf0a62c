"""The world: virtual time, seeded chance, and everything that exists in it."""

from __future__ import annotations

import asyncio
import gc
import random
from collections.abc import Callable, Coroutine, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from heapq import heappop, heappush
from math import inf
from random import Random
from types import SimpleNamespace
from typing import Any, Final
from unittest.mock import patch

from lifesigns.core.policy import FleetPolicy, LadderPolicy, Policy, SilencePolicy
from lifesigns.core.profiles import PolicyBook
from lifesigns.hub import committer
from lifesigns.hub.service import FIND_FOR
from tools.hub_worlds.agents import Agent
from tools.hub_worlds.bus import BusServers, server_in
from tools.hub_worlds.hub_process import HubProcess, NobodyAnswers
from tools.hub_worlds.laws import EXCUSED_FOR, SLACK, Laws
from tools.hub_worlds.machine import Grave, Machine
from tools.hub_worlds.nemesis import Nemesis
from tools.hub_worlds.network import STORE, Network
from tools.hub_worlds.people import People
from tools.hub_worlds.store import StoreServer

RESTART_AFTER: Final = (1.0, 4.0)
"""Seconds until whoever watches the processes starts one again that ended."""


@dataclass(frozen=True, slots=True)
class Setting:
    """What a world is like; the rest comes from its seed."""

    hubs: int | None = None
    zones: int | None = None
    agents: int = 8
    strikes: tuple[str, ...] = ()
    """Only these; all of them if empty."""
    strike_every: float = 18.0
    storm_for: float = 240.0
    quiet_for: float = 110.0
    deaths: int = 3
    skew: float = 3600.0
    adaptive: bool | None = None


class World:
    """Several hubs, their store and bus, agents and people."""

    def __init__(self, seed: int, setting: Setting | None = None) -> None:
        self.seed = seed
        self.setting = setting or Setting()
        self.chance = Random(f"hub world {seed}")
        self.now = 0.0
        self.over = False
        self.notes: list[str] = []
        self._heap: list[tuple[float, int, Callable[[Any], object], Any]] = []
        self._events = 0
        self.nobody_answers = NobodyAnswers()
        self._make_policies()
        self.quiet_from = self.setting.storm_for
        self.calm_from = 0.0
        """Since when, or from when on, nothing is wrong with hubs, store, bus and links."""
        self.troubled_at: dict[str, float] = {}
        """By hub, or `store`: until when something was, or will be, wrong with it."""
        self._unheard_at: dict[str, float] = {}
        """By agent: when it was last heard nowhere."""
        self.known: set[str] = set()
        """Agents that are on record."""
        self.network = Network(self.chance)
        self.store = StoreServer(self)
        self.bus = BusServers(self)
        self.laws = Laws(self)
        self.machines: dict[str, Machine] = {}
        self.processes: dict[str, HubProcess] = {}
        self._graves: list[Grave] = []
        self._make_machines()
        self.agents: dict[str, Agent] = {}
        for number in range(self.setting.agents):
            zone = self.zones[number % len(self.zones)]
            agent = Agent(self, f"agent-{number}", zone, over_bus=number % 2 == 0)
            self.agents[agent.id] = agent
        self.people = People(self)
        self.network.place("people", self.zones[0])
        self.nemesis = Nemesis(self)

    def _make_policies(self) -> None:
        chance, adaptive = self.chance, self.setting.adaptive
        self.adaptive = chance.random() < 0.3 if adaptive is None else adaptive
        silence = SilencePolicy(interval=5.0, timeout=30.0, missed_max=4, adaptive=self.adaptive)
        ladder = LadderPolicy(hesitate_for=1.0, escalation_timeout=10.0, save_for=2.0)
        self.policies = PolicyBook(Policy(silence=silence, ladder=ladder))
        self.fleet = FleetPolicy(brake_share=1.0, acted_share=1.0)
        self.interval = silence.interval
        asked_for = silence.pings * silence.ping_wait
        self.watch_at_least = asked_for + (0.9 * silence.interval if self.adaptive else silence.suspect_after)
        doubt = 8  # The largest score of a hub that doubts itself.
        self.find_within = SLACK + FIND_FOR + silence.timeout + doubt * asked_for

    def _make_machines(self) -> None:
        chance, setting = self.chance, self.setting
        count = setting.hubs or chance.choice((3, 3, 4, 5))
        zones = chance.choice((1, 1, 2, 3)) if setting.zones is None else setting.zones
        self.zones = [""] if zones == 1 else ["a", "b", "c"][:zones]
        self.network.place(STORE, self.zones[0])
        for zone in self.zones:
            self.network.place(server_in(zone), zone)
        self.hub_names = [f"hub-{number}" for number in range(count)]
        for number, name in enumerate(self.hub_names):
            skew = chance.choice((0.0, chance.uniform(-setting.skew, setting.skew)))
            zone = self.zones[number % len(self.zones)]
            machine = Machine(name, zone, lambda: self.now, skew, chance.uniform(-1e-4, 1e-4))
            self.machines[name] = machine
            self.network.place(name, zone)

    def note(self, text: str) -> None:
        self.notes.append(f"{self.now:8.2f} {text}")

    # --- time -------------------------------------------------------------------------------------------

    def at(self, when: float, do: Callable[[Any], object], what: Any = None) -> None:
        self._events += 1
        heappush(self._heap, (when, self._events, do, what))

    def run(self) -> list[str]:
        """Live through it; returns the broken laws."""
        with _alone(self):
            for number, name in enumerate(self.hub_names):
                self.at(0.3 * number, self.start_hub, name)
            for agent in self.agents.values():
                self.at(3.0 + self.chance.uniform(0.0, self.interval), agent.start)
            self.people.begin()
            self.nemesis.begin()
            self._live_until(self.setting.storm_for + self.setting.quiet_for)
            self.laws.conclude()
            self._end()
        return self.laws.broken

    def _live_until(self, end: float) -> None:
        machines = [*self.machines.values()]
        heap = self._heap
        while True:
            for machine in machines:
                while machine.next_at() <= self.now and machine.loop is not None:
                    machine.loop.step()
            coming = min(heap[0][0] if heap else inf, *(machine.next_at() for machine in machines))
            if coming > end:
                self.now = end
                return
            self.now = max(self.now, coming)
            while heap and heap[0][0] <= self.now:
                _, _, do, what = heappop(heap)
                do(what)

    def _end(self) -> None:
        """Let every process end, so that nothing of this world is left."""
        self.over = True
        for name in self.hub_names:
            self.crash_hub(name)
        for loop, _ in self._graves:
            for number in range(200):
                tasks = asyncio.all_tasks(loop)
                if not tasks:
                    break
                for task in tasks if number % 20 == 0 else ():
                    task.cancel()
                loop.step()
                self.now += 0.1
            assert not asyncio.all_tasks(loop)
            loop.close()
        self.store.forget()

    # --- hubs -------------------------------------------------------------------------------------------

    def start_hub(self, name: str) -> None:
        machine = self.machines[name]
        if machine.runs:
            return
        process = HubProcess(self, machine)
        self.processes[name] = process
        machine.start(process.run)

    def crash_hub(self, name: str) -> None:
        machine = self.machines[name]
        if (process := self.processes.pop(name, None)) is not None:
            process.hang_up()
        if (grave := machine.crash()) is not None:
            self._graves.append(grave)
        self.trouble(name)

    def stop_hub(self, name: str) -> None:
        """SIGTERM."""
        if (process := self.processes.get(name)) is not None:
            self.machines[name].call(process.stopping.set)
            self.trouble(name)

    def ended(self, process: HubProcess) -> None:
        """Its process is over; the loop goes on for this round."""
        self.trouble(process.machine.name)

        def restart(_: object) -> None:
            if self.processes.get(process.machine.name) is process:
                self.crash_hub(process.machine.name)
                self.start_hub(process.machine.name)

        self.at(self.now + self.chance.uniform(*RESTART_AFTER), restart)

    @property
    def leader(self) -> str | None:
        """The hub that judges."""
        return next((name for name, one in self.processes.items() if one.leads), None)

    def trouble(self, *names: str, until: float = 0.0) -> None:
        """Something is wrong with these hubs, or the store, now or until then."""
        until = max(until, self.now)
        for name in names:
            self.troubled_at[name] = max(until, self.troubled_at.get(name, 0.0))
        self.calm_from = max(self.calm_from, until)

    # --- requests ---------------------------------------------------------------------------------------

    def request(
        self,
        source: str,
        target: str,
        ask: Callable[[HubProcess], Coroutine[Any, Any, Any]],
        within: float,
        done: Callable[[Any], object],
    ) -> None:
        """Ask a hub something, over a link; `done` gets the answer, or None if there is none in time."""
        pending = [True]

        def finish(result: Any) -> None:
            if pending[0]:
                pending[0] = False
                done(result)

        def arrive(_: object) -> None:
            machine, process = self.machines[target], self.processes.get(target)
            if not self.network.reaches(source, target):
                return
            if process is None or machine.loop is None:
                self.at(self.now, lambda _: finish(None))  # Nobody listens there.
                return
            machine.call(lambda: asyncio.ensure_future(serve(process)))

        async def serve(process: HubProcess) -> None:
            try:
                result = await ask(process)
            except NobodyAnswers:
                result = None
            if self.network.reaches(target, source):
                self.at(self.now + self.network.delay(), finish, result)

        self.at(self.now + self.network.delay(), arrive)
        self.at(self.now + within, lambda _: finish(None))

    async def ask_hub(
        self, source: str, target: str, ask: Callable[[HubProcess], Coroutine[Any, Any, Any]], within: float
    ) -> Any:
        """As `request`, for a hub that waits."""
        machine = self.machines[source]
        loop = machine.loop
        if target not in self.machines or self.over:
            raise NobodyAnswers
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

        def reply(result: Any) -> None:
            if not answer.done():
                answer.set_result(result)

        def done(result: Any) -> None:
            if machine.loop is loop:
                machine.call(reply, result)

        self.request(source, target, ask, within, done)
        result = await answer
        if result is None:
            raise NobodyAnswers
        return result

    def post(
        self,
        agent: str,
        hub: str,
        raw: bytes,
        *,
        beats: bool,
        within: float,
        answered: Callable[[Sequence[bytes] | None], None],
    ) -> None:
        """An agent posts to a hub."""
        self.request(agent, hub, lambda process: process.take(raw, beats=beats), within, answered)

    # --- the truth --------------------------------------------------------------------------------------

    def look_who_is_heard(self) -> None:
        """Note the agents that no hub could hear now, whatever the hubs do: after every cut and mend of the nemesis."""
        for agent in self.agents.values():
            if not self._is_heard(agent):
                self._unheard_at[agent.id] = self.now

    def excused(self, agent: Agent) -> bool:
        """Whether the agent was heard nowhere a moment ago: then a verdict is no harm."""
        self.look_who_is_heard()
        return self.now - self._unheard_at.get(agent.id, -inf) < EXCUSED_FOR

    def _is_heard(self, agent: Agent) -> bool:
        """By the hub that judges; or in a zone whose hub is asked. What is wrong with the hub that judges itself is no
        excuse: it has to know that."""
        leader = self.laws.leader_name
        if self.network.is_silent(agent.id) or (agent.over_bus and agent.zone in self.bus.away):
            return False
        if leader is None:
            return True
        here = self.network.zone(leader)
        if self._crosses(agent, here):
            return True
        rows = {row.zone for row, _ in self.store.kept.hubs.values()}
        return any(zone != here and self._crosses(agent, zone) for zone in rows)

    def _crosses(self, agent: Agent, zone: str) -> bool:
        """Whether what the agent says comes into this zone."""
        if agent.over_bus:
            servers = server_in(agent.zone), server_in(zone)
            return agent.zone == zone or (zone not in self.bus.away and self.network.reaches(*servers))
        joined = self.network.joins
        return joined(agent.zone, zone) or any(
            joined(agent.zone, by) and joined(by, zone) for by in self.zones
        )


@contextmanager
def _alone(world: World) -> Iterator[None]:
    """The parts of a hub that read a clock or chance by themselves have the world's."""
    state = random.getstate()
    clock = SimpleNamespace(monotonic=lambda: world.now)
    random.seed(f"hub world {world.seed}")
    try:
        with patch.object(committer, "time", clock):
            yield
    finally:
        random.setstate(state)
        gc.unfreeze()  # A hub that takes over freezes what it has read.
