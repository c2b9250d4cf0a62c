"""The real MCP memory server, `@modelcontextprotocol/server-memory` from npm; `LIFESIGNS_TEST_MCP_MEMORY` names one that is here."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

PACKAGE = "@modelcontextprotocol/server-memory"


def memory_server(folder: Path) -> tuple[str, ...]:
    """The command that starts it, installed in this folder; or a visible reason why it is not tried."""
    if known := os.environ.get("LIFESIGNS_TEST_MCP_MEMORY"):
        return ("node", known)
    if shutil.which("npm") is None:
        pytest.skip("npm is not installed: the real MCP memory server is not tried")
    install = ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(folder), PACKAGE]
    installed = subprocess.run(install, capture_output=True, text=True, timeout=180, check=False)
    if installed.returncode:
        pytest.skip(f"npm has no {PACKAGE} here: {installed.stderr.strip()[-200:]}")
    return ("node", str(folder / "node_modules" / PACKAGE / "dist" / "index.js"))
