"""Orders: what the hub sends to an agent, `{"type": ..., "order_id": ..., "epoch": ..., ...}`."""

from __future__ import annotations

from typing import Final, cast

from lifesigns.core import effects as core
from lifesigns.core.effects import Order
from lifesigns.errors import UsageError
from lifesigns.wire import codec
from lifesigns.wire.limits import SIGNAL_MAX, check_size
from lifesigns.wire.shapes import Shape, Shapes

_SHAPES: Final = Shapes(
    [
        Shape(core.SendPing, "ping"),
        Shape(core.SetInterval, "interval"),
        Shape(core.SendNudge, "nudge"),
        Shape(core.Terminate, "stop"),
        Shape(core.Withdraw, "withdrawn"),
        Shape(core.AskStatus, "status_inquiry"),
        Shape(core.Remind, "reminder"),
        Shape(core.StopStranger, "replaced"),
        Shape(core.Respawn, "respawn"),
        Shape(core.TurnBreaker, "breaker"),
        Shape(core.OfferTask, "offer"),
        Shape(core.AskBack, "give_back"),
    ]
)

ORDER_TYPES: Final = _SHAPES.structs


def encode_order(order: Order, *, msgpack: bool = False) -> bytes:
    """An order for an agent. Moments are written in whole milliseconds."""
    message = _SHAPES.message(order)
    if message is None:
        raise UsageError(f"{type(order).__name__} is no order for an agent")
    return codec.write(message, msgpack=msgpack)


def decode_order(raw: bytes) -> Order:
    """An order as the agent's side reads it. Raises `WireError` and nothing else."""
    check_size(raw, SIGNAL_MAX)
    shape, message = _SHAPES.read(raw)
    return cast("Order", shape.of(**shape.values(message)))
