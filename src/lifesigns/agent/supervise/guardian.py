"""Guardian: a small shell that ends the child's group when we are killed before we can.

It waits on a pipe that only we hold open. On a clean end we tell it that nothing is left to do; if the pipe closes
without that, we died: it restores the terminal, asks the group to end, and forces it a moment later. A mark in our
folder tells a sender in the child why it ends, so that the sender reports a failure. If we die during a start, before
we could name the child, the guardian finds it by our folder, which is in the child's environment.

A pipe, and not Linux's parent-death signal: that one reaches only the child itself, not its children, is lost
when the child changes its user, and comes when our *thread* ends. A shell, because it takes a megabyte.
"""

from __future__ import annotations

import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

SAVE_FOR: Final = 5
"""Seconds. Shorter than for a decided stop: nothing watches this child any more."""

STARTING: Final = "starting"
DONE: Final = "done"

_SCRIPT: Final = """
session_of() { read -r stat < "$1/stat" && set -- ${stat##*) } && echo "$4"; }
started() {
    for process in /proc/[0-9]*; do
        tr '\\0' '\\n' < "$process/environ" | grep -qxF "LIFESIGNS_RUN=$1" && session_of "$process" && return
    done
}
while IFS= read -r line; do group=$line; done
[ "$group" != done ] || exit 0
tries=0
while [ "$group" = starting ] && [ "$tries" -lt 10 ]; do
    found=$(started "$3"); [ -z "$found" ] || group=$found
    sleep 0.1; tries=$((tries + 1))
done
case $group in ''|starting) rm -rf -- "$3"; exit 0;; esac
: > "$3/orphaned"
[ -z "$2" ] || stty "$2" <&1
kill -s TERM -- "-$group"; kill -s CONT -- "-$group"
tries=0
while [ "$tries" -lt "$1" ] && kill -s 0 -- "-$group"; do sleep 0.1; tries=$((tries + 1)); done
kill -s KILL -- "-$group"
rm -rf -- "$3"
"""


class Guardian:
    """Knows which group to end, while there is one."""

    def __init__(self, folder: Path, terminal: int | None, settings: str = "") -> None:
        self._shell = subprocess.Popen(  # noqa: S603 -- our own script; what it is given are its arguments
            ["/bin/sh", "-c", _SCRIPT, "lifesigns-guardian", str(SAVE_FOR * 10), settings, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL if terminal is None else terminal,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )

    @property
    def pid(self) -> int:
        return self._shell.pid

    def watch(self, group: int | None) -> None:
        """End this group if we die; none, if None."""
        self._tell(str(group or ""))

    def expect(self) -> None:
        """A child is about to be started: `watch` follows."""
        self._tell(STARTING)

    def _tell(self, line: str) -> None:
        """If the guardian was killed, go on without it."""
        assert self._shell.stdin is not None
        with suppress(OSError):
            self._shell.stdin.write(f"{line}\n".encode())

    def close(self) -> None:
        """A clean end: it has nothing to do."""
        self._tell(DONE)
        assert self._shell.stdin is not None
        with suppress(OSError):
            self._shell.stdin.close()
        self._shell.wait()


def stty_settings(terminal: int) -> str:
    """The terminal's settings in the format of `stty`, which can restore them; empty if there is no stty."""
    try:
        said = subprocess.run(["stty", "-g"], stdin=terminal, capture_output=True, check=True, timeout=5)  # noqa: S607
    except (OSError, subprocess.SubprocessError):
        return ""
    return said.stdout.decode().strip()
