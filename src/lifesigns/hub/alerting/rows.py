"""Rows: the state of alerting as beliefs of the store, and back.

alert     an open alert, and in which group of which channel it is
notice    a group: what a channel knows
outlet    when a channel got notices, so that its rate holds over a restart
silence   one that a person made while the hub ran
alerting  the id of the last event read
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lifesigns.hub.alerting.alert_groups import AlertGroup
from lifesigns.hub.alerting.alerts import Alert
from lifesigns.hub.alerting.rules import Silence
from lifesigns.ports import Belief

ALERT, NOTICE, OUTLET, SILENCE, CURSOR = "alert", "notice", "outlet", "silence", "alerting"


class ChannelQueueRow(msgspec.Struct):
    """The times of a channel's notices."""

    sent: list[float]
    missed: int


class NoticeRow(msgspec.Struct):
    """A group of a channel."""

    channel: str
    alert_group: AlertGroup


_encode: Final = msgspec.msgpack.Encoder().encode
_DECODERS: Final[Mapping[str, msgspec.msgpack.Decoder[Any]]] = {
    kind: msgspec.msgpack.Decoder(of)
    for kind, of in (
        (ALERT, Alert),
        (NOTICE, NoticeRow),
        (OUTLET, ChannelQueueRow),
        (SILENCE, Silence),
        (CURSOR, int),
    )
}


def row(kind: str, key: str, value: object) -> Belief:
    """One row; None deletes it."""
    return Belief(kind, key, None if value is None else _encode(value))


def read(belief: Belief) -> Any:
    """The value of a row; None if it is of another kind, or unreadable."""
    decoder = _DECODERS.get(belief.kind)
    if decoder is None or belief.value is None:
        return None
    try:
        return decoder.decode(belief.value)
    except (msgspec.MsgspecError, ValueError):
        return None


def notice_key(channel: str, alert_group: str) -> str:
    """The key of a group's row."""
    return f"{channel}\n{alert_group}"
