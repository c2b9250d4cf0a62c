"""What a hub needs to continue a log: one row of the store, written with every commit that has entries.

Its note is a seal of the whole log, made in that commit. So a seal covers every entry, and an attacker who writes to
the store without the key cannot add or change an entry or remove a seal unnoticed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

import msgspec

from lifesigns.core import merkle

KIND: Final = "audit"


@dataclass(slots=True)
class AuditState:
    """The row."""

    frontier: merkle.Frontier = field(default_factory=merkle.Frontier)
    note: str = ""
    """The newest seal. It covers the whole log, unless the log is broken."""
    retired_from: int = 0
    """Where the last retirement began; repeated after a crash in the middle of it."""
    retired: int = 0
    """All entries before this number are retired."""
    retired_at: float = 0.0
    history_from: int = 1
    """Events with a smaller id may be dropped: an entry says so."""
    kept_since: float = 0.0
    """The history begins at this moment."""
    witnessed: dict[str, int] = field(default_factory=dict)
    """For each witness the size of the log up to which it has the seals."""


encode_state: Final = msgspec.msgpack.Encoder().encode
decode_state: Final = msgspec.msgpack.Decoder(AuditState).decode
"""Raises `MsgspecError` for a row that no hub wrote."""
