"""An agent in a process of its own: beats, reads what it is told, and ends when it is asked to.

python agent.py ID HUB TOKEN      writes a line for everything that happens to it
"""

import sys
from typing import Any

import lifesigns

_, agent_id, hub, token = sys.argv


def tell(what: str) -> None:
    sys.stdout.write(f"{what}\n")
    sys.stdout.flush()


def save(stop: Any) -> None:
    """What it does before it is ended."""
    tell(f"is asked to end: {stop.reason}")


with lifesigns.Sender(
    agent_id, hub=hub, token=token, task=f"task-of-{agent_id}", interval=0.5, on_stop=save
) as life:
    life.checkpoint("cp-1", state={"files": 1})
    search = lifesigns.Breaker("search-api", recovery_timeout=600.0)
    search.open()
    state = search.state
    tell("lives")
    while not life.stopping:
        if search.state is not state:
            state = search.state
            tell(f"search-api is {state}")
        nudge = life.next_nudge(timeout=0.1)
        if nudge is not None:
            tell(f"is told: {nudge.text}")
            nudge.answer("progress", "I am on it")
