"""A model that does as its script says, on loopback: enough of Anthropic's Messages and OpenAI's Responses for real coding
agents to talk to.

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


Step = Say | Use | Refuse


def sh(command: str, after: float = 0.0) -> Use:
    """A shell command, by whichever tool the agent has for that."""
    return Use("shell", {"command": command}, after)


@dataclass
class ScriptedModel:
    """Its scripts, and every request it was sent."""

    scripts: Mapping[str, Sequence[Step]]
    requests: list[dict[str, Any]] = field(default_factory=list)
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
        for block in content if isinstance(content, list) else [{"type": "text", "text": content}]:
            if block.get("type") == "tool_result":
                yield "result", ""
            elif message["role"] == "user":
                yield "user", block.get("text", "")
    for item in body.get("input", ()):
        if item.get("type", "").endswith("_output"):
            yield "result", ""
        elif item.get("role") == "user":
            yield "user", "".join(part.get("text", "") for part in item["content"])


@contextmanager
def scripted_model(scripts: Mapping[str, Sequence[Step]]) -> Iterator[ScriptedModel]:
    """The model, listening on a free port of loopback."""
    model = ScriptedModel(scripts)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length", 0)))
            if self.path.startswith("/v1/messages/count_tokens"):
                self._answer(200, b'{"input_tokens": 1000}', "application/json")
                return
            body = json.loads(raw or b"{}")
            model.requests.append(body)
            step = model.next_step(body)
            if isinstance(step, Refuse):
                error = {"type": "error", "error": {"type": step.kind, "message": step.kind}}
                self._answer(step.status, json.dumps(error).encode(), "application/json")
                return
            time.sleep(step.after)
            write = _messages if self.path.startswith("/v1/messages") else _responses
            events = write(step, body)
            text = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
            self._answer(200, text.encode(), "text/event-stream")

        def do_GET(self) -> None:
            self._answer(404, b"{}", "application/json")

        def do_HEAD(self) -> None:
            self.do_GET()

        def _answer(self, status: int, body: bytes, kind: str) -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                if status == 429:
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


def _name(kind: str) -> str:
    return f"{kind}_{uuid.uuid4().hex[:20]}"


def _shell(body: Mapping[str, Any], use: Use) -> tuple[str, Mapping[str, Any]]:
    """The agent's own name for its shell, and for the command in it."""
    if use.tool != "shell":
        return use.tool, use.args
    names = {tool.get("name"): tool for tool in body["tools"]}
    if "Bash" in names:
        return "Bash", {"command": use.args["command"], "description": "a step"}
    name = next(one for one in ("exec_command", "shell_command", "shell") if one in names)
    shape = names[name]["parameters"]["properties"]
    key = "cmd" if "cmd" in shape else "command"
    command = use.args["command"]
    return name, {key: ["sh", "-c", command] if shape[key].get("type") == "array" else command}


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
        item |= {"name": tool, "arguments": json.dumps(args), "status": "completed"}
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
