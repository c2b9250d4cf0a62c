"""`python -m tools.caught [PAGE ...]`: what our pages show under *Caught*, taken anew with the real programs (`make caught`).

Coding agents and frameworks run offline, against a scripted model that makes the same failing call eight times; then `lifesigns
show` says what was seen. `make integrations` has installed them before.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

from tests.integrations.coders import CODERS, Coder
from tests.integrations.frameworks import FRAMEWORKS, Framework, hub_and_model, running
from tests.integrations.scripted_model import Say, Step, Use, sh
from tests.integrations.traced_claude import traced_claude
from tests.integrations.watched_coder import Terminal, watched
from tests.journeys.outside import Hub, serving

HOWTO: Final = Path(__file__).resolve().parents[1] / "docs/howto"
SHOWN: Final = re.compile(r"(^## Caught\n.*?^```text\n).*?(^```$)", re.MULTILINE | re.DOTALL)
THINKS_FOR: Final = 0.3
LOOP: Final[list[Step]] = [*[sh("cat no-such-file", after=THINKS_FOR)] * 8, Say("done")]
BROKEN: Final = Use("broken", {"path": "/no/such"}, after=THINKS_FOR)


def main() -> None:
    """Take those that are named, or all."""
    for page in sys.argv[1:] or CASTS:
        with tempfile.TemporaryDirectory() as folder:
            _put(page, CASTS[page](Path(folder)))


def _put(page: str, shown: str) -> None:
    path = HOWTO / f"{page}.md"
    text, found = SHOWN.subn(lambda block: f"{block[1]}{shown}{block[2]}", path.read_text())
    if not found:
        sys.exit(f"{path} has no block of text under '## Caught'")
    path.write_text(text)
    print(f"{path.name}: taken")


def _coder(coder: Coder, folder: Path) -> str:
    with watched(coder, folder, {"loop": LOOP}) as one:
        one.run("loop")
        one.hub.until(lambda: one.agent()["state"] == "terminated", "it left")
        return _show(one.hub, one.agent()["agent_id"])


def _framework(framework: Framework, folder: Path) -> str:
    with hub_and_model(folder) as (hub, model), running(hub, model, framework, "loop") as program:
        model.scripts = {"loop": [*[BROKEN] * 8, *framework.last]}
        program.wait()
        program.until(lambda: program.state() in ("terminated", "disconnected"), "it is over")
        return _show(hub, program.agent_id)


def _telemetry(folder: Path) -> str:
    with traced_claude(folder, {"loop": LOOP}) as claude:
        claude.run("loop")
        claude.wait_for_calls(8)
        return _show(claude.hub, claude.session()["agent_id"])


def _mcp(folder: Path) -> str:
    steps: list[Step] = [
        Use("mcp__lifesigns__report_progress", {"note": "the parser is done", "percent": 50}),
        Use("mcp__lifesigns__report_blocker", {"question": "Which branch shall I merge into?"}),
        Say("done"),
    ]
    with traced_claude(folder, {"report": steps}) as claude:
        claude.run("report", "--mcp-config", str(claude.mcp_config("coder-7", "http")))
        return _show(claude.hub, "coder-7")


def _terminal(folder: Path) -> str:
    """A program that asks, at a terminal, where nobody answers."""
    (folder / "notes.txt").touch()
    terminal = Terminal(f"lifesigns-{os.getpid()}-caught")
    with serving(folder) as hub:
        env = [f"{name}={value}" for name, value in hub.environ.items()]
        command = ["env", *env, sys.executable, "-m", "lifesigns", "run", "--id", "cleaner", "--"]
        try:
            terminal.tmux(
                *("new-session", "-d", "-s", terminal.name, "-c", str(folder)),
                *(*command, "rm", "-i", "notes.txt"),
            )
            hub.until(lambda: (hub.agent("cleaner") or {}).get("doing") == "waiting_for_human", "it asks")
            return f"$ lifesigns run --id cleaner -- rm -i notes.txt\n{_show(hub, 'cleaner')}"
        finally:
            terminal.end()


def _cron(folder: Path) -> str:
    job = 'out=$(tar cf /dev/full notes.txt 2>&1); hc "/$?" --data-raw "$out"'
    (folder / "notes.txt").write_text("x" * 100_000)
    with serving(folder) as hub:
        where = shlex.quote(f"Authorization: Bearer {hub.token}")
        ping = f'hc() {{ path=$1; shift; curl -fsS -o /dev/null -H {where} "{hub.url}/ping/backup$path" "$@"; }}; '
        subprocess.run(["bash", "-c", ping + 'hc "/start?every=1d&grace=1h"; ' + job], cwd=folder, check=True)
        hub.until(lambda: hub.health("backup") == "failing", "its failure is known")
        return f"$ {job}\n{_show(hub, 'backup')}"


def _show(hub: Hub, agent_id: str) -> str:
    shown = hub.cli("show", agent_id, check=False).stdout  # It exits with 1 if somebody should look.
    return "\n".join([f"$ lifesigns show {agent_id}", *(line.rstrip() for line in shown.splitlines()), ""])


CASTS: Final[dict[str, Callable[[Path], str]]] = {
    **{f"watch-{name}": partial(_coder, coder) for name, coder in CODERS.items()},
    **{f"watch-{name.replace('_', '-')}": partial(_framework, one) for name, one in FRAMEWORKS.items()},
    "watch-by-opentelemetry": _telemetry,
    "mcp": _mcp,
    "supervise-any-command": _terminal,
    "watch-cron-jobs": _cron,
}


if __name__ == "__main__":
    main()
