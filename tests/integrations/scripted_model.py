"""A model that does as its script says, on loopback: enough of Anthropic's Messages and OpenAI's Responses for real coding
agents to talk to, and of OpenAI's Chat Completions and Gemini for agent frameworks.

A prompt that contains `play NAME` gets the script of that name. Which step comes next follows from the request alone: it is
the number of tool results after the prompt. So the model keeps no state, and subagents can play scripts of their own.
"""

from __future__ import annotations

import json
import re
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

TOKENS_IN, TOKENS_OUT = 1000, 50
SHELLS = ("Bash", "bash", "exec_command", "shell_command", "shell", "run_shell_command")
OBSERVED = re.compile(r"^(Observation|Error):", re.MULTILINE)
"""How smolagents tells its model of a result."""


@dataclass(frozen=True)
class Say:
    """Ends the turn with a text."""

    text: str
    after: float = 0.0
    """Seconds the model thinks."""


@dataclass(frozen=True)
class Use:
    """Calls a tool."""

    tool: str
    args: Mapping[str, Any]
    after: float = 0.0


@dataclass(frozen=True)
class Refuse:
    """Answers with an HTTP error."""

    status: int
    kind: str
    again: bool = False
    """The agent may ask again."""


Step = Say | Use | Refuse


def sh(command: str, after: float = 0.0) -> Use:
    """A shell command, by whichever tool the agent has for that."""
    return Use("shell", {"command": command}, after)


def ask_sh(command: str) -> Use:
    """A shell command for which the user is asked; in Codex it is the model that asks to be let out of the sandbox."""
    return Use(
        "shell", {"command": command, "sandbox_permissions": "require_escalated", "justification": "May I?"}
    )


@dataclass
class ScriptedModel:
    """Its scripts, and every request it was sent."""

    scripts: Mapping[str, Sequence[Step]]
    requests: list[dict[str, Any]] = field(default_factory=list)
    asked_at: list[float] = field(default_factory=list)
    """When each request came, by `time.perf_counter`."""
    url: str = ""

    def told(self, text: str) -> bool:
        """Whether any request so far contained this text."""
        return any(text in json.dumps(request, ensure_ascii=False) for request in self.requests)

    def next_step(self, body: Mapping[str, Any]) -> Step:
        """What the script has at the place where this conversation is."""
        if not body.get("tools"):
            return Say("ok")  # A request for a title or a summary.
        name, step = None, 0
        for kind, text in _conversation(body):
            named = re.findall(r"play (\w+)", text) if kind == "user" else []
            if named:
                name, step = named[-1], 0
            elif kind == "result":
                step += 1
        steps = self.scripts.get(name or "", [Say("ok")])
        return steps[min(step, len(steps) - 1)]


def _conversation(body: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """What was said: `("user", text)` and `("result", "")`."""
    for message in body.get("messages", ()):
        content = message["content"]
        for block in content if isinstance(content, list) else [{"type": "text", "text": content or ""}]:
            text = block.get("text", "")
            if block.get("type") == "tool_result" or message["role"] == "tool":
                yield "result", ""
            elif message["role"] == "user":
                yield "user", text
                yield from (("result", "") for _ in OBSERVED.finditer(text))
    for item in body.get("input", ()):
        if item.get("type", "").endswith("_output"):
            yield "result", ""
        elif item.get("role") == "user":
            content = item["content"]
            parts = [{"text": content}] if isinstance(content, str) else content
            yield "user", "".join(part.get("text", "") for part in parts)
    for message in body.get("contents", ()):
        for part in message["parts"]:
            if "functionResponse" in part:
                yield "result", ""
            elif message.get("role") == "user":
                yield "user", part.get("text", "")


@contextmanager
def scripted_model(scripts: Mapping[str, Sequence[Step]]) -> Iterator[ScriptedModel]:
    """The model, listening on a free port of loopback."""
    model = ScriptedModel(scripts)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # Head and body are two packets: the second waited 40 ms for the first.
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path.startswith("/v1/messages/count_tokens"):
                self._answer(200, b'{"input_tokens": 1000}', "application/json")
                return
            body = json.loads(raw or b"{}")
            model.asked_at.append(time.perf_counter())
            model.requests.append(body)
            step = model.next_step(body)
            if isinstance(step, Refuse):
                error = {"type": "error", "error": {"type": step.kind, "message": step.kind}}
                self._answer(step.status, json.dumps(error).encode(), "application/json", again=step.again)
                return
            time.sleep(step.after)
            self._answer(200, *_written(self.path, step, body))

        def do_GET(self) -> None:
            self._answer(404, b"{}", "application/json")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer(self, status: int, body: bytes, kind: str, *, again: bool = False) -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                if status == 429 and not again:
                    self.send_header("x-should-retry", "false")
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)
            except OSError:
                pass  # The agent was killed meanwhile.

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    model.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield model
    finally:
        server.shutdown()
        server.server_close()


def _written(path: str, step: Say | Use, body: Mapping[str, Any]) -> tuple[bytes, str]:
    """The answer as this path has it, and its content type."""
    if path.startswith("/v1/messages"):
        return streamed(_messages(step, body))
    if "enerateContent" in path:
        return gemini(step, body, streams=":stream" in path)
    if path.endswith("/chat/completions"):
        return chat(step, body)
    events = _responses(step, body)
    if body.get("stream"):
        return streamed(events)
    return json.dumps(events[-1]["response"]).encode(), "application/json"


