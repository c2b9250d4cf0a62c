"""The checker: compares what agents wrote down with what the hubs have on record."""

from __future__ import annotations

import json
import random
import threading
import time
import urllib.error
import urllib.request
from collections import Counter

from tools.chaos_hubs.world import World

FIND_WITHIN = 60.0
"""Seconds until a death is on record once a hub judges: a takeover, its truce of 15 s, the timeout; the rest is for a busy machine."""


class Listener(threading.Thread):
    """Somebody who follows the events, at one hub or another, and goes on after the last one seen."""

    def __init__(self, world: World) -> None:
        super().__init__(daemon=True)
        self._world = world
        self.seen: list[int] = []
        self._last = "0"
        self.over = threading.Event()

    def run(self) -> None:
        while not self.over.is_set():
            try:
                self._follow(random.choice(self._world.hubs).url)
            except (OSError, ValueError):
                self.over.wait(0.3)

    def _follow(self, url: str) -> None:
        request = urllib.request.Request(f"{url}/api/v1/events?after={self._last}")
        request.add_header("Authorization", f"Bearer {self._world.token}")
        try:
            # Short, so that a hub that is frozen does not hold us; events of living hubs keep the stream alive.
            with urllib.request.urlopen(request, timeout=5.0) as stream:
                told: dict[str, str] = {}
                for raw in stream:
                    name, _, value = raw.decode().rstrip("\n").partition(": ")
                    if name:
                        told[name] = value
                        continue
                    if told.get("event") == "GAP":
                        return  # It could not read the store just now: come back after the last one seen.
                    if "id" in told:
                        self._last = told["id"]
                    if number := json.loads(told.get("data", "{}")).get("id"):
                        self.seen.append(number)
                    told = {}
                    if self.over.is_set():
                        return
        except urllib.error.HTTPError as error:
            error.close()
            self.over.wait(0.3)


def wrong(world: World, listener: Listener, nudged: dict[str, str]) -> list[str]:
    """Every promise that was broken. `nudged` has the agent of each nudge that a hub took."""
    return [
        *_harmed(world),
        *_unfound(world),
        *_nudges(world, nudged),
        *_reports(world),
        *_missed(world, listener),
    ]


def _harmed(world: World) -> list[str]:
    """No agent that lives was found gone, ended, or acted on."""
    found = []
    for event in world.events("HEALTH_STATE_CHANGED", "AGENT_TERMINATED", "ESCALATION_TRIGGERED"):
        name = event["agent_id"]
        unwell = event["type"] != "HEALTH_STATE_CHANGED" or event["data"]["to"] in (
            "disconnected",
            "terminated",
        )
        if unwell and name in world.living:
            found.append(f"{name} lives, and is on record: {event['type']} {json.dumps(event['data'])[:300]}")
    stopped = [name for name in world.living if any("stopped" in line for line in world.ledger(name))]
    return [*found, *(f"{name} was told to stop" for name in stopped)]


def _unfound(world: World) -> list[str]:
    """Every death is on record."""
    ends_at = time.monotonic() + FIND_WITHIN
    while True:
        flips = world.events("HEALTH_STATE_CHANGED")
        gone = {flip["agent_id"] for flip in flips if flip["data"]["to"] in ("disconnected", "terminated")}
        if not (missing := world.killed.keys() - gone) or time.monotonic() > ends_at:
            return [f"{name} was killed, and nobody found it" for name in missing]
        time.sleep(1.0)


def unheard(world: World, nudged: dict[str, str], name: str) -> set[str]:
    """The nudges for this agent that it has not heard."""
    heard = {line["nudged"] for line in world.ledger(name) if "nudged" in line}
    return {text for text, agent in nudged.items() if agent == name} - heard


def _nudges(world: World, nudged: dict[str, str]) -> list[str]:
    """Each nudge reached its agent, once, and no agent had another one."""
    heard = {
        name: Counter(line["nudged"] for line in world.ledger(name) if "nudged" in line)
        for name in world.agents
    }
    found = []
    for text, name in nudged.items():
        if name in world.living and (times := heard[name].pop(text, 0)) != 1:
            found.append(f"the nudge {text!r} reached {name} {times} times")
    return found + [
        f"{name} was nudged by nobody: {dict(more)}"
        for name, more in heard.items()
        if more and name in world.living
    ]


def _reports(world: World) -> list[str]:
    """The last checkpoint that each agent saved is the last one on record, or one that it saved since."""
    found = []
    for name in sorted(world.living):
        said = [line["said"] for line in world.ledger(name) if "said" in line]
        ends_at = time.monotonic() + FIND_WITHIN
        while True:
            known = json.dumps(world.ask("GET", f"/api/v1/tasks/task-{name}/checkpoints"))
            now = [line["said"] for line in world.ledger(name) if "said" in line]
            if any(f'"{one}"' in known for one in now[len(said) - 1 :]):
                break
            if time.monotonic() > ends_at:
                found.append(f"{name} said {said[-1]} and later {now[-1]}, and the hub has neither")
                break
            time.sleep(1.0)
    return found


def _missed(world: World, listener: Listener) -> list[str]:
    """Who followed the events has seen each of them once, and the record has no gap."""
    ids = [event["id"] for event in world.events()]
    ends_at = time.monotonic() + FIND_WITHIN
    while not {*ids} <= {*listener.seen} and time.monotonic() < ends_at:
        time.sleep(0.5)
    found = []
    seen = Counter(listener.seen)
    doubled = [id_ for id_, times in seen.items() if times > 1]
    missing = sorted({*ids} - seen.keys())
    if doubled or missing:
        found.append(f"a listener saw twice {doubled[:10]}, and missed {missing[:10]} ({len(missing)})")
    if world.judged_by == "one" and ids != list(range(1, len(ids) + 1)):
        found.append("the record of events has gaps")
    return found
