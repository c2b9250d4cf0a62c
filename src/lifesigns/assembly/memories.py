"""Memories: the one there is, the MCP memory server, by the file it keeps."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from lifesigns.errors import UsageError
from lifesigns.ports.memory import Memory

FILE = "MEMORY_FILE_PATH"
COMMAND = "LIFESIGNS_MEMORY_COMMAND"


def memory_in(file: str | Path | None = None, environ: Mapping[str, str] = os.environ) -> Memory:
    """The memory in this file, by default in `MEMORY_FILE_PATH`, which the server itself knows.
    `LIFESIGNS_MEMORY_COMMAND` starts another server than `npx -y @modelcontextprotocol/server-memory`."""
    from lifesigns.adapters.memory.mcp import COMMAND as DEFAULT
    from lifesigns.adapters.memory.mcp import McpMemory

    path = file or environ.get(FILE)
    if not path:
        raise UsageError(f"which memory? Name its file, or set {FILE}")
    return McpMemory(path, shlex.split(environ.get(COMMAND, "")) or DEFAULT)
