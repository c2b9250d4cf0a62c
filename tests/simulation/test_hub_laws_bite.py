"""Several hubs keep their laws in virtual time (`tools/hub_worlds`), and for each law there are broken hubs that it catches.

law -> what is broken -> the world in which that shows
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import inf
from typing import Any

import pytest

from lifesigns.adapters.store import memory
from lifesigns.adapters.store.ledger import Ledger
from lifesigns.agent.order_gate import OrderGate
from lifesigns.core import second_opinion
from lifesigns.core.awareness import Awareness
from lifesigns.errors import AdapterError
from lifesigns.hub import hub as hubs
from lifesigns.hub import lease as leases
from lifesigns.hub import service as services
from lifesigns.hub.committer import Committer
from lifesigns.hub.lease import Lease
from lifesigns.ports import Commit, Event, HubRow
from tools.hub_worlds.laws import LAWS
from tools.hub_worlds.world import Setting, World

Break = Callable[[pytest.MonkeyPatch], None]

CALM = Setting(strikes=("none",), agents=4, deaths=1, storm_for=60.0)
SHORT = Setting(strikes=("none",), agents=4, deaths=0, storm_for=10.0, quiet_for=10.0)
SEEDS = range(1, 7)


@dataclass(frozen=True)
class Mutation:
    """Deliberately broken hubs, and worlds in which the law must notice."""

    law: str
    name: str
    breaks: Break
    setting: Setting
    seeds: Sequence[int] = (1, 2, 3, 4, 5, 6)


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


# --- the broken hubs ------------------------------------------------------------------------------------


def there_is_no_fence(patch: pytest.MonkeyPatch) -> None:
    """Whoever commits is heard, whatever its epoch."""

    def any_commit(store: str, kept: Ledger, epoch: int | None, commit: Commit) -> Ledger:
        return Ledger(kept.epoch, kept.commit + 1, kept.event + len(commit.events))

    patch.setattr(memory, "next_ledger", any_commit)


def the_lease_goes_by_the_wall_clock(patch: pytest.MonkeyPatch) -> None:
    """The leader writes the time of its renewal, and others compare it with theirs."""
    renew_row = Lease._renew_row

    def wall(lease: Lease) -> float:
        store: Any = lease._store
        moment: float = store._machine.wall()
        return moment

    async def stamped(self: Lease) -> Sequence[HubRow]:
        self._version = repr(wall(self))
        return await renew_row(self)

    async def may_lead(self: Lease) -> bool:
        await self._renew()
        leader = self.leader
        if leader is None or leader.name == self.name:
            return True
        return wall(self) - float(leader.version) >= leases.GONE_AFTER

    patch.setattr(Lease, "_renew_row", stamped)
    patch.setattr(Lease, "may_lead", may_lead)


def nobody_looks_for_a_while(patch: pytest.MonkeyPatch) -> None:
    """The first look decides."""
    patch.setattr(leases, "GONE_AFTER", 0.0)
    patch.setattr(leases, "LOOKS_MIN", 0)


def nobody_else_is_asked(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(second_opinion, "doubt", lambda suspicion, zones: second_opinion.NO_DOUBT)


def the_time_of_nobodys_watch_counts(patch: pytest.MonkeyPatch) -> None:
    """A hub that takes over goes on as if it had listened all the time."""
    patch.setattr(Awareness, "resume", lambda self, since, now, policy: None)


def orders_of_a_replaced_hub_are_obeyed(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderGate, "is_deposed", lambda self, order: False)


def a_repeated_order_is_obeyed_again(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(OrderGate, "is_known", lambda self, order_id: False)


def a_hub_that_cannot_renew_its_row_trusts_itself(patch: pytest.MonkeyPatch) -> None:
    """As it once was (seed 18): a hub that nothing reached held its agents for dead."""
    patch.setattr(leases, "TRUST_FOR", inf)


def a_hub_that_may_be_replaced_keeps_its_agents(patch: pytest.MonkeyPatch) -> None:
    """As it once was: cut off from its store alone, it answered agents that the next hub held for dead."""
    patch.setattr(hubs.Hub, "is_replaced", property(lambda self: self.committer.deposed))


def who_takes_over_forgets_open_orders(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(hubs, "open_order", lambda stored: None)


def events_are_told_before_they_are_stored(patch: pytest.MonkeyPatch) -> None:
    """Whoever listens hears of what no store has taken."""
    add = Committer.add

    def tell(self: Committer, events: Sequence[Event] = (), orders: Any = ()) -> None:
        add(self, events, orders)
        world = Telling.world
        assert world is not None
        world.laws.published(next(iter(world.processes.values())), events)

    patch.setattr(Committer, "add", tell)


class Telling:
    """The world that is told too early."""

    world: World | None = None


def a_truce_never_ends(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(services, "FIND_FOR", 1e6)


def a_hub_that_was_replaced_judges_on(patch: pytest.MonkeyPatch) -> None:
    async def hold(self: Lease) -> None:
        while True:
            with suppress(AdapterError):
                await self._renew()
            await asyncio.sleep(leases.RENEW_EVERY)

    patch.setattr(Lease, "hold", hold)


def a_hub_that_stands_by_ends_with_its_store(patch: pytest.MonkeyPatch) -> None:
    renew_row = Lease._renew_row

    async def for_good(self: Lease) -> Sequence[HubRow]:
        try:
            return await renew_row(self)
        except AdapterError as error:
            raise AdapterError(str(error), transient=False) from error

    patch.setattr(Lease, "_renew_row", for_good)


MUTATIONS = [
    Mutation(
        "one_judge",
        "there is no fence",
        there_is_no_fence,
        Setting(strikes=("freeze",), strike_every=12.0),
        seeds=(4, 5, 6),
    ),
    Mutation("coup", "the lease goes by the wall clock", the_lease_goes_by_the_wall_clock, CALM),
    Mutation("coup", "nobody looks for a while", nobody_looks_for_a_while, SHORT),
    Mutation(
        "harm", "nobody else is asked", nobody_else_is_asked, Setting(zones=2, strikes=("split",), deaths=0)
    ),
    Mutation(
        "harm",
        "a hub that cannot renew its row trusts itself",
        a_hub_that_cannot_renew_its_row_trusts_itself,
        Setting(zones=1, strikes=("unplug",), strike_every=8.0, deaths=0),
        seeds=(2, 12),
    ),
    Mutation(
        "harm",
        "a hub that may be replaced keeps its agents",
        a_hub_that_may_be_replaced_keeps_its_agents,
        Setting(zones=1, strikes=("cut from store",), strike_every=40.0, deaths=0),
    ),
    Mutation(
        "unwatched",
        "the time of nobody's watch counts",
        the_time_of_nobodys_watch_counts,
        Setting(zones=1, strikes=("crash all",), strike_every=50.0, deaths=5, adaptive=False),
        seeds=(2, 3, 4),
    ),
    Mutation(
        "epochs",
        "orders of a replaced hub are obeyed",
        orders_of_a_replaced_hub_are_obeyed,
        Setting(strikes=("freeze", "cut agents"), strike_every=8.0),
        seeds=(24, 25),
    ),
    Mutation(
        "twice",
        "a repeated order is obeyed again",
        a_repeated_order_is_obeyed_again,
        Setting(strikes=("crash", "cut agents"), strike_every=6.0),
    ),
    Mutation(
        "lost",
        "who takes over forgets open orders",
        who_takes_over_forgets_open_orders,
        Setting(strikes=("crash", "bus away", "store slow"), strike_every=8.0),
    ),
    Mutation(
        "events",
        "events are told before they are stored",
        events_are_told_before_they_are_stored,
        CALM,
    ),
    Mutation("found", "a truce never ends", a_truce_never_ends, CALM),
    Mutation(
        "judge",
        "a hub that was replaced judges on",
        a_hub_that_was_replaced_judges_on,
        Setting(strikes=("freeze",), agents=4),
    ),
    Mutation(
        "ended",
        "a hub that stands by ends with its store",
        a_hub_that_stands_by_ends_with_its_store,
        Setting(strikes=("store away",), agents=4),
    ),
]


def live(seed: int, setting: Setting | None = None) -> list[str]:
    """A world; the laws that were broken in it."""
    world = Telling.world = World(seed, setting)
    return world.run()


@pytest.mark.parametrize("seed", SEEDS)
def test_several_hubs_keep_their_laws(seed: int) -> None:
    """Many more worlds: `python -m tools.hub_worlds`."""
    assert live(seed) == []


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.law}: {mutation.name}")
def test_the_law_catches_broken_hubs(mutation: Mutation, monkeypatch: pytest.MonkeyPatch) -> None:
    mutation.breaks(monkeypatch)
    for seed in mutation.seeds:
        if any(line.startswith(f"[{mutation.law}]") for line in live(seed, mutation.setting)):
            return
    pytest.fail(f"no world shows that {mutation.name}")


def test_every_law_has_broken_hubs_that_it_catches() -> None:
    assert {mutation.law for mutation in MUTATIONS} == set(LAWS)


def test_the_same_seed_is_the_same_world() -> None:
    one, other = World(3), World(3)
    assert (one.run(), one.notes) == (other.run(), other.notes)
