"""Real supervisors with real children: started, waited for with a bound, and ended whatever happens."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[3]
RUN: Final = (sys.executable, "-m", "lifesigns", "run")
PYTHON: Final = (sys.executable, "-S", "-E", "-c")
"""A child in Python that starts quickly."""
BOUND: Final = 40.0
WAITS: Final = (
    *PYTHON,
    "import signal; signal.signal(2, signal.SIG_DFL); print('ready', flush=True); signal.pause()",
)
"""Says that it is ready, and ends by any signal. Not a shell: dash can lose an interrupt while it starts a program."""


def environ(**more: str) -> dict[str, str]:
    """Ours, without what would change a supervisor's mind."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("LIFESIGNS_")}
    return {**kept, "PYTHONPATH": str(ROOT / "src"), "HOME": "/nonexistent", **more}


def run(*args: str, stdin: bytes = b"", **env: str) -> subprocess.CompletedProcess[bytes]:
    """`lifesigns run ARGS`, from its start to its end, without a terminal."""
    return subprocess.run(
        [*RUN, *args], input=stdin, capture_output=True, timeout=BOUND, check=False, env=environ(**env)
    )


def supervise(settings: str, *command: str) -> subprocess.CompletedProcess[bytes]:
    """The same by the function, for settings that have no option: `restart=RestartPolicy(...), ...`."""
    code = f"""
import sys
from lifesigns.agent.supervise.settings import *
from lifesigns.assembly.supervision import supervise
from lifesigns.core.profiles import profile
settings = Settings(command=tuple(sys.argv[1:]), agent_id="a", {settings})
end = supervise(settings, profile("swarm"))
sys.exit(end.status if end.signal is None else 128 + end.signal)
"""
    command = (sys.executable, "-c", code, *command)
    return subprocess.run(command, capture_output=True, timeout=BOUND, check=False, env=environ())


SILENT = r"No output for \d\.\d s"
"""Of a child that was silent for a second or two, and of a machine that noticed in its own time."""


def said(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What the supervisor itself said."""
    return [line for line in done.stderr.decode().splitlines() if line.startswith("lifesigns: ")]


def eventually(holds: Callable[[], object], within: float = BOUND) -> None:
    """Wait until it holds."""
    until = time.monotonic() + within
    while not holds():
        assert time.monotonic() < until, f"it did not become true within {within} s"
        time.sleep(0.02)


@contextmanager
def burning() -> Iterator[None]:
    """For children that burn all processors: one test at a time, or none of them gets enough to count as spinning."""
    with (Path(tempfile.gettempdir()) / f"lifesigns-tests-burning-{os.getuid()}").open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def alive(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def number_in(file: Path) -> int:
    """The number a child wrote into a file; waits for it."""
    eventually(lambda: file.exists() and file.read_text().endswith("\n"))
    return int(file.read_text().split()[0])


@contextmanager
def started(*args: str, stdin: int = subprocess.DEVNULL, **env: str) -> Iterator[subprocess.Popen[bytes]]:
    """`lifesigns run ARGS`, living beside the test."""
    process = subprocess.Popen(
        [*RUN, *args],
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ(**env),
        bufsize=0,
    )
    with process:
        try:
            yield process
        finally:
            process.terminate()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()


class Screen:
    """A terminal with a program in it: what is typed, and what is shown."""

    def __init__(self, master: int, process: subprocess.Popen[bytes]) -> None:
        self.master = master
        self.process = process
        self.shown = ""

    def type(self, keys: str) -> None:
        os.write(self.master, keys.encode())

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def expect(self, pattern: str, within: float = BOUND) -> re.Match[str]:
        """Wait until it is shown; what was shown before it is forgotten."""
        until = time.monotonic() + within
        while (found := re.search(pattern, self.shown)) is None:
            assert time.monotonic() < until, f"{pattern!r} was not shown; but {self.shown!r}"
            self._read(until)
        self.shown = self.shown[found.end() :]
        return found

    def ends(self, within: float = BOUND) -> int:
        """Wait for the program's end; its status, negative for a signal."""
        until = time.monotonic() + within
        while self.process.poll() is None:
            assert time.monotonic() < until, f"it did not end; shown is {self.shown!r}"
            self._read(time.monotonic() + 0.05)
        self._read(time.monotonic())
        return self.process.wait()

    def modes(self) -> list[object]:
        """How the terminal is set: cooked or raw."""
        return list(termios.tcgetattr(self.master)[:4])

    def _read(self, until: float) -> None:
        ready, _, _ = select.select([self.master], [], [], max(0.0, until - time.monotonic()))
        if ready:
            with suppress(OSError):
                self.shown += os.read(self.master, 65536).decode(errors="replace")


@contextmanager
def on_screen(
    *command: str,
    stdin: int | None = None,
    stdout: int | None = None,
    rows: int = 24,
    columns: int = 80,
    **env: str,
) -> Iterator[Screen]:
    """A command that leads the session of a terminal, as a terminal window starts it."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        command,
        stdin=slave if stdin is None else stdin,
        stdout=slave if stdout is None else stdout,
        stderr=slave,
        env=environ(**env),
        start_new_session=True,
        preexec_fn=lambda: fcntl.ioctl(2, termios.TIOCSCTTY, 0),
    )
    os.close(slave)
    try:
        yield Screen(master, process)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.send_signal(signal.SIGCONT)
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
        process.wait()
        os.close(master)
