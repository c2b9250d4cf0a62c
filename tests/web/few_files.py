"""A hub on uvloop with hardly any files to open; run as a program. Prints its port."""

import asyncio
import resource

import uvloop

from lifesigns.adapters.store.memory import MemoryStore
from lifesigns.hub.service import Service
from lifesigns.web.app import Web
from lifesigns.web.connections import Connections
from lifesigns.web.server import listen, served

FILES = 90


async def main() -> None:
    service = Service(MemoryStore())
    await service.start()
    listener = listen("127.0.0.1", 0)
    async with served(Web(service), listener, Connections()):
        # After the server has looked at the limit: so that it does run out, however well it counts.
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, hard))
        print(listener.getsockname()[1], flush=True)  # noqa: T201 -- its only word
        await asyncio.Event().wait()


if __name__ == "__main__":
    uvloop.run(main())
