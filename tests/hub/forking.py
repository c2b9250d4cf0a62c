"""Run by itself: for every line it reads, it forks a `lifesigns serve` with these arguments, to be killed in the middle
of everything. A fork, because a new interpreter for each of fifty deaths would take most of the time.
"""

from __future__ import annotations

import ctypes
import importlib
import os
import shlex
import signal
import sys

from lifesigns.cli.serve import serve

PR_SET_PDEATHSIG = 1
NEEDED = (
    "httptools",
    "lifesigns.adapters.signing.ed25519",
    "lifesigns.adapters.store.sqlite",
    "lifesigns.assembly.hub",
    "lifesigns.cli.logs",
    "lifesigns.assembly.observing",
    "lifesigns.config.load",
    "lifesigns.web.server",
    "uvicorn.lifespan.off",
    "uvicorn.protocols.http.httptools_impl",
    "uvloop",
)
"""What `serve` imports when it begins, and what takes longest of it."""


def end_with_parent() -> None:
    """Whatever happens to the tests, nothing is left behind."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def main() -> None:
    end_with_parent()
    for name in NEEDED:
        importlib.import_module(name)
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            end_with_parent()
            serve.main(shlex.split(line), standalone_mode=False)
            os._exit(0)
        os.write(1, b"%d\n" % child)
        _, status = os.waitpid(child, 0)
        os.write(1, b"%d\n" % os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    main()
