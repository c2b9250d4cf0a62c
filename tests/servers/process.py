"""A real server as a child process: on a free port that it keeps, in a folder of its own, and never left behind.

`kill` is a crash (-9), `freeze` and `thaw` are SIGSTOP and SIGCONT, `restart` comes back on the same port. Whatever
happens to the tests, the server ends: with the fixture; at exit; and if pytest itself is killed, by a guard that
waits for the end of a pipe which only pytest holds open.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

READY_WITHIN = 20.0
_GUARD = 'read -r _; kill -9 "$1"; rm -rf "$2"'


class Server:
    """What all servers have in common; `command` and `greet` are what differs."""

    scheme = ""

    def __init__(self, *arguments: str) -> None:
        self.arguments = arguments
        self.port = free_port()
        self.folder = Path(tempfile.mkdtemp(prefix="lifesigns-server-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._guard: subprocess.Popen[bytes] | None = None
        atexit.register(self.close)

    @property
    def url(self) -> str:
        return f"{self.scheme}://127.0.0.1:{self.port}"

    @property
    def pid(self) -> int:
        assert self._process is not None, "the server does not run"
        return self._process.pid

    def command(self) -> list[str]:
        raise NotImplementedError

    def greet(self, connection: socket.socket) -> bool:
        """Whether the server answers as it should."""
        raise NotImplementedError

    def start(self) -> Self:
        assert self._process is None, "the server runs already"
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self.command(), cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        self._guard = subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "guard", str(self._process.pid), str(self.folder)],
            stdin=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C reaches pytest, not the guard.
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill()
            raise
        return self

    def stop(self) -> None:
        """The orderly end."""
        if self._process is not None:
            self.thaw()
            self._process.terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(5)
        self.kill()

    def kill(self) -> None:
        """The crash; also of a frozen one."""
        guard, self._guard = self._guard, None
        if guard is not None:  # First, or it could meet another process with the same number.
            guard.kill()
            guard.wait()
            assert guard.stdin is not None
            guard.stdin.close()
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def restart(self) -> None:
        self.kill()
        self.start()

    def freeze(self) -> None:
        """Return when every thread of it stands still: nothing that is sent from now on is answered."""
        os.kill(self.pid, signal.SIGSTOP)
        until = time.monotonic() + READY_WITHIN
        while not all(_stands_still(thread) for thread in Path(f"/proc/{self.pid}/task").iterdir()):
            assert time.monotonic() < until, "the server does not freeze"
            time.sleep(0.001)

    def thaw(self) -> None:
        if self._process is not None:
            self._process.send_signal(signal.SIGCONT)

    def close(self) -> None:
        """Nothing is left: no process, no folder."""
        self.kill()
        shutil.rmtree(self.folder, ignore_errors=True)
        atexit.unregister(self.close)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _log(self) -> Path:
        return self.folder / "log"

    def _wait_until_ready(self) -> None:
        assert self._process is not None
        until = time.monotonic() + READY_WITHIN
        while time.monotonic() < until:
            if self._process.poll() is not None:
                break
            with (
                contextlib.suppress(OSError),
                socket.create_connection(("127.0.0.1", self.port), timeout=1) as connection,
            ):
                if self.greet(connection):
                    return
            time.sleep(0.01)
        raise RuntimeError(
            f"{self.command()} did not start:\n{self._log.read_text(errors='replace')[-2000:]}"
        )


def _stands_still(thread: Path) -> bool:
    return (thread / "stat").read_text().rpartition(") ")[2].startswith("T")


def free_port() -> int:
    """A port nobody has, below those the system lends out by itself.

    Who looks for a server that is away, on a port that the system lends out, may by chance be lent that very port and
    connect to itself; then the server cannot have it back.
    """
    lent_from = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    chance = random.SystemRandom()
    for _ in range(1000):
        port = chance.randrange(10_240, lent_from)
        with socket.socket() as attempt, contextlib.suppress(OSError):
            attempt.bind(("127.0.0.1", port))
            return port
    raise RuntimeError("no free port")
