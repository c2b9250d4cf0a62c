"""Who is ended, who is spared, and what is on record about it: seen from outside.

An agent that comes back is not ended by an order that waited for it. An agent that was rightly told to stop is ended on
record, and started again. An order that was withdrawn is not handed out any more.
"""

from __future__ import annotations

import json
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from tests.journeys.outside import Hub, serving

IMPATIENT = {
    "profile": "swift",
    "policy": {
        "ladder": {
            "hesitate_for": "200ms",
            "nudge_max": 1,
            "nudge_every": "1s",
            "escalation_timeout": "1s",
            "save_for": "2s",
        }
    },
}
"""A silent agent is to be ended some seconds after it was last heard, if nobody decides."""

WORKER = """
import time, lifesigns

with lifesigns.Sender("worker", interval=0.5) as life:
    n = 0
    while not life.stopping:
        n += 1
        life.progress(f"step {n}")
        time.sleep(0.2)
"""

LOOPER = """
import asyncio, os, lifesigns

async def main():
    async with lifesigns.Sender("looper") as life:
        print("begins", os.environ.get("LIFESIGNS_ATTEMPT"), flush=True)
        while os.environ.get("LIFESIGNS_ATTEMPT", "1") == "1":
            with life.tool("search", {"q": "the same"}) as call:
                await asyncio.sleep(0.15)
                call.result("nothing found")
        while True:
            life.progress("on")
            await asyncio.sleep(0.5)

asyncio.run(main())
"""


def terminations(hub: Hub, agent: str) -> list[tuple[str, str]]:
    """The stages of its terminations on record, and what was said about each."""
    events = hub.events("INTERVENTION", "AGENT_TERMINATED", agent=agent)
    return [
        (e["data"]["stage"], e["data"].get("text") or e["data"].get("reason", ""))
        for e in events
        if e["data"]["rung"] == "terminate"
    ]


def stages(hub: Hub, agent: str) -> list[str]:
    return [stage for stage, _ in terminations(hub, agent)]


def orders(hub: Hub, agent: str) -> list[Any]:
    return list(hub.get(f"/api/v1/agents/{agent}/orders")["orders"])


def seems_well(hub: Hub, agent: str, calmly: float = 4.0) -> None:
    """It is healthy and stays so: longer than a stop that was obeyed would take."""
    hub.until(lambda: hub.health(agent) in ("healthy", "degraded"), f"{agent} is well again")
    ends_at = time.monotonic() + calmly
    while time.monotonic() < ends_at:
        assert hub.health(agent) in ("healthy", "degraded"), hub.events(agent=agent)[-5:]
        time.sleep(0.1)


class Line:
    """The line between agents and a hub: it can be cut, and mended."""

    def __init__(self, port: int) -> None:
        self._to = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._sockets: list[socket.socket] = []
        self._threads: list[threading.Thread] = []
        self._is_cut = False
        self._start(self._accept)

    def cut(self) -> None:
        self._is_cut = True
        for end in self._sockets:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut = False

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        for thread in self._threads:
            thread.join(10)
        for end in (self._listener, *self._sockets):
            end.close()

    def _start(self, target: Callable[..., None], *args: socket.socket) -> None:
        self._threads.append(threading.Thread(target=target, args=args, daemon=True))
        self._threads[-1].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                self._sockets.append(near)
                if self._is_cut:
                    near.shutdown(socket.SHUT_RDWR)
                    continue
                far = socket.create_connection(("127.0.0.1", self._to))
                self._sockets.append(far)
                self._start(self._pass_on, near, far)
                self._start(self._pass_on, far, near)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        with suppress(OSError):
            while data := one.recv(65536):
                other.sendall(data)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@contextmanager
def line_to(hub: Hub) -> Iterator[Line]:
    line = Line(hub.port)
    try:
        yield line
    finally:
        line.close()


# --- who comes back ------------------------------------------------------------------------------------