def _name(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def streamed(events: list[dict[str, Any]]) -> tuple[bytes, str]:
    """Events with their names, as server-sent events."""
    text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return text.encode(), "text/event-stream"


def chat(step: Say | Use, body: Mapping[str, Any]) -> tuple[bytes, str]:
    """An answer as OpenAI's Chat Completions have it."""
    usage = {"prompt_tokens": TOKENS_IN, "completion_tokens": TOKENS_OUT}
    usage["total_tokens"] = TOKENS_IN + TOKENS_OUT
    if isinstance(step, Use):
        tool, args = _shell(body, step)
        called = {"name": tool, "arguments": json.dumps(args)}
        call = {"index": 0, "id": _name("call"), "type": "function", "function": called}
        message: dict[str, Any] = {"role": "assistant", "content": None, "tool_calls": [call]}
        ends = "tool_calls"
    else:
        message, ends = {"role": "assistant", "content": step.text}, "stop"
    answer: dict[str, Any] = {"id": _name("chatcmpl"), "created": 0, "model": body.get("model", "scripted")}
    if not body.get("stream"):
        answer |= {"object": "chat.completion", "usage": usage}
        answer["choices"] = [{"index": 0, "message": message, "finish_reason": ends}]
        return json.dumps(answer).encode(), "application/json"
    answer["object"] = "chat.completion.chunk"
    chunks = [
        {**answer, "choices": [{"index": 0, "delta": message, "finish_reason": None}]},
        {**answer, "choices": [{"index": 0, "delta": {}, "finish_reason": ends}]},
        {**answer, "choices": [], "usage": usage},
    ]
    text = "".join(f"data: {json.dumps(chunk)}\n\n" for chunk in chunks) + "data: [DONE]\n\n"
    return text.encode(), "text/event-stream"


def gemini(step: Say | Use, body: Mapping[str, Any], *, streams: bool) -> tuple[bytes, str]:
    """An answer as Gemini's generateContent has it."""
    part: dict[str, Any] = {"text": step.text} if isinstance(step, Say) else {}
    if isinstance(step, Use):
        tool, args = _shell(body, step)
        part["functionCall"] = {"id": _name("call"), "name": tool, "args": dict(args)}
    usage = {"promptTokenCount": TOKENS_IN, "candidatesTokenCount": TOKENS_OUT}
    usage["totalTokenCount"] = TOKENS_IN + TOKENS_OUT
    content = {"role": "model", "parts": [part]}
    answer = {"candidates": [{"index": 0, "content": content, "finishReason": "STOP"}]}
    text = json.dumps(answer | {"modelVersion": "scripted", "usageMetadata": usage})
    if streams:
        return f"data: {text}\n\n".encode(), "text/event-stream"
    return text.encode(), "application/json"


def _shell(body: Mapping[str, Any], use: Use) -> tuple[str, Mapping[str, Any]]:
    """The agent's own name for its shell, and for the command in it."""
    if use.tool != "shell":
        names = [name for name, _ in _tools(body)]
        return next((name for name in names if name.endswith(f"__{use.tool}")), use.tool), use.args
    shapes = dict(_tools(body))
    name = next(one for one in SHELLS if one in shapes)
    shape = shapes[name].get("properties", {})
    key = "cmd" if "cmd" in shape else "command"
    command = use.args["command"]
    args = {key: ["sh", "-c", command] if shape[key].get("type") == "array" else command}
    args |= {more: value for more, value in use.args.items() if more in shape and more != "command"}
    for needed in shapes[name].get("required", ()):
        args.setdefault(needed, False if shape.get(needed, {}).get("type") == "boolean" else "a step")
    return name, args


def _tools(body: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The tools that are offered, and the shape of their arguments."""
    for tool in body["tools"]:
        for one in tool.get("functionDeclarations", ()):
            yield one["name"], one.get("parametersJsonSchema") or one.get("parameters") or {}
        named = tool.get("function", tool)
        yield str(named.get("name")), named.get("parameters") or named.get("input_schema") or {}


def _messages(step: Say | Use, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An answer as Anthropic's Messages stream it."""
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT}
    if isinstance(step, Use):
        tool, args = _shell(body, step)
        block: dict[str, Any] = {"type": "tool_use", "id": _name("toolu"), "name": tool, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(args)}
        ends = "tool_use"
    else:
        block, ends = {"type": "text", "text": ""}, "end_turn"
        delta = {"type": "text_delta", "text": step.text}
    message = {
        "id": _name("msg"),
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "scripted"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    return [
        {"type": "message_start", "message": message},
        {"type": "content_block_start", "index": 0, "content_block": block},
        {"type": "content_block_delta", "index": 0, "delta": delta},
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": {"stop_reason": ends, "stop_sequence": None}, "usage": usage},
        {"type": "message_stop"},
    ]


def _responses(step: Say | Use, body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """An answer as OpenAI's Responses stream it."""
    if isinstance(step, Use):
        tool, args = _shell(body, step)
        item: dict[str, Any] = {"id": _name("fc"), "type": "function_call", "call_id": _name("call")}
        namespace, _, name = tool.rpartition(".")  # Codex has some of its tools in one.
        item |= {"name": name, "arguments": json.dumps(args), "status": "completed"}
        item |= {"namespace": namespace} if namespace else {}
    else:
        part = {"type": "output_text", "text": step.text, "annotations": []}
        item = {"id": _name("msg"), "type": "message", "role": "assistant", "content": [part]}
        item["status"] = "completed"
    usage = {"input_tokens": TOKENS_IN, "output_tokens": TOKENS_OUT, "total_tokens": TOKENS_IN + TOKENS_OUT}
    answer = {"id": _name("resp"), "object": "response", "model": body.get("model", "scripted")}
    done = {**answer, "status": "completed", "output": [item], "usage": usage}
    return [
        {"type": "response.created", "response": {**answer, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": item},
        {"type": "response.output_item.done", "output_index": 0, "item": item},
        {"type": "response.completed", "response": done},
    ]
