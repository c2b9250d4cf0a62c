"""Machines: network namespaces of this process, joined by a bridge, with links that can be cut.

The whole network lives in a namespace that this process entered (`isolated`): nothing of it is seen outside, and it ends with the
process. Works as root, and as anybody where users may have namespaces.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

BRIDGE: Final = "lifesigns0"
NET: Final = "198.18.0"
"""A range for tests of networks: no server of anybody is there."""
STORE, BUS, AGENTS = f"{NET}.2", f"{NET}.3", f"{NET}.4"
"""Addresses of this namespace itself: servers and agents live here, each reached by its own address."""
WITH_US: Final = ("setpriv", "--pdeathsig", "KILL")
"""Ends with this process, whatever ends that."""
INSIDE: Final = "LIFESIGNS_CHAOS_INSIDE"


def why_impossible() -> str:
    """Why there can be no namespaces here; empty if there can."""
    for program in ("unshare", "nsenter", "setpriv", "ip"):
        if shutil.which(program) is None:
            return f"there is no {program} on this machine"
    tried = subprocess.run(
        [*_unshare(), "ip", "link", "add", BRIDGE, "type", "bridge"],
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if tried.returncode == 0 else f"no network of our own: {tried.stderr.strip()}"


def enter() -> None:
    """Go on in a network of our own: replaces this process."""
    if INSIDE not in os.environ:
        again = [*_unshare(), sys.executable, *sys.orig_argv[1:]]
        os.execvpe(again[0], again, {**os.environ, INSIDE: "1"})


def _unshare() -> list[str]:
    return ["unshare", "--net", *([] if os.geteuid() == 0 else ["--map-root-user"])]


class Machine:
    """A network of its own, with one address; what is started on it ends with it."""

    def __init__(self, number: int) -> None:
        self.address = f"{NET}.{10 + number}"
        self._keeper = subprocess.Popen([*WITH_US, "unshare", "--net", "sleep", "infinity"])
        self._link = f"lifesigns{10 + number}"
        self._enter: Final = ("nsenter", "--target", str(self._keeper.pid), "--net")
        inner = f"{self._link}i"
        _until_apart(self._keeper.pid)
        _ip("link", "add", self._link, "type", "veth", "peer", "name", inner, "netns", str(self._keeper.pid))
        _ip("link", "set", self._link, "master", BRIDGE, "up")
        self._inside("ip", "link", "set", "lo", "up")
        self._inside("ip", "address", "add", f"{self.address}/24", "dev", inner)
        self._inside("ip", "link", "set", inner, "up")

    def start(self, command: Sequence[str], **more: Any) -> subprocess.Popen[bytes]:
        return subprocess.Popen([*WITH_US, *self._enter, *command], stdin=subprocess.DEVNULL, **more)

    @contextmanager
    def silent_towards(self, address: str) -> Iterator[None]:
        """What it sends there is lost; what comes from there arrives."""
        self._inside("ip", "route", "add", "blackhole", f"{address}/32")
        try:
            yield
        finally:
            self._inside("ip", "route", "del", "blackhole", f"{address}/32")

    @contextmanager
    def deaf(self) -> Iterator[None]:
        """What anybody sends to it is lost; what it sends arrives."""
        _ip("route", "add", "blackhole", f"{self.address}/32")
        try:
            yield
        finally:
            _ip("route", "del", "blackhole", f"{self.address}/32")

    @contextmanager
    def unplugged(self) -> Iterator[None]:
        _ip("link", "set", self._link, "down")
        try:
            yield
        finally:
            _ip("link", "set", self._link, "up")

    def end(self) -> None:
        self._keeper.send_signal(signal.SIGKILL)
        self._keeper.wait()

    def _inside(self, *command: str) -> None:
        subprocess.run([*self._enter, *command], check=True, capture_output=True)


def make_network() -> None:
    """The bridge, and the addresses of this namespace."""
    _ip("link", "set", "lo", "up")
    _ip("link", "add", BRIDGE, "type", "bridge")
    for address in (f"{NET}.1", STORE, BUS, AGENTS):
        _ip("address", "add", f"{address}/24", "dev", BRIDGE)
    _ip("link", "set", BRIDGE, "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


def _until_apart(pid: int) -> None:
    """`unshare` needs a moment until it has a network of its own."""
    while Path(f"/proc/{pid}/ns/net").readlink() == Path("/proc/self/ns/net").readlink():
        os.sched_yield()
