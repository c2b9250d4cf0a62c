"""What `make integrations` needs of Node's packages: the coding agents that it watches, in `.tools/coding-agents`, and in `.tools/github`
GitHub's own description of its API with a proxy that enforces it. Those versions, by name, from wherever this machine gets its
packages. Nothing is asked for a key: the agents talk to a scripted model on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from tools.dashboard import CannotBuild, find_node

TOOLS: Final = Path(__file__).parents[1] / ".tools"
AGENTS: Final = {
    "@anthropic-ai/claude-code": "2.1.325",
    "@openai/codex": "0.166.0",
    "@google/gemini-cli": "0.61.0",
    "@qwen-code/qwen-code": "0.24.4",
    "@github/copilot": "1.0.102",
    "opencode-ai": "1.18.33",
    "node": "22.23.3",  # for Qwen Code, which wants a newer one than many machines have
}
GITHUB: Final = {"@stoplight/prism-cli": "5.16.0", "@octokit/openapi": "23.0.2"}


def main() -> None:
    """Install what is missing."""
    _install(TOOLS / "coding-agents", AGENTS)
    _install(TOOLS / "github", GITHUB)


def _install(folder: Path, wanted: Mapping[str, str]) -> None:
    missing = [f"{name}@{version}" for name, version in wanted.items() if _version(folder, name) != version]
    if not missing:
        return
    folder.mkdir(parents=True, exist_ok=True)
    try:
        node = find_node()
    except CannotBuild as error:
        sys.exit(str(error))
    path = os.pathsep.join((str(Path(node.node).parent), os.environ.get("PATH", os.defpath)))
    install = [*node.npm, "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(folder)]
    done = subprocess.run([*install, *missing], env={**os.environ, "PATH": path}, check=False)
    if done.returncode:
        sys.exit(f"{', '.join(missing)} could not be installed; their tests are skipped without them")


def _version(folder: Path, name: str) -> str:
    try:
        said = json.loads((folder / "node_modules" / name / "package.json").read_text())
    except (OSError, ValueError):
        return ""
    return str(said.get("version", ""))


if __name__ == "__main__":
    main()
