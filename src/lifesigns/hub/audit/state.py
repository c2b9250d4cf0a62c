"""What has to be known to go on with a log: one row of the store, written with every commit that has entries.

Its note is a seal of the whole log, made in that commit. So there is no entry that no seal vouches for, and whoever
writes to the store without the key cannot add one, change one or take a seal away without being found out.
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
    """The newest seal. It is of the whole log, unless that was found broken."""
    retired_from: int = 0
    """What was retired last; done again after a crash in the middle of it."""
    retired: int = 0
    """All entries before this number are retired."""
    retired_at: float = 0.0
    history_from: int = 1
    """Events with a smaller id may be dropped: an entry says so."""
    kept_since: float = 0.0
    """The history is kept since this moment."""
    witnessed: dict[str, int] = field(default_factory=dict)
    """Up to which size of the log each witness has the seals."""


encode_state: Final = msgspec.msgpack.Encoder().encode
decode_state: Final = msgspec.msgpack.Decoder(AuditState).decode
"""Raises `MsgspecError` for a row that no hub has written."""
