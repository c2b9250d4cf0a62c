"""What a guarded call costs while all is well, beside pybreaker, purgatory and circuitbreaker.

The overhead is a guarded no-op minus the bare no-op. All defaults, all as decorators, each in its closed state, in the
same run: rounds take turns, so that a noisy machine is noisy for all of them. pybreaker's async needs tornado and
knows no coroutines, so there is no async row for it.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from collections.abc import Awaitable, Callable
from typing import Any

import circuitbreaker  # type: ignore[import-untyped]
import purgatory
import pybreaker

from lifesigns.agent.guard.guard import Breaker

BARE = "bare"
OURS = "lifesigns"


def noop() -> None:
    """The guarded function."""


async def anoop() -> None:
    """The guarded coroutine."""


def sync_cases() -> dict[str, Callable[[], object]]:
    """A bare no-op and the guarded ones, ours first."""
    return {
        BARE: noop,
        OURS: Breaker("bench", registry=None)(noop),
        "pybreaker": pybreaker.CircuitBreaker()(noop),
        "purgatory": purgatory.SyncCircuitBreakerFactory()("bench")(noop),
        "circuitbreaker": circuitbreaker.circuit(noop),
    }


async def async_cases() -> dict[str, Callable[[], Awaitable[object]]]:
    """The same, awaited."""
    return {
        BARE: anoop,
        OURS: Breaker("bench", registry=None)(anoop),
        "purgatory": purgatory.AsyncCircuitBreakerFactory()("bench")(anoop),
        "circuitbreaker": circuitbreaker.circuit(anoop),
    }


def run(rounds: int = 200, loops: int = 500) -> list[dict[str, Any]]:
    """For each library, sync and async: overhead in ns (median), its spread, and how many times ours it is.

    `spread` is the distance of the quartiles as a share of the median. A ratio is the median of the ratios within
    one round each, so that a busy machine does not make it up.
    """
    cases = sync_cases()
    rows = _rows(
        "sync", [{name: _timed(cases[name], loops) for name in _order(cases, n)} for n in range(rounds)]
    )
    return rows + _rows("async", asyncio.run(_async_rounds(rounds, loops)))


async def _async_rounds(rounds: int, loops: int) -> list[dict[str, float]]:
    cases = await async_cases()
    return [{name: await _atimed(cases[name], loops) for name in _order(cases, n)} for n in range(rounds)]


def _rows(kind: str, rounds: list[dict[str, float]]) -> list[dict[str, Any]]:
    over = [{name: took - each[BARE] for name, took in each.items() if name != BARE} for each in rounds]
    return [
        {
            "name": name,
            "kind": kind,
            "overhead_ns": round(statistics.median(each[name] for each in over) * 1e9),
            "spread": round(_spread([each[name] for each in over]), 3),
            "ratio_to_ours": round(statistics.median(each[name] / each[OURS] for each in over), 2),
        }
        for name in sorted(over[0], key=lambda name: name != OURS)
    ]


def _order(cases: dict[str, Any], turn: int) -> list[str]:
    """Every round begins with another case and every second runs backwards, to avoid periodic noise of the machine."""
    names = list(cases)
    start = turn % len(names)
    return (names[start:] + names[:start])[:: 1 if turn % 2 else -1]


def _timed(call: Callable[[], object], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - started) / loops


async def _atimed(call: Callable[[], Awaitable[object]], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        await call()
    return (time.perf_counter() - started) / loops


def _spread(times: list[float]) -> float:
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle
