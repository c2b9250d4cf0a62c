"""MCP memory: keys and values in the reference memory server (`@modelcontextprotocol/server-memory`), over stdio.

The server keeps a graph of entities in one file. A key is the name of an entity, its value the last observation. There
is no update: we add the new observation before we delete the old ones, so that a key is never without a value.

Two servers on one file lose each other's writes, because each writes the whole file. So a lock on a file beside it is
held while we change something; with that, several workers of one machine may share a memory. Everything waits with a
bound, and none of it belongs into an agent's own thread (`agent/memory_writer.py`).
"""

from __future__ import annotations

import fcntl
import json
import os
import queue
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from fnmatch import fnmatchcase
from pathlib import Path
from typing import IO, Any, Final

from lifesigns.errors import AdapterError

COMMAND: Final = ("npx", "-y", "@modelcontextprotocol/server-memory")
PROTOCOL: Final = "2025-06-18"
ANSWER_WITHIN: Final = 10.0
START_WITHIN: Final = 60.0
"""The first start may have to fetch the server."""
LOCKED_FOR: Final = 10.0
LINE_MAX: Final = 64 * 1024 * 1024
ENTITY_TYPE: Final = "lifesigns"


class McpMemory:
    """One memory server, started when it is first needed. Not thread-safe: one writer."""

    def __init__(self, file: str | Path, command: Sequence[str] = COMMAND) -> None:
        self._file = Path(file).absolute()
        self._command = tuple(command)
        self._server: subprocess.Popen[bytes] | None = None
        self._answers: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._number = 0

    def put(self, key: str, value: str) -> None:
        """Set the value of a key."""
        with self._locked():
            before = self._observations(key)
            if before is None:
                entity = {"name": key, "entityType": ENTITY_TYPE, "observations": [value]}
                self._call("create_entities", entities=[entity])
            elif before != [value]:
                if value not in before:
                    self._call("add_observations", observations=[{"entityName": key, "contents": [value]}])
                old = [one for one in before if one != value]
                self._call("delete_observations", deletions=[{"entityName": key, "observations": old}])

    def get(self, key: str) -> str | None:
        """The value of a key; None if there is none."""
        observations = self._observations(key)
        return observations[-1] if observations else None

    def keys(self, pattern: str = "*") -> list[str]:
        """All keys that match, in order: `task-sentinel/workers/*/heartbeat`."""
        names = (str(one.get("name", "")) for one in self._call("read_graph").get("entities", ()))
        return sorted(name for name in names if fnmatchcase(name, pattern))

    def delete(self, keys: Sequence[str]) -> None:
        """Remove keys; one that is not there is no error."""
        if keys:
            with self._locked():
                self._call("delete_entities", entityNames=list(keys))

    def close(self) -> None:
        """End the server."""
        server, self._server = self._server, None
        if server is None:
            return
        for stream in (server.stdin, server.stdout):
            if stream is not None:
                with suppress(OSError):
                    stream.close()
        server.terminate()
        try:
            server.wait(ANSWER_WITHIN)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()

    # --- the server -------------------------------------------------------------------------------------------------

    def _observations(self, key: str) -> list[str] | None:
        found = [
            one for one in self._call("open_nodes", names=[key]).get("entities", ()) if one.get("name") == key
        ]
        return [str(one) for one in found[0].get("observations", ())] if found else None

    def _call(self, tool: str, **arguments: object) -> dict[str, Any]:
        if self._server is None or self._server.poll() is not None:
            self._start()
        result = self._ask("tools/call", {"name": tool, "arguments": arguments}, ANSWER_WITHIN)
        text = next(
            (one.get("text", "") for one in result.get("content", ()) if one.get("type") == "text"), ""
        )
        if result.get("isError"):
            raise AdapterError(f"the memory server refused {tool}: {text}", transient=False)
        structured = result.get("structuredContent")
        if isinstance(structured, dict):
            return structured
        with suppress(ValueError):
            if isinstance(read := json.loads(text), dict):
                return read
        return {}

    def _start(self) -> None:
        self.close()
        try:
            server = subprocess.Popen(  # noqa: S603 -- the command is the user's
                self._command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "MEMORY_FILE_PATH": str(self._file)},
                start_new_session=True,
            )
        except OSError as error:
            raise AdapterError(f"{self._command[0]} cannot be started: {error}", transient=False) from error
        self._server, self._answers = server, queue.SimpleQueue()
        assert server.stdout is not None
        threading.Thread(
            target=_read, args=(server.stdout, self._answers), name="lifesigns-mcp-memory", daemon=True
        ).start()
        client = {"name": "lifesigns", "version": "1"}
        self._ask(
            "initialize",
            {"protocolVersion": PROTOCOL, "capabilities": {}, "clientInfo": client},
            START_WITHIN,
        )
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def _ask(self, method: str, params: dict[str, Any], within: float) -> dict[str, Any]:
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        by = time.monotonic() + within
        while True:
            try:
                line = self._answers.get(timeout=max(0.0, by - time.monotonic()))
            except queue.Empty:
                self.close()
                raise AdapterError(f"the memory server did not answer {method} within {within:g} s") from None
            if line is None:
                self.close()
                raise AdapterError(f"the memory server ended before it answered {method}")
            try:
                answer = json.loads(line)
            except ValueError:
                continue  # What it prints is not always an answer.
            if isinstance(answer, dict) and answer.get("id") == self._number:
                if "error" in answer:
                    raise AdapterError(
                        f"the memory server refused {method}: {answer['error']}", transient=False
                    )
                result = answer.get("result")
                return result if isinstance(result, dict) else {}

    def _send(self, message: dict[str, Any]) -> None:
        assert self._server is not None
        assert self._server.stdin is not None
        try:
            self._server.stdin.write(json.dumps(message).encode() + b"\n")
            self._server.stdin.flush()
        except (OSError, ValueError) as error:
            self.close()
            raise AdapterError(f"the memory server takes nothing: {error}") from error

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Nobody else of ours changes this file meanwhile."""
        path = self._file.with_name(f"{self._file.name}.lock")
        by = time.monotonic() + LOCKED_FOR
        try:
            lock = path.open("ab")
        except OSError as error:
            raise AdapterError(f"{path} cannot be opened: {error}", transient=False) from error
        with lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError:
                    if time.monotonic() > by:
                        raise AdapterError(
                            f"another writer has held {path} for more than {LOCKED_FOR:g} s"
                        ) from None
                    time.sleep(0.02)
            yield


def _read(stream: IO[bytes], answers: queue.SimpleQueue[bytes | None]) -> None:
    """Its lines, until it ends."""
    with suppress(OSError, ValueError):
        while line := stream.readline(LINE_MAX):
            answers.put(line)
    answers.put(None)
