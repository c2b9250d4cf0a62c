"""`python -m benchmarks.against COMMIT [--turns N]`: what a beat costs a hub of this tree, beside a hub of that commit.

Both are hubs as users start them, on one core, and get the same beats in turns, from the other core. Compared is the
processor time of a beat, turn by turn: neighbours on the machine slow down both. Against `HEAD` the ratio should be 1;
what it is says how far the others can be trusted.
"""

from __future__ import annotations

import argparse
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from benchmarks import hub_load
from benchmarks.hub import AGENTS, WAYS, Load, Subject, Way, settle_in
from benchmarks.hub_process import LOAD_CORE, OWN_CORE, Reading
from benchmarks.real_hub import RealHub, served
from tests.servers.nats import NatsServer

SECONDS: Final = 1.5
CONFIG: Final = "policy: {silence: {interval: 300s, timeout: 900s, ping_wait: 30s}}\n"
"""While the other hub has its turn there are no beats here."""
UNLIMITED: Final = "limits: {busy_share_per_token: 1}\n"
"""How much a hub can take, not how much one token may use of it. Older hubs do not know this limit."""
COUNTED_EVERY: Final = 0.05
ROOT: Final = Path(__file__).parent.parent


class ServedHub:
    """A hub of some commit, as far as a load needs to know it."""

    def __init__(self, hub: RealHub) -> None:
        self._hub = hub
        self.port, self.token = int(hub.url.rpartition(":")[2]), hub.token
        self._counted, self._counted_at = 0, 0.0

    @property
    def beats(self) -> int:
        """Beats heard so far, some milliseconds ago: to ask costs the hub a millisecond."""
        if time.monotonic() - self._counted_at > COUNTED_EVERY:
            self._counted, self._counted_at = self._count(), time.monotonic()
        return self._counted

    def read(self) -> Reading:
        return Reading(time.monotonic(), self._hub.cpu(), 0.0, self._count(), [], [])

    def _count(self) -> int:
        asked = urllib.request.Request(
            f"{self._hub.url}/metrics", headers={"Authorization": f"Bearer {self.token}"}
        )
        with urllib.request.urlopen(asked) as answer:
            lines = answer.read().decode().splitlines()
        counter = next(line for line in lines if line.startswith("lifesigns_beats_total"))
        return int(float(counter.split()[1]))


@dataclass(frozen=True)
class Difference:
    """What a beat costs now and then, in microseconds of processor time, and the ratios of the turns."""

    now: float
    then: float
    ratios: list[float]

    def __str__(self) -> str:
        low, middle, high = statistics.quantiles(self.ratios, n=4)
        return f"{self.now:6.2f} µs  then {self.then:6.2f}  {middle:.3f}x ({low:.3f} to {high:.3f})"


def difference(
    way: Way, then: Path, turns: int, agents: int = AGENTS, seconds: float = SECONDS
) -> Difference:
    """By turns; the order changes with each, so that whatever grows with time favours neither."""
    load = way.load(agents)
    with ExitStack() as stack:
        hubs = [stack.enter_context(_hub(way, tree)) for tree in (ROOT, then)]
        for hub in hubs:
            settle_in(load, hub, agents)
        costs: list[list[float]] = [[], []]
        for turn in range(turns):
            for which in (0, 1) if turn % 2 else (1, 0):
                costs[which].append(_cost(load, hubs[which], seconds))
    now, before = costs
    ratios = [ours / theirs for ours, theirs in zip(now, before, strict=True)]
    return Difference(1e6 * statistics.median(now), 1e6 * statistics.median(before), ratios)


def _cost(load: Load, hub: Subject, seconds: float) -> float:
    before = hub.process.read()
    load.bring(hub, seconds)
    after = hub.process.read()
    return (after.cpu - before.cpu) / (after.beats - before.beats)


@contextmanager
def _hub(way: Way, tree: Path) -> Iterator[Subject]:
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        bus = stack.enter_context(NatsServer()) if way.by_bus else None
        config = folder / "lifesigns.yaml"
        has_shares = (tree / "src/lifesigns/hub/shares.py").exists()
        config.write_text(CONFIG + UNLIMITED if has_shares else CONFIG)
        options = ["--config", str(config), *(() if bus is None else ("--bus", bus.url))]
        python = tree / ".venv/bin/python"
        hub = stack.enter_context(served(folder, *options, python=python, core=OWN_CORE))
        yield Subject(ServedHub(hub), None if bus is None else bus.port)


@contextmanager
def _checked_out(commit: str) -> Iterator[Path]:
    """The tree of this commit, with what it needs to run."""
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "then"
        subprocess.run(["git", "worktree", "add", "-q", "--detach", tree, commit], check=True, cwd=ROOT)
        try:
            subprocess.run([ROOT / "tools/uv", "sync", "--quiet", "--frozen"], check=True, cwd=tree)
            yield tree
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", tree], check=True, cwd=ROOT)


def main() -> int:
    """Compare each way for beats to arrive."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.against", description=__doc__)
    parser.add_argument("commit", help="what to compare this tree with")
    parser.add_argument("--turns", type=int, default=21, help="of each hub, for each way")
    parser.add_argument("--ways", default="", help="only those that have this in their name")
    asked = parser.parse_args()
    hub_load.on_core(LOAD_CORE)
    with _checked_out(asked.commit) as then:
        for way in WAYS:
            if asked.ways in way.name:
                print(f"{way.name:<26} {difference(way, then, asked.turns)}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
