"""The real frameworks, each in a program of a user, against a scripted model: what goes right, what goes wrong, and what
reaches the model. `make integrations` runs this; what a framework cannot do is skipped with its reason."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator

import pytest

from tests.integrations.frameworks import FRAMEWORKS, Framework, hub_and_model, running
from tests.integrations.scripted_model import TOKENS_IN, TOKENS_OUT, ScriptedModel, Use
from tests.journeys.outside import Hub

pytestmark = [
    pytest.mark.skipif(
        not os.environ.get("LIFESIGNS_INTEGRATIONS"), reason="with the real frameworks: make integrations"
    ),
    pytest.mark.timeout(1200),
]

Watched = tuple[Hub, ScriptedModel]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """One hub and one model for all."""
    with hub_and_model(tmp_path_factory.mktemp("frameworks")) as both:
        yield both


def each(case: str) -> pytest.MarkDecorator:
    """All frameworks; those that cannot do this say why."""
    frameworks = [
        pytest.param(one, id=one.name, marks=[pytest.mark.skip(reason=f"{one.name}: {one.cannot[case]}")])
        if case in one.cannot
        else pytest.param(one, id=one.name)
        for one in FRAMEWORKS.values()
    ]
    return pytest.mark.parametrize("framework", frameworks)


@each("work")
def test_a_healthy_run_of_twenty_calls_is_a_life_without_a_finding(
    watched: Watched, framework: Framework
) -> None:
    with running(*watched, framework, "work") as program:
        assert "ended: " in program.wait()
        program.until(lambda: program.state() == "terminated", "it left")
        assert program.agent()["doing_note"] == "left: done"
        assert program.calls() >= 20
        assert program.findings() == []
        if "tokens" not in framework.cannot:
            least = (21 - framework.tokens_late) * (TOKENS_IN + TOKENS_OUT)
            assert program.agent()["metrics"]["token_count"] >= least


@each("loop")
def test_the_same_failing_call_eight_times_is_a_loop(watched: Watched, framework: Framework) -> None:
    with running(*watched, framework, "loop") as program:
        program.wait()
        program.until(lambda: any(kind == "looping" for kind, _ in program.findings()), "the loop is found")
        first = next(text for kind, text in program.findings() if kind == "looping")
        assert f"{framework.loops_at} times" in first


@each("hang")
def test_a_tool_that_hangs_is_a_finding(watched: Watched, framework: Framework) -> None:
    with running(*watched, framework, "hang") as program:

        def found() -> list[str]:
            """Not a model call that a busy machine made slow."""
            return [one["text"] for one in program.evidence("long_call") if "hang" in one["text"]]

        program.until(found, "the hang is found")
        assert "for 3.0 s, longer than its bound of 3.0 s." in found()[0]


@each("kill")
def test_a_killed_process_is_found_within_seconds(watched: Watched, framework: Framework) -> None:
    with running(*watched, framework, "kill", profile="balanced") as program:
        program.until(lambda: program.calls() >= 1, "it works")
        os.killpg(program.process.pid, signal.SIGKILL)
        program.until(lambda: program.state() == "disconnected", "it is found dead", within=20)
        program.until(
            lambda: program.evidence("silence")[-1]["severity"] == "disconnected", "its evidence is stored"
        )
        assert program.evidence("silence")[-1]["text"].startswith("Nothing heard for ")


@each("ask")
def test_a_run_that_asks_a_human_waits_for_one(watched: Watched, framework: Framework) -> None:
    with running(*watched, framework, "ask") as program:
        program.until(lambda: program.agent().get("doing") == "waiting_for_human", "it waits")
        program.until(lambda: framework.asks in program.agent()["doing_note"], "it says for what")
        life = program.agent()["incarnation"]
        program.answer()
        assert "ended: " in program.wait()
        program.until(lambda: program.state() == "terminated", "it left")
        assert program.agent()["incarnation"] == life
        assert program.findings() == []


@each("limit")
def test_a_run_that_a_rate_limit_ends_has_left_and_did_not_crash(
    watched: Watched, framework: Framework
) -> None:
    with running(*watched, framework, "limit") as program:
        program.wait()
        program.until(lambda: program.state() == "terminated", "it left")
        assert "rate_limit" in program.agent()["doing_note"]
        assert program.findings() == []


@each("nudge")
def test_a_nudge_reaches_the_model(watched: Watched, framework: Framework) -> None:
    hub, model = watched
    with running(*watched, framework, "nudge") as program:
        program.until(lambda: program.calls() >= 2, "it works")
        text = f"Look at issue 7 of {framework.name}."
        hub.post(f"/api/v1/agents/{program.agent_id}/nudge", {"message": text})
        program.until(lambda: model.told(f"Note from the monitor (lifesigns): {text}"), "the model is told")
        program.until(lambda: program.stages()[:3] == ["ordered", "delivered", "seen"], "it is seen")


@each("stop")
def test_a_stop_ends_the_run(watched: Watched, framework: Framework) -> None:
    hub, _ = watched
    with running(*watched, framework, "stop") as program:
        program.until(lambda: program.calls() >= 3, "it works")
        hub.cli("terminate", program.agent_id, "--reason", "enough", "--yes")
        program.until(lambda: program.state() == "terminated", "it is stopped")
        assert "enough" in program.agent()["doing_note"]
        program.wait()
        assert program.calls() < 60
        assert program.findings() == []


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("langchain", "stream"),
        ("langchain", "async"),
        ("langchain", "async stream"),
        ("langchain", "graph"),
        ("openai_agents", "stream"),
    ],
)
def test_a_run_that_is_streamed_or_awaited_is_seen_as_any_other(
    watched: Watched, name: str, way: str
) -> None:
    with running(*watched, FRAMEWORKS[name], "work", way) as program:
        assert "ended: done" in program.wait()
        program.until(lambda: program.state() == "terminated", "it left")
        assert program.calls() == 20
        assert program.agent()["metrics"]["token_count"] == 21 * (TOKENS_IN + TOKENS_OUT)
        assert program.findings() == []


@pytest.mark.parametrize(
    ("name", "way"),
    [
        ("langchain", "async"),
        ("langchain", "async stream"),
        ("openai_agents", ""),
        ("openai_agents", "stream"),
        ("pydantic_ai", ""),
        ("claude_agent_sdk", ""),
        ("google_adk", ""),
        ("llama_index", ""),
        ("autogen", ""),
    ],
)
def test_a_run_is_over_with_its_answer_also_in_a_program_whose_loop_goes_on(
    watched: Watched, name: str, way: str
) -> None:
    """Otherwise an agent that has nothing to do would look as if it thought, for ever."""
    with running(*watched, FRAMEWORKS[name], "work", f"{way} stays".strip()) as program:
        program.until(lambda: program.state() == "terminated", "its run is over")
        assert program.agent()["doing_note"] == "left: done"
        assert program.process.poll() is None
        assert program.findings() == []


def test_a_run_that_asks_its_model_again_is_parked_until_it_answers(watched: Watched) -> None:
    _, model = watched
    with running(*watched, FRAMEWORKS["langchain"], "limit", "retry") as program:
        program.until(lambda: program.agent().get("doing") == "rate_limited", "it is parked")
        assert program.state() == "healthy"
        assert "rate_limit" in program.agent()["doing_note"]
        model.scripts = {"limit": [Use("look", {"path": "f"}), Use("hang", {"path": "f"})]}
        program.until(lambda: program.agent()["doing"] != "rate_limited", "it goes on")
        assert program.findings() == []


def test_a_handoff_is_the_phase_of_the_run(watched: Watched) -> None:
    hub, _ = watched
    with running(*watched, FRAMEWORKS["openai_agents"], "handoff", "handoff", profile="swift") as program:

        def phase() -> object:
            if not program.agent():
                return None
            beat = hub.get(f"/api/v1/agents/{program.agent_id}/heartbeat")["beat"]
            return beat and beat.get("phase")  # Before the first run has begun there is none.

        program.until(lambda: phase() == "worker", "the worker goes on")
        assert "ended: done" in program.wait()
        program.until(lambda: program.state() == "terminated", "it left")
        assert program.findings() == []


def test_each_process_of_a_prefork_pool_is_an_agent(watched: Watched) -> None:
    hub, _ = watched
    with running(*watched, FRAMEWORKS["celery"], "work", "prefork") as program:
        first, second = (f"{program.agent_id}%2F{number}" for number in (1, 2))

        def calls(agent: str) -> int:
            return int((hub.agent(agent) or {}).get("metrics", {}).get("tool_call_count") or 0)

        program.until(lambda: calls(first) + calls(second) >= 21, "the tasks are done")
        assert hub.agent(program.agent_id) is None
        for process in (first, second):
            assert (hub.agent(process) or {})["state"] == "healthy"
        program.process.terminate()
        assert "ended: " in program.wait()
        program.until(
            lambda: {hub.health(first), hub.health(second)} == {"terminated"}, "both processes left"
        )


GONE = {
    "langchain": "langchain.agents.middleware:AgentMiddleware",
    "openai_agents": "agents:RunHooks",
    "pydantic_ai": "pydantic_ai.capabilities:Hooks",
    "celery": "celery.signals:worker_process_shutdown",
    "claude_agent_sdk": "claude_agent_sdk:HookMatcher",
    "google_adk": "google.adk.apps.app google.adk.runners google.adk.plugins.base_plugin:BasePlugin",
    "crewai": "crewai.hooks:register_before_tool_call_hook",
}
"""What a later version may have no more, after what the framework itself needs it for. The other three are given nothing but the agent."""


@pytest.mark.parametrize("name", GONE)
def test_a_framework_whose_class_is_gone_runs_its_agent_unwatched(watched: Watched, name: str) -> None:
    hub, _ = watched
    with running(*watched, FRAMEWORKS[name], "work", gone=GONE[name]) as program:
        said = program.wait()
        assert "ended: " in said, said[-3000:]
        assert "cannot be watched by lifesigns, which knows " in said
        assert hub.agent(program.agent_id) is None


def test_every_framework_is_installed() -> None:
    """`make integrations` has installed all of them: a missing one would fail everywhere else for another reason."""
    assert [one.name for one in FRAMEWORKS.values() if not one.python.exists()] == []
