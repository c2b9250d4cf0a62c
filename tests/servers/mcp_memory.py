"""The real MCP memory server, `@modelcontextprotocol/server-memory` from npm; `LIFESIGNS_TEST_MCP_MEMORY` names one that is here.

It is fetched into `.tools/` once: each of six workers fetching its own took twenty seconds of a processor.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Final

import pytest

PACKAGE: Final = "@modelcontextprotocol/server-memory"
TOOLS: Final = Path(__file__).parents[2] / ".tools"
FOLDER: Final = TOOLS / "server-memory"


def memory_server() -> tuple[str, ...]:
    """The command that starts it; or a visible reason why it is not tried."""
    if known := os.environ.get("LIFESIGNS_TEST_MCP_MEMORY"):
        return ("node", known)
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the real MCP memory server is not tried")
    TOOLS.mkdir(exist_ok=True)
    with (TOOLS / "server-memory.lock").open("w") as one_at_a_time:
        fcntl.flock(one_at_a_time, fcntl.LOCK_EX)
        if not FOLDER.exists():
            _fetch()
    return ("node", str(FOLDER / "node_modules" / PACKAGE / "dist" / "index.js"))


def _fetch() -> None:
    """It is there whole, or not at all."""
    with tempfile.TemporaryDirectory(dir=TOOLS, ignore_cleanup_errors=True) as fetched:
        install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", fetched, PACKAGE]
        installed = subprocess.run(install, capture_output=True, text=True, timeout=180, check=False)
        if installed.returncode:
            pytest.skip(f"npm has no {PACKAGE} here: {installed.stderr.strip()[-200:]}")
        Path(fetched).rename(FOLDER)
