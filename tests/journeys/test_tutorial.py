"""Tutorial, step 2: the file and the commands as they stand there, for a shorter day."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

TUTORIAL = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text()
STEP = TUTORIAL.split("\n## 2. ")[1].split("\n## ")[0]


def run(command: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", *command.split()], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_your_own_fleet_is_checked_and_lived_through_and_its_last_line_replays_it(tmp_path: Path) -> None:
    (content,) = re.findall(r"```yaml\n(.*?)```", STEP, re.DOTALL)
    (tmp_path / "lifesigns.yaml").write_text(content)
    check, simulate = re.findall(r"^tools/uv run (lifesigns .*)$", STEP, re.MULTILINE)
    assert "lifesigns.yaml is good" in run(check, tmp_path)
    told = run(f"{simulate} --days 0.05 --no-trials --quiet", tmp_path)
    again = run(f"{told.splitlines()[-1].strip()} --quiet", tmp_path)
    assert table(told) == table(again)
    assert "agents ended" in table(told)


def table(told: str) -> str:
    """What it prints but for how long it took, which is in the line before the last."""
    return "\n".join(told.splitlines()[:-2])
