"""The example does what the how-to promises, as a real process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "guard_a_flaky_call.py"


def test_the_server_is_left_in_peace_while_it_is_down_and_used_again_when_it_is_up() -> None:
    done = subprocess.run([sys.executable, EXAMPLE], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout
    turns = re.findall(r"^weather-api: (\w+) -> (\w+)", done.stdout, re.MULTILINE)
    assert turns[0] == ("closed", "open")
    assert turns[-1] == ("half_open", "closed")
    ends = {
        end: int(count) for count, end in re.findall(r"(\d+) (answered|failed|from the cache)", done.stdout)
    }
    asked = int(re.findall(r"asked (\d+) times", done.stdout)[0])
    assert ends["answered"] == 3
    assert ends["from the cache"] >= 1
    assert asked == ends["answered"] + ends["failed"], "a refused call does not reach the server"
    assert ends["failed"] == 3 + turns.count(("half_open", "open")), "three failures, then one for each probe"
