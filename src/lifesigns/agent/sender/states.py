"""States: the content of a checkpoint as bytes, and its digest."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Final

from lifesigns.errors import UsageError

STATE_MAX: Final = 8 * 1024 * 1024
"""What a hub takes in one request by default."""

WAITING_MAX: Final = 32 * 1024 * 1024
"""Bytes of states that may wait for an absent hub. Of further ones we report only the digest."""


def content_of(state: object) -> bytes:
    """Bytes as they are, a path's file as it is now, anything else as JSON."""
    if isinstance(state, bytes | bytearray | memoryview):
        content = bytes(state)
    elif isinstance(state, os.PathLike):
        content = _read(Path(state))
    else:
        try:
            content = json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode()
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"state is a {type(state).__name__} that cannot be written as JSON ({error}); give bytes or a path"
            ) from None
    if len(content) > STATE_MAX:
        raise UsageError(f"state has {len(content)} bytes, more than the {STATE_MAX} a hub takes")
    return content


def digest_of(content: bytes) -> str:
    """The digest of a checkpoint's content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _read(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(STATE_MAX + 1)
    except OSError as error:
        raise UsageError(f"state is {str(path)!r}, which cannot be read: {error.strerror}") from None
