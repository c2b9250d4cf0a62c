"""Who holds a task and falls silent loses it after the lease that its administrator set, however it came to hold it.

docs/reference/configuration.md: `agents:`, `claim.lease`, `claim.grace`.
"""

from __future__ import annotations

from pathlib import Path

from tests.journeys.outside import BOUND, serving

CONFIG = {
    "agents": {
        "w-*": {
            "silence": {"interval": 1.0, "timeout": 4.0, "ping_wait": 0.5},
            "claim": {"lease": 3.0, "grace": 600.0, "check_wait": 0.5},
        }
    }
}
WORKER = """
import lifesigns, time
with lifesigns.Sender("w-1", interval=0.5):
    time.sleep(3600)
"""


def test_a_lease_is_the_administrators_also_for_a_sender_with_a_rhythm_of_its_own(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        worker = hub.python("worker.py", WORKER)
        hub.until(lambda: hub.health("w-1") == "healthy", "it is heard")
        assert hub.post("/api/v1/tasks/t-1/claim", {"agent_id": "w-1"})["lease_s"] == 3.0
        worker.kill()
        worker.wait(BOUND)
        hub.until(lambda: hub.events("CLAIM_RELEASED"), "its task is free again")


def test_who_claims_before_its_first_beat_and_dies_after_it_has_no_grace_any_more(tmp_path: Path) -> None:
    with serving(tmp_path, CONFIG) as hub:
        hub.post("/api/v1/tasks/t-2/claim", {"agent_id": "w-2"})
        hub.post("/api/v1/beats", {"agent_id": "w-2"})
        hub.until(
            lambda: hub.events("CLAIM_RELEASED"), "its task is free again, long before the grace is over"
        )
