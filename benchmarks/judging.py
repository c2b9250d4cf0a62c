"""What it costs to judge together: the same fleet with one hub, with one that judges and two that stand by, and with
three that judge (`hubs.judge: all`).

20,000 agents beat every ten seconds, in batches of 500 that mix agents of all slots; the batches go to the hubs in turns.
Counted is the processor time of the hubs, not of PostgreSQL: first without agents, then with them.
"""

from __future__ import annotations

import http.client
import itertools
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from benchmarks import hub_load
from benchmarks.hub import EVERY_TEN_SECONDS
from benchmarks.real_hub import RealHub, served
from tests.servers.postgres import PostgresServer

AGENTS: Final = 20_000
BATCH: Final = 500
INTERVAL: Final = 10.0
MEASURED_FOR: Final = 20.0
SHARED_OUT_WITHIN: Final = 120.0
KEEPS_FOR: Final = 8.0
KEYS: Final = ("tokens.key", "audit.key")


@dataclass(frozen=True)
class Kind:
    """How many hubs there are, and who judges."""

    hubs: int
    judge: str


ONE: Final = Kind(1, "one")
STANDING_BY: Final = Kind(3, "one")
TOGETHER: Final = Kind(3, "all")


@dataclass(frozen=True)
class Spent:
    """Shares of one core, of all hubs together; and seconds until a batch was answered."""

    at_rest: float
    with_agents: float
    answer_p50: float
    refused: int
    """Batches: of a machine that is too busy to renew a lease in time, the rest says little."""


@contextmanager
def hubs(kind: Kind) -> Iterator[list[RealHub]]:
    """They are ready; if they judge together, each judges some slots, and none moves any more."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="lifesigns-judging-")))
        store = stack.enter_context(PostgresServer()).url
        config = folder / "lifesigns.yaml"
        config.write_bytes(msgspec.json.encode({"policy": EVERY_TEN_SECONDS, "hubs": {"judge": kind.judge}}))
        found: list[RealHub] = []
        for n in range(kind.hubs):
            state = folder / str(n) / "state"
            state.mkdir(mode=0o700, parents=True)
            for key in KEYS if found else ():
                while not (found[0].state / key).exists():  # It answers before it judges.
                    time.sleep(0.1)
                shutil.copy(found[0].state / key, state)
            found.append(
                stack.enter_context(served(folder / str(n), "--store", store, "--config", str(config)))
            )
        _wait_until_shared_out(found, kind)
        yield found


def _wait_until_shared_out(found: list[RealHub], kind: Kind) -> None:
    ends_at, kept_since, before = time.monotonic() + SHARED_OUT_WITHIN, time.monotonic(), None
    while time.monotonic() < kept_since + KEEPS_FOR or before is None:
        assert time.monotonic() < ends_at, "nobody agrees on who judges what"
        time.sleep(0.5)
        rows = _get(found, "/api/v1/hubs").get("hubs", [])
        seen = sorted((row["name"], row["state"], *(row.get("slots") or ())) for row in rows)
        some = len(rows) == kind.hubs and (kind.judge == "one" or all(row["slots"] for row in rows))
        if not some:
            before = None
        elif seen != before:
            kept_since, before = time.monotonic(), seen


def _get(found: list[RealHub], path: str) -> dict[str, Any]:
    line = http.client.HTTPConnection("127.0.0.1", urlsplit(found[0].url).port, timeout=10)
    try:
        line.request("GET", path, headers={"Authorization": f"Bearer {found[0].token}"})
        answer = line.getresponse()
        body = answer.read()
        return msgspec.json.decode(body) if answer.status == 200 else {}
    except OSError:
        return {}
    finally:
        line.close()


def measure(kind: Kind) -> Spent:
    """One fleet."""
    with hubs(kind) as found:
        at_rest = _share(found, lambda: time.sleep(MEASURED_FOR))
        batches = [
            hub_load.array([hub_load.beat(n) for n in range(first, AGENTS, AGENTS // BATCH)])
            for first in range(AGENTS // BATCH)
        ]
        lines = [http.client.HTTPConnection("127.0.0.1", urlsplit(hub.url).port) for hub in found]
        post = _Posts(batches, lines, found[0].token)
        post.go_on(INTERVAL)  # Everybody is met.
        post.took.clear()
        with_agents = _share(found, lambda: post.go_on(MEASURED_FOR))
        known = _get(found, "/api/v1/fleet")["agents"]
        assert known == AGENTS, f"{known} agents are known"
        return Spent(at_rest, with_agents, statistics.median(post.took), post.refused)


class _Posts:
    """Posts one batch after the other, evenly, to the hubs in turns."""

    def __init__(self, batches: list[bytes], lines: list[http.client.HTTPConnection], token: str) -> None:
        self._rounds = zip(itertools.cycle(batches), itertools.cycle(lines), strict=False)
        self._headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        self._numbers = itertools.count(hub_load.SEQ_FROM)
        self.took: list[float] = []
        self.refused = 0

    def go_on(self, seconds: float) -> None:
        """For so long."""
        began = time.monotonic()
        every = INTERVAL * BATCH / AGENTS
        for n in range(round(seconds / every)):
            time.sleep(max(0.0, began + n * every - time.monotonic()))
            batch, line = next(self._rounds)
            batch = batch.replace(hub_load.SEQ, b"%d" % next(self._numbers))
            asked = time.monotonic()
            line.request("POST", "/api/v1/beats", batch, self._headers)
            answer = line.getresponse()
            body = answer.read()
            self.took.append(time.monotonic() - asked)
            if answer.status == 503:
                self.refused += 1
                continue
            assert answer.status == 202, (answer.status, body)
            assert msgspec.json.decode(body)["accepted"] == BATCH, body[:300]


def _share(found: list[RealHub], work: Any) -> float:
    began, before = time.monotonic(), sum(hub.cpu() for hub in found)
    work()
    return (sum(hub.cpu() for hub in found) - before) / (time.monotonic() - began)


if __name__ == "__main__":
    for one in (ONE, STANDING_BY, TOGETHER):
        print(one, measure(one), flush=True)
