"""Orders: what the hub sends to an agent, `{"type": ..., "order_id": ..., "epoch": ..., ...}`."""

from __future__ import annotations

from typing import Final, cast

from msgspec import Struct

from lifesigns.core import effects as core
from lifesigns.core.effects import Order
from lifesigns.errors import UsageError
from lifesigns.wire import codec
from lifesigns.wire.limits import SIGNAL_MAX, check_size
from lifesigns.wire.shapes import Shapes

_SHAPES: Final = Shapes(
    {
        "ping": core.SendPing,
        "interval": core.SetInterval,
        "nudge": core.SendNudge,
        "stop": core.Terminate,
        "withdrawn": core.Withdraw,
        "status_inquiry": core.AskStatus,
        "reminder": core.Remind,
        "replaced": core.StopStranger,
        "respawn": core.Respawn,
        "breaker": core.TurnBreaker,
        "offer": core.OfferTask,
        "give_back": core.AskBack,
    }
)


def order_types() -> tuple[type[Struct], ...]:
    """The shapes of all orders, for the API's description."""
    return _SHAPES.structs


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
