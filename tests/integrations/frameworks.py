"""The agent frameworks that lifesigns watches: where they are, what each cannot do and why, and how a test runs them.

`make integrations` installs them (`tools/frameworks.py`), each in an environment of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.integrations.scripted_model import Refuse, Say, ScriptedModel, Step, Use, scripted_model
from tests.integrations.watched_coder import STARTS_WITHIN
from tests.journeys.outside import Hub, Json, environment, serving
from tools.frameworks import FOLDER

ROOT: Final = Path(__file__).parents[2]
PROGRAMS: Final = Path(__file__).parent / "programs"


@dataclass(frozen=True)
class Framework:
    """One framework, and where it differs from the others."""

    name: str
    failures_seen: bool = True
    """Whether it tells that a tool failed; otherwise a failure looks like a result, and a loop is found at four."""
    cannot: Mapping[str, str] = field(default_factory=dict)
    """By case: why this framework has no such thing."""
    tokens_late: int = 0
    """Answers of the model whose tokens may be told too late for the run."""
    last: tuple[Step, ...] = (Say("done"),)
    """How its model ends a run."""
    asks: str = "slow"
    """What its question to a human has in it."""

    @property
    def python(self) -> Path:
        return FOLDER / self.name / "bin" / "python"

    @property
    def loops_at(self) -> int:
        return 3 if self.failures_seen else 4


NO_MODEL: Final = "There is no model, so no nudge, and nobody is asked"
NO_QUESTIONS: Final = "It has no question to a human of its own: a tool that asks is a call that takes long"
FRAMEWORKS: Final = {
    one.name: one
    for one in (
        Framework("langchain"),
        Framework("openai_agents"),
        Framework("pydantic_ai"),
        Framework("celery", cannot=dict.fromkeys(("tokens", "limit", "nudge", "ask"), NO_MODEL)),
        Framework("claude_agent_sdk", tokens_late=3),
        Framework("google_adk"),
        Framework("crewai", asks="Is the answer of its task good enough?"),
        Framework("llama_index"),
        Framework(
            "smolagents", cannot={"ask": NO_QUESTIONS}, last=(Use("final_answer", {"answer": "done"}),)
        ),
        Framework("autogen", cannot={"ask": NO_QUESTIONS}),
    )
}

CONFIG: Final = {"health_monitoring": {}, "agents": {"*-hang": {"stall": {"call_max": 3}}}}


def scripts(last: tuple[Step, ...]) -> dict[str, list[Step]]:
    """What the model does in each case."""
    return {
        "work": [*(Use("look", {"path": f"f{n}"}) for n in range(20)), *last],
        "loop": [*[Use("broken", {"path": "/no/such"})] * 8, *last],
        "hang": [Use("hang", {"path": "f"}), *last],
        "handoff": [
            Use("transfer_to_worker", {}),
            *(Use("slow", {"path": f"f{n}"}) for n in range(20)),
            *last,
        ],
        "kill": [Use("look", {"path": "f"}), Say("done", after=60)],
        "ask": [Use("slow", {"path": "f"}), *last],
        "limit": [Refuse(429, "rate_limit_error")],
        "nudge": [*(Use("slow", {"path": f"f{n}"}) for n in range(80)), *last],
        "stop": [*(Use("slow", {"path": f"f{n}"}) for n in range(80)), *last],
    }


@dataclass
class Program:
    """A program of a user, with an agent in it, beside a hub."""

    hub: Hub
    model: ScriptedModel
    framework: Framework
    agent_id: str
    process: subprocess.Popen[str]
    log: Path

    def agent(self) -> Json:
        return self.hub.agent(self.agent_id) or {}

    def state(self) -> str:
        return str(self.agent().get("state"))

    def calls(self) -> int:
        return int(self.agent().get("metrics", {}).get("tool_call_count") or 0)

    def evidence(self, kind: str) -> list[Json]:
        """All that was ever found about it, of this kind."""
        opened = self.hub.events("FINDING_OPENED", agent=self.agent_id)
        return [one["data"]["finding"] for one in opened if kind in ("", one["data"]["finding"]["kind"])]

    def findings(self) -> list[tuple[str, str]]:
        """Kind and text of all that was ever found about it."""
        return [(one["kind"], one["text"]) for one in self.evidence("")]

    def stages(self) -> list[str]:
        """Of its nudge."""
        told = self.hub.events("NUDGE_SENT", "INTERVENTION", agent=self.agent_id)
        return [one["data"]["stage"] for one in told]

    def until(self, condition: Callable[[], object], what: str, within: float = STARTS_WITHIN) -> None:
        """Wait for a condition; a program that has ended brings it soon or never."""
        ends_at, ended = time.monotonic() + within, False
        while not condition():
            if not ended and self.process.poll() is not None:
                ended, ends_at = True, min(ends_at, time.monotonic() + 20)
            if time.monotonic() > ends_at:
                raise AssertionError(f"not in time: {what}\n{self.output()[-4000:]}\n{self.agent()}")
            time.sleep(0.1)

    def output(self) -> str:
        return self.log.read_text()

    def answer(self) -> None:
        """A human presses Enter."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def wait(self) -> str:
        self.process.wait(STARTS_WITHIN)
        return self.output()


@contextmanager
def hub_and_model(folder: Path) -> Iterator[tuple[Hub, ScriptedModel]]:
    with serving(folder, CONFIG) as hub, scripted_model(scripts((Say("done"),))) as model:
        yield hub, model


@contextmanager
def running(
    hub: Hub,
    model: ScriptedModel,
    framework: Framework,
    script: str,
    way: str = "",
    gone: str = "",
    **options: object,
) -> Iterator[Program]:
    """The framework's program, playing this script; nothing of it stays behind. `way`: how its agent is run, if not in the
    simplest way; `gone`: what the framework no longer has (module:name)."""
    model.scripts = scripts(framework.last)
    folder = hub.folder / "-".join([framework.name, script, *way.split(), *(["gone"] if gone else [])])
    folder.mkdir()
    log = folder / "program.log"
    env = environment(
        **hub.environ,
        AGENT=folder.name,
        WAY=way,
        GONE=gone,
        MODEL_URL=model.url,
        OPTIONS=json.dumps(options),
        HOME=str(folder),
        PYTHONPATH=str(ROOT / "src"),
        FOLDER=str(folder),
    )
    command = [str(framework.python), str(PROGRAMS / f"{framework.name}_agent.py"), script]
    with log.open("w") as out:
        process = subprocess.Popen(
            command, env=env, cwd=folder, stdin=subprocess.PIPE, stdout=out, stderr=out, text=True,
            start_new_session=True,
        )  # fmt: skip
    try:
        yield Program(hub, model, framework, folder.name, process, log)
    finally:
        _end(process)


def _end(process: subprocess.Popen[str]) -> None:
    """With all that it started."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