def test_who_was_cut_off_is_not_ended_when_it_returns(tmp_path: Path) -> None:
    """Its first sign of life refutes the silence; the order that waited for it is withdrawn, and that is on record."""
    with serving(tmp_path, IMPATIENT) as hub, line_to(hub) as line:
        agent = hub.python("worker.py", WORKER, LIFESIGNS_HUB=line.url)
        hub.until(lambda: hub.health("worker") == "healthy", "the worker is healthy")
        line.cut()
        hub.until(lambda: "ordered" in stages(hub, "worker"), "the silent worker is to be ended")
        line.mend()
        seems_well(hub, "worker")
        assert agent.poll() is None
        assert stages(hub, "worker")[-1] == "dropped"
        assert "heard again" in terminations(hub, "worker")[-1][1]
        assert orders(hub, "worker") == []
        assert not hub.events("AGENT_TERMINATED", agent="worker")


def test_who_slept_is_not_ended_when_it_wakes(tmp_path: Path) -> None:
    """A laptop that was closed: the agent reads the stop before its own first beat is out, and refuses it."""
    with serving(tmp_path, IMPATIENT) as hub:
        agent = hub.python("worker.py", WORKER)
        hub.until(lambda: hub.health("worker") == "healthy", "the worker is healthy")
        agent.send_signal(signal.SIGSTOP)
        hub.until(lambda: "ordered" in stages(hub, "worker"), "the silent worker is to be ended")
        agent.send_signal(signal.SIGCONT)
        seems_well(hub, "worker")
        assert agent.poll() is None


@pytest.mark.parametrize("command", [[sys.executable, "worker.py"], ["sleep", "300"]])
def test_who_slept_with_its_supervisor_is_not_ended_when_both_wake(
    tmp_path: Path, command: list[str]
) -> None:
    """The supervisor could force it: it refuses for a program that cannot speak, and waits for one that can."""
    (tmp_path / "worker.py").write_text(WORKER)
    with serving(tmp_path, IMPATIENT) as hub, line_to(hub) as line:
        run = hub.started(
            "lifesigns", "run", "--id", "worker", "--restart", "on-failure", "--", *command,
            LIFESIGNS_HUB=line.url,
        )  # fmt: skip
        hub.until(lambda: hub.health("worker") == "healthy", "the worker is healthy")
        life = hub.agent("worker")["incarnation"]  # type: ignore[index]
        line.cut()
        hub.until(lambda: "ordered" in stages(hub, "worker"), "the silent worker is to be ended")
        line.mend()
        seems_well(hub, "worker", calmly=6.0)
        assert run.poll() is None
        assert hub.agent("worker")["incarnation"] == life  # type: ignore[index]


def test_a_beat_by_hand_is_not_answered_with_a_stop(tmp_path: Path) -> None:
    """Whatever speaks for an agent: the answer to the beat that refutes the silence does not bring the order it refutes."""
    with serving(tmp_path, IMPATIENT) as hub:
        hub.post("/api/v1/beats", {"agent_id": "bare"})
        hub.until(lambda: "ordered" in stages(hub, "bare"), "the silent agent is to be ended")
        hub.until(lambda: "stop" in [order["type"] for order in orders(hub, "bare")], "the stop waits for it")
        assert [order["on_silence"] for order in orders(hub, "bare") if order["type"] == "stop"] == [True]
        answer = hub.post("/api/v1/beats", {"agent_id": "bare"})
        assert not [o for each in answer.get("orders", {}).values() for o in each if o["type"] == "stop"]
        assert not [order for order in orders(hub, "bare") if order["type"] == "stop"]


