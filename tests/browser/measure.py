"""What the dashboard's speed is measured with, in the browser itself: shared by the tests and `make bench`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from playwright.sync_api import CDPSession, Page

from lifesigns.client import Client
from lifesigns.errors import HubError

BATCH: Final = 5_000
MANY: Final = 10_000

_SCROLL: Final = """
async (count) => {
  const rows = document.querySelector(".rows");
  const place = rows.scrollHeight > rows.clientHeight + 1 ? rows : document.scrollingElement;
  const frames = [];
  place.scrollTop = 0;
  while (frames.length < count) {
    frames.push(await new Promise(requestAnimationFrame));
    place.scrollTop += 400;
    if (place.scrollTop + place.clientHeight >= place.scrollHeight - 1) place.scrollTop = 0;
  }
  place.scrollTop = 0;
  const gaps = frames.slice(1).map((at, n) => at - frames[n]);
  return {
    per_second: 1000 * gaps.length / (frames.at(-1) - frames[0]),
    slowest_ms: Math.max(...gaps),
    rows: document.querySelectorAll("[data-agent]").length,
  };
}
"""

_SEEN_AT: Final = """
([id, state]) => new Promise((seen) => {
  const look = () => {
    const row = document.querySelector(`[data-agent="${id}"]`);
    if (row && row.textContent.includes(state)) seen(Date.now());
    else requestAnimationFrame(look);
  };
  look();
})
"""


def beats(agents: int) -> Iterator[list[dict[str, object]]]:
    """A beat of each, in batches."""
    for first in range(0, agents, BATCH):
        yield [
            {
                "agent_id": f"agent-{n:05}",
                "host": f"host-{n % 40}",
                "role": ("coder", "reviewer", "tester")[n % 3],
                "task_id": f"t-{n % 500}",
                "load": n % 100 / 100,
                "token_count": n * 10,
                "cost_usd": n / 1000,
            }
            for n in range(first, min(first + BATCH, agents))
        ]


def furnish(client: Client, agents: int) -> None:
    """Let the hub hear of so many, and wait until its store has them."""
    for batch in beats(agents):
        assert client.beats(batch).accepted == len(batch)
    while not _stored(client):
        time.sleep(0.1)


def _stored(client: Client) -> bool:
    """The hub answers a report when it is stored, and with it all that came before."""
    try:
        client.signals([{"type": "progress", "agent_id": "agent-00000", "current": 1}])
    except HubError as error:
        if error.status != 503:
            raise
        return False
    return True


def first_paint_ms(page: Page) -> float:
    """From the navigation to the first thing a person sees."""
    page.wait_for_function("() => performance.getEntriesByName('first-contentful-paint').length > 0")
    painted: float = page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime")
    return painted


@dataclass(frozen=True)
class Scrolled:
    """How it went to scroll through the grid, eleven rows a frame."""

    per_second: float
    """Frames."""
    slowest_ms: float
    cpu_ms: float
    """A frame's time on the core that draws: what the machine's other work does not change."""
    rows: int
    """That are drawn."""


def scroll(page: Page, frames: int = 60) -> Scrolled:
    """Scroll through the grid for so many frames."""
    devtools = page.context.new_cdp_session(page)
    devtools.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _cpu_s(devtools)
    measured = page.evaluate(_SCROLL, frames)
    cpu_ms = 1000 * (_cpu_s(devtools) - before) / frames
    devtools.detach()
    return Scrolled(measured["per_second"], measured["slowest_ms"], cpu_ms, measured["rows"])


def _cpu_s(devtools: CDPSession) -> float:
    metrics = devtools.send("Performance.getMetrics")["metrics"]
    return next(float(one["value"]) for one in metrics if one["name"] == "TaskDuration")


def seen_after(page: Page, client: Client, agent_id: str) -> float:
    """Seconds from the moment the hub knows that an agent fails until its row says so."""
    error = {"type": "error", "agent_id": agent_id, "message": "out of disk", "recoverable": False}
    page.evaluate(f"() => {{ window.seen = ({_SEEN_AT})(['{agent_id}', 'failing']); }}")
    client.signals([error])
    known_at = time.time()  # The hub answers a word when it is kept; browser and test share a clock.
    seen_at: float = page.evaluate("window.seen")
    return seen_at / 1000 - known_at
