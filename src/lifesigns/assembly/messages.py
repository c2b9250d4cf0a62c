"""Messages of the wire as types, for those who describe the API: beats and signals as they are sent, orders as they are
fetched. Reading and writing them is the hub's business."""

from __future__ import annotations

from functools import reduce
from operator import or_
from typing import Any, Final

from lifesigns.wire import WireBeat
from lifesigns.wire.beats import FR_002
from lifesigns.wire.limits import OURS
from lifesigns.wire.orders import ORDER_TYPES
from lifesigns.wire.signals import SIGNAL_TYPES

__all__ = ["FR_002", "OURS", "BeatMessage", "OrderMessage", "SignalMessage"]

BeatMessage: Final[Any] = WireBeat
SignalMessage: Final[Any] = reduce(or_, SIGNAL_TYPES)
"""One of many, told apart by `type`."""
OrderMessage: Final[Any] = reduce(or_, ORDER_TYPES)
