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
    """What is called, how many beats it reads, and the two it is compared with."""

    call: Callable[[], object]
    pydantic: str = "pydantic full beat"
    ceiling: str = "msgspec full beat, JSON"
    beats: int = 1


CASES = {
    "wire full beat, JSON": Case(lambda: wire.decode_beat(FULL)),
    "wire five fields, JSON": Case(
        lambda: wire.decode_beat(FIVE), "pydantic five fields", "msgspec five fields, JSON"
    ),
    "wire full beat, MessagePack": Case(
        lambda: wire.decode_beat(MESSAGEPACK), ceiling="msgspec full beat, MessagePack"
    ),
    "wire batch of 100, per beat": Case(lambda: wire.decode_beats(BATCH), beats=100),
    "msgspec full beat, JSON": Case(lambda: _bare_json(FULL)),
    "msgspec five fields, JSON": Case(
        lambda: _bare_json(FIVE), "pydantic five fields", "msgspec five fields, JSON"
    ),
    "msgspec full beat, MessagePack": Case(
        lambda: _bare_msgpack(MESSAGEPACK), ceiling="msgspec full beat, MessagePack"
    ),
    "pydantic full beat": Case(lambda: PydanticBeat.model_validate_json(FULL)),
    "pydantic five fields": Case(
        lambda: PydanticBeat.model_validate_json(FIVE), "pydantic five fields", "msgspec five fields, JSON"
    ),
    "json.loads full beat": Case(lambda: json.loads(FULL)),
}


def run(repeats: int = 15, budget: float = 0.05) -> list[dict[str, Any]]:
    """Each case `repeats` times for about `budget` seconds, taking turns: noise then strikes all alike.

    `ns_per_op` is the median, `spread` the distance of the quartiles as a share of it, `ratio_to_pydantic`
    how many times faster than pydantic on the same beat, `ratio_to_bare` the same against the bare decoder.
    """
    loops = {name: _loops(case.call, budget) for name, case in CASES.items()}
    times: dict[str, list[float]] = {name: [] for name in CASES}
    for _ in range(repeats):
        for name, case in CASES.items():
            times[name].append(_timed(case.call, loops[name]) / case.beats)
    medians = {name: statistics.median(taken) for name, taken in times.items()}
    return [
        {
            "name": name,
            "ns_per_op": round(medians[name] * 1e9),
            "spread": round(_spread(times[name]), 3),
            "ratio_to_pydantic": round(medians[case.pydantic] / medians[name], 2),
            "ratio_to_bare": round(medians[case.ceiling] / medians[name], 2),
        }
        for name, case in CASES.items()
    ]


def _timed(call: Callable[[], object], loops: int) -> float:
    started = time.perf_counter()
    for _ in range(loops):
        call()
    return (time.perf_counter() - started) / loops


def _loops(call: Callable[[], object], budget: float) -> int:
    _timed(call, 100)  # warm up
    return max(1, int(budget / _timed(call, 100)))


def _spread(times: list[float]) -> float:
    low, middle, high = statistics.quantiles(times, n=4)
    return (high - low) / middle
