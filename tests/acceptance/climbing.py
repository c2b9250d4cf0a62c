"""The whole ladder with real processes: a hub, `lifesigns run`, an agent that freezes, an orchestrator that never answers.

    async with climbing(folder, "coder") as climb:
        await climb.until(climb.agents[0], Step.NUDGED)
        await climb.hub.kill() ...

The hub is `lifesigns serve` on SQLite and may be killed and started again on the same port and folder. What happened is
read from the event stream, from the file in which the agent writes its lives down, and at the end from the store.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import Any, Final

from lifesigns.client import AsyncClient
from lifesigns.core.health import Health
from lifesigns.ports import Event
from tests.agent.supervise.running import RUN, environ
from tests.hub.killing import Killed

PROGRAM: Final = Path(__file__).with_name("freezing_agent.py")
WITHIN: Final = 60.0
"""For one step. It takes seconds; the rest is for a machine that is busy."""
POLICY: Final = {
    "silence": {"interval": 1.0, "timeout": 90.0, "ping_wait": 5.0},
    "freeze": {"after": 2.0, "conclusive_after": 3.0},
    "ladder": {
        "hesitate_for": 0.2,
        "nudge_max": 1,
        "nudge_every": 2.0,
        "escalation_timeout": 1.0,
        "save_for": 0.5,
    },
    "respawn": {"backoff": [0.2, 0.4, 0.8], "jitter": 0.0, "probation": 3600.0},
}
FLEET: Final = {
    "acted_share": 100,
    "brake_count": 1000,
    "truce_min": 0.5,
    "nudges_per_minute": 1000,
    "terminations_per_minute": 1000,
    "respawns_per_minute": 1000,
}
"""A fleet in which everybody is ill at once, and everybody is helped at once."""


class Step(StrEnum):
    """The way of a frozen agent up the ladder and back to work, step by step, each by the event that tells it."""

    FOUND = "disconnected"
    NUDGED = "nudge ordered"
    DELIVERED = "nudge delivered"
    NO_ANSWER = "nudge dropped"
    ASKED = "escalate ordered"
    UNANSWERED = "escalate dropped"
    STOPPING = "terminate ordered"
    STOPPED = "terminate done"
    RESPAWNING = "respawn ordered"
    INITIATED = "recovery initiated"
    RESPAWNED = "respawn done"
    BACK = "recovery completed"


HUB_DIES_AT: Final = (
    Step.FOUND,
    Step.NUDGED,
    Step.DELIVERED,
    Step.ASKED,
    Step.STOPPING,
    Step.STOPPED,
    Step.RESPAWNING,
    Step.BACK,
)
"""Every boundary: those that are left out are told in one breath with their neighbour."""
CHILD_DIES_AT: Final = (Step.FOUND, Step.NUDGED, Step.DELIVERED, Step.ASKED, Step.STOPPING, Step.BACK)
"""Between the end of one life and the first word of the next there is no child."""
_TOLD_AS: Final = {
    "NUDGE_SENT": "nudge ordered",
    "ESCALATION_TRIGGERED": "escalate ordered",
    "AGENT_TERMINATED": "terminate done",
    "RECOVERY_INITIATED": "recovery initiated",
    "RECOVERY_COMPLETED": "recovery completed",
    "RECOVERY_FAILED": "recovery failed",
}


def step_of(event: Event) -> str:
    """What an event is on the ladder; empty if it is nothing there."""
    data = json.loads(event.data)
    if event.type == "INTERVENTION":
        return f"{data['rung']} {data['stage']}"
    if event.type == "HEALTH_STATE_CHANGED":
        return str(data["to"])
    return _TOLD_AS.get(event.type, "")


class Hub(Killed):
    """`lifesigns serve` with a fast policy, and an orchestrator who is asked and says nothing."""

    def __init__(self, state: Path, orchestrator: str) -> None:
        super().__init__(state)
        config = {"policy": POLICY, "fleet": FLEET, "escalation": {"webhook": orchestrator}}
        (state / "lifesigns.yaml").write_text(json.dumps(config))

    @property
    def token(self) -> str:
        return (self.state / "admin.token").read_text().strip()


class Agent:
    """`lifesigns run` with the agent in it."""

    def __init__(self, name: str, folder: Path) -> None:
        self.id = name
        self.task = f"t-{name}"
        self.log = folder / f"{name}.log"
        self._incarnations = folder / f"{name}.lives"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self, hub: Hub) -> None:
        """Under a supervisor that starts it anew."""
        options = ("--id", self.id, "--task", self.task, "--hub", hub.url)
        watched = ("--restart", "on-failure", "--nudge", "file", "--verbose")
        command = (*RUN, *options, *watched, "--", sys.executable, str(PROGRAM), str(self._incarnations))
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=environ(LIFESIGNS_TOKEN=hub.token),
            )

    @property
    def lives(self) -> list[dict[str, Any]]:
        """What it wrote down at the beginning of each life."""
        with suppress(OSError):
            return [json.loads(line) for line in self._incarnations.read_text().splitlines()]
        return []

    def kill(self) -> None:
        """Kill the child, as the system does that runs out of memory. Its supervisor lives."""
        with suppress(ProcessLookupError):
            os.kill(self.lives[-1]["pid"], signal.SIGKILL)

    def end(self) -> None:
        """Twice: after the first time the supervisor gives its child time to save."""
        if self.process is None:
            return
        for _ in range(2):
            self.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                self.process.wait(3)
                return
        self.process.kill()
        self.process.wait()


class Orchestrator:
    """Takes every question and answers none."""

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        """Questions by their `Idempotency-Key`."""
        self.url = ""
        self._talks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Orchestrator:
        self._server = await asyncio.start_server(self._listen, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/escalations"
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        for talk in self._talks:
            talk.cancel()
        await asyncio.gather(*self._talks, return_exceptions=True)

    def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talk = asyncio.create_task(self._hear(reader, writer))
        self._talks.add(talk)
        talk.add_done_callback(self._talks.discard)

    async def _hear(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := await reader.readline():
                name, _, value = line.decode().partition(":")
                if name.lower() == "idempotency-key":
                    self.asked[value.strip()] += 1
        except OSError:
            pass  # The hub was killed.
        finally:
            writer.close()


class Climb:
    """Everything that runs, and what was told of it."""

    def __init__(self, hub: Hub, agents: list[Agent], orchestrator: Orchestrator) -> None:
        self.hub = hub
        self.agents = agents
        self.orchestrator = orchestrator
        self.told: list[Event] = []
        self._more = asyncio.Event()

    def steps(self, agent: Agent) -> list[str]:
        """What was done about an agent so far, and how it was."""
        return [step for event in self.told if event.agent_id == agent.id and (step := step_of(event))]

    async def until(self, agent: Agent, step: Step) -> None:
        """Wait for a step, or one that comes after it."""
        far_enough = set(tuple(Step)[tuple(Step).index(step) :])
        await self._holds(lambda: far_enough.intersection(self.steps(agent)), agent, step)

    async def well_again(self, agent: Agent, lives: int) -> None:
        """Wait until its so-manieth life has begun and is known to be healthy."""

        def well() -> bool:
            health = [step for step in self.steps(agent) if step in set(Health)]
            return len(agent.lives) >= lives and health[-1:] == [Health.HEALTHY]

        await self._holds(well, agent, f"well again in its life number {lives}")

    async def _holds(self, condition: Callable[[], object], agent: Agent, what: str) -> None:
        """Wait until something is true, looking at each event and now and then."""
        try:
            async with asyncio.timeout(WITHIN):
                while not condition():
                    self._more.clear()
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self._more.wait(), 0.1)
        except TimeoutError:
            said = agent.log.read_text() if agent.log.exists() else ""
            raise AssertionError(
                f"{agent.id}: not {what} within {WITHIN} s; but {self.steps(agent)}, {agent.lives}\n{said}"
            ) from None

    async def listen(self) -> None:
        """To all events, from where it was cut off."""
        while True:
            with suppress(OSError, asyncio.IncompleteReadError):
                reader, writer = await asyncio.open_connection("127.0.0.1", self.hub.port, limit=1 << 20)
                try:
                    last = self.told[-1].id if self.told else 0
                    head = f"GET /api/v1/events?after={last} HTTP/1.1\r\nHost: 127.0.0.1:{self.hub.port}\r\n"
                    writer.write(f"{head}Authorization: Bearer {self.hub.token}\r\n\r\n".encode())
                    while line := await reader.readline():
                        if line.startswith(b"data: "):
                            self._hear(json.loads(line[6:]))
                finally:
                    writer.close()
            await asyncio.sleep(0.02)

    def _hear(self, told: dict[str, Any]) -> None:
        if told["id"]:
            data = json.dumps(told["data"]).encode()
            self.told.append(Event(told["id"], 0.0, told["type"], told["agent_id"], data))
            self._more.set()

    # --- how it went --------------------------------------------------------------------------------------

    async def flaws(self) -> list[str]:
        """What is wrong with the record of it all: events with gaps, steps that are not on the audit log, questions that
        were asked under two names, an audit log that does not hold."""
        ids = [event.id for event in self.told]
        found = [] if ids == list(range(1, len(ids) + 1)) else [f"events with a gap or a double: {ids}"]
        async with AsyncClient(self.hub.url, self.hub.token) as client:
            for agent in self.agents:
                entries = (await client.audit(limit=1000, agent=agent.id)).entries
                missing = Counter(self.rungs(agent)) - Counter(entry.what for entry in entries)
                found += [f"{agent.id}: {step} is not on the audit log" for step in missing]
        asked = Counter(key.partition("@")[0] for key in self.orchestrator.asked)
        found += [f"escalation {order} was asked as {n} questions" for order, n in asked.items() if n > 1]
        verify = (sys.executable, "-m", "lifesigns", "audit", "verify", "--state", str(self.hub.state))
        verified = await asyncio.to_thread(
            subprocess.run, verify, capture_output=True, text=True, check=False, env=environ()
        )
        return found if verified.returncode == 0 else [*found, f"audit verify: {verified}"]

    def rungs(self, agent: Agent) -> list[str]:
        """What was done about an agent, without how it was."""
        return [step for step in self.steps(agent) if step not in set(Health)]


@asynccontextmanager
async def climbing(folder: Path, *names: str) -> AsyncIterator[Climb]:
    """A hub, and these agents under their supervisors; all of it gone at the end."""
    state = folder / "state"
    state.mkdir()
    async with AsyncExitStack() as stack, Orchestrator() as orchestrator:
        hub = Hub(state, orchestrator.url)
        stack.callback(hub.close)
        await hub.start()
        climb = Climb(hub, [Agent(name, folder) for name in names], orchestrator)
        listening = asyncio.create_task(climb.listen())
        stack.push_async_callback(_cancelled, listening)
        stack.push_async_callback(_ended, climb.agents)
        for agent in climb.agents:
            agent.start(hub)
        yield climb


async def _cancelled(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


async def _ended(agents: list[Agent]) -> None:
    await asyncio.gather(*(asyncio.to_thread(agent.end) for agent in agents))
