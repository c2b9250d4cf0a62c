"""Replay: what was heard, judged anew under another policy.

    survey.py         first the whole record is gone through once: who was heard until when, when the hub was away
    watch.py          an engine that hears the record at the times it was heard
    side_by_side.py   two of them, one under each policy
    spells.py         the times in which each of them thought somebody unwell, and how they differ

What cannot be known is decided in favour of the agent, as the engine does. An agent was not asked then at the moments at
which another policy would have asked it. If the same life of it spoke again later, it is taken to have answered; unless
the hub did disconnect it in that very silence, for then it was asked and did not.
"""

from lifesigns.replay.side_by_side import Replayed, Side, replay
from lifesigns.replay.spells import Change, Difference, Spell

__all__ = ["Change", "Difference", "Replayed", "Side", "Spell", "replay"]
