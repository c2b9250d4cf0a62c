"""Context: a model's window is full, and the agent neither compacts it nor hands its work over.

Judged only where an agent says how much of the window a call used. One full call is nothing: agents fill their window
before they compact it. Several in a row mean that it does not: from here on the model forgets or refuses, and every
turn costs the most it can. Weak evidence: people are asked.
"""

from __future__ import annotations

from lifesigns.core.agent import Work
from lifesigns.core.effects import Finding, Kind, Severity
from lifesigns.core.policy import ErringPolicy


def used(work: Work, tokens: int, window: int, policy: ErringPolicy, now: float) -> Finding | None:
    """A model call said how full its window was."""
    share = tokens / window
    if share < policy.context_full:
        work.full_calls = 0
        return None
    if not work.full_calls:
        work.full_since = now
    work.full_calls += 1
    if work.full_calls < policy.context_calls:
        return None
    text = f"Its context window is exhausted: {work.full_calls} calls in a row used {min(share, 1.0):.0%} of it or more."
    numbers = {"calls": float(work.full_calls), "tokens": float(tokens), "window": float(window)}
    return Finding(Kind.CONTEXT, work.full_since, Severity.FAILING, text, numbers)
