"""The desktop of the hub's machine: `notify-send` where it exists, `osascript` on a Mac."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from typing import Final

from lifesigns.ports import NotDelivered, Notice, NoticeSeverity, NoticeStage

SHOW_FOR: Final = 10.0
"""Seconds the program may take: without a desktop session, some wait for one."""
TEXT_MAX: Final = 500

_URGENCIES: Final = {NoticeSeverity.INFO: "low", NoticeSeverity.WARNING: "normal"}


class DesktopChannel:
    """Shows notices on this machine's screen."""

    def __init__(self, path: str | None = None) -> None:
        self._path = path

    async def tell(self, notice: Notice) -> None:
        for program, arguments in _PROGRAMS.items():
            if path := shutil.which(program, path=self._path):
                await _run(path, program, arguments(notice))
                return
        raise NotDelivered(f"there is neither {' nor '.join(_PROGRAMS)} on this machine", transient=False)

    async def close(self) -> None:
        """Nothing to close."""


async def _run(path: str, program: str, arguments: list[str]) -> None:
    try:
        process = await asyncio.create_subprocess_exec(
            path,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
        )
    except OSError as error:
        raise NotDelivered(f"{program}: {error.strerror}") from error
    try:
        async with asyncio.timeout(SHOW_FOR):
            status = await process.wait()
    except TimeoutError:
        raise NotDelivered(f"{program} took longer than {SHOW_FOR:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status:
        raise NotDelivered(f"{program} ended with {status}; is anybody signed in at this screen?")


def _notify_send(notice: Notice) -> list[str]:
    over = notice.stage in (NoticeStage.RESOLVED, NoticeStage.ACKNOWLEDGED)
    urgency = "low" if over else _URGENCIES.get(notice.severity, "critical")
    text = notice.text[:TEXT_MAX].replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return ["--app-name=lifesigns", f"--urgency={urgency}", "--", notice.title, text]


def _osascript(notice: Notice) -> list[str]:
    """The texts are arguments and never a part of the script."""
    show = "display notification (item 2 of argv) with title (item 1 of argv)"
    script = ["-e", "on run argv", "-e", show, "-e", "end run"]
    return [*script, "--", notice.title, notice.text[:TEXT_MAX] or notice.kind]


_PROGRAMS: Final[Mapping[str, Callable[[Notice], list[str]]]] = {
    "notify-send": _notify_send,
    "osascript": _osascript,
}
