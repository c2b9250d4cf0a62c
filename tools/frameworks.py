"""The agent frameworks that `make integrations` watches, in `.tools/frameworks/NAME`: these versions, each in an environment of its
own, from wherever this machine gets its packages. lifesigns itself is not installed there, only what it needs."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
FOLDER: Final = ROOT / ".tools" / "frameworks"
WANTED: Final = {
    "langchain": ("langchain==1.4.7", "langgraph==1.2.20", "langchain-openai==1.7.3"),
    "openai_agents": ("openai-agents==0.24.0",),
    "pydantic_ai": ("pydantic-ai-slim[openai]==2.66.0",),
    "celery": ("celery==5.7.0",),
    "claude_agent_sdk": ("claude-agent-sdk==0.2.182",),
    "google_adk": ("google-adk==2.13.0",),
    "crewai": ("crewai==1.15.30",),
    "llama_index": ("llama-index-core==0.14.25", "llama-index-llms-openai-like==0.8.1"),
    "smolagents": ("smolagents[openai]==1.26.0",),
    "autogen": ("autogen-agentchat==0.7.5", "autogen-ext[openai]==0.7.5"),
}
TRACED: Final = (
    "pydantic-ai-slim[openai]==2.66.0",
    "openai-agents==0.24.0",
    "openinference-instrumentation-openai-agents==2.6.0",
    "langchain==1.4.7",
    "langchain-openai==1.7.3",
    "openinference-instrumentation-langchain==0.1.80",
    "opentelemetry-exporter-otlp-proto-http==1.45.1",
)
"""For agents that are watched by their traces alone: by one framework's own, and by OpenInference's of two others."""


def main() -> None:
    """Install what is missing. A file with the wanted versions says what is there."""
    wanted = {**WANTED, "traced": TRACED}
    failed = [name for name, packages in wanted.items() if not _install(name, packages)]
    if failed:
        sys.exit(f"{', '.join(failed)} could not be installed; their tests fail without them")


def _install(name: str, packages: tuple[str, ...]) -> bool:
    folder, wanted = FOLDER / name, "\n".join(packages)
    mark = folder / "installed"
    if mark.is_file() and mark.read_text() == wanted:
        return True
    python = str(folder / "bin" / "python")
    for command in (
        ["venv", "--quiet", "--clear", str(folder)],
        ["pip", "install", "--quiet", "--python", python, "-r", "pyproject.toml", *packages],
    ):
        if subprocess.run([str(ROOT / "tools" / "uv"), *command], cwd=ROOT, check=False).returncode:
            return False
    mark.write_text(wanted)
    return True


if __name__ == "__main__":
    main()
