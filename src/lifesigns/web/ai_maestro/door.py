"""Opens the door: where it listens, and who is let in."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from msgspec.structs import replace

from lifesigns.config import listening
from lifesigns.config.values import Config, Listen
from lifesigns.errors import UsageError
from lifesigns.hub.ai_maestro.outgoing import ORDERS
from lifesigns.hub.mailbox_executor import MailboxExecutor
from lifesigns.hub.service import Service
from lifesigns.web.ai_maestro.calls import ANYBODY, MaestroCalls
from lifesigns.web.app import Web
from lifesigns.web.connections import Connections
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.server import listen, served
from lifesigns.wire.addresses import is_loopback_host

PORT: Final = 23000
DEFAULT: Final = f"127.0.0.1:{PORT}"


def place(text: str, main: Listen) -> Listen:
    """`HOST:PORT`, `HOST` or `PORT` as a place to listen, under the hub's own rules: TLS where others can reach it."""
    host, _, port = text.rpartition(":")
    if not host and text.isdecimal():
        host, port = "127.0.0.1", text
    elif not host:
        host, port = text, str(PORT)
    if not port.isdecimal() or int(port) > 65535:
        raise UsageError(f"--ai-maestro is {text!r}, but it has to be HOST:PORT, such as {DEFAULT}")
    at = replace(main, host=host.strip("[]"), port=int(port))
    listening.check(at)
    return at


def _came_here(service: Service, agent_id: str) -> bool:
    """Whether an agent was last heard at this door, without a token: it fetches no orders elsewhere."""
    agent = service.engine.agent(agent_id)
    return agent is not None and (agent.via or agent.source) == ANYBODY.token_id


@asynccontextmanager
async def answering(service: Service, config: Config, text: str) -> AsyncIterator[str]:
    """Answer AI Maestro's calls there until the block is left; its address. On the loopback without tokens, as those who
    know AI Maestro are used to; elsewhere with tokens."""
    at = place(text, config.listen)
    executor = MailboxExecutor(service.mailbox, lambda: service.engine, service.clock)
    for kind in ORDERS:
        service.executors.assign(kind, executor, reaches=lambda name: _came_here(service, name))
    calls = MaestroCalls(service.mailbox, executor.questions)
    routes = calls.routes(open_to_all=is_loopback_host(at.host))
    web = Web(service, HostPolicy.of(at), config.limits, routes, dashboard=None)
    try:
        listener = listen(at.host, at.port)
    except OSError as error:
        raise UsageError(
            f"{at} cannot be listened on: {error.strerror or error}. Is AI Maestro itself there? "
            "Another place: --ai-maestro 127.0.0.1:PORT"
        ) from error
    most = config.limits.connections_per_address
    with listener:
        async with served(web, listener, Connections(most, most), at.tls):
            yield f"{at.host}:{listener.getsockname()[1]}"
