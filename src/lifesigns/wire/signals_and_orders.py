"""Signals and orders: what agents say beside their beats, `{"type": ..., "agent_id": ..., ...}`, and what the hub tells them,
`{"type": ..., "order_id": ..., "epoch": ..., ...}`.

We hash tools' arguments and results here and do not keep them: arguments exactly, results without their volatile parts.
`core/detectors/looping.py` says why.
"""

from __future__ import annotations

from functools import partial
from typing import Any, Final, cast

from msgspec import Struct

from lifesigns.core import effects
from lifesigns.core import signals as core
from lifesigns.core.effects import Order
from lifesigns.core.signals import BeatReceived, Signal
from lifesigns.errors import UsageError
from lifesigns.wire import batches, codec
from lifesigns.wire.batches import Batch, Decoding
from lifesigns.wire.beats import WireBeat, encode_beat
from lifesigns.wire.codec import on_our_clock, seconds
from lifesigns.wire.evidence import digest_of
from lifesigns.wire.limits import (
    BATCH_MAX,
    SIGNAL_MAX,
    Amount,
    Moment,
    Text,
    check_bytes,
    check_size,
    may_hide_bytes,
)
from lifesigns.wire.shapes import Shapes

_SIGNALS: Final[dict[str, type[Struct]]] = {
    "registered": core.AgentRegistered,
    "activity": core.ActivitySeen,
    "tool_started": core.ToolStarted,
    "tool_finished": core.ToolFinished,
    "model_started": core.ModelStarted,
    "model_finished": core.ModelFinished,
    "checkpoint": core.CheckpointSaved,
    "progress": core.ProgressMade,
    "error": core.ErrorReported,
    "doing": core.DoingChanged,
    "pong": core.PongReceived,
    "nudge_seen": core.NudgeSeen,
    "nudge_answered": core.NudgeAnswered,
    "task_assigned": core.TaskAssigned,
    "task_done": core.TaskDone,
    "task_failed": core.TaskFailed,
    "claim": core.TaskClaimed,
    "release": core.TaskReleased,
    "message_sent": core.MessageSent,
    "message_acked": core.MessageAcked,
    "message_withdrawn": core.MessageWithdrawn,
    "breaker": core.BreakerReported,
    "left": core.AgentLeft,
    # What the agent's side observed, and the outcomes of its orders.
    "exited": core.ProcessExited,
    "nudge_delivered": core.NudgeDelivered,
    "nudge_failed": core.NudgeFailed,
    "stopped": core.TerminationDone,
    "stop_failed": core.TerminationFailed,
    "respawn_started": core.RespawnStarted,
    "respawn_failed": core.RespawnFailed,
    "breaker_turned": core.BreakerTurned,
    "breaker_not_turned": core.BreakerNotTurned,
}
_EXTRA: Final[dict[str, dict[str, Any]]] = {
    "tool_started": {"args": Any},
    "tool_finished": {"timestamp": Moment, "args": Any, "result": Any},
    "model_finished": {"timestamp": Moment, "cost": Amount},
    "doing": {"timestamp": Moment},
    "pong": {"task": Text},
    "breaker": {"timestamp": Moment},
}
"""Fields that only the wire has. A `timestamp` is read only where it translates another moment."""
_OTHER_NAMES: Final = {"cost": "cost_usd", "task": "task_id"}
"""The contract's short names of two fields; we read either."""

_TRANSLATED: Final = frozenset({"until", "ended_at"})
"""Moments of the agent's clock."""

_SIGNAL_SHAPES: Final = Shapes(_SIGNALS, _EXTRA)

_ORDER_SHAPES: Final = Shapes(
    {
        "ping": effects.SendPing,
        "interval": effects.SetInterval,
        "nudge": effects.SendNudge,
        "stop": effects.Terminate,
        "withdrawn": effects.Withdraw,
        "status_inquiry": effects.AskStatus,
        "reminder": effects.Remind,
        "replaced": effects.StopStranger,
        "respawn": effects.Respawn,
        "breaker": effects.TurnBreaker,
        "offer": effects.OfferTask,
        "give_back": effects.AskBack,
    }
)


def signal_types() -> tuple[type[Struct], ...]:
    """The shapes of all signals, for the API's description."""
    return _SIGNAL_SHAPES.structs


def decode_signal(raw: bytes, *, now: float, source: str = "", bounded: bool = False) -> Signal:
    """One signal, JSON or MessagePack. Raises `WireError` and nothing else.

    Translates an `until` or `ended_at` on the agent's clock to ours if the signal has a `timestamp`.
    """
    check_size(raw, SIGNAL_MAX)
    shape, message = _SIGNAL_SHAPES.read(raw)
    if may_hide_bytes(raw):
        check_bytes(message)
    values = shape.values(message)
    for short, name in _OTHER_NAMES.items():
        if name not in values and (value := getattr(message, short, None)) is not None:
            values[name] = value
    if getattr(message, "timestamp", None) is not None:
        for name in _TRANSLATED & values.keys():
            values[name] = on_our_clock(values[name], seconds(message.timestamp), now)
    if (args := getattr(message, "args", None)) is not None:
        values.setdefault("args_digest", digest_of(args, exact=True))
    if (result := getattr(message, "result", None)) is not None:
        values.setdefault("result_digest", digest_of(result))
    values["source"] = source
    if shape.of is core.AgentRegistered:
        values["bounded"] = bounded
    return cast("Signal", shape.of(**values))


def decode_signals(raw: bytes, *, now: float, source: str = "", bounded: bool = False) -> Batch[Signal]:
    """One signal, an array of signals or one signal a line; like `decode_beats`. `bounded`: the sender is no operator."""
    return batches.without_pauses(decoding_signals(raw, now=now, source=source, bounded=bounded))


def decoding_signals(raw: bytes, *, now: float, source: str = "", bounded: bool = False) -> Decoding[Signal]:
    """As `decode_signals`, with pauses."""
    check_size(raw, BATCH_MAX)
    return batches.decoding_each(raw, partial(decode_signal, now=now, source=source, bounded=bounded))


def encode_signal(signal: Signal, *, msgpack: bool = False, sent_at: float | None = None) -> bytes:
    """A signal or a beat of an agent, with moments in whole milliseconds.

    `sent_at` goes with an `until` or `ended_at`, so that the other side can translate it to its own clock.
    """
    if isinstance(signal, BeatReceived | WireBeat):
        return encode_beat(signal, msgpack=msgpack)
    message = _SIGNAL_SHAPES.message(signal)
    if message is None:
        raise UsageError(f"{type(signal).__name__} is no signal an agent sends")
    if sent_at is not None and _TRANSLATED & message.keys():
        message["timestamp"] = codec.written(sent_at)
    return codec.write(message, msgpack=msgpack)


def order_types() -> tuple[type[Struct], ...]:
    """The shapes of all orders, for the API's description."""
    return _ORDER_SHAPES.structs


def encode_order(order: Order, *, msgpack: bool = False) -> bytes:
    """An order for an agent. Moments are written in whole milliseconds."""
    message = _ORDER_SHAPES.message(order)
    if message is None:
        raise UsageError(f"{type(order).__name__} is no order for an agent")
    return codec.write(message, msgpack=msgpack)


def decode_order(raw: bytes) -> Order:
    """An order as the agent's side reads it. Raises `WireError` and nothing else."""
    check_size(raw, SIGNAL_MAX)
    shape, message = _ORDER_SHAPES.read(raw)
    return cast("Order", shape.of(**shape.values(message)))
