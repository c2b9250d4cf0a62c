"""Orders as the store keeps them, and which of them need keeping."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from lifesigns.core import effects as e
from lifesigns.core import signals as s
from lifesigns.core.signals import Signal
from lifesigns.ports import StoredOrder

_KINDS: Final = {
    kind.__name__: kind
    for kind in (
        e.SendNudge,
        e.Escalate,
        e.Terminate,
        e.VerifyCheckpoint,
        e.Respawn,
        e.ReleaseClaim,
        e.Remind,
        e.EscalateMessage,
        e.AskStatus,
        e.StopStranger,
        e.TurnBreaker,
        e.CleanUp,
    )
}
_encode: Final = msgspec.json.Encoder().encode

SETTLES: Final = (
    s.NudgeDelivered,
    s.NudgeFailed,
    s.EscalationDecided,
    s.TerminationDone,
    s.TerminationFailed,
    s.CheckpointVerified,
    s.RespawnStarted,
    s.RespawnFailed,
    s.BreakerTurned,
    s.BreakerNotTurned,
    s.CleanedUp,
    s.CleanUpFailed,
)
"""Outcomes after which an order is not given again."""


def kept_order(order: e.Order) -> StoredOrder:
    """An order as it is kept. Pings are not: they are worth something only now."""
    data = _encode([type(order).__name__, order])
    return StoredOrder(order.order_id, order.at, order.agent_id, data)


def open_order(kept: StoredOrder) -> e.Order | None:
    """An order the hub before us gave and saw no outcome of. None if this lifesigns does not know its kind."""
    name, fields = msgspec.json.decode(kept.data, type=tuple[str, msgspec.Raw])
    kind: Any = _KINDS.get(name)
    if kind is None:
        return None
    order: e.Order = msgspec.json.decode(fields, type=kind)
    return order


def settled_by(signal: Signal) -> str | None:
    """The order whose outcome this is, if it is one."""
    return signal.order_id if isinstance(signal, SETTLES) else None
