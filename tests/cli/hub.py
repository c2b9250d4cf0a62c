"""A hub in a thread of the test, for commands in processes of their own; it can go away and come back."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from click.testing import CliRunner, Result

from lifesigns.adapters.store.sqlite import SqliteStore
from lifesigns.cli import main
from lifesigns.client import Client
from tests.agent.supervise.running import BOUND, environ
from tests.web.hub import RunningHub, running_hub

T = TypeVar("T")


class HubInThread:
    """The hub, its address, the token of an admin, and a client of it."""

    def __init__(self, **more: Any) -> None:
        self._more = more
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self._folder = TemporaryDirectory()
        self.running: RunningHub
        self.token = ""
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def environ(self) -> dict[str, str]:
        """What a command needs to find it."""
        return {"LIFESIGNS_HUB": self.url, "LIFESIGNS_TOKEN": self.token, "LIFESIGNS_STATE": "/nonexistent"}

    def start(self) -> None:
        store = SqliteStore(f"{self._folder.name}/lifesigns.db")
        self._going = running_hub(store, port=self.port, **{"policy": "swift", **self._more})
        self.running = self.run(self._going.__aenter__())
        self.token = self.token or self.running.token
        self.port = int(self.running.url.rpartition(":")[2])
        self.client = Client(self.url, self.token)

    def stop(self) -> None:
        self.client.close()
        self.run(self._going.__aexit__(None, None, None))

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Something on the hub's own loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(BOUND)

    def end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._folder.cleanup()

    def cli(self, *args: str, **env: str) -> Result:
        """A command, in this process."""
        return CliRunner().invoke(main, args, env={**self.environ, **env}, catch_exceptions=False)

    def started(self, *args: str) -> subprocess.CompletedProcess[str]:
        """A command, as a shell would start it."""
        command = [sys.executable, "-m", "lifesigns", *args]
        return subprocess.run(
            command, capture_output=True, text=True, timeout=BOUND, check=False, env=environ(**self.environ)
        )


@contextmanager
def hub_in_thread(**more: Any) -> Iterator[HubInThread]:
    """`more` goes to `Service`."""
    hub = HubInThread(**more)
    try:
        hub.start()
        try:
            yield hub
        finally:
            hub.stop()
    finally:
        hub.end()
