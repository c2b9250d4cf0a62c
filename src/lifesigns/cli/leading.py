"""Leading: everything that answers for a hub while it judges. `serve` imports this before the hub stands by."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from lifesigns import __version__
from lifesigns.assembly.executors import assign_executors
from lifesigns.assembly.observing import observed
from lifesigns.assembly.recovery_memory import recoveries_kept
from lifesigns.cli.mcp_http import McpEndpoint
from lifesigns.cli.say import say
from lifesigns.config.hub_locator import TOKEN_FILE
from lifesigns.config.values import Config
from lifesigns.core.health import UNWELL
from lifesigns.hub.service import Service
from lifesigns.hub.state_folder import announced
from lifesigns.web import pages
from lifesigns.web.app import Web
from lifesigns.web.host_policy import HostPolicy
from lifesigns.web.otlp_grpc import OverGrpc
from lifesigns.web.server import serving
from lifesigns.web.table import CALLS


class Leading:
    """The API and what else answers, ready to serve as soon as the service has started."""

    def __init__(self, service: Service, config: Config, folder: Path, url: str) -> None:
        self._service = service
        self._config = config
        self._folder = folder
        self._url = url
        assign_executors(service, config, os.environ, folder, url)
        self._mcp = McpEndpoint()
        calls = (*CALLS, *self._mcp.routes)
        self._web = Web(service, HostPolicy.of(config.listen), config.limits, calls, hooks=config.hooks)
        self._mcp.app = self._web

    @asynccontextmanager
    async def answering(
        self, listener: socket.socket, grpc_port: int | None, maestro_at: str | None, trace: float | None
    ) -> AsyncIterator[None]:
        """Answer, until the block is left."""
        service, config, web = self._service, self._config, self._web
        over_grpc = OverGrpc(service, web.site)
        # Announced before it answers, so that a client that sees it answer finds it.
        with announced(self._folder, self._url):
            async with (
                observed(service, grpc_port, trace, otlp=over_grpc.take, may_ask=over_grpc.may_ask),
                recoveries_kept(service, config.memory.file),
                web.site.hooks.watching(),
                self._mcp,
                _maestro(service, config, maestro_at) as also_at,
                serving(web, listener, tls=config.listen.tls),
            ):
                _welcome(service, config, self._folder, self._url, also_at)
                yield

    def status(self) -> str:
        """In a line, for systemd."""
        agents = self._service.engine.beliefs.agents.values()
        unwell = sum(agent.health in UNWELL for agent in agents)
        return f"listens on {self._url}; {len(agents)} agents, {unwell} unwell"


@asynccontextmanager
async def _maestro(service: Service, config: Config, at: str | None) -> AsyncIterator[str]:
    """The door for AI Maestro's calls, if it is wanted; where it is."""
    if at is None:
        yield ""
        return
    from lifesigns.web.ai_maestro.door import answering

    async with answering(service, config, at) as place:
        yield place


def _welcome(service: Service, config: Config, folder: Path, url: str, maestro_at: str) -> None:
    """Print the next steps for a new user."""
    agents = len(service.engine.beliefs.agents)
    store = config.effective.get("store") or f"SQLite in {folder}"
    lines = [
        f"lifesigns {__version__} listens on {url}",
        f"  keeps   {store}" + (f"; knows {agents} agents" if agents else ""),
        *([f"  hears   {config.effective['bus']} too"] if config.bus.url else []),
        *([f"  answers AI Maestro's calls on http://{maestro_at}"] if maestro_at else []),
        "",
        "  lifesigns beat my-agent     send a first beat, or by hand:",
        f'  curl -H "Authorization: Bearer $(cat {folder}/admin.token)" -d \'{{"agent_id": "my-agent"}}\' {url}/api/v1/beats',
        "  lifesigns watch             see who is alive",
        *([f"  {_way_in(service, folder, url)}"] if pages.is_built() else []),
        "",
        "Ctrl-C stops it.",
    ]
    say("\n".join(lines), err=True)


def _way_in(service: Service, folder: Path, url: str) -> str:
    """How to get into the dashboard. Only a terminal shows the link itself: others read logs."""
    now = service.clock()
    admin = service.access.principal((folder / TOKEN_FILE).read_bytes().strip(), now)
    if admin is None or not sys.stderr.isatty():
        return "lifesigns open              a link to the dashboard"
    return f"{url}/sign-in?code={service.access.sign_ins.link(admin.token_id, now)}    the dashboard; works once (again: lifesigns open)"
