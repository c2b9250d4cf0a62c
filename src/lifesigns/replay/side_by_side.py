"""The replay itself: a record, two policies, and their verdicts."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from collections.abc import Sequence
from datetime import UTC, datetime
from math import inf
from typing import Final

from msgspec import Struct

from lifesigns.config.values import Config
from lifesigns.errors import UsageError
from lifesigns.hub.journal import read
from lifesigns.ports import Store
from lifesigns.replay.episodes import Difference, compare
from lifesigns.replay.survey import Progress, Survey, survey
from lifesigns.replay.watch import Watch

WARM_UP: Final = 3600.0
"""Seconds of the record before the time in question that the engines hear too: most rules look back half an hour, caps
an hour."""

AHEAD: Final = 3600.0
"""Seconds after it in which an agent may still be heard again."""

SURVEY_SHARE: Final = 0.3
"""Its approximate share of the work: two engines take longer than one survey."""


class Side(Struct, frozen=True):
    """The verdicts of one policy."""

    counts: Counter[str]
    """Episodes that began in that time, by kind."""
    asked: int
    answered: int
    poisoned: int


class ReplayResult(Struct, frozen=True):
    """The result of a replay."""

    since: float
    until: float
    survey: Survey
    agents: int
    """The number of compared agents."""
    in_force: Side
    other: Side
    noted: Counter[str]
    """The hub's own verdicts in that time."""
    differences: Sequence[Difference]


async def replay(
    store: Store,
    in_force: Config,
    other: Config,
    *,
    since: float,
    until: float,
    agents: Sequence[str] = (),
    progress: Progress = lambda _: None,
) -> ReplayResult:
    """Judge the signals from `since` to `until` under two policies; of these agents (none: all).

    Raises `UsageError` if there is nothing to judge by.
    """
    begin = since - WARM_UP
    record = await survey(store, begin, until + AHEAD, lambda part: progress(part * SURVEY_SHARE))
    await _check(store, record, since, until, agents)
    watches = [Watch(config.policies, config.fleet, record) for config in (in_force, other)]
    end = min(until, record.to_at)
    await _run(store, watches, record, (begin, end), progress)
    compared = set(agents) or record.agents
    ours, theirs = (
        [episode for episode in watch.episodes.between(since, end) if episode.agent_id in compared]
        for watch in watches
    )
    return ReplayResult(
        since=max(since, record.from_at),
        until=end,
        survey=record,
        agents=len(compared),
        in_force=_side(watches[0], [episode.what for episode in ours if episode.began_at >= since]),
        other=_side(watches[1], [episode.what for episode in theirs if episode.began_at >= since]),
        noted=record.noted(since, end, compared),
        differences=compare(ours, theirs),
    )


def _side(watch: Watch, whats: Sequence[str]) -> Side:
    return Side(Counter(whats), watch.asked, watch.answered, len(watch.poisoned))


async def _run(
    store: Store,
    watches: Sequence[Watch],
    record: Survey,
    span: tuple[float, float],
    progress: Progress,
) -> None:
    """Let the watches hear everything, side by side."""
    begin, end = span
    away = deque(record.away)
    for watch in watches:
        watch.begin(record.from_at)
    async for chunk in store.journal(begin, end):
        for at, signal in read(chunk):
            if at >= end:
                break
            while away and away[0][1] <= at:
                _come_back(watches, *away.popleft())
            agent_id = getattr(signal, "agent_id", "")  # A path has none.
            if record.left_out_until.get(agent_id, 0.0) >= at:
                continue
            for watch in watches:
                watch.wait(at)
                watch.hear(signal, at)
        progress(SURVEY_SHARE + (1 - SURVEY_SHARE) * (chunk.to_at - begin) / (end - begin))
        await asyncio.sleep(0)
    while away and away[0][1] < end:
        _come_back(watches, *away.popleft())
    for watch in watches:
        watch.wait(end)


def _come_back(watches: Sequence[Watch], began_at: float, ended_at: float) -> None:
    for watch in watches:
        watch.wait(began_at)
        watch.come_back(ended_at)


async def _check(store: Store, record: Survey, since: float, until: float, agents: Sequence[str]) -> None:
    if record.to_at < since or record.from_at >= until or not record.signals:
        raise UsageError(await _nothing_there(store))
    strange = sorted(set(agents) - record.agents)
    if strange:
        some = ", ".join(sorted(record.agents)[:5])
        raise UsageError(
            f"{strange[0]!r} is not in the journal of that time; {some} are among those that are"
        )


async def _nothing_there(store: Store) -> str:
    nothing = "the journal holds nothing of that time"
    async for chunk in store.journal(-inf, inf):
        oldest = datetime.fromtimestamp(chunk.from_at, UTC).astimezone().isoformat(" ", "seconds")
        return f"{nothing}; the oldest it has is of {oldest}"
    return f"{nothing}, nor of any other: has a hub run with this store since the journal came in?"
