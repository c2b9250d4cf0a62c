"""Codex's events as signals: written from what the program itself sent."""

from __future__ import annotations

import json

from lifesigns.core.health import Doing
from lifesigns.core.signals import AgentLeft, DoingChanged, ModelFinished, Signal, ToolFinished, ToolStarted
from lifesigns.integrations.hooks import codex
from lifesigns.integrations.hooks.events import Origin, read
from lifesigns.integrations.hooks.sessions import agent_id
from tests.integrations.hooked import event, kinds, recorded, session

CALL = {"tool_name": "Bash", "tool_input": {"command": "ls"}, "tool_use_id": "call_1"}


def replayed(name: str) -> list[Signal]:
    one = session("codex")
    events = [read(json.dumps(said).encode()) for said in recorded("codex", name)]
    return [signal for said in events for signal in codex.PROGRAM.signals(one, said)]


def doings(signals: list[Signal]) -> list[Doing]:
    return [one.doing for one in signals if isinstance(one, DoingChanged)]


def test_we_ask_for_the_hooks_of_models_permissions_and_interruptions() -> None:
    assert len(codex.PROGRAM.events) == 14
    assert {"PreModelRequest", "PostModelRequest", "PermissionRequest", "Interrupt"} <= set(
        codex.PROGRAM.events
    )


def test_a_run_of_three_calls_tells_of_calls_models_and_tokens() -> None:
    said = replayed("three-calls")
    started = [one.call_id for one in said if isinstance(one, ToolStarted)]
    assert started == [one.call_id for one in said if isinstance(one, ToolFinished)]
    assert len(started) == 3
    models = [one for one in said if isinstance(one, ModelFinished)]
    assert [(one.tokens_in, one.tokens_out) for one in models] == [(1000, 50)] * 4
    assert kinds(said).count("ModelStarted") == 4
    assert doings(said) == [Doing.IDLE, Doing.WORKING, Doing.IDLE]
    assert isinstance(said[-1], AgentLeft)


def test_a_rate_limit_parks_and_another_error_asks_its_user() -> None:
    said = replayed("rate-limit")
    assert doings(said)[-1] is Doing.RATE_LIMITED
    assert [(one.ok, one.error_kind) for one in said if isinstance(one, ModelFinished)] == [(False, "429")]
    one = session("codex")
    codex.PROGRAM.signals(one, event(hook_event_name="PreModelRequest"))
    failed = event(hook_event_name="PostModelRequest", status="failed", error="unauthorized")
    assert doings(codex.PROGRAM.signals(one, failed)) == [Doing.WAITING_FOR_HUMAN]


def test_a_denied_call_is_over_when_the_model_is_called_again() -> None:
    one = session("codex")
    codex.PROGRAM.signals(one, event(hook_event_name="PreToolUse", **CALL))
    said = codex.PROGRAM.signals(one, event(hook_event_name="PreModelRequest"))
    assert kinds(said) == ["ToolFinished", "ModelStarted"]


def test_a_request_for_permission_waits_with_its_question() -> None:
    one = session("codex")
    codex.PROGRAM.signals(one, event(hook_event_name="PreToolUse", **CALL))
    said = codex.PROGRAM.signals(one, event(hook_event_name="PermissionRequest", **CALL))
    assert isinstance(said[0], DoingChanged)
    assert (said[0].doing, said[0].note) == (Doing.WAITING_FOR_HUMAN, "may it use Bash: ls?")
    assert doings(codex.PROGRAM.signals(one, event(hook_event_name="PostToolUse", **CALL))) == [Doing.WORKING]


def test_an_interruption_ends_the_turn() -> None:
    one = session("codex")
    codex.PROGRAM.signals(one, event(hook_event_name="PreModelRequest"))
    assert kinds(codex.PROGRAM.signals(one, event(hook_event_name="Interrupt"))) == [
        "ModelFinished",
        "DoingChanged",
    ]


def test_sessions_of_one_minute_have_ids_of_their_own() -> None:
    """Codex numbers its sessions by time, and they begin alike."""
    first, second = (recorded("codex", name)[0] for name in ("three-calls", "rate-limit"))
    ids = {agent_id("codex", read(json.dumps(one).encode()), Origin()) for one in (first, second)}
    assert first["session_id"][:8] == second["session_id"][:8]
    assert ids == {"codex/shop/e5a210e4", "codex/shop/49e0e0e3"}
