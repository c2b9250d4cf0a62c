"""Events of Gemini CLI, Qwen Code and Copilot CLI as signals: recorded from the programs themselves."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from lifesigns.core.health import Doing
from lifesigns.core.signals import AgentLeft, DoingChanged, ModelFinished, Signal, ToolFinished, ToolStarted
from lifesigns.integrations.hooks import gemini
from lifesigns.integrations.hooks.answers import PROLONGED_MAX, reply_to
from lifesigns.integrations.hooks.events import read
from lifesigns.integrations.hooks.program import Verdict
from lifesigns.integrations.hooks.programs import PROGRAMS
from lifesigns.integrations.hooks.sessions import Session
from lifesigns.integrations.hooks.transcripts import transcript
from tests.integrations.hooked import kinds, recorded, session
from tests.integrations.test_answers import NUDGE, stop

THREE = ("gemini", "qwen", "copilot")
CALL = {"tool_name": "shell", "tool_input": {"command": "ls"}}


def heard(one: Session, **fields: object) -> list[Signal]:
    program = PROGRAMS[one.program]
    raw = {"session_id": one.id, "cwd": "/home/dev/shop", **fields}
    return program.signals(one, program.read(read(json.dumps(raw).encode())))


def replayed(program: str, name: str, one: Session | None = None) -> list[Signal]:
    one = one or session(program)
    return [signal for said in recorded(program, name) for signal in heard(one, **said)]


def doings(signals: list[Signal]) -> list[Doing]:
    return [one.doing for one in signals if isinstance(one, DoingChanged)]


@pytest.mark.parametrize("name", PROGRAMS)
def test_every_hook_we_ask_for_is_understood(name: str) -> None:
    program = PROGRAMS[name]
    ours = {gemini.NAMES.get(event, event) if name == "gemini" else event for event in program.events}
    assert ours <= set(program.handlers)
    assert program.context | program.ends <= set(program.handlers)


@pytest.mark.parametrize("name", THREE)
def test_a_run_of_two_calls_tells_of_both_and_that_the_second_failed(name: str) -> None:
    said = replayed(name, "two-calls")
    started = [one for one in said if isinstance(one, ToolStarted)]
    ended = [one for one in said if isinstance(one, ToolFinished)]
    assert [one.call_id for one in started] == [one.call_id for one in ended]
    assert len({one.call_id for one in ended}) == 2
    assert [one.ok for one in ended] == [True, False]
    assert ended[1].error
    assert doings(said) == [Doing.IDLE, Doing.WORKING, Doing.IDLE]
    assert kinds(said).count("ModelStarted") == kinds(said).count("ModelFinished") == 3
    assert isinstance(said[-1], AgentLeft) == (name != "qwen")  # Qwen says no good-bye.


@pytest.mark.parametrize("name", THREE)
def test_the_same_failure_is_the_same_whatever_its_process_was(name: str) -> None:
    """Each program puts a number of its own into what its shell printed."""
    results: dict[str, Callable[[int], dict[str, object]]] = {
        "gemini": lambda n: {
            "hook_event_name": "AfterTool",
            "tool_response": {"llmContent": f"Output: no x\nExit Code: 1\nProcess Group PGID: {n}\n"},
        },
        "qwen": lambda n: {
            "hook_event_name": "PostToolUseFailure",
            "tool_call_id": f"call_{n}",
            "error": "Output: no x\nExit Code: 1",
        },
        "copilot": lambda n: {
            "hook_event_name": "PostToolUse",
            "tool_result": {"text_result_for_llm": f"no x\n<shellId: {n} completed with exit code 1>"},
        },
    }
    one = session(name)
    ends = [
        end
        for n in (4711, 98)
        for end in heard(one, **CALL, **results[name](n))
        if isinstance(end, ToolFinished)
    ]
    assert [end.ok for end in ends] == [False, False]
    assert ends[0].result_digest == ends[1].result_digest != ""


@pytest.mark.parametrize("name", ["gemini", "copilot"])
def test_equal_calls_at_once_are_two_and_the_first_ends_first(name: str) -> None:
    begin, end = ("BeforeTool", "AfterTool") if name == "gemini" else ("PreToolUse", "PostToolUse")
    one = session(name)
    started = [heard(one, hook_event_name=begin, **CALL)[-1] for _ in range(2)]
    ended = [
        said
        for _ in range(2)
        for said in heard(one, hook_event_name=end, **CALL)
        if isinstance(said, ToolFinished)
    ]
    assert [said.call_id for said in ended] == [getattr(said, "call_id", "") for said in started]
    assert one.main.calls == {}


def test_a_denied_call_of_qwen_is_over_when_the_model_is_called_again() -> None:
    said = replayed("qwen", "denied")
    assert [one.ok for one in said if isinstance(one, ToolFinished)] == [True, False]


def test_a_model_that_has_no_time_parks_copilot_until_it_answers() -> None:
    one = session("copilot")
    assert doings(replayed("copilot", "rate-limit", one))[-1] is Doing.RATE_LIMITED
    assert doings(heard(one, hook_event_name="PreToolUse", **CALL)) == [Doing.WORKING]


def test_gemini_parks_when_its_model_is_asked_again_for_the_same_answer() -> None:
    """Each attempt has a hook. The first of each answer is none, nor is one of a subagent, which is a call of the session."""
    one = session("gemini")

    def parked() -> bool:
        said = heard(one, hook_event_name="BeforeModel")
        return any(isinstance(each, DoingChanged) and each.doing is Doing.RATE_LIMITED for each in said)

    heard(one, hook_event_name="BeforeAgent")
    assert [parked() for _ in range(3)] == [False, True, False]  # It is said once.
    went_on = heard(one, hook_event_name="BeforeTool", **CALL)
    assert any(isinstance(each, DoingChanged) and each.doing is Doing.WORKING for each in went_on)
    assert [parked() for _ in range(2)] == [False, False]
    heard(one, hook_event_name="AfterTool", **CALL)
    assert [parked() for _ in range(2)] == [False, True]


def test_a_prompt_that_our_own_nudge_caused_does_not_let_it_go_on_for_ever() -> None:
    """Gemini begins another turn for it, as if its user had spoken."""
    one, program = session("gemini"), PROGRAMS["gemini"]
    answers = []
    for _ in range(PROLONGED_MAX + 1):
        heard(one, hook_event_name="BeforeAgent")
        end = program.read(read(json.dumps({"session_id": one.id, "hook_event_name": "AfterAgent"}).encode()))
        program.signals(one, end)
        answers.append(reply_to(program, one, one.main, end, [NUDGE], "", 5.0).answer)
    assert [bool(answer) for answer in answers] == [True] * PROLONGED_MAX + [False]
    heard(one, hook_event_name="BeforeAgent")  # Its user, at last.
    assert one.prolonged == 0


@pytest.mark.parametrize(
    ("name", "event", "verdict", "answer"),
    [
        ("gemini", "PreToolUse", Verdict.DENY, {"decision": "deny", "reason": "why"}),
        ("gemini", "PostToolUse", Verdict.STOP, {"continue": False, "stopReason": "why"}),
        ("gemini", "Stop", Verdict.GO_ON, {"decision": "deny", "reason": "why"}),
        ("qwen", "PreModelRequest", Verdict.STOP, {"decision": "block", "reason": "why"}),
        ("copilot", "PostToolUse", Verdict.CONTEXT, {"additionalContext": "why"}),
        ("opencode", "PreToolUse", Verdict.STOP, {"stop": "why"}),
    ],
)
def test_answers_are_in_the_words_of_the_program(
    name: str, event: str, verdict: Verdict, answer: dict[str, object]
) -> None:
    assert PROGRAMS[name].words(event, verdict, "why") == answer


def test_a_stop_of_qwen_denies_the_call_and_then_the_model() -> None:
    one, program = session("qwen"), PROGRAMS["qwen"]
    asked = []
    for event in (
        {"hook_event_name": "PreToolUse", **CALL},
        {"hook_event_name": "UserPromptSubmit", "prompt": ""},
    ):
        now = program.read(read(json.dumps({"session_id": one.id, **event}).encode()))
        asked.append(reply_to(program, one, one.main, now, [stop()], "", 5.0).answer)
    assert asked[0]["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert asked[1]["decision"] == "block"


TOKENS = {
    "gemini": {"id": "a5", "type": "gemini", "tokens": {"input": 1000, "output": 50, "cached": 200}},
    "qwen": {
        "type": "assistant",
        "message": {"role": "model", "parts": []},
        "usageMetadata": {
            "promptTokenCount": 1000,
            "candidatesTokenCount": 50,
            "cachedContentTokenCount": 200,
        },
    },
    "copilot": {
        "type": "session.usage_record",
        "data": {"usage": {"inputTokens": 1000, "outputTokens": 50, "cacheReadTokens": 200}},
    },
}


@pytest.mark.parametrize("name", THREE)
def test_tokens_are_read_from_the_transcript_without_what_the_cache_gave(name: str, tmp_path: Path) -> None:
    place = PROGRAMS[name].transcripts
    assert place is not None
    file = tmp_path / place / "s.jsonl"
    file.parent.mkdir(parents=True)
    found = transcript(place, str(file), tmp_path)
    assert found is not None
    file.write_text(json.dumps(TOKENS[name]) + "\n")
    growth = found.look()
    assert (growth.tokens_in, growth.tokens_out, growth.refused) == (800, 50, "")


def test_a_model_that_refuses_qwen_is_in_its_transcript_until_it_answers(tmp_path: Path) -> None:
    place = Path(".qwen", "projects")
    file = tmp_path / place / "s.jsonl"
    file.parent.mkdir(parents=True)
    found = transcript(place, str(file), tmp_path)
    assert found is not None
    error = {"event.name": "qwen-code.api_error", "error_message": "429 Overloaded", "status_code": 429}
    refused = json.dumps({"type": "system", "systemPayload": {"uiEvent": error}})
    file.write_text(refused + "\n")
    assert found.look().refused == "429 Overloaded"
    with file.open("a") as more:
        more.write(f"{refused}\n{json.dumps(TOKENS['qwen'])}\n")
    assert found.look().refused == ""


def test_opencode_tells_tokens_once_for_a_step_that_called_a_tool() -> None:
    one, usage = session("opencode"), {"token_usage": {"input_tokens": 1000, "output_tokens": 50}}
    said = heard(one, hook_event_name="PreModelRequest")
    said += heard(one, hook_event_name="PreToolUse", tool_use_id="c1", **CALL)
    said += heard(one, hook_event_name="PostToolUse", tool_use_id="c1", **CALL)
    said += heard(one, hook_event_name="PostModelRequest", **usage)
    assert sum(end.tokens_in for end in said if isinstance(end, ModelFinished)) == 1000
    assert kinds(said).count("ModelStarted") == 1
