"""Request ids: what a request is called in its answer, in its error and in every line logged for it.

A caller that has a name for its request gives it in `X-Request-Id` (of gRPC: in the metadata), so that its own log and ours can be read side by
side; a name that could be mistaken for something else in a log is replaced. Nobody is known by it, so it need not be
hard to guess.
"""

from __future__ import annotations

import re
from itertools import count
from secrets import token_hex
from typing import Final

HEADER: Final = b"x-request-id"
ID_MAX: Final = 128

_is_sane: Final = re.compile(rb"[A-Za-z0-9._:@/+=-]{1,%d}" % ID_MAX).fullmatch
NEW: Final = token_hex(4).encode() + b"-%x"
"""A new id, with the next number in it. The fast path of beats has it in a whole answer."""
next_number: Final = count(1).__next__


def request_id(given: bytes | None) -> bytes:
    """The caller's id if it is sane, else a new one."""
    if given is not None and _is_sane(given):
        return given
    return NEW % next_number()
