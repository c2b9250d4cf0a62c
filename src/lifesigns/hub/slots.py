"""Slots: the fleet in parts, so that several hubs judge at once.

Each agent is in one slot, by a hash of its id. A slot is judged by a whole hub of its own, with its own store, lease and
epoch; one process has a hub for each slot, of which some judge and the others stand by.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Final, TypeVar
from zlib import crc32

from lifesigns.core.signals import (
    MessageAcked,
    MessageSent,
    MessageWithdrawn,
    Signal,
    TaskClaimed,
    TaskReleased,
)
from lifesigns.errors import Deposed, UsageError
from lifesigns.ports import Belief, Commit, Store

SLOTS: Final = 8
"""Enough for some hubs to have nearly the same share, and few enough to give each a hub of its own."""

BETWEEN_AGENTS: Final = (TaskClaimed, TaskReleased, MessageSent, MessageAcked, MessageWithdrawn)
"""What concerns two agents, which may be in two slots: two hubs could both grant a claim."""

NOT_HERE: Final = (
    "needs one hub that judges all agents (hubs.judge: one); here several judge, each its own slots"
)

KIND: Final = "slots"
"""Of the row by which a store says that its fleet is divided."""

S = TypeVar("S", bound=Signal)


def slot_of(agent_id: str) -> int:
    """The slot of an agent, the same everywhere and for ever."""
    # Nearly every id is ASCII, and encoded four times as fast so.
    return crc32(agent_id.encode() if agent_id.isascii() else agent_id.encode(errors="surrogatepass")) % SLOTS


def next_epoch(now: float, slot: int | None) -> int:
    """The epoch of a hub that takes over now. Those of two slots differ, also if both are taken over in one moment: ids of
    interventions begin with it, and are asked for without their slot."""
    epoch = int(now * 1000)
    return epoch if slot is None else epoch + (slot - epoch) % SLOTS


async def divide(store: Store, now: float) -> None:
    """Make sure that this is the store of a fleet in slots: from then on no hub can judge all of it. Raises `UsageError` if a
    hub that judges alone has used it: its agents would be judged twice, or not at all."""
    while (found := await store.belief(KIND, "")) is None:
        if await store.read_belief_keys():
            raise UsageError(
                "this database has the fleet of a hub that judges alone; hubs.judge: all begins with one of its own"
            )
        remembered = await store.open(epoch_min=int(now * 1000), beliefs=False)
        with suppress(Deposed):  # By another hub that does the same.
            await store.commit(Commit(remembered.commit + 1, [Belief(KIND, "", b"%d" % SLOTS)]))
    if found != b"%d" % SLOTS:
        raise UsageError(f"this database has {found.decode()} slots, and this lifesigns knows {SLOTS}")


def are_own(signals: Sequence[Signal], slot: int) -> bool:
    """Whether the hub of this slot may hear all of these."""
    for signal in signals:  # noqa: SIM110 -- all() takes twice as long, and mostly there is nothing to sort out
        if not _is_own(signal, slot):
            return False
    return True


async def refuse_divided(store: Store, what: str) -> None:
    """Raises `UsageError` if the fleet of this store is divided: what is in it is not in one place."""
    if await store.belief(KIND, "") is not None:
        raise UsageError(
            f"{what} does not know slots yet: several hubs judge on this database, each its own (hubs.judge: all)"
        )


def own_signals(signals: Sequence[S], slot: int) -> Sequence[S]:
    """The signals that the hub of this slot may hear, whoever brings them: an agent is judged once."""
    return signals if are_own(signals, slot) else [one for one in signals if _is_own(one, slot)]


def _is_own(signal: Signal, slot: int) -> bool:
    agent_id: str = getattr(signal, "agent_id", "")
    return not agent_id or (slot_of(agent_id) == slot and not isinstance(signal, BETWEEN_AGENTS))


def ranked(slot: int, names: Collection[str]) -> list[str]:
    """These hubs, the one for this slot first. Each is the one for as many slots as the others, or one more."""
    order = _by_weight(slot, names)
    first = _shared_out(names)[slot]
    return [first, *(name for name in order if name != first)]


def _shared_out(names: Collection[str]) -> list[str]:
    """The hub for each slot."""
    each, more = divmod(SLOTS, len(names))
    counts = dict.fromkeys(names, 0)
    found: list[str] = []
    for slot in range(SLOTS):
        name = next(one for one in _by_weight(slot, names) if counts[one] < each + (more > 0))
        more -= counts[name] == each
        counts[name] += 1
        found.append(name)
    return found


def _by_weight(slot: int, names: Collection[str]) -> list[str]:
    """A hub that comes or goes changes little in the order of the others."""
    return sorted(names, key=lambda name: blake2b(f"{slot} {name}".encode(), digest_size=8).digest())
