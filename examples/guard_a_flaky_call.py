"""A client that guards its calls to a server which is down for a while. Run it: `python examples/guard_a_flaky_call.py`.

The server here answers 503 for a second and a half. The client asks ten times a second. After three failures its
breaker opens: the server is left in peace but for one probe every half second, and the client answers from its
cache at once instead of waiting for an error.
"""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import lifesigns

DOWN_FOR = 1.5
GIVE_UP_AFTER = 8.0


class Weather(BaseHTTPRequestHandler):
    """Answers 503 until it is up."""

    up_at = 0.0
    asked = 0

    def do_GET(self) -> None:
        """Answer with the weather."""
        type(self).asked += 1
        up = time.monotonic() >= self.up_at
        self.send_response(200 if up else 503)
        self.end_headers()
        self.wfile.write(b"sunny" if up else b"")

    def log_message(self, *_: object) -> None:
        """Log nothing: the client tells the story."""


def client_of(url: str) -> Callable[[], str]:
    """A guarded call: this decorator is all it takes."""

    @lifesigns.guard("weather-api", failure_threshold=3, recovery_timeout=0.5)
    def weather() -> str:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return str(answer.read().decode())

    return weather


def ask_until_it_is_up(weather: Callable[[], str]) -> Counter[str]:
    """Call ten times a second until three answers came; returns how the calls ended."""
    ends: Counter[str] = Counter()
    deadline = time.monotonic() + GIVE_UP_AFTER
    while ends["answered"] < 3 and time.monotonic() < deadline:
        try:
            print(f"  {weather()}")
            ends["answered"] += 1
        except urllib.error.HTTPError as error:
            print(f"  failed: {error.code}")
            error.close()
            ends["failed"] += 1
        except lifesigns.BreakerOpen:
            ends["from the cache"] += 1
        time.sleep(0.1)
    return ends


def main() -> int:
    """Serve, call, and print what the breaker did; 0 if it ended closed."""
    Weather.up_at = time.monotonic() + DOWN_FOR
    unwatch = lifesigns.BREAKERS.watch(
        lambda name, turn: print(f"{name}: {turn.was} -> {turn.now} ({turn.reason})")
    )
    with ThreadingHTTPServer(("127.0.0.1", 0), Weather) as server:
        serving = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        serving.start()
        try:
            ends = ask_until_it_is_up(client_of(f"http://127.0.0.1:{server.server_port}/"))
        finally:
            server.shutdown()
            serving.join()
            unwatch()
    how = ", ".join(f"{count} {end}" for end, count in ends.items())
    print(f"{how}; the server was asked {Weather.asked} times")
    return 0 if lifesigns.guard("weather-api").state == "closed" else 1


if __name__ == "__main__":
    raise SystemExit(main())
