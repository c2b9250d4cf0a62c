"""The program of the agents: some lives, each with a ledger of what it said and of what it was told.

agents.py LEDGER NAME...     over LIFESIGNS_HUB
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import lifesigns

SAY_EVERY = 1.0


def live(ledger: Path, name: str) -> None:
    """One life."""
    with ledger.open("a", buffering=1) as lines:

        def note(**what: object) -> None:
            lines.write(json.dumps({"agent": name, "at": time.time(), **what}) + "\n")

        with lifesigns.Sender(
            name, task=f"task-{name}", interval=1.0, on_stop=lambda stop: note(stopped=str(stop))
        ) as life:
            said = 0
            note(began=True)
            while True:
                nudge = life.next_nudge(SAY_EVERY)
                if nudge is not None:
                    note(nudged=nudge.text)
                    nudge.answer("progress", "on it")
                said += 1
                life.checkpoint(f"{name}-{said}")
                note(said=f"{name}-{said}")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for name in sys.argv[2:]:
        threading.Thread(target=live, args=(folder / f"{name}.jsonl", name), daemon=True).start()
    threading.Event().wait()
