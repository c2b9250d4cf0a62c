"""The last beat of every agent, as it came.

Beats come by the hundred thousand, and few are ever asked for. So the hub holds the encoded message, once for all
agents whose beats were in it, and decodes it again on demand. Decoded beats would take three times the memory and half
a microsecond each, most of it to free the previous beat.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from lifesigns import wire
from lifesigns.core.signals import Beat

BATCH_MAX: Final = 64 * 1024
"""The largest message held whole, as large as a single beat may be: one long-silent agent must not hold the beats of a
thousand others in memory."""


class EncodedBatch(Struct, gc=False):
    """The beats of one message, still encoded."""

    raw: bytes
    source: str
    at: float

    def beats(self) -> list[wire.WireBeat]:
        return wire.decode_beats(self.raw, self.source, self.at).accepted


class SingleBeat(Struct):
    """A beat that came without its encoded message."""

    beat: Beat
    at: float


class ReceivedBeat(NamedTuple):
    """A beat, and when it came."""

    beat: Beat
    at: float


class LastBeats(dict[str, EncodedBatch | SingleBeat]):
    """By agent, the message with its last beat."""

    def of(self, agent_id: str) -> ReceivedBeat | None:
        """The last beat of this agent."""
        return next((received for _, received in self.of_all((agent_id,))), None)

    def of_all(self, agent_ids: Iterable[str]) -> Iterator[tuple[str, ReceivedBeat]]:
        """The last beats of these agents, message by message."""
        batches: dict[int, tuple[EncodedBatch, set[str]]] = {}
        for agent_id in agent_ids:
            last = self.get(agent_id)
            if isinstance(last, EncodedBatch):
                batches.setdefault(id(last), (last, set()))[1].add(agent_id)
            elif last is not None:
                yield agent_id, ReceivedBeat(last.beat, last.at)
        for batch, wanted_ids in batches.values():
            # If an agent has two beats in one message, the later one.
            beats = {beat.agent_id: beat for beat in batch.beats() if beat.agent_id in wanted_ids}
            for agent_id, beat in beats.items():
                yield agent_id, ReceivedBeat(beat, batch.at)

    def keep_only(self, agents: Collection[str]) -> None:
        """Drop all other agents."""
        for agent_id in [agent_id for agent_id in self if agent_id not in agents]:
            del self[agent_id]
