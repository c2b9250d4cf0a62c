"""What spans and log events say, in the words of those who instrument agents."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.core.detectors.call_history import NO_ARGS
from lifesigns.core.signals import TOKENS_ONLY, ActivitySeen, ModelFinished, Signal, ToolFinished
from lifesigns.hub.otlp_receiver import AGENT_ID, ROLE, TASK_ID
from lifesigns.wire.otlp import (
    Calls,
    Identities,
    Kind,
    OtlpCall,
    calls_of,
    read_json,
    read_protobuf,
    wanted_by,
)
from lifesigns.wire.otlp.conventions import NAMES
from lifesigns.wire.otlp.identity import as_id
from tests.wire import otlp_requests as r

IDENTITIES = Identities(AGENT_ID, TASK_ID, ROLE)
WANTED = wanted_by(IDENTITIES)
CLAUDE = {"service.name": "claude-code", "session.id": "s-1"}
CODEX = {"service.name": "codex-cli"}


def calls_in(*spans: dict[str, Any], resource: dict[str, Any] | None = None) -> Calls:
    """What these spans say, in whichever form they come."""
    request = r.traces(spans, resource)
    raw = request.SerializeToString()
    calls = calls_of(read_protobuf(raw, Kind.TRACES), Kind.TRACES, IDENTITIES)
    assert calls == calls_of(read_json(r.as_json(request), Kind.TRACES), Kind.TRACES, IDENTITIES)
    assert calls == calls_of(read_protobuf(raw, Kind.TRACES, WANTED), Kind.TRACES, IDENTITIES)
    return calls


def signal_of(attributes: dict[str, Any], **more: Any) -> Signal:
    (call,) = calls_in(r.span(attributes, **more)).found
    return call.signal_at(12.0)


def tool_in(attributes: dict[str, Any], **more: Any) -> ToolFinished:
    signal = signal_of(attributes, **more)
    assert isinstance(signal, ToolFinished)
    return signal


def event_of(attributes: dict[str, Any], resource: dict[str, Any], body: str | None = None) -> Signal:
    request = r.logs([attributes], resource, body=body)
    (call,) = calls_of(read_protobuf(request.SerializeToString(), Kind.LOGS), Kind.LOGS, IDENTITIES).found
    return call.signal_at(12.0)


VALUES = [
    "execute_tool",
    "chat",
    "TOOL",
    "LLM",
    "false",
    "ShellError",
    "read",
    '{"a": 1}',
    "Output:\n",
    429,
    1200,
    0,
    2.5,
    True,
    False,
]
said = st.dictionaries(
    st.sampled_from(
        sorted(NAMES | IDENTITIES.names | {"event.name", "http.route", "gen_ai.agent.id", "service.name"})
    ),
    st.sampled_from(VALUES),
    max_size=8,
)


# --- tool calls ---------------------------------------------------------------------------------------

GENAI = {
    "gen_ai.operation.name": "execute_tool",
    "gen_ai.tool.name": "read",
    "gen_ai.tool.call.id": "call_1",
    "gen_ai.tool.call.arguments": '{"path": "/a", "n": 1}',
    "gen_ai.tool.call.result": "a file",
}


@pytest.mark.parametrize(
    "attributes",
    [
        GENAI,
        {
            "openinference.span.kind": "TOOL",
            "tool.name": "read",
            "tool_call.id": "call_1",
            "input.value": '{"n": 1, "path": "/a"}',
            "output.value": "a file",
        },
        {  # As pydantic-ai has it: no operation, and names of its own.
            "gen_ai.tool.name": "read",
            "gen_ai.tool.call.id": "call_1",
            "tool_arguments": '{"path":"/a","n":1}',
            "tool_response": "a file",
        },
        GENAI | {"gen_ai.tool.call.arguments": {"path": "/a", "n": 1}},
    ],
    ids=["genai", "openinference", "pydantic-ai", "genai-structured"],
)
def test_a_tool_call_is_the_same_in_every_convention(attributes: dict[str, Any]) -> None:
    said, usual = signal_of(attributes), signal_of(GENAI)
    assert isinstance(said, ToolFinished)
    assert said == usual
    assert (said.agent_id, said.call_id, said.tool, said.ok) == ("coder-7", "call_1", "read", True)
    assert (said.duration_s, said.ended_at) == (0.5, 12.0)
    assert said.args_digest
    assert said.result_digest


def test_other_arguments_are_another_call_and_results_are_compared_without_what_is_volatile() -> None:
    one, other = tool_in(GENAI), tool_in(GENAI | {"gen_ai.tool.call.arguments": '{"path": "/b", "n": 1}'})
    assert one.args_digest != other.args_digest
    took = [tool_in(GENAI | {"gen_ai.tool.call.result": f"ok, took {n} ms"}).result_digest for n in (12, 340)]
    assert took[0] == took[1] != one.result_digest


def test_a_tool_without_a_name_goes_by_its_span() -> None:
    call = tool_in({"gen_ai.operation.name": "execute_tool"}, name="execute_tool read")
    assert (call.tool, call.call_id) == ("read", "0000000000000001")


def test_arguments_that_are_not_told_were_left_out() -> None:
    assert tool_in({"gen_ai.operation.name": "execute_tool"}).args_digest == NO_ARGS


@pytest.mark.parametrize(
    ("more", "error", "kind"),
    [
        ({"error": "no such file"}, "no such file", None),
        (
            {"error": "", "exception": {"exception.type": "OSError", "exception.message": "gone"}},
            "gone",
            "OSError",
        ),
        (
            {"error": "slow down", "exception": {"exception.type": "openai.RateLimitError"}},
            "slow down",
            "RateLimitError",
        ),
    ],
)
def test_a_failed_span_is_a_failed_call(more: dict[str, Any], error: str, kind: str | None) -> None:
    said = signal_of(GENAI, **more)
    assert isinstance(said, ToolFinished)
    assert (said.ok, said.error, said.error_kind) == (False, error, kind)


def test_the_type_of_an_error_is_an_attribute_in_the_newer_conventions() -> None:
    assert tool_in(GENAI | {"error.type": "timeout"}, error="").error_kind == "timeout"


# --- model calls --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "tokens", "cost"),
    [
        (
            {
                "gen_ai.operation.name": "chat",
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 2,
            },
            (7, 2),
            0,
        ),
        ({"gen_ai.operation.name": "generate_content", "gen_ai.usage.input_tokens": 7}, (7, 0), 0),
        ({"gen_ai.operation.name": "text_completion", "gen_ai.usage.prompt_tokens": 7}, (7, 0), 0),
        (
            {"gen_ai.system": "openai", "gen_ai.usage.prompt_tokens": 7, "gen_ai.usage.completion_tokens": 2},
            (7, 2),
            0,
        ),
        (
            {"openinference.span.kind": "LLM", "llm.token_count.prompt": 7, "llm.token_count.completion": 2}
            | {"llm.token_count.total": 9, "llm.cost.total": 0.25},
            (7, 2),
            0.25,
        ),
        ({"openinference.span.kind": "LLM", "llm.token_count.total": 9}, (9, 0), 0),
        ({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": -7}, (0, 0), 0),
        ({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": 2**62}, (0, 0), 0),
        ({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": "many"}, (0, 0), 0),
    ],
)
def test_a_model_call_tells_its_tokens(
    attributes: dict[str, Any], tokens: tuple[int, int], cost: float
) -> None:
    said = signal_of(attributes)
    assert isinstance(said, ModelFinished)
    assert (said.tokens_in, said.tokens_out, said.cost_usd) == (*tokens, cost)
    assert (said.call_id, said.duration_s) == ("0000000000000001", 0.5)


@pytest.mark.parametrize("tokens", [float("nan"), float("inf"), float("-inf")])
def test_what_is_no_number_of_tokens_is_none(tokens: float) -> None:
    """Only protobuf has words for these."""
    raw = r.traces([r.span({"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": tokens})])
    batch = read_protobuf(raw.SerializeToString(), Kind.TRACES)
    signal = calls_of(batch, Kind.TRACES, IDENTITIES).found[0].signal
    assert isinstance(signal, ModelFinished)
    assert signal.tokens_in == 0


def test_embeddings_use_tokens_and_are_no_thought() -> None:
    for attributes in (
        {"gen_ai.operation.name": "embeddings", "gen_ai.usage.input_tokens": 7},
        {"openinference.span.kind": "EMBEDDING", "llm.token_count.prompt": 7},
    ):
        said = signal_of(attributes)
        assert isinstance(said, ModelFinished)
        assert (said.call_id, said.tokens_in) == (TOKENS_ONLY, 7)


def test_the_run_round_its_calls_repeats_their_tokens_and_counts_none() -> None:
    said = signal_of({"gen_ai.operation.name": "invoke_agent", "gen_ai.usage.input_tokens": 700})
    assert said == ActivitySeen(agent_id="coder-7", kind="telemetry")
    assert signal_of({"openinference.span.kind": "AGENT"}) == said


def test_what_else_is_traced_says_nothing() -> None:
    """A collector sends everything; nobody becomes an agent by asking a database."""
    calls = calls_in(r.span({"http.request.method": "GET"}), r.span({"db.system": "postgresql"}))
    assert calls == Calls([])


# --- log events ---------------------------------------------------------------------------------------


def test_claude_code_tells_of_tools() -> None:
    said = event_of(
        {
            "event.name": "tool_result",
            "tool_name": "Bash",
            "tool_use_id": "toolu_1",
            "success": "false",
            "duration_ms": "1500",
            "tool_input": '{"command": "make"}',
            "error": "Exit code 2",
        },
        CLAUDE,
        "claude_code.tool_result",
    )
    assert isinstance(said, ToolFinished)
    assert (said.agent_id, said.call_id, said.tool) == ("claude-code/s-1", "toolu_1", "Bash")
    assert (said.ok, said.error, said.duration_s) == (False, "Exit code 2", 1.5)
    assert said.args_digest not in ("", NO_ARGS)


def test_claude_code_tells_of_model_calls() -> None:
    used = {
        "input_tokens": "10",
        "output_tokens": "20",
        "cache_creation_tokens": "5",
        "cache_read_tokens": "900",
    }
    said = event_of({"event.name": "api_request", "cost_usd": "0.5", "duration_ms": "800"} | used, CLAUDE)
    assert isinstance(said, ModelFinished)
    assert (said.tokens_in, said.tokens_out, said.cost_usd, said.duration_s, said.ok) == (
        15,
        20,
        0.5,
        0.8,
        True,
    )
    failed = event_of({"event.name": "api_error", "status_code": "529", "error": "overloaded"}, CLAUDE)
    assert isinstance(failed, ModelFinished)
    assert (failed.ok, failed.error_kind) == (False, "529")


def test_a_prompt_is_a_turn_of_a_person() -> None:
    for attributes, resource in (
        ({"event.name": "user_prompt"}, CLAUDE),
        ({"event.name": "codex.user_prompt", "conversation.id": "c-1"}, CODEX),
    ):
        said = event_of(attributes, resource)
        assert isinstance(said, ActivitySeen)
        assert said.kind == "message"


def test_codex_tells_of_tools_and_of_tokens_at_the_end_of_a_stream() -> None:
    base = {"conversation.id": "c-1"}
    said = event_of(
        base
        | {
            "event.name": "codex.tool_result",
            "tool_name": "shell",
            "call_id": "call_1",
            "arguments": '{"cmd": "ls"}',
        }
        | {"output": "a b", "success": "true", "duration_ms": 12},
        CODEX,
    )
    assert isinstance(said, ToolFinished)
    assert (said.agent_id, said.call_id, said.tool, said.ok) == ("codex-cli/c-1", "call_1", "shell", True)
    assert said.result_digest
    done = {"event.name": "codex.sse_event", "event.kind": "response.completed", "input_token_count": 7}
    used = event_of(base | done | {"output_token_count": 3}, CODEX)
    assert isinstance(used, ModelFinished)
    assert (used.tokens_in, used.tokens_out) == (7, 3)


def test_a_command_of_codex_is_read_behind_what_codex_writes_before_it() -> None:
    """It calls every command a success, and gives each output another chunk id. As version 0.166 logs it."""

    def result(chunk: str, status: int, printed: str) -> ToolFinished:
        head = f"Chunk ID: {chunk}\nWall time: 0.0000 seconds\nProcess exited with code {status}\nOriginal token count: 12\nOutput:\n"
        event = {
            "event.name": "codex.tool_result",
            "tool_name": "exec_command",
            "arguments": '{"cmd": "cat /a"}',
        }
        said = event_of(
            event | {"output": head + printed, "success": "true", "conversation.id": "c-1"}, CODEX
        )
        assert isinstance(said, ToolFinished)
        return said

    one, again, fine = (
        result("aad1cf", 1, "cat: no\n"),
        result("4dd933", 1, "cat: no\n"),
        result("b334cf", 0, "x\n"),
    )
    assert (one.ok, one.error, one.result_digest) == (False, "cat: no\n", again.result_digest)
    assert (fine.ok, fine.error) == (True, None)
    assert fine.result_digest != one.result_digest


def test_a_shell_command_of_claude_code_fails_with_nobody_knows_what() -> None:
    """Its event says "Shell command failed", whatever was printed: that is no evidence that it failed alike. As version 2.1.325 logs it."""
    event = {
        "event.name": "tool_result",
        "tool_name": "Bash",
        "success": "false",
        "tool_input": '{"command": "make"}',
    }
    shell = event_of(event | {"error_type": "ShellError", "error": "Shell command failed"}, CLAUDE)
    other = event_of(event | {"error_type": "InputError", "error": "no such file"}, CLAUDE)
    assert isinstance(shell, ToolFinished)
    assert isinstance(other, ToolFinished)
    assert (shell.ok, shell.error, shell.error_kind) == (False, None, None)
    assert (other.ok, other.error, other.error_kind) == (False, "no such file", "InputError")


@pytest.mark.parametrize(
    "attributes",
    [
        {"event.name": "codex.sse_event", "event.kind": "response.created"},
        {"event.name": "codex.api_request", "http.response.status_code": 200},
        {"event.name": "codex.tool_decision"},
    ],
)
def test_the_rest_of_what_codex_logs_is_a_sign_of_life(attributes: dict[str, Any]) -> None:
    assert isinstance(event_of(attributes | {"conversation.id": "c-1"}, CODEX), ActivitySeen)


def test_a_refused_request_of_codex_is_a_failed_model_call() -> None:
    said = event_of(
        {"event.name": "codex.api_request", "http.response.status_code": 429, "conversation.id": "c-1"}, CODEX
    )
    assert isinstance(said, ModelFinished)
    assert (said.ok, said.error_kind) == (False, "429")


def test_logs_of_other_programs_say_nothing() -> None:
    request = r.logs([{"event.name": "tool_result"}], {"service.name": "nginx"}, body="GET /")
    assert calls_of(read_protobuf(request.SerializeToString(), Kind.LOGS), Kind.LOGS, IDENTITIES) == Calls([])


# --- whose it is --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attributes", "resource", "agent_id"),
    [
        ({}, {"service.name": "coder-7"}, "coder-7"),
        ({}, {"service.name": "coder", "service.instance.id": "7"}, "coder"),
        ({"session.id": "s"}, {"service.name": "coder", "service.instance.id": "7"}, "coder/s"),
        ({"lifesigns.agent.id": "x"}, {"service.name": "coder", "session.id": "s"}, "x"),
        ({}, {"lifesigns.agent.id": "x", "service.name": "coder"}, "x"),
        ({}, {"gen_ai.agent.name": "planner", "service.name": "coder"}, "planner"),
        ({"gen_ai.agent.name": "planner", "gen_ai.agent.id": "p"}, {"service.name": "coder"}, "coder"),
        ({}, {"service.name": "my coder!"}, "my-coder-"),
        ({}, {"service.name": 7}, "7"),
    ],
)
def test_an_agent_is_named_by_what_all_its_records_share(
    attributes: dict[str, Any], resource: dict[str, Any], agent_id: str
) -> None:
    (call,) = calls_in(r.tool(1, attributes=attributes), resource=resource).found
    assert call.who.agent_id == agent_id


def test_a_record_that_names_no_agent_is_counted() -> None:
    assert calls_in(r.tool(1), resource={"host.name": "h"}) == Calls([], nameless=1)
    assert calls_in(r.tool(1), resource={"service.name": ["x"]}) == Calls([], nameless=1)


def test_a_span_that_has_not_ended_is_counted() -> None:
    assert calls_in({**r.tool(1), "end_time_unix_nano": 0}) == Calls([], endless=1)


def test_other_attributes_can_name_agent_task_and_role() -> None:
    identities = Identities(["deployment/worker"], ["job.id", "ticket"], ["team"])
    who = identities.of({"worker": "w", "ticket": "t-1"}, {"deployment": "d", "team": "blue"})
    assert who is not None
    assert (who.agent_id, who.task_id, who.role) == ("d/w", "t-1", "blue")
    assert identities.of({"worker": "w"}, {}) is None


def test_an_id_that_is_too_long_stays_apart_from_its_like() -> None:
    long, other = as_id("x" * 500), as_id("x" * 499 + "y")
    assert long != other
    assert len(long) == len(other) == 128


def test_equal_calls_of_different_runs_of_a_service_are_no_repetition() -> None:
    """Ten runs side by side under one name each look once. But a call without a run around it belongs to whom it names."""

    def digests(parent: int, resource: dict[str, Any]) -> set[str]:
        spans = [r.tool(n, trace=n, parent=parent) for n in (1, 2)]
        return {args_digest(call) for call in calls_in(*spans, resource=resource).found}

    assert len(digests(9, {"service.name": "web"})) == 2
    assert len(digests(0, {"service.name": "web"})) == 1
    assert len(digests(9, {"service.name": "web", "session.id": "s"})) == 1


def test_equal_calls_of_two_processes_of_a_service_are_no_repetition() -> None:
    """SDKs give each process an instance id by chance; it is no name for people."""
    one, other = (
        calls_in(r.tool(1), resource={"service.name": "web", "service.instance.id": name}).found[0]
        for name in "ab"
    )
    assert one.who.agent_id == other.who.agent_id == "web"
    assert args_digest(one) != args_digest(other)


def args_digest(call: OtlpCall) -> str:
    assert isinstance(call.signal, ToolFinished)
    return call.signal.args_digest


def test_calls_come_in_the_order_of_their_ends() -> None:
    spans = [r.tool(n, at=r.EPOCH - n) for n in range(1, 5)]
    assert [call.key[-1] for call in calls_in(*spans).found] == ["4", "3", "2", "1"]


@given(
    st.lists(
        st.builds(r.span, said, name=st.sampled_from(["read", "claude_code.tool", "execute_tool read"])),
        max_size=3,
    )
)
def test_what_is_not_read_of_a_span_says_nothing(spans: list[dict[str, Any]]) -> None:
    """Whatever attributes it has, and in whichever words: `calls_in` reads all of them, and only those that are wanted."""
    calls_in(*spans)
