"""Nothing that others said steers an operator's terminal.

Promises:
    1. What the CLI prints of a hub's answer or an agent's words has nothing in it that a terminal obeys.
    2. Neither have the hub's text log and the export of the audit log.
    3. JSON stays the same JSON.
"""

from __future__ import annotations

import ast
import asyncio
import io
import json
import logging
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.audit.export import exported
from lifesigns.cli import logs
from lifesigns.core.printable import clean, spelled_out, spelled_out_json
from tests.adapters.executors.ground import handy_hub

CLI = Path(__file__).parents[2] / "src" / "lifesigns" / "cli"
HOSTILE = "\x1b]0;pwned\x07\x1b[2J\x9b31m\u202egnp.exe\u2066\x00\x7f\u200b\r\nError: forged"


def steers(text: str) -> list[str]:
    """What of it a terminal would obey."""
    return [sign for sign in text if not sign.isprintable() and sign not in "\n\t"]


async def lifesigns(*words: str, **environ: str) -> tuple[str, str]:
    """A command of ours as a process: what it prints, and what it complains."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "lifesigns", *words),
        env={**os.environ, **environ},
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(60):
        out, err = await process.communicate()
    return out.decode(), err.decode()


@asynccontextmanager
async def answering(problem: dict[str, Any]) -> AsyncIterator[str]:
    """A hub that answers everything with this problem, byte for byte."""
    body = json.dumps(problem, ensure_ascii=False).encode()
    head = f"HTTP/1.1 {problem['status']} No\r\nContent-Type: application/problem+json\r\n"

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"


# --- 1. the CLI ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command", [("agents",), ("beat", "coder-7"), ("show", "coder-7"), ("recover", "t-19")]
)
async def test_the_detail_of_a_hubs_error_is_spelled_out(command: tuple[str, ...]) -> None:
    async with answering({"type": "about:blank", "title": "no", "status": 403, "detail": HOSTILE}) as url:
        out, err = await lifesigns(*command, "--hub", url, LIFESIGNS_TOKEN="x")
    assert "pwned" in err
    assert steers(out + err) == []
    assert all(line.startswith("Error: ") for line in err.splitlines())


async def test_the_reason_of_a_termination_is_safe_for_those_who_gave_and_those_who_see_it(
    tmp_path: Path,
) -> None:
    """`terminate` repeats it, and `lifesigns run` says on its own terminal why it ends its agent."""
    async with handy_hub(tmp_path) as hub:
        token = hub.http.headers["authorization"].removeprefix("Bearer ")
        where = {"LIFESIGNS_HUB": hub.url, "LIFESIGNS_TOKEN": token}
        running = asyncio.create_task(
            lifesigns("run", "--verbose", "--id", "coder-9", "--", "sleep", "100", **where)
        )
        async with asyncio.timeout(30):
            while (await hub.http.get("/api/v1/agents/coder-9")).status_code != 200:  # noqa: ASYNC110 -- asked over HTTP
                await asyncio.sleep(0.05)
        reason = HOSTILE.replace("\x00", "")
        out, err = await lifesigns("terminate", "coder-9", "--yes", "--reason", reason, **where)
        _, told = await running
    assert "pwned" in out
    assert steers(out + err) == []
    assert "pwned" in told
    assert steers(told) == []


def test_every_line_of_the_cli_goes_through_one_of_our_ways() -> None:
    """`click.echo` takes only what stands in our own source."""
    raw = []
    for path in sorted(CLI.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in (
                "click.echo",
                "click.secho",
                "print",
            ):
                said = node.args[0] if node.args else ast.Constant("")
                ours = isinstance(said, ast.Constant) or ast.unparse(said).startswith(
                    ("json_line(", "spelled_out_json(")
                )
                if not ours and path.name != "say.py":
                    raw.append(f"{path.name}:{node.lineno}")
    assert raw == []


@given(st.text())
def test_nothing_a_terminal_obeys_is_left_of_any_text(text: str) -> None:
    assert steers(clean(text)) == []
    assert "\n" not in spelled_out(text)
    assert steers(spelled_out(text)) == []


# --- 2. logs and exports -------------------------------------------------------------------------------------


def test_a_text_log_is_one_line_for_each_thing_said() -> None:
    stream = io.StringIO()
    root = logging.getLogger()
    before = root.handlers[:], root.level
    logs.set_up_logs("text", "info", stream)
    try:
        logging.getLogger("lifesigns.hub").info("it left: %s", HOSTILE, extra={"agent": HOSTILE})
    finally:
        root.handlers[:], root.level = before
    assert "pwned" in stream.getvalue()
    assert stream.getvalue().count("\n") == 1
    assert steers(stream.getvalue()) == []


async def test_an_export_of_the_audit_log_can_be_looked_at(tmp_path: Path) -> None:
    store = MemoryStore(f"export-{os.getpid()}")
    async with handy_hub(tmp_path, store=store) as hub:
        await hub.beat()
        answer = await hub.http.post("/api/v1/agents/coder-7/escalate", json={"reason": HOSTILE})
        assert answer.status_code == 202
        lines = [line.decode() async for line in exported(store, [], [])]
    assert any("pwned" in line for line in lines)
    assert steers("".join(lines)) == []


# --- 3. JSON stays the same JSON -----------------------------------------------------------------------------


@given(st.text())
def test_json_that_is_spelled_out_says_the_same(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        return
    written = json.dumps(text, ensure_ascii=False)
    assert json.loads(spelled_out_json(written)) == text
