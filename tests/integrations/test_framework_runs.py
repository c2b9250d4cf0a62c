"""What all adapters of frameworks share, without any framework: a run as a life, and an agent that never suffers from us."""

from __future__ import annotations

import logging
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib import import_module, metadata
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import pytest

from lifesigns.core import signals as s
from lifesigns.core.effects import SendNudge, Terminate
from lifesigns.core.health import Doing
from lifesigns.errors import RunStopped
from lifesigns.integrations import runs
from lifesigns.integrations.langchain import RunCallbacks
from lifesigns.integrations.runs import NOTE, AgentRun, Bystander, Watch, attached, harmless_hook
from tests.agent.sender.ear import Ear
from tests.integrations.frameworks import FRAMEWORKS
from tools.frameworks import WANTED


@pytest.fixture
def ear() -> Iterator[Ear]:
    with Ear() as ear:
        yield ear


@pytest.fixture
def watch(ear: Ear) -> Watch:
    return Watch("some", "coder", hub=ear.url)


def begun(watch: Watch, key: object) -> AgentRun:
    run = watch.begin(key)
    assert run is not None
    return run


class LimitReached(Exception):
    status_code = 429
    response = SimpleNamespace(headers={"retry-after": "30"})


def test_a_run_is_a_life_with_its_calls_tokens_and_end(watch: Watch, ear: Ear) -> None:
    run = begun(watch, "r1")
    run.model_started("m")
    run.model_finished("m", 1000, 50, cost=0.25)
    run.tool_started("t", "grep", {"pattern": "x"})
    run.tool_finished("t", "3 matches")
    run.tool_started("u", "grep", {"pattern": "y"})
    run.tool_failed("u", OSError("no disk"))
    watch.end("r1")
    ear.until_word(s.AgentLeft)
    (thought,) = ear.of(s.ModelFinished)
    assert (thought.tokens_in, thought.tokens_out, thought.cost_usd) == (1000, 50, 0.25)
    good, bad = ear.of(s.ToolFinished)
    assert good.ok
    assert (bad.ok, bad.error) == (False, "OSError: no disk")


def test_two_runs_at_a_time_are_two_agents_and_the_next_has_the_first_name_again(watch: Watch) -> None:
    first, second = begun(watch, 1), begun(watch, 2)
    assert (first.life.agent_id, second.life.agent_id) == ("coder", "coder/2")
    watch.end(1)
    third = begun(watch, 3)
    assert third.life.agent_id == "coder"
    assert third.life.incarnation != first.life.incarnation
    watch.end(2)
    watch.end(3)


def test_a_run_that_fails_is_a_crash(watch: Watch, ear: Ear) -> None:
    begun(watch, 1)
    watch.end(1, ValueError("no such model"))
    assert "no such model" in ear.until_word(s.ProcessExited).detail


def test_a_limit_of_the_provider_parks_it_and_is_no_crash(watch: Watch, ear: Ear) -> None:
    run = begun(watch, 1)
    run.model_started("m")
    run.model_failed("m", LimitReached("slow down"))
    watch.end(1, LimitReached("slow down"))
    ear.until_word(s.AgentLeft)
    (parked,) = ear.of(s.DoingChanged)
    assert parked.doing is Doing.RATE_LIMITED
    assert parked.until is not None
    assert 20 < parked.until - time.time() < 31
    assert ear.of(s.ProcessExited) == []


def test_a_limit_is_over_when_the_model_answers(watch: Watch, ear: Ear) -> None:
    run = begun(watch, 1)
    for call, error in (("a", "Error code: 429"), ("b", None)):
        run.model_started(call)
        run.model_failed(call, error) if error else run.model_finished(call)
    watch.end(1)
    ear.until_word(s.AgentLeft)
    assert [one.doing for one in ear.of(s.DoingChanged)] == [Doing.RATE_LIMITED, Doing.WORKING]


def test_an_error_of_the_model_that_is_no_limit_does_not_park(watch: Watch, ear: Ear) -> None:
    run = begun(watch, 1)
    run.model_started("m")
    run.model_failed("m", ValueError("no such model"))
    watch.end(1)
    ear.until_word(s.AgentLeft)
    assert ear.of(s.DoingChanged) == []


