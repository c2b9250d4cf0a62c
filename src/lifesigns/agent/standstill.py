"""Standstill: where a frozen thread is: short enough for a beat, or in full."""

from __future__ import annotations

import sys
import traceback
from types import FrameType
from typing import Final

STACK_MAX: Final = 1000
"""Bytes: a little less than a beat carries under one metadata key."""

FRAMES_MAX: Final = 64
PATH_PARTS: Final = 3


def stack_of(thread_id: int | None) -> str | None:
    """Where a thread is right now, a line for each call, the innermost last. A deep stack loses its outermost lines."""
    frame = _frame_of(thread_id)
    if frame is None:
        return None
    lines: list[str] = []
    room = STACK_MAX
    for line in _inside_out(frame):
        room -= len(line.encode("utf-8", "replace")) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(reversed(lines)) or None


def full_stack_of(thread_id: int | None) -> str | None:
    """The same in full, as a traceback shows it."""
    frame = _frame_of(thread_id)
    return None if frame is None else "".join(traceback.format_stack(frame))


def place_of(thread_id: int | None) -> str | None:
    """The innermost line of a thread as `file:line in function`."""
    frame = _frame_of(thread_id)
    if frame is None:
        return None
    return f"{frame.f_code.co_filename}:{frame.f_lineno} in {frame.f_code.co_name}"


def _frame_of(thread_id: int | None) -> FrameType | None:
    return None if thread_id is None else sys._current_frames().get(thread_id)


def _inside_out(frame: FrameType) -> list[str]:
    lines: list[str] = []
    at: FrameType | None = frame
    while at is not None and len(lines) < FRAMES_MAX:
        code = at.f_code
        place = "/".join(code.co_filename.split("/")[-PATH_PARTS:])
        lines.append(f"{place}:{at.f_lineno} in {code.co_name}")
        at = at.f_back
    return lines
