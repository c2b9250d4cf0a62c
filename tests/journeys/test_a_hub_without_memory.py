"""A hub that is given no more memory refuses what it cannot hold, or ends as if it were killed: what it kept is there afterwards,
and nobody healthy is convicted."""

from __future__ import annotations

import resource
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from tests.journeys.outside import Hub, Refused, serving

ROOM = 2_000_000
"""Bytes that the hub may take beside those it has."""

FILLERS = 4
"""Who bring newcomers side by side: whenever the hub ends, some have just been answered."""

AT_ONCE = 50
ATTEMPTS_MAX = 1_000
"""Of each: much more than fits into that room."""

SWIFT = """
import sys, time
from lifesigns import Sender

with Sender(sys.argv[1], profile="swift"):
    time.sleep(600)
"""


def set_room(hub: Hub, room: int) -> None:
    """The hub may take so many bytes beside those it has."""
    assert hub.process is not None
    status = Path(f"/proc/{hub.process.pid}/status").read_text()
    has = int(status.partition("VmSize:")[2].split()[0]) * 1024
    resource.prlimit(hub.process.pid, resource.RLIMIT_AS, (has + room, resource.RLIM_INFINITY))


def save(hub: Hub, names: list[str]) -> bool:
    """Newcomers, each of which saves a checkpoint of its own. Whether the hub kept them."""
    reports = [{"type": "checkpoint", "agent_id": name, "checkpoint_id": f"of-{name}"} for name in names]
    try:
        hub.post("/api/v1/signals", reports)
    except Refused as refused:
        if refused.status not in (500, 503):
            raise
        return False
    except OSError:
        return False
    return True


def fill(hub: Hub, filler: int) -> set[str]:
    """Bring newcomers until the hub takes no more; those whom it has kept."""
    kept: set[str] = set()
    for attempt in range(ATTEMPTS_MAX):
        names = [f"newcomer-{filler}-{attempt}-{n}" for n in range(AT_ONCE)]
        if not save(hub, names):
            return kept
        kept.update(names)
    raise AssertionError("the hub found room for all of them")


def goes_on(hub: Hub) -> bool:
    """Whether it lives and is ready, now that it has room again."""
    try:
        assert hub.process is not None
        resource.prlimit(
            hub.process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        )
        hub.get("/readyz")
    except (Refused, OSError):
        return False
    return True


def saved(hub: Hub) -> set[str]:
    """Everybody whose checkpoint the hub knows."""
    page = hub.get("/api/v1/agents?limit=1000")
    found = page["agents"]
    while page["cursor"]:
        page = hub.get(f"/api/v1/agents?limit=1000&cursor={page['cursor']}")
        found += page["agents"]
    return {agent["agent_id"] for agent in found if agent["last_checkpoint"]}


@pytest.mark.timeout(120)
def test_what_was_kept_is_there_when_memory_is_back_and_nobody_healthy_is_convicted(tmp_path: Path) -> None:
    """As a service manager does, we start it anew if it has ended, or is not ready although it has room again."""
    names = {"a", "b"}
    with serving(tmp_path) as hub:
        agents = [hub.python("swift.py", SWIFT, name) for name in names]
        hub.until(lambda: all(hub.health(name) == "healthy" for name in names), "both are heard")
        set_room(hub, ROOM)
        with ThreadPoolExecutor(FILLERS) as fillers:
            kept = set().union(*fillers.map(partial(fill, hub), range(FILLERS)))
        assert kept
        if not goes_on(hub):
            hub.kill()
            hub.start()
        assert kept <= saved(hub)
        assert save(hub, ["one-more"])
        hub.until(lambda: all(hub.health(name) == "healthy" for name in names), "both are heard again")
        assert not hub.disconnected() & names
        assert all(agent.poll() is None for agent in agents)
