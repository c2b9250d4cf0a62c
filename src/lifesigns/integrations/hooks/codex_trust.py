"""Trust: Codex runs no hook that its user has not trusted, and says nothing about it.

Which hooks there are, and the digest by which it knows each, Codex itself says (`codex app-server`, JSON-RPC on stdio). What is
trusted it writes into its own configuration. Only hooks of ours are trusted here.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from lifesigns.errors import UsageError
from lifesigns.integrations.hooks.settings import MARK

ANSWERS_WITHIN: Final = 60.0
"""Seconds. A program of 200 MB starts before it answers: from a cold disk, or on a busy machine, more than 20 were seen."""


def trust(program: str, folder: Path, hooks_file: Path) -> int:
    """Have Codex trust our hooks in this file; how many it sees from this folder. In a folder that it does not trust it sees none."""
    with _talking(program) as talk:
        ours = _ours(talk, folder, hooks_file)
        state = {hook["key"]: {"trusted_hash": hook["currentHash"]} for hook in ours}
        if state:
            _change(talk, [{"keyPath": "hooks.state", "value": state, "mergeStrategy": "upsert"}])
        return len(state)


def distrust(program: str, folder: Path, hooks_file: Path) -> None:
    """Take that trust back. The hooks are still in the file."""
    with _talking(program) as talk:
        keys = [hook["key"] for hook in _ours(talk, folder, hooks_file)]
        if keys:
            gone = {"value": None, "mergeStrategy": "replace"}
            _change(talk, [{"keyPath": f"hooks.state.{json.dumps(key)}", **gone} for key in keys])


def runs(program: str, folder: Path, hooks_file: Path) -> tuple[int, int]:
    """How many of our hooks in this file Codex sees from this folder, and how many of them it runs."""
    with _talking(program) as talk:
        ours = _ours(talk, folder, hooks_file)
        return len(ours), sum(hook["trustStatus"] == "trusted" for hook in ours)


# --- parts --------------------------------------------------------------------------------------------


@contextmanager
def _talking(program: str) -> Iterator[_Talk]:
    """With Codex's own server. Raises `UsageError` if it does not answer, or otherwise than it did."""
    server = subprocess.Popen(  # noqa: S603 -- the program that its user has on the PATH
        [program, "app-server"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    try:
        talk = _Talk(server)
        about = {"name": "lifesigns", "title": "lifesigns", "version": "1"}
        talk.ask("initialize", {"clientInfo": about})
        talk.tell({"method": "initialized"})
        yield talk
    except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
        raise UsageError(f"{program} app-server did not answer what it was asked ({error})") from None
    finally:
        server.kill()
        server.wait()
        for pipe in (server.stdin, server.stdout):
            if pipe is not None:
                pipe.close()


def _ours(talk: _Talk, folder: Path, hooks_file: Path) -> list[dict[str, Any]]:
    found = talk.ask("hooks/list", {"cwds": [str(folder)]})
    hooks = (hook for place in found.get("data", ()) for hook in place.get("hooks", ()))
    return [
        hook
        for hook in hooks
        if str(hook.get("command", "")).endswith(MARK) and _is_same(hook["sourcePath"], hooks_file)
    ]


def _change(talk: _Talk, edits: list[dict[str, Any]]) -> None:
    talk.ask("config/batchWrite", {"edits": edits})


def _is_same(path: str, other: Path) -> bool:
    return Path(path).resolve() == other.resolve()


class _Talk:
    """Requests and answers, a line each."""

    def __init__(self, server: subprocess.Popen[bytes]) -> None:
        assert server.stdin is not None
        assert server.stdout is not None
        self._to, self._from = server.stdin, server.stdout
        self._rest = b""
        self._asked = 0

    def tell(self, message: dict[str, Any]) -> None:
        self._to.write(json.dumps(message).encode() + b"\n")
        self._to.flush()

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._asked += 1
        self.tell({"id": self._asked, "method": method, "params": params})
        until = time.monotonic() + ANSWERS_WITHIN
        while True:
            said = json.loads(self._line(until))
            if said.get("id") == self._asked and "method" not in said:
                if "error" in said:
                    raise ValueError(f"{method}: {said['error'].get('message')}")
                result: dict[str, Any] = said.get("result") or {}
                return result

    def _line(self, until: float) -> bytes:
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._from], [], [], max(0.0, until - time.monotonic()))
            piece = os.read(self._from.fileno(), 65536) if ready else b""
            if not piece:
                raise ValueError("it ended" if ready else f"nothing within {ANSWERS_WITHIN:g} s")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line
