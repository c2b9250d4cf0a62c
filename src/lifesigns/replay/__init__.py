"""Replay: judges recorded signals again under another policy.

    survey.py         reads the whole record once: each agent's last signal, and when the hub was away
    watch.py          an engine that hears the record at the recorded times
    side_by_side.py   two of them, one under each policy
    episodes.py         the times in which each judged an agent unwell, and how they differ

Where the record cannot tell, we decide in favour of the agent, as the engine does. The hub did not ping an agent at the
moments at which another policy would have pinged it. If the same life of it was heard again later, we assume that it
would have answered; unless the hub disconnected it in that very silence, because then it was pinged and did not answer.
"""

from lifesigns.replay.episodes import Change, Difference, Episode
from lifesigns.replay.side_by_side import ReplayResult, Side, replay

__all__ = ["Change", "Difference", "Episode", "ReplayResult", "Side", "replay"]
