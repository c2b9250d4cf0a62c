"""What reading a beat costs, against pydantic with the same fields and limits, and the stdlib's json.

Ours includes more: MessagePack or JSON, the dialects, what can be concluded from a beat. The ceiling is the
bare decoder on the same struct: what lies between it and ours is Python.
"""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from pydantic import AwareDatetime, BaseModel, Field

from lifesigns import wire
from lifesigns.core.health import Doing

FULL = json.dumps(
    {
        "agent_id": "coder-7",
        "timestamp": "2026-11-15T18:00:00.000Z",
        "seq": 42,
        "incarnation": "01JD0F8Q3V9Z8M2K7T5N4R6W1X",
        "status": "busy",
        "doing": "working",
        "until": None,
        "load": 0.4,
        "task_id": "t-19",
        "tasks": ["t-19"],
        "phase": "tests",
        "progress": "12/40 files",
        "last_tool_call": "2026-11-15T17:59:58.120Z",
        "last_checkpoint": "2026-11-15T17:55:00.500Z",
        "token_count": 18230,
        "cost_usd": 0.31,
        "error_count": 0,
        "capacity_available": 3,
        "loop_lag_ms": 1.8,
        "metrics": {
            "cpu_percent": 12.5,
            "memory_mb": 310,
            "tasks_completed": 4,
            "tasks_failed": 0,
            "uptime_s": 7200,
        },
        "host": "ws-1",
        "pid": 4711,
        "role": "active-development",
        "metadata": {"any": "string"},
    },
    separators=(",", ":"),
).encode()
FIVE = (
    b'{"agent_id":"coder-7","timestamp":"2026-11-15T18:00:00.123456789Z","status":"busy","load":0.4,'
    b'"metadata":{"model":"m-1"}}'
)
MESSAGEPACK = msgspec.msgpack.encode(json.loads(FULL))
BATCH = b"[" + b",".join([FULL] * 100) + b"]"

_Text = Annotated[str, Field(max_length=1024)]
_Count = Annotated[int, Field(ge=0, le=2**63 - 1)]
_Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]
_Moment = AwareDatetime  # takes numbers too; `datetime | float` would only be slower


class PydanticMetrics(BaseModel):
    """`WireMetrics` of lifesigns.wire.beats, as pydantic spells it."""

    cpu_percent: _Amount | None = None
    memory_mb: _Amount | None = None
    tasks_completed: _Count | None = None
    tasks_failed: _Count | None = None
    uptime_s: _Amount | None = None


class PydanticBeat(BaseModel):
    """`WireBeat` of lifesigns.wire.beats, as pydantic spells it."""

    agent_id: Annotated[str, Field(pattern=r"^[A-Za-z0-9._:@/-]{1,128}$")]
    timestamp: _Moment | None = None
    seq: _Count | None = None
    incarnation: _Text | None = None
    status: _Text | None = None
    doing: Doing | None = None
    until: _Moment | None = None
    load: Annotated[float, Field(allow_inf_nan=False)] | None = None
    task_id: _Text | None = None
    tasks: Annotated[tuple[_Text, ...], Field(max_length=256)] = ()
    phase: _Text | None = None
    progress: _Text | None = None
    last_tool_call: _Text | None = None
    last_checkpoint: _Text | None = None
    token_count: _Count | None = None
    cost_usd: _Amount | None = None
    error_count: _Count | None = None
    capacity_available: _Count | None = None
    loop_lag_ms: _Amount | None = None
    metrics: PydanticMetrics | None = None
    host: _Text | None = None
    pid: _Count | None = None
    role: _Text | None = None
    metadata: Annotated[dict[_Text, _Text], Field(max_length=64)] | None = None


_bare_json = msgspec.json.Decoder(wire.WireBeat).decode
_bare_msgpack = msgspec.msgpack.Decoder(wire.WireBeat).decode


@dataclass(frozen=True)
class Case:
    """A case: its reader, its number of beats, and the two alternatives."""

    read: Callable[[bytes], object]
    raw: bytes = FULL
    pydantic: str = "pydantic full beat"
    bare: str = "msgspec full beat, JSON"
    beats: int = 1


_OF_FIVE = (FIVE, "pydantic five fields", "msgspec five fields, JSON")
_OF_MESSAGEPACK = (MESSAGEPACK, "pydantic full beat", "msgspec full beat, MessagePack")
CASES = {
    "wire full beat, JSON": Case(wire.decode_beat),
    "wire five fields, JSON": Case(wire.decode_beat, *_OF_FIVE),
    "wire full beat, MessagePack": Case(wire.decode_beat, *_OF_MESSAGEPACK),
    "wire batch of 100, per beat": Case(wire.decode_beats, BATCH, beats=100),
    "msgspec full beat, JSON": Case(_bare_json),
    "msgspec five fields, JSON": Case(_bare_json, *_OF_FIVE),
    "msgspec full beat, MessagePack": Case(_bare_msgpack, *_OF_MESSAGEPACK),
    "pydantic full beat": Case(PydanticBeat.model_validate_json),
    "pydantic five fields": Case(PydanticBeat.model_validate_json, *_OF_FIVE),
    "json.loads full beat": Case(json.loads),
}


def run(repeats: int = 300, budget: float = 0.001) -> list[dict[str, Any]]:
    """Each case `repeats` times for about `budget` seconds, taking turns: noise then strikes all alike.

    `ns_per_op` is the median, `spread` the distance of the quartiles as a share of it. `ratio_to_pydantic` is
    how many times faster than pydantic on the same beat, `ratio_to_bare` the same against the bare decoder:
    medians too, of what was measured within one turn, so that a busy machine does not make them up.
    """
    loops = {name: _loops(case, budget) for name, case in CASES.items()}
    turns = [{name: _timed(CASES[name], loops[name]) for name in _order(turn)} for turn in range(repeats)]
    return [
        {
            "name": name,
            "ns_per_op": round(statistics.median(turn[name] for turn in turns) * 1e9),
            "spread": round(_spread([turn[name] for turn in turns]), 3),
            "ratio_to_pydantic": _ratio(turns, case.pydantic, name),
            "ratio_to_bare": _ratio(turns, case.bare, name),
        }
        for name, case in CASES.items()
    ]


def _order(turn: int) -> list[str]:
    """Every turn begins with another case and every second runs backwards, to avoid periodic noise of the machine."""
    names = list(CASES)
    start = turn % len(names)
    return (names[start:] + names[:start])[:: 1 if turn % 2 else -1]


def _ratio(turns: list[dict[str, float]], slower: str, faster: str) -> float:
    return round(statistics.median(turn[slower] / turn[faster] for turn in turns), 2)


def _timed(case: Case, loops: int) -> float:
    read, raw = case.read, case.raw
    started = time.perf_counter()
    for _ in range(loops):
        read(raw)
    return (time.perf_counter() - started) / loops / case.beats


def _loops(case: Case, budget: float) -> int:
    _timed(case, 100)  # warm up
    return max(1, int(budget / _timed(case, 100) / case.beats))


def _spread(times: list[float]) -> float:
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle
