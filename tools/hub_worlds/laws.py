"""The laws of several hubs, checked on the truth: what the store took, what agents obeyed, and what really happened to whom."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from math import inf
from typing import TYPE_CHECKING, Any, Final

from lifesigns.core import effects as e
from lifesigns.hub.lease import GONE_AFTER
from lifesigns.hub.memory import recalled
from lifesigns.hub.service import FIND_FOR
from lifesigns.ports import Commit, Event

if TYPE_CHECKING:
    from tools.hub_worlds.agents import Agent
    from tools.hub_worlds.hub_process import HubProcess
    from tools.hub_worlds.machine import Machine
    from tools.hub_worlds.world import World

LAWS: Final = {
    "harm": "no agent that lives and is heard anywhere is convicted other than as a partition, nor ended",
    "twice": "no order and no nudge of a person is obeyed twice",
    "lost": "a nudge that a hub has taken reaches its agent",
    "epochs": "epochs never fall: not in the store, not among the orders that an agent obeys",
    "one_judge": "a commit counts only under the epoch that the store has",
    "events": "events have no gaps, come once, stay as they were, and nobody hears of one that is not stored",
    "coup": "nobody takes over from a hub that leads, answers and renews its row",
    "unwatched": "nobody is convicted of silence before the hub that judges has listened for long enough itself",
    "found": "the dead are found within takeover, truce and timeout",
    "judge": "when nothing is wrong any more, one hub judges",
    "ended": "a hub that has stood by or led does not end by itself",
}

MOMENT: Final = 0.01
EXCUSED_FOR: Final = 60.0
"""An agent that nobody could hear, however short, may be convicted so much later: a verdict takes half a minute."""
WELL_FOR: Final = GONE_AFTER + 6.0
"""A hub that was frozen, or away from its store, within this time may be replaced."""
SLACK: Final = 12.0
"""To look, take over and restore, and to be late by a retry or two."""


class Laws:
    """Watches a world."""

    def __init__(self, world: World) -> None:
        self._world = world
        self.broken: list[str] = []
        self._epoch = 0
        self._took_over_at = -inf
        self._suspects: frozenset[str] = frozenset()
        """Who was suspect on record at the takeover: then only pings and the verdict are left."""
        self._leader: Machine | None = None
        self._last_event = 0
        self._events: dict[int, Event] = {}
        self._gone: set[str] = set()
        """The agents that are disconnected or terminated on record."""
        self._obeyed_epoch: dict[str, int] = {}
        self.takeovers = 0
        self.found_after: list[float] = []
        """How long after its death each agent was found."""

    @property
    def last_event(self) -> int:
        return self._last_event

    @property
    def leader_name(self) -> str | None:
        """The hub that took over last."""
        return None if self._leader is None else self._leader.name

    def violate(self, law: str, text: str) -> None:
        assert law in LAWS
        if len(self.broken) < 50:
            self.broken.append(f"[{law}] {self._world.now:8.2f} s: {text}")

    # --- the store ------------------------------------------------------------------------------------

    def taken_over(self, by: Machine, before: int, epoch: int, *, from_a_leader: bool) -> None:
        """The store has a new epoch; a hub that handed over has released its row before."""
        world, old = self._world, self._leader
        world.note(f"{by.name} takes over: epoch {epoch - before} later")
        if epoch <= self._epoch:
            self.violate("epochs", f"{by.name} took over with epoch {epoch} after {self._epoch}")
        if from_a_leader and old is not None and old is not by and self._is_well(old):
            self.violate("coup", f"{by.name} took over from {old.name}, which leads and is well")
        self.takeovers += 1
        self._epoch, self._leader, self._took_over_at = epoch, by, world.now
        known = recalled(world.store.kept.beliefs.values()).agents.values()
        self._suspects = frozenset(agent.id for agent in known if agent.suspicion is not None)

    def _is_well(self, machine: Machine) -> bool:
        world = self._world
        return (
            machine.awake
            and world.now - machine.thawed_at > WELL_FOR
            and world.now - world.troubled_at.get(machine.name, -inf) > WELL_FOR
            and world.now - world.troubled_at.get("store", -inf) > WELL_FOR
        )

    def stored(self, machine: Machine, epoch: int, commit: Commit) -> None:
        """The store took a commit."""
        if epoch != self._epoch:
            self.violate("one_judge", f"{machine.name} stored a commit of epoch {epoch} under {self._epoch}")
        for event in commit.events:
            if event.id in self._events:
                self.violate("events", f"event {event.id} is stored twice")
            elif event.id != self._last_event + 1:
                self.violate("events", f"event {event.id} follows {self._last_event}")
            self._last_event = event.id
            self._events[event.id] = event
            if event.agent_id:
                self._world.known.add(event.agent_id)
            if event.type == "HEALTH_STATE_CHANGED":
                self._flipped(event.agent_id, json.loads(event.data), machine)

    def published(self, process: HubProcess, events: Sequence[Event]) -> None:
        """A hub tells its listeners."""
        for event in events:
            if event.id and self._events.get(event.id) != event:
                self.violate(
                    "events", f"{process.machine.name} tells of event {event.id}, which is not stored so"
                )

    # --- verdicts -------------------------------------------------------------------------------------

    def _flipped(self, agent_id: str, flip: dict[str, Any], machine: Machine) -> None:
        world = self._world
        agent = world.agents.get(agent_id)
        if agent is None:
            return
        if flip["to"] not in ("disconnected", "terminated"):
            self._gone.discard(agent_id)
            return
        world.note(f"{agent_id} is {flip['to']}: {flip['cause']}, {flip['reason']}")
        silent = any(one["kind"] == "silence" for one in flip["evidence"])
        if flip["to"] == "disconnected" and silent:
            watched_for = world.now - self._took_over_at
            least = FIND_FOR if agent_id in self._suspects else world.watch_at_least
            if watched_for < least - MOMENT:
                self.violate("unwatched", f"{agent_id} was convicted {watched_for:.1f} s after the takeover")
        if not agent.alive:
            if agent_id not in self._gone:
                self.found_after.append(world.now - agent.died_at)
        elif flip["cause"] != "partition" and not world.excused(agent):
            self.violate(
                "harm", f"{agent_id} lives, and {machine.name} holds it {flip['to']}: {flip['reason']}"
            )
        self._gone.add(agent_id)

    def due(self, agent: Agent) -> None:
        """The time is over in which a death has to be found; later, if something went wrong meanwhile."""
        world = self._world
        if agent.id in self._gone or agent.id not in world.known:
            return
        due_at = max(agent.died_at, world.calm_from) + world.find_within
        if world.now < due_at:
            world.at(due_at, lambda _: self.due(agent))
        else:
            self.violate("found", f"{agent.id} died at {agent.died_at:.1f} s, and nobody has found it")

    # --- orders ---------------------------------------------------------------------------------------

    def obeyed(self, agent: Agent, order: e.Order) -> None:
        """An agent carries an order out."""
        if order.epoch < self._obeyed_epoch.get(agent.id, 0):
            self.violate("epochs", f"{agent.id} obeys {order.order_id} of a hub that was replaced")
        self._obeyed_epoch[agent.id] = max(order.epoch, self._obeyed_epoch.get(agent.id, 0))

    def stopped(self, agent: Agent, order: e.Order) -> None:
        self.violate("harm", f"{agent.id} lives, and was told to stop by {order.order_id}")

    # --- processes ------------------------------------------------------------------------------------

    def process_ended(self, process: HubProcess, error: Exception) -> None:
        """By itself. At its first start a hub that does not reach its store says so and ends."""
        self._world.note(f"{process.machine.name} ended: {error}")
        if process.stood_by or process.leads:
            self.violate("ended", f"{process.machine.name} ended by itself: {error}")

    # --- the end --------------------------------------------------------------------------------------

    def conclude(self) -> None:
        """Nothing is wrong any more, for a while."""
        world = self._world
        judges = [one.machine.name for one in world.processes.values() if one.leads]
        if len(judges) != 1 or self._leader is None or judges != [self._leader.name]:
            self.violate("judge", f"{judges} judge, and the store has {self._leader and self._leader.name}")
        for agent in world.agents.values():
            texts = Counter(line.order.text for line in agent.ledger if isinstance(line.order, e.SendNudge))
            ids = Counter(line.order.order_id for line in agent.ledger)
            for name, times in (*texts.items(), *ids.items()):
                if times > 1:
                    self.violate("twice", f"{agent.id} obeyed {name!r} {times} times")
            if agent.alive:
                for text in world.people.unheard(agent.id):
                    self.violate("lost", f"{text!r} never reached {agent.id}")
        kept = sorted(world.store.kept.events)
        if kept != list(range(1, len(kept) + 1)):
            self.violate("events", "the record of events has gaps")
