"""Numbers as people write them, for the sentences in findings and nudges."""

from __future__ import annotations

from math import isfinite


def duration(seconds: float) -> str:
    """`4.2 s`, `32 min`, `3 h 5 min`, `2 d 4 h`: two units at most, no false precision."""
    if not isfinite(seconds):
        return "an unknown time"  # An agent can send any bound; a sentence about it must not raise.
    if seconds < 9.95:
        return f"{max(0.0, seconds):.1f} s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    if minutes < 60:
        return f"{minutes} min"
    if minutes < 24 * 60:
        hours, minutes = divmod(minutes, 60)
        return f"{hours} h {minutes} min" if minutes else f"{hours} h"
    days, hours = divmod(round(seconds / 3600), 24)
    return f"{days} d {hours} h" if hours else f"{days} d"


def times(count: int) -> str:
    """`once`, `twice`, `7 times`."""
    return {1: "once", 2: "twice"}.get(count, f"{count} times")


def sentence(text: str) -> str:
    """With a full stop, if it has no end of its own: the words of a tool or a process are part of many texts."""
    return text if text.endswith((".", "!", "?", "…")) else f"{text}."
