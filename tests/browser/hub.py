"""A real hub as a child process, with a token for each role and everything a browser needs to get in."""

from __future__ import annotations

import socket
import sys
from functools import cached_property
from pathlib import Path
from typing import Final

import msgspec
from playwright.sync_api import StorageState

from lifesigns.client import Client
from tests.servers.process import Server

POLICY: Final = {
    "profile": "long_tasks",  # what a test says about an agent stays true for as long as the test takes
    "agents": {"quick-*": {"profile": "swift"}},
    "fleet": {"acted_share": 1.0, "brake_share": 1.0},
}


class Hub(Server):
    """`lifesigns serve`, on a port it keeps across restarts."""

    scheme = "http"

    def __init__(self) -> None:
        super().__init__()
        self.sessions: dict[str, StorageState] = {}
        """What the browser of somebody who has signed in with this token keeps."""
        (self.folder / "lifesigns.yaml").write_bytes(msgspec.yaml.encode(POLICY))

    @property
    def state(self) -> Path:
        return self.folder / "state"

    def command(self) -> list[str]:
        options = ("--state", str(self.state), "--config", str(self.folder / "lifesigns.yaml"))
        where = ("--port", str(self.port), "--log-level", "warning")
        return [sys.executable, "-m", "lifesigns", "serve", *options, *where]

    def greet(self, connection: socket.socket) -> bool:
        connection.settimeout(5)
        connection.sendall(b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        return b" 200 " in connection.recv(64)

    @cached_property
    def client(self) -> Client:
        """An admin's."""
        return Client(self.url, self.admin_token)

    @property
    def admin_token(self) -> str:
        return (self.state / "admin.token").read_text().strip()

    @cached_property
    def viewer_token(self) -> str:
        return self.client.create_token("viewer", "somebody who looks").token

    @cached_property
    def operator_token(self) -> str:
        return self.client.create_token("operator", "Olga").token

    def link(self, token: str) -> str:
        """A one-time link, as `lifesigns open` prints it."""
        with Client(self.url, token) as client:
            return client.sign_in_link().url

    def close(self) -> None:
        if "client" in self.__dict__:
            self.client.close()
        super().close()
