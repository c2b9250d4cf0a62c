"""`make demo` in a fresh clone, where no `lifesigns` is on the PATH: what it prints for another terminal can be typed there."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from tests.journeys.outside import BOUND, environment, until

PROGRAM = Path(sys.executable).with_name("lifesigns")
OTHER_TERMINAL = "/usr/bin:/bin"


def test_what_the_demo_says_to_type_works_in_another_terminal(tmp_path: Path) -> None:
    """It said `lifesigns show indexer`, and the shell: command not found."""
    told = tmp_path / "told"
    env = environment(UV="uv", PATH=f"{PROGRAM.parent}:{OTHER_TERMINAL}", TMPDIR=str(tmp_path))
    with told.open("w") as out:
        demo = subprocess.Popen([PROGRAM, "demo", "--port", "0", "--for", "2m"], stdout=out, env=env)
    try:
        until(lambda: "indexer is there" in told.read_text(), "the demo tells of its agents")
        (line,) = (line for line in told.read_text().splitlines() if line.endswith(" show indexer"))
        typed = subprocess.run(
            ["sh", "-c", line],
            env={**environment(), "PATH": OTHER_TERMINAL},
            capture_output=True,
            text=True,
            check=False,
            timeout=BOUND,
        )
        assert typed.stdout.startswith("indexer is "), typed.stderr
    finally:
        os.kill(demo.pid, signal.SIGINT)
        demo.wait(BOUND)
