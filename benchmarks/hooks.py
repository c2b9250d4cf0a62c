"""What the hooks of a coding agent cost it: the client is started as Claude Code starts it, beside a hub that answers, one that hangs and
one that is gone. The agent waits for each hook, so this is time of its run; beside it an empty `sh`, which no command hook can beat.
"""

from __future__ import annotations

import http.client
import json
import os
import resource
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.real_hub import RealHub, served

CALLS = 100
FIRSTS = 20
Cost = dict[str, float]
"""Milliseconds a hook: its least, median and worst, and its processor time."""


def hook_costs(_: int) -> dict[str, Cost]:
    """Of a hook: beside an empty shell, with a hub that answers, also to a post, one that hangs, one that is gone. "finds out" is
    each time the first hook that meets the hub that hangs."""
    with tempfile.TemporaryDirectory() as folder, served(Path(folder)) as hub:
        hub.cli("hooks", "install", "claude-code")
        client = [str(hub.state / "hooks/client"), "claude-code"]
        costs = {"sh": _cost(["/bin/sh", "-c", ":"]), "answers": _cost(client)}
        costs["posted"] = _posted(hub)
        hub.process.send_signal(signal.SIGSTOP)
        slow = hub.state / "hooks/slow"
        costs["finds out"] = _cost(client, FIRSTS, lambda: slow.unlink(missing_ok=True))
        costs["hangs"] = _cost(client)
        hub.process.kill()  # Its address stays behind.
        hub.process.wait()
        slow.unlink(missing_ok=True)
        costs["gone"] = _cost(client)
        return costs


def _posted(hub: RealHub) -> Cost:
    """An event as a program posts it that has HTTP hooks, over a connection that it keeps."""
    host, _, port = hub.url.removeprefix("http://").rpartition(":")
    connection = http.client.HTTPConnection(host, int(port))
    token = (hub.state / "hooks/token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    took, before = [], time.process_time()
    for n in range(CALLS):
        event = json.dumps(_event(n), separators=(",", ":")).encode()
        began = time.perf_counter()
        connection.request("POST", f"/hooks/claude-code?pid={os.getpid()}", event, headers)
        connection.getresponse().read()
        took.append((time.perf_counter() - began) * 1000)
    used = time.process_time() - before
    connection.close()
    return {"least": min(took), "median": median(took), "worst": max(took), "cpu": used * 1000 / CALLS}


def _cost(command: Sequence[str], calls: int = CALLS, prepare: Callable[[], None] = lambda: None) -> Cost:
    env = {"PATH": os.environ["PATH"], "CLAUDE_PID": str(os.getpid()), "CLAUDE_PROJECT_DIR": "/home/dev/shop"}
    took, before = [], resource.getrusage(resource.RUSAGE_CHILDREN)
    for n in range(calls):
        prepare()
        event = json.dumps(_event(n), separators=(",", ":")).encode()
        began = time.perf_counter()
        subprocess.run(command, input=event, env=env, check=True, stdout=subprocess.DEVNULL)
        took.append((time.perf_counter() - began) * 1000)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    used = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"least": min(took), "median": median(took), "worst": max(took), "cpu": used * 1000 / calls}


def _event(n: int) -> dict[str, Any]:
    """By turns the two hooks of a call: before it, and after its batch."""
    call = {"tool_name": "Bash", "tool_input": {"command": f"cat f{n}"}, "tool_use_id": f"toolu_{n // 2}"}
    session = {"session_id": "043381dc-b151-4818-bf59-b65753ec8421", "cwd": "/home/dev/shop"}
    if n % 2 == 0:
        return {**session, "hook_event_name": "PreToolUse", **call}
    done = {**call, "tool_response": f"line {n}"}
    return {**session, "hook_event_name": "PostToolBatch", "tool_calls": [done]}