def test_a_persons_own_stop_is_carried_out_when_the_agent_returns_unless_it_was_replaced(
    tmp_path: Path,
) -> None:
    """Who presses Stop means it, whether the agent is heard or not. Who then decides otherwise means that."""
    with serving(tmp_path, IMPATIENT) as hub, line_to(hub) as line:
        kept = hub.python("worker.py", WORKER, LIFESIGNS_HUB=line.url)
        other = hub.python("other.py", WORKER.replace('"worker"', '"other"'), LIFESIGNS_HUB=line.url)
        for name in ("worker", "other"):
            hub.until(lambda name=name: hub.health(name) == "healthy", f"{name} is healthy")  # type: ignore[misc]
        line.cut()
        for name in ("worker", "other"):
            hub.until(lambda name=name: hub.health(name) == "disconnected", f"{name} is silent")  # type: ignore[misc]
            hub.cli("terminate", name, "--reason", "no use", "--yes")
        hub.post("/api/v1/agents/worker/nudge", {"message": "How is it going?"})
        line.mend()
        hub.until(lambda: hub.health("other") == "terminated", "the other was stopped as a person wants it")
        other.wait(20)
        seems_well(hub, "worker")
        assert kept.poll() is None


# --- who is rightly told to stop -----------------------------------------------------------------------


def test_a_looping_agent_is_ended_on_record_and_started_again(tmp_path: Path) -> None:
    """The call that the stop itself cancels is no sign that it is well again."""
    impatient = json.loads(json.dumps(IMPATIENT))
    impatient["policy"]["ladder"]["escalation_timeout"] = "2s"
    (tmp_path / "looper.py").write_text(LOOPER)
    with serving(tmp_path, impatient) as hub:
        hub.started(
            "lifesigns", "run", "--id", "looper", "--restart", "on-failure", "--", sys.executable, "looper.py"
        )
        hub.until(
            lambda: hub.events("AGENT_TERMINATED", agent="looper"), "it is ended, and that is on record"
        )
        ended = hub.events("AGENT_TERMINATED", agent="looper")[0]["data"]
        assert "search was called" in ended["reason"], "the reason is the loop, not what else was found"
        hub.until(lambda: hub.events("RECOVERY_COMPLETED", agent="looper"), "another life begins")
        hub.until(lambda: hub.health("looper") == "healthy", "the new life is healthy")
        assert "dropped" not in stages(hub, "looper")


# --- what was withdrawn --------------------------------------------------------------------------------


def test_a_nudge_that_was_dropped_is_not_handed_out_any_more(tmp_path: Path) -> None:
    """At once: not with the next sweep."""
    with serving(tmp_path) as hub:
        hub.post("/api/v1/beats", {"agent_id": "bare"})
        hub.post("/api/v1/agents/bare/nudge", {"message": "How is it going?"})
        hub.until(lambda: orders(hub, "bare"), "the nudge waits for it")
        hub.request("POST", "/api/v1/agents/bare/clear")
        hub.until(
            lambda: any(e["data"]["stage"] == "dropped" for e in hub.events("INTERVENTION", agent="bare")),
            "the nudge was dropped",
        )
        assert orders(hub, "bare") == []


def test_a_persons_nudge_does_not_switch_the_ladder_off_for_a_dead_agent(tmp_path: Path) -> None:
    """Somebody nudges an agent that died. Nobody answers: people are asked about it again, and it goes on from there."""
    with serving(tmp_path, IMPATIENT) as hub:
        agent = hub.python("worker.py", WORKER)
        hub.until(lambda: hub.health("worker") == "healthy", "the worker is healthy")
        agent.kill()
        hub.until(lambda: hub.health("worker") == "disconnected", "its death was found")
        hub.post("/api/v1/agents/worker/nudge", {"message": "Are you there?"})
        hub.until(lambda: hub.events("NUDGE_SENT", agent="worker"), "it is nudged")
        nudged = hub.events("NUDGE_SENT", agent="worker")[0]["id"]
        hub.until(
            lambda: any(e["id"] > nudged for e in hub.events("ESCALATION_TRIGGERED", agent="worker")),
            "people are asked about it",
        )
        hub.until(lambda: "ordered" in stages(hub, "worker"), "and it is to be ended when nobody decides")
