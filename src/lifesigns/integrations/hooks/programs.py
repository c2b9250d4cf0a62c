"""All programs, by name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from lifesigns.integrations.hooks import claude_code, codex, copilot, gemini, opencode, qwen
from lifesigns.integrations.hooks.program import Program

PROGRAMS: Final[Mapping[str, Program]] = {
    one.PROGRAM.name: one.PROGRAM for one in (claude_code, codex, gemini, qwen, copilot, opencode)
}
