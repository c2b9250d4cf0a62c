"""What hooks add to a tool call of the real Claude Code: its own runs against a scripted model, with one kind of hooks after the other, by turns.

The time of a call is from one question to the model to the next. What two hooks cost that do nothing is Claude Code's own; only what is
beyond that is ours. It needs the program that `make integrations` fetches.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.real_hub import RealHub, served
from tests.integrations.coders import CLAUDE
from tests.integrations.scripted_model import Say, Step, scripted_model, sh

CALLS = 25
FIRST = 3
"""Calls that are left out: the program is still loading."""
ROUNDS = 8
EVENTS = ("PreToolUse", "PostToolBatch")

TRUE = "two that are `true`, by a shell"
DIRECT = "two that are `true`, started without a shell"
OURS = "ours, by a shell"
POSTS = "two posts to a server that does nothing"
POSTED = "ours, posted"


def added_milliseconds(rounds: int) -> dict[str, float]:
    """Milliseconds that each kind of hooks adds to a call, the median of all calls; "none" is a call without hooks."""
    took: dict[str, list[float]] = {}
    with tempfile.TemporaryDirectory() as name, _nothing() as url, served(Path(name)) as hub:
        hub.cli("hooks", "install", "claude-code")
        kinds = _kinds(hub, Path(name), url)
        for _ in range(rounds):
            for kind, hooks in kinds.items():
                took.setdefault(kind, []).extend(_gaps(hooks))
    without = median(took["none"])
    return {kind: median(gaps) - (without if kind != "none" else 0.0) for kind, gaps in took.items()}


def _kinds(hub: RealHub, home: Path, url: str) -> dict[str, Any]:
    """By name: the hooks in Claude Code's settings."""
    ours = json.loads((home / ".claude/settings.json").read_text())["hooks"]
    token = (hub.state / "hooks/token").read_text().strip()
    posted = {
        "type": "http",
        "url": f"{hub.url}/hooks/claude-code?pid={os.getpid()}",
        "headers": {"Authorization": f"Bearer {token}"},
    }
    return {
        "none": {},
        TRUE: _each({"type": "command", "command": "true"}),
        DIRECT: _each({"type": "command", "command": "true", "args": []}),
        OURS: ours,
        POSTS: _each({"type": "http", "url": url}),
        POSTED: _each(posted),
    }


def _each(hook: Mapping[str, Any]) -> dict[str, Any]:
    return {event: [{"hooks": [dict(hook)]}] for event in EVENTS}


def _gaps(hooks: Mapping[str, Any]) -> list[float]:
    """Milliseconds between two questions to the model, in one run."""
    steps: list[Step] = [*(sh(f"echo {n}") for n in range(CALLS)), Say("done")]
    with tempfile.TemporaryDirectory() as name, scripted_model({"work": steps}) as model:
        home, project = Path(name, "home"), Path(name, "shop")
        project.mkdir()
        CLAUDE.prepare(home, model.url)
        (home / ".claude").mkdir()
        (home / ".claude/settings.json").write_text(json.dumps({"hooks": hooks}))
        basic = {"PATH": os.environ["PATH"], "HOME": str(home), "TERM": "dumb"}
        command = [str(CLAUDE.program), *CLAUDE.alone("play work")]
        environ = {**basic, **CLAUDE.environ(model.url, home)}
        subprocess.run(
            command, cwd=project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True
        )
        at = model.asked_at[-CALLS:]
    return [1000 * (later - earlier) for earlier, later in zip(at[FIRST:], at[FIRST + 1 :], strict=False)]


@contextmanager
def _nothing() -> Iterator[str]:
    """A server that answers every post with `{}`."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.wfile.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
            )

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/"
    finally:
        server.shutdown()