def test_a_nudge_is_a_note_for_the_model_once(watch: Watch, ear: Ear) -> None:
    run = begun(watch, 1)
    ear.until(lambda: ear.beats)
    ear.order(SendNudge(time.time(), "1-1", 1, "coder", None, attempt=1, text="Look at issue 7."))
    ear.until_word(s.NudgeDelivered)
    assert run.note() == f"{NOTE}Look at issue 7."
    assert run.note() is None
    ear.until_word(s.NudgeSeen)
    watch.end(1)


def test_a_stop_ends_the_run_where_the_framework_lets_us(watch: Watch, ear: Ear) -> None:
    run = begun(watch, 1)
    run.end_if_told()
    ear.until(lambda: ear.beats)
    stop = Terminate(
        time.time(),
        "1-2",
        1,
        "coder",
        run.life.incarnation,
        reason="enough",
        save_for=0.0,
        findings=(),
        seq_seen=0,
    )
    ear.order(stop)
    run.life.stopping.wait(10)
    with pytest.raises(RunStopped, match="lifesigns stopped this run: enough") as stopped:
        run.end_if_told()
    watch.end(1, stopped.value)
    ear.until_word(s.TerminationDone)
    assert ear.of(s.ProcessExited) == []


def test_an_error_of_ours_is_logged_once_and_the_agent_goes_on(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    run = begun(watch, 1)

    def fail(*_: object) -> None:
        raise KeyError("ours")

    monkeypatch.setattr(run.life, "tool", fail)
    monkeypatch.setattr(runs, "_complained", set())
    with caplog.at_level(logging.ERROR):
        for call in range(3):
            run.tool_started(call, "grep", None)
            run.tool_finished(call)
    assert len(caplog.records) == 1
    watch.end(1)


def test_a_price_that_raises_loses_no_call(ear: Ear) -> None:
    def cost(model: str, tokens_in: int, tokens_out: int) -> float:
        raise LookupError(model)

    watch = Watch("some", "coder", hub=ear.url, cost=cost)
    run = begun(watch, 1)
    run.model_started("m")
    run.model_finished("m", 1, 1, model="new")
    watch.end(1)
    ear.until_word(s.AgentLeft)
    assert len(ear.of(s.ModelFinished)) == 1


def test_a_version_that_nobody_tried_is_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    def hooks(known: str) -> object:
        return attached("pytest", known, lambda: "hooks", otherwise=lambda: "nothing")

    assert hooks("9.2.0") == "hooks"
    assert caplog.text == ""
    assert hooks("1.0") == "hooks"
    assert "was never tried with lifesigns, which knows 1.0" in caplog.text


AGENT = SimpleNamespace()
"""Of a framework that has changed: nothing of it is where it was."""
CHANGED: dict[str, tuple[str, tuple[object, ...], Any]] = {
    "langchain": ("langchain.agents.middleware", (), Bystander),
    "openai_agents": ("agents", (), type(None)),
    "pydantic_ai": ("pydantic_ai.capabilities", (), FunctionType),
    "celery": ("celery.signals", (AGENT,), AGENT),
    "claude_agent_sdk": ("claude_agent_sdk", (AGENT,), AGENT),
    "google_adk": ("google.adk.plugins.base_plugin", (), Bystander),
    "crewai": ("crewai.hooks", (AGENT,), AGENT),
    "llama_index": ("llama_index", (None,), type(None)),
    "smolagents": ("smolagents", (AGENT,), AGENT),
    "autogen": ("autogen_agentchat", (AGENT,), AGENT),
}
"""By framework: a module that is there and empty, what `watch` is given, and what it returns or of which class that is."""


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_a_framework_whose_classes_are_gone_is_a_warning_and_its_agent_runs_unwatched(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    module, given, returned = CHANGED[name]
    parts = module.split(".")
    for end in range(1, len(parts) + 1):
        monkeypatch.setitem(sys.modules, ".".join(parts[:end]), ModuleType(".".join(parts[:end])))
    monkeypatch.setattr(metadata, "version", lambda package: "99.1")
    adapter = import_module(f"lifesigns.integrations.{name}")
    made = adapter.watch(*given, agent_id="coder", hub="none")
    assert made is returned or isinstance(made, returned)
    (warning,) = caplog.messages
    assert f"99.1 cannot be watched by lifesigns, which knows {adapter.KNOWN}: " in warning
    assert "The agent runs unwatched" in warning
    assert vars(AGENT) == {}


async def test_an_error_in_a_hook_that_is_awaited_is_logged_and_a_stop_goes_through(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(runs, "_complained", set())

    @harmless_hook
    async def hook(error: Exception) -> None:
        raise error

    await hook(AttributeError("usage"))
    assert "failed, and the agent goes on" in caplog.text
    with pytest.raises(RunStopped):
        await hook(RunStopped("enough"))


async def test_a_bystander_does_nothing() -> None:
    bystander: Any = Bystander()
    assert await bystander.before_run_callback(invocation_context=None) is None
    assert bool(bystander.ignore_chain)  # So LangChain calls nothing of it.


def test_importing_an_adapter_imports_no_framework() -> None:
    """None of them is installed here; so an import of one would fail."""
    names = ", ".join(f"lifesigns.integrations.{name}" for name in FRAMEWORKS)
    done = subprocess.run(
        [sys.executable, "-c", f"import {names}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_every_framework_is_installed_and_run() -> None:
    assert set(FRAMEWORKS) == set(WANTED)


@pytest.mark.parametrize("name", WANTED)
def test_the_page_of_a_framework_says_how_it_is_watched_what_is_not_seen_and_how_it_was_caught(
    name: str,
) -> None:
    howto = Path("docs/howto")
    page = (howto / f"watch-{name.replace('_', '-')}.md").read_text()
    assert f"from lifesigns.integrations.{name} import watch" in page
    version = WANTED[name][0].partition("==")[2]
    assert version == import_module(f"lifesigns.integrations.{name}").KNOWN
    assert version in page
    assert version in (howto / "watch-your-framework.md").read_text()
    for reason in FRAMEWORKS[name].cannot.values():
        assert reason in page
    for heading in ("## What is not seen", "## Take it away"):
        assert heading in page
    caught = page.partition("## Caught")[2]
    assert f"$ lifesigns show {name}-loop\n" in caught
    assert "times in a row with the same arguments and the same error" in caught


def test_langchains_callbacks_know_whose_run_a_call_is(ear: Ear) -> None:
    """As LangGraph calls them: a graph, a node in it, a model and a tool in that; and another graph beside, which is not ours."""
    callbacks = RunCallbacks()
    callbacks.watched, callbacks.claims = Watch("langchain", "coder", hub=ear.url), True
    for graph in ("ours", "other"):
        callbacks.on_chain_start({}, {}, run_id=graph, parent_run_id=None)
        callbacks.on_chain_start({}, {}, run_id=f"{graph}-node", parent_run_id=graph)
    assert callbacks.claim("ours-node") is callbacks.claim("ours-node")
    for graph in ("ours", "other"):
        tool = f"{graph}-tool"
        callbacks.on_tool_start({"name": "grep"}, "x", run_id=tool, parent_run_id=f"{graph}-node")
        callbacks.on_tool_end(SimpleNamespace(content="no", status="error"), run_id=tool)
        callbacks.on_chain_end({}, run_id=f"{graph}-node")
        callbacks.on_chain_end({}, run_id=graph)
    ear.until_word(s.AgentLeft)
    (call,) = ear.of(s.ToolFinished)
    assert (call.tool, call.ok, call.error) == ("grep", False, "no")


def test_an_interrupted_graph_waits_and_its_thread_goes_on_with_the_same_life(ear: Ear) -> None:
    class GraphInterrupt(Exception):
        pass

    callbacks = RunCallbacks()
    callbacks.watched, callbacks.claims = Watch("langchain", "coder", hub=ear.url), True
    thread = {"thread_id": "t1"}
    callbacks.on_chain_start({}, {}, run_id="one", parent_run_id=None, metadata=thread)
    callbacks.on_chain_start({}, {}, run_id="node", parent_run_id="one")
    before = callbacks.claim("node")
    asked = GraphInterrupt((SimpleNamespace(value="May I?"),))
    callbacks.on_chain_error(asked, run_id="node")
    callbacks.on_chain_end({}, run_id="one")
    ear.until(lambda: any(one.note == "May I?" for one in ear.of(s.DoingChanged)))
    callbacks.on_chain_start({}, {}, run_id="two", parent_run_id=None, metadata=thread)
    callbacks.on_chain_start({}, {}, run_id="node", parent_run_id="two")
    assert callbacks.claim("node") is before
    callbacks.on_chain_end({}, run_id="two")
    ear.until_word(s.AgentLeft)
    assert len({one.incarnation for one in ear.of(s.AgentRegistered)}) == 1
