"""`lifesigns` commands as forks of a process that has loaded them already.

A hub's start is mostly imports, and the suite starts hundreds of hubs: this is a fifth of their cost. A fork has its own
arguments, folder, environment, umask, log, signals and exit status, as a command that a shell starts; that the real command
starts is tested in many other places (`tests/hub/test_stopping.py`, `tests/cli`, the README's journey).

    process = forked("serve", "--port", "0", cwd=folder, env=environ, log=path)
    done = completed("show", "coder-7", cwd=folder, env=environ, timeout=60)

Each worker of pytest has one such process. It ends with it, and so do its forks.
"""

from __future__ import annotations

import atexit
import ctypes
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

LOADED: Final = (
    "httptools",
    "lifesigns.adapters.signing.ed25519",
    "lifesigns.adapters.store.sqlite",
    "lifesigns.assembly.hub",
    "lifesigns.assembly.observing",
    "lifesigns.cli.leading",
    "lifesigns.cli.logs",
    "lifesigns.cli.serve",
    "lifesigns.cli.show",
    "lifesigns.client.blocking",
    "lifesigns.config.load",
    "lifesigns.web.garbage_collection",
    "lifesigns.web.server",
    "lifesigns.web.standby",
    "rich.table",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)
"""What hubs load, and commands that ask one."""

ROOT: Final = Path(__file__).parents[2]
PR_SET_PDEATHSIG: Final = 1


class ForkedProcess:
    """What the tests use of `subprocess.Popen`."""

    def __init__(self, parent: _Parent, pid: int, command: tuple[str, ...]) -> None:
        self.pid = pid
        self._parent = parent
        self._command = command

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        return self._parent.status(self.pid, 0.0)

    def wait(self, timeout: float | None = None) -> int:
        status = self._parent.status(self.pid, timeout)
        if status is None:
            raise subprocess.TimeoutExpired(self._command, timeout or 0.0)
        return status

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, number)

    def terminate(self) -> None:
        self.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)


def forked(
    *command: str, cwd: Path, env: Mapping[str, str], log: Path, errors: Path | None = None
) -> ForkedProcess:
    """`lifesigns` with these arguments; what it prints is added to `log`, or what it prints as errors to `errors`."""
    umask = os.umask(0)
    os.umask(umask)
    asked = {
        "command": command,
        "cwd": str(cwd),
        "env": dict(env),
        "log": str(log),
        "errors": str(errors or log),
        "umask": umask,
    }
    return ForkedProcess(_parent(), _parent().fork(asked), command)


def completed(
    *command: str, cwd: Path, env: Mapping[str, str], timeout: float
) -> subprocess.CompletedProcess[str]:
    """`lifesigns` with these arguments, when it has ended."""
    with tempfile.TemporaryDirectory() as folder:
        out, errors = Path(folder, "out"), Path(folder, "errors")
        process = forked(*command, cwd=cwd, env=env, log=out, errors=errors)
        try:
            status = process.wait(timeout)
        finally:
            process.kill()
        return subprocess.CompletedProcess(command, status, out.read_text(), errors.read_text())


class _Parent:
    """The process that forks, seen from the tests."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.servers.forked"],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
        )
        self._statuses: dict[int, int] = {}
        self._forked: list[int] = []
        self._unread = b""
        self._lock = threading.Lock()
        atexit.register(self.end)

    def fork(self, asked: Mapping[str, Any]) -> int:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(asked).encode() + b"\n")
            while not self._forked:
                self._read(None)
            return self._forked.pop()

    def status(self, pid: int, within: float | None) -> int | None:
        """The exit status of a fork, as `Popen` has it; None if it still runs after `within` seconds."""
        ends_at = None if within is None else time.monotonic() + within
        while True:
            with self._lock:
                if pid not in self._statuses:
                    self._read(0.0)
                if pid in self._statuses:
                    return self._statuses[pid]
            if ends_at is not None and time.monotonic() >= ends_at:
                return None
            time.sleep(0.01)

    def end(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            assert stream is not None
            stream.close()
        self._process.wait(10)

    def _read(self, within: float | None) -> None:
        """What the process has said, if it said something."""
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], within)[0]:
            return
        said = self._process.stdout.read(65536)
        assert said, "the process that forks has ended"
        *lines, self._unread = (self._unread + said).split(b"\n")
        for line in lines:
            pid, status = json.loads(line)
            if status is None:
                self._forked.append(pid)
            else:
                self._statuses[pid] = status


@cache
def _parent() -> _Parent:
    return _Parent()


# --- inside the process that forks --------------------------------------------------------------------------


def _end_with_parent(parent: int) -> None:
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)  # It has ended already, and nobody will tell us.


def _say(pid: int, status: int | None) -> None:
    os.write(1, json.dumps([pid, status]).encode() + b"\n")


def _serve_forks() -> None:
    """Until nobody holds the other end of our pipe: pytest has ended, however it ended."""
    gc.disable()
    for name in LOADED:
        importlib.import_module(name)
    gc.freeze()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for pytest.
    children_end, woken = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(woken)
    unread, parent = b"", os.getpid()
    while True:
        ready, _, _ = select.select([0, children_end], [], [])
        if children_end in ready:
            os.read(children_end, 4096)
            _tell_ends()
        if 0 in ready:
            asked = os.read(0, 65536)
            if not asked:
                return
            *lines, unread = (unread + asked).split(b"\n")
            for line in lines:
                pid = os.fork()
                if pid == 0:
                    os.close(children_end)
                    os.close(woken)
                    _run(json.loads(line), parent)
                _say(pid, None)


def _tell_ends() -> None:
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        if not pid:
            return
        _say(pid, os.waitstatus_to_exitcode(status))


def _run(asked: dict[str, Any], parent: int) -> NoReturn:
    """Be the command."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        _end_with_parent(parent)
        os.umask(asked["umask"])
        os.chdir(asked["cwd"])
        os.environ.clear()
        os.environ.update(asked["env"])
        added = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(os.open(asked["log"], added, 0o666), 1)
        os.dup2(os.open(asked["errors"], added, 0o666), 2)
        os.closerange(3, 100)
        for stream in (sys.stdout, sys.stderr):
            stream.reconfigure(write_through=True)  # type: ignore[union-attr]
        sys.argv = ["lifesigns", *asked["command"]]
        from lifesigns.cli import run

        gc.enable()
        status = _status_of(run)
    finally:
        os._exit(status)


def _status_of(run: Any) -> int:
    """As the interpreter would end with it."""
    try:
        run()
        status = 0
    except SystemExit as ended:
        status = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:  # noqa: BLE001 -- as the interpreter shows it
        traceback.print_exc()
        status = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    return status


if __name__ == "__main__":
    _serve_forks()
