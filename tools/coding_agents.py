"""The coding agents that `make integrations` watches, in `.tools/coding-agents`: those versions, by name, from wherever this machine
gets its packages. Nothing is started or asked for a key: they talk to a scripted model on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.dashboard import CannotBuild, find_node

FOLDER: Final = Path(__file__).parents[1] / ".tools" / "coding-agents"
WANTED: Final = {
    "@anthropic-ai/claude-code": "2.1.325",
    "@openai/codex": "0.166.0",
    "@google/gemini-cli": "0.61.0",
    "@qwen-code/qwen-code": "0.24.4",
    "@github/copilot": "1.0.102",
    "opencode-ai": "1.18.33",
    "node": "22.23.3",  # for Qwen Code, which wants a newer one than many machines have
}


def main() -> None:
    """Install what is missing."""
    missing = [f"{name}@{version}" for name, version in WANTED.items() if _version(name) != version]
    if not missing:
        return
    FOLDER.mkdir(parents=True, exist_ok=True)
    try:
        node = find_node()
    except CannotBuild as error:
        sys.exit(str(error))
    path = os.pathsep.join((str(Path(node.node).parent), os.environ.get("PATH", os.defpath)))
    install = [*node.npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(FOLDER)]
    done = subprocess.run([*install, *missing], env={**os.environ, "PATH": path}, check=False)
    if done.returncode:
        sys.exit(f"{', '.join(missing)} could not be installed; their tests are skipped without them")


def _version(name: str) -> str:
    try:
        said = json.loads((FOLDER / "node_modules" / name / "package.json").read_text())
    except (OSError, ValueError):
        return ""
    return str(said.get("version", ""))


if __name__ == "__main__":
    main()
