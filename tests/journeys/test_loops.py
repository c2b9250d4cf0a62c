"""Loops, and what only looks like one: as an agent's author meets it, through `Sender` and a hub."""

from __future__ import annotations

from pathlib import Path

from tests.journeys.outside import BOUND, serving

POLICY = {
    "looping": {"wait_period_min": 0.2, "polling_gap_min": 0.05},
    "ladder": {"nudge_max": 1, "nudge_every": 1, "escalation_timeout": 1, "save_for": 1},
}
"""What takes half a minute takes a fifth of a second here, and nobody answers for long."""

AGENTS = """
import sys, time
from lifesigns import Sender

def poller(life):
    for _ in range(16):
        with life.model():
            pass
        with life.tool("bash", "sleep 290; squeue") as call:
            time.sleep(0.5)
            call.result("77 PENDING")

def looper(life):
    for _ in range(14):
        with life.model():
            time.sleep(0.25)
        with life.tool("bash", "squeue") as call:
            call.result("77 PENDING")

def tester(life):
    for i in range(15):
        with life.tool("edit", {"change": i}) as call:
            call.result("ok")
        with life.tool("bash", "pytest -q") as call:
            call.result("97 passed in 3.1s")

def talker(life):
    with life.tool("read", "the task") as call:
        call.result("do it")
    for _ in range(10):
        with life.model():
            time.sleep(0.05)

def summariser(life):
    for _ in range(25):
        with life.model():
            time.sleep(0.05)

def chatter(life):
    with life.tool("read", "the manual") as call:
        call.result("press start")
    for _ in range(15):
        with life.model():
            time.sleep(0.05)
        time.sleep(0.2)

def argless(life):
    for _ in range(8):
        with life.tool("get_state") as call:
            call.result("the same")

def retrier(life):
    wait = 0.05
    for _ in range(8):
        try:
            with life.tool("query", "select 1"):
                raise RuntimeError("the database is locked")
        except RuntimeError:
            time.sleep(wait)
            wait *= 1.8
    time.sleep(4)

name = sys.argv[1]
with Sender(name) as life:
    globals()[name](life)
    time.sleep(float(sys.argv[2]))
"""


def test_who_waits_is_spared_and_who_loops_is_found(tmp_path: Path) -> None:
    """On record, when all of them have ended by themselves."""
    names = ("poller", "looper", "tester", "talker", "summariser", "chatter", "argless", "retrier")
    with serving(tmp_path, {"policy": POLICY}) as hub:
        agents = [hub.python(f"{name}.py", AGENTS, name, "3") for name in names]
        for agent in agents:
            agent.wait(BOUND)
        for name in names:
            hub.until(lambda name=name: hub.health(name) == "terminated", f"{name} has left")  # type: ignore[misc]
        events = {name: hub.events(agent=name) for name in names}
    states = {name: {event["data"].get("to") for event in events[name]} for name in names}
    assert "stuck" in states["looper"]
    assert "degraded" in states["talker"]
    assert "stuck" in states["argless"]
    for name in ("poller", "tester", "summariser", "chatter"):
        assert not states[name] & {"degraded", "stuck", "failing"}, (name, events[name])
    for name in ("poller", "tester", "retrier", "talker", "argless"):
        rungs = {event["data"].get("rung") for event in events[name]}
        assert "terminate" not in rungs, (name, events[name])
