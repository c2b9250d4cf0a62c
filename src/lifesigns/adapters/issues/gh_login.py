"""The login of GitHub's own command line: `gh auth token`."""

from __future__ import annotations

import asyncio
from typing import Final

from lifesigns.ports.issues import TrackerError

ASK_FOR: Final = 15.0


class GhLogin:
    """Asks `gh` for its token, and again when that was refused: whoever logs in anew need not restart the hub."""

    def __init__(self, host: str, program: str = "gh") -> None:
        self._host = host
        self._program = program
        self._token = ""

    async def __call__(self, anew: bool) -> str:
        if anew or not self._token:
            self._token = await self._ask()
        return self._token

    async def _ask(self) -> str:
        try:
            process = await asyncio.create_subprocess_exec(
                self._program,
                "auth",
                "token",
                "--hostname",
                self._host,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
            )
        except OSError as error:
            raise TrackerError(
                f"{self._program} cannot be started ({error.strerror}): install it, or configure github.token",
                transient=True,
            ) from None
        try:
            async with asyncio.timeout(ASK_FOR):
                out, err = await process.communicate()
        except TimeoutError:
            process.kill()
            await process.wait()
            raise TrackerError(f"{self._program} auth token did not answer within {ASK_FOR:g} s") from None
        token = out.decode("ascii", "replace").strip()
        if process.returncode != 0 or not token:
            said = " ".join(err.decode("utf-8", "replace").split())[:200]
            raise TrackerError(f"{self._program} has no login for {self._host}: {said}")
        return token
