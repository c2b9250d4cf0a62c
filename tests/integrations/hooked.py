"""Recorded payloads of the real programs (our own runs of them), read as sessions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from lifesigns.core.signals import Signal
from lifesigns.integrations.hooks import claude_code
from lifesigns.integrations.hooks.events import HookEvent, Origin, read
from lifesigns.integrations.hooks.sessions import Session, begin

PAYLOADS = Path(__file__).parent / "payloads"


def recorded(program: str, name: str) -> list[dict[str, Any]]:
    """The events of one run, in order."""
    return [json.loads(line) for line in (PAYLOADS / program / f"{name}.jsonl").read_text().splitlines()]


def event(**fields: Any) -> HookEvent:
    """One event of a session, as it would come."""
    return read(json.dumps({"session_id": "043381dc-b151", "cwd": "/home/dev/shop", **fields}).encode())


def session(program: str = "claude-code") -> Session:
    return begin(program, event(hook_event_name="SessionStart"), Origin(pid=4711, started="99"), "token")


def heard(session: Session, *events: HookEvent) -> list[Signal]:
    return [signal for one in events for signal in claude_code.PROGRAM.signals(session, one)]


def who(signal: Signal) -> str:
    """The agent it is about."""
    return str(getattr(signal, "agent_id", ""))


def kinds(signals: list[Signal]) -> list[str]:
    return [type(signal).__name__ for signal in signals]
