"""The journal: what the hub heard, signal by signal, for a short while. `lifesigns replay` judges it anew.

It must cost next to nothing, so it has a budget of signals a second. Of a fleet that sends more it records a fixed
sample of agents, first come, first recorded; of each agent all signals or none, or a replay would misjudge its silence.
The chunk names the agents that drop out of the sample, and counts the signals left out.

Deterministic: no clock, no chance. The time comes in, and the same signals at the same times give the same chunks.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import Final, cast

import msgspec

from lifesigns.core.signals import PathLost, PathRestored, Report, Signal
from lifesigns.hub.chunks import DecodedChunk, Track, Writer, read
from lifesigns.ports import Chunk

__all__ = ["BUDGET", "DecodedChunk", "Journal", "read"]

BUDGET: Final = 2000.0
"""Signals a second. At 2 to 4 µs each this is half a percent of a core, and some 30 kB a second on the disk."""

WINDOW: Final = 10.0
"""Seconds over which the budget is averaged."""

FILLED: Final = 0.75
"""The part of the budget given to the sample: the rest is for agents that send more than before."""

AGENTS_MAX: Final = 20_000
"""In the sample; each takes half a kilobyte."""

SILENT_FOR: Final = 3600.0
"""An agent silent for so long makes room for others when the sample is full."""

SIGNALS_MAX: Final = 20_000
"""In one chunk: it is packed in some twenty milliseconds."""

QUIET_FOR: Final = 60.0
"""A chunk is written at least so often, if only to show that the hub ran and heard nothing."""

WAITING_MAX: Final = 8
"""Chunks waiting for `take`. Beyond, the oldest is dropped."""

_OF_PATHS: Final = frozenset({PathLost, PathRestored})

_UNWRITABLE: Final = (msgspec.MsgspecError, OverflowError, ValueError, TypeError)

log: Final = logging.getLogger("lifesigns.hub")


class Journal:
    """Records signals, and packs them into chunks. `epoch` tells hubs apart."""

    def __init__(self, epoch: int, began_at: float, *, budget: float = BUDGET) -> None:
        self._epoch = epoch
        self._budget = budget
        self._sample: dict[str, Track] = {}
        self._window = 1
        self._window_at = began_at
        self._window_ends_at = began_at + WINDOW
        self._weight = 0
        """The weight written in this window."""
        self._speakers = 0
        """The agents that sent it."""
        self._room = self._room_for(0.0, 0.0)
        """How many agents may still join in this window."""
        self._missed = 0
        self._chunk = Writer(epoch, 1, began_at)
        self._waiting: list[Chunk] = []

    # --- what the hub tells ---------------------------------------------------------------------------

    def note(self, at: float, signals: Sequence[Signal]) -> None:
        """Record signals that came at this moment."""
        if at >= self._window_ends_at:
            self._turn_window(at)
        noted = self._admit(signals) if self._room else self._in_sample(signals)
        if noted:
            self._write(at, noted)

    def lapsed(self, began_at: float, ended_at: float) -> None:
        """The hub stood still in this time: silence in it counts against no agent."""
        self._chunk.lapse(began_at, ended_at)

    def take(self, now: float) -> Sequence[Chunk]:
        """The chunks to store now; call it every ten seconds or so, and at the end."""
        chunk = self._chunk
        if chunk.signals or chunk.body.lapses or self._missed or now - chunk.from_at >= QUIET_FOR:
            self._seal(now)
        taken, self._waiting = self._waiting, []
        return taken

    # --- writing --------------------------------------------------------------------------------------

    def _write(self, at: float, signals: Sequence[Signal]) -> None:
        chunk, window, weight, written = self._chunk, self._window, 0, 0
        for signal in signals:
            if type(signal) in _OF_PATHS:
                chunk.report(cast("Report", signal))
                written += 1
                continue
            track = self._sample[signal.agent_id]  # type: ignore[union-attr]
            try:
                heavy = chunk.report(signal) if isinstance(signal, Report) else chunk.beat(track, signal)
            except _UNWRITABLE as error:
                self._not_written(signal, error)
                continue
            if track.window == window:
                track.weight += heavy
            else:
                track.window, track.weight = window, heavy
                self._speakers += 1
            track.heard_at = at
            weight += heavy
            written += 1
        chunk.deliver(at, written)
        self._weight += weight
        if self._weight > self._budget * WINDOW:
            self._cut(at)
        if chunk.signals >= SIGNALS_MAX:
            self._seal(at)

    def _not_written(self, signal: Signal, error: Exception) -> None:
        """A signal that cannot be encoded must not take the others with it."""
        self._missed += 1
        log.error(
            "a %s is not journalled: %s",
            type(signal).__name__,
            error,
            extra={"action": "signal_not_journalled"},
        )

    def _seal(self, now: float) -> None:
        chunk, self._chunk = self._chunk, Writer(self._epoch, self._chunk.number + 1, now)
        chunk.body.missed, self._missed = self._missed, 0
        try:
            self._waiting.append(chunk.seal(now))
        except _UNWRITABLE as error:
            log.error("a chunk of the journal is lost: %s", error, extra={"action": "chunk_lost"})
        del self._waiting[:-WAITING_MAX]

    # --- the sample -----------------------------------------------------------------------------------

    def _in_sample(self, signals: Sequence[Signal]) -> Sequence[Signal]:
        """The signals of agents in the sample. For most of a large fleet this is all that the journal costs."""
        sample, count = self._sample, len(signals)
        try:
            if count == 1:
                noted = signals if signals[0].agent_id in sample else ()  # type: ignore[union-attr]
            else:
                noted = [signal for signal in signals if signal.agent_id in sample]  # type: ignore[union-attr]
        except AttributeError:
            return self._admit(signals)
        self._missed += count - len(noted)
        return noted

    def _admit(self, signals: Sequence[Signal]) -> list[Signal]:
        """The signals of agents in the sample; new agents join while there is room."""
        admitted: list[Signal] = []
        for signal in signals:
            agent_id = getattr(signal, "agent_id", None)
            if type(signal) in _OF_PATHS:
                admitted.append(signal)  # Whoever speaks by this path was not silent for a reason of its own.
                continue
            if agent_id is None:
                continue  # About the hub itself: another engine has its own canaries.
            if agent_id not in self._sample:
                if not self._room:
                    self._missed += 1
                    continue
                self._room -= 1
                self._sample[agent_id] = Track()
            admitted.append(signal)
        return admitted

    def _turn_window(self, at: float) -> None:
        """A window ended within the budget: as many agents may join as usually fit into the rest."""
        passed = at - self._window_at
        per_agent = self._weight / passed / self._speakers if self._speakers else 0.0
        if len(self._sample) >= AGENTS_MAX:
            self._drop([id_ for id_, track in self._sample.items() if track.heard_at < at - SILENT_FOR])
        self._room = self._room_for(self._weight / passed, per_agent)
        self._begin_window(at)

    def _room_for(self, rate: float, per_agent: float) -> int:
        left = max(0.0, FILLED * self._budget - rate)
        return min(int(left / max(per_agent, 1 / WINDOW)), AGENTS_MAX - len(self._sample))

    def _cut(self, at: float) -> None:
        """Over the budget: of the agents that sent in this window the first ones stay, as many as would have fitted."""
        left = FILLED * self._budget * (at - self._window_at)
        dropped = []
        for agent_id, track in self._sample.items():
            if track.window != self._window:
                continue
            if track.weight <= left:
                left -= track.weight
            else:
                dropped.append(agent_id)
        self._drop(dropped)
        log.info(
            "the journal follows %d agents; %d more speak than there is room for",
            len(self._sample),
            len(dropped),
            extra={"action": "journal_sampled"},
        )
        self._room = 0
        self._begin_window(at)

    def _drop(self, agent_ids: Sequence[str]) -> None:
        for agent_id in agent_ids:
            del self._sample[agent_id]
        self._chunk.body.gone.extend(agent_ids)

    def _begin_window(self, at: float) -> None:
        self._window += 1
        self._window_at, self._window_ends_at = at, at + WINDOW
        self._weight = self._speakers = 0
