"""The relay's event loop: one that never keeps the interpreter from ending.

asyncio looks names up in an executor, and Python waits for its threads at exit. A name server that does not answer
would hold a finished agent for half a minute.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import Any


class QuietLoop(asyncio.SelectorEventLoop):
    """Looks names up in daemon threads."""

    async def getaddrinfo(self, *args: Any, **options: Any) -> Any:
        """Like `socket.getaddrinfo`, but delays neither the loop nor the exit."""
        found: asyncio.Future[Any] = self.create_future()

        def settle(result: Any, error: OSError | None) -> None:
            if found.done():
                return
            if error is None:
                found.set_result(result)
            else:
                found.set_exception(error)

        def look_up() -> None:
            try:
                result, error = socket.getaddrinfo(*args, **options), None
            except OSError as failure:
                result, error = None, failure
            try:
                self.call_soon_threadsafe(settle, result, error)
            except RuntimeError:
                return  # The loop was closed meanwhile; nothing waits for the answer.

        threading.Thread(target=look_up, name="lifesigns-lookup", daemon=True).start()
        return await found
