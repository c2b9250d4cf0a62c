"""`python -m tools.chaos_hubs`: three hubs, each on a machine of its own, under a nemesis. `make chaos-hubs` is the long one.

Each round strikes hubs, servers or links, kills an agent now and then, and lets people nudge others, all at once. Then it waits until a
hub judges. At the end a checker compares what the agents wrote down with what is on record. Exits with 1 if a promise was broken.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter
from functools import partial

from tools.chaos_hubs import machines
from tools.chaos_hubs.checker import Listener, unheard, wrong
from tools.chaos_hubs.nemesis import STRIKES
from tools.chaos_hubs.world import NoAnswer, World, until


def main() -> None:
    """Strike."""
    reader = argparse.ArgumentParser(description=__doc__)
    reader.add_argument("--rounds", type=int, default=200)
    reader.add_argument("--seed", type=int, default=1)
    reader.add_argument("--only", choices=STRIKES, action="append", help="only these strikes")
    reader.add_argument("--judge", choices=("one", "all"), default="one", help="hubs.judge of each hub")
    asked = reader.parse_args()
    if machines.INSIDE not in os.environ:
        if why := machines.why_impossible():
            sys.exit(f"chaos_hubs: {why}")
        machines.enter()
    machines.make_network()
    began_at = time.monotonic()
    with World(asked.judge) as world:
        told = _run(world, random.Random(asked.seed), asked.rounds, asked.only or [*STRIKES])
    print(f"seed {asked.seed}: {asked.rounds} rounds in {time.monotonic() - began_at:.0f} s; {told[0]}")
    for broken in told[1][:20]:
        print(f"BROKEN: {broken}")
    if told[1]:
        print(f"the logs are in {world.folder}")
    sys.exit(1 if told[1] else 0)


def _run(world: World, chance: random.Random, rounds: int, strikes: list[str]) -> tuple[str, list[str]]:
    listener, nudged, broken = Listener(world), dict[str, str](), list[str]()
    listener.start()
    until(lambda: len(_healthy(world)) == len(world.living), "all agents are met")
    took: list[float] = []
    done = Counter[str]()
    for number in range(rounds):
        name = chance.choice(strikes)
        # A nudge that nobody has heard yet is replaced by the next one.
        idle = [one for one in sorted(world.living) if not unheard(world, nudged, one)]
        people = threading.Thread(target=_nudge, args=(world, chance.sample(idle, 2), number, nudged, broken))
        mortal = f"mortal-{number}"
        if number % 3 == 0:
            world.start_agents([mortal], over_bus=chance.random() < 0.5)
            # On record: of one that only a hub has met that then loses its store, nobody else knows.
            until(partial(_is_on_record, world, mortal), f"{mortal} is met")
        people.start()
        if number % 3 == 0:
            world.kill_agent(mortal)
        print(f"round {number + 1} of {rounds}: {name}", file=sys.stderr, flush=True)
        STRIKES[name](world, chance)
        took.append(until(lambda: world.judge() is not None, f"a hub judges after: {name}"))
        people.join()
        done[name] += 1
    until(lambda: _healthy(world) >= world.living, "all that live are healthy")
    print("checking ...", file=sys.stderr, flush=True)
    broken += wrong(world, listener, nudged)
    listener.over.set()
    broken += _audit(world)
    said = f"{len(nudged)} nudges, {len(world.killed)} deaths, {len(listener.seen)} events seen, judged again after {max(took):.1f} s at worst; "
    return said + ", ".join(f"{name} {times}" for name, times in sorted(done.items())), broken


def _healthy(world: World) -> set[str]:
    try:
        page = world.ask("GET", "/api/v1/agents?state=healthy&limit=1000")
    except NoAnswer:
        return set()
    return {agent["agent_id"] for agent in page["agents"]}


def _is_on_record(world: World, name: str) -> bool:
    return name in _healthy(world) and any(
        event["agent_id"] == name for event in world.events("HEALTH_STATE_CHANGED")
    )


def _nudge(world: World, names: list[str], number: int, nudged: dict[str, str], broken: list[str]) -> None:
    for name in names:
        text = f"round {number}, {name}"
        try:
            world.ask("POST", f"/api/v1/agents/{name}/nudge", {"message": text}, key=text)
        except NoAnswer as error:
            broken.append(f"{text}: {error}")
        else:
            nudged[text] = name


def _audit(world: World) -> list[str]:
    if world.judged_by == "all":
        return []  # Each slot has a log of its own, which no call verifies yet.
    store = f"postgres://lifesigns@127.0.0.1:{world.store.port}/postgres"
    env = {
        **os.environ,
        "LIFESIGNS_STORE": store,
        "LIFESIGNS_STATE": str(world.hubs[0].state),
        "LIFESIGNS_INSECURE": "1",
    }
    where = ("--hub", (world.judge() or world.hubs[0]).url, "--token", world.token)
    done = subprocess.run(
        [sys.executable, "-m", "lifesigns", "audit", *where, "verify"],
        env=env,
        capture_output=True,
        text=True,
        check=False,
    )
    return [] if done.returncode == 0 else [f"audit verify: {done.returncode} {done.stdout} {done.stderr}"]


if __name__ == "__main__":
    main()
