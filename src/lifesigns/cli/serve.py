"""`lifesigns serve`: the hub."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import click

from lifesigns import __version__
from lifesigns.cli.say import say
from lifesigns.cli.secret_options import Secret
from lifesigns.errors import AdapterError, Deposed, UsageError

if TYPE_CHECKING:
    from lifesigns.cli.leading import Leading
    from lifesigns.config.values import Config, Listen
    from lifesigns.hub.lease import Lease
    from lifesigns.hub.service import Service

EVERYWHERE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 -- where to find it, not where to listen
"""Addresses of all interfaces, and where this machine finds a hub that listens there."""


@click.command()
@click.option("--host", help="Where to listen.  [127.0.0.1]")
@click.option("--port", type=int, help="0 chooses a free one.  [8710]")
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="The folder for database and admin.token.  [LIFESIGNS_STATE, or the user's]",
)
@click.option(
    "--store",
    type=Secret(),
    metavar="URL",
    help="sqlite:///path or postgres://...; with a password rather as LIFESIGNS_STORE or @FILE.  [SQLite in the state folder]",
)
@click.option(
    "--bus",
    type=Secret(),
    metavar="URL",
    help="nats://, redis:// or valkey://, to be heard beside HTTP; with a password rather as LIFESIGNS_BUS or @FILE.",
)
@click.option(
    "--zone", metavar="NAME", help="Where this hub runs: hubs in other zones are asked before a verdict."
)
@click.option("--profile", help="swift, balanced, tolerant, swarm, fast_tasks, fleet, long_tasks.")
@click.option(
    "--config", "file", type=click.Path(dir_okay=False, path_type=Path), help="A lifesigns.yaml.  [found]"
)
@click.option(
    "--tls-cert", metavar="FILE", help="Serve HTTPS with this certificate (PEM, with its chain) ..."
)
@click.option("--tls-key", metavar="FILE", help="... and this key.")
@click.option("--behind-proxy", is_flag=True, default=None, help="A proxy in front of the hub speaks TLS.")
@click.option("--allow-host", "names", multiple=True, metavar="NAME", help="A name the hub is reached by.")
@click.option(
    "--grpc", "grpc_port", type=int, metavar="PORT", help="Answer grpc.health.v1 and take OTLP there, too."
)
@click.option(
    "--ai-maestro",
    "maestro_at",
    is_flag=False,
    flag_value="127.0.0.1:23000",
    metavar="[HOST:PORT]",
    help="Answer AI Maestro's calls there, too; on this machine without a token.  [127.0.0.1:23000]",
)
@click.option("--trace", type=click.FloatRange(0, 1), metavar="SHARE", help="Send spans by OTLP; this share.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="[text at a terminal, else json]")
@click.option(
    "--log-level",
    type=click.Choice(["debug", "info", "warning", "error"]),
    default="info",
    show_default=True,
    help="How much is logged.",
)
def serve(
    state: Path | None,
    file: Path | None,
    grpc_port: int | None,
    maestro_at: str | None,
    trace: float | None,
    log_format: str | None,
    log_level: str,
    **flags: Any,
) -> None:
    """Run the hub: receive beats, judge agents, store what happens, serve the API.

    \b
      lifesigns serve                                          everything on this machine, nothing to install
      lifesigns serve --bus nats://bus:4222 --store postgres://db/lifesigns
      lifesigns serve --host 0.0.0.0 --tls-cert hub.pem --tls-key hub.key

    A second hub on the same PostgreSQL stands by, and takes over when the first one is gone.

    Stop it with Ctrl-C: what it knows is kept, and it goes on from there the next time.
    """
    from lifesigns.cli.logs import set_up_logs
    from lifesigns.config import listening
    from lifesigns.config.hub_locator import state_folder
    from lifesigns.config.load import load

    set_up_logs(log_format or ("text" if sys.stderr.isatty() else "json"), log_level)
    config = load(file, environ=os.environ, flags={**flags, "names": flags["names"] or None})
    listening.check(config.listen)
    if maestro_at is not None:
        from lifesigns.web.ai_maestro.door import place

        place(maestro_at, config.listen)
    folder = (state or state_folder(os.environ)).absolute()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(_serve(config, folder, grpc_port, maestro_at, trace))
    except AdapterError as error:
        say(f"Error: {error}", err=True)
        sys.exit(1)


async def _serve(
    config: Config, folder: Path, grpc_port: int | None, maestro_at: str | None, trace: float | None
) -> None:
    from lifesigns.hub.state_folder import claimed, claimed_database, sqlite_path
    from lifesigns.web.server import allow_more_files

    allow_more_files()
    database = sqlite_path(config.store) if config.store else None
    with claimed(folder), claimed_database(database), _listening(config.listen) as listener:
        url = _url(config.listen, listener)
        stopping = asyncio.Event()
        _heed_signals(stopping)
        process = HubProcess(config, folder, listener, url, grpc_port, maestro_at, trace, stopping)
        if config.hubs.judge == "one":
            await process.run()
            return
        from lifesigns.cli import judging

        judging.check(config, **{"--grpc": grpc_port, "--ai-maestro": maestro_at, "--trace": trace})
        slots = judging.SlotsProcess(config, folder, listener, process.url_for_others(), stopping)
        await slots.run(process.until_stopped)


class HubProcess(NamedTuple):
    """What stays the same while this process stands by and leads in turns."""

    config: Config
    folder: Path
    listener: socket.socket
    url: str
    grpc_port: int | None
    maestro_at: str | None
    trace: float | None
    stopping: asyncio.Event

    async def run(self) -> None:
        """Lead or stand by, until the process is told to stop. A hub that another one took over from stands by."""
        from lifesigns.web.garbage_collection import survivors_frozen

        first, drained = True, False
        with survivors_frozen():
            while not self.stopping.is_set():
                drained = await self._run_once(first=first, drained=drained)
                first = False

    async def _run_once(self, *, first: bool, drained: bool) -> bool:
        """Once; whether this hub is drained now, and is to stand by."""
        from lifesigns.assembly.hub import hub_of
        from lifesigns.cli.leading import Leading

        service = hub_of(self.config, self.folder, self.url)
        try:
            lease = self._lease(service, drained=drained)
            if lease is not None:
                service.join(lease)
                if first:
                    await service.open_access()
            await self._introduce(service, ask=first)
            # Made before the hub stands by, so that a takeover does not wait for the imports.
            leading = Leading(service, self.config, self.folder, self.url)
            if lease is None or (first and await lease.may_lead()):
                started = await _start(service)
            else:
                started = await self._stand_by(service, lease)
            if started:
                await self._lead(service, leading)
            return lease is not None and lease.drained
        finally:
            if service.bus_receiver is not None:
                await service.bus_receiver.bus.close()  # Of a hub that stood by in a zone, and did not lead.
            await service.store.close()

    def _lease(self, service: Service, *, drained: bool) -> Lease | None:
        from lifesigns.hub.lease import Lease
        from lifesigns.hub.state_folder import hub_name

        if not service.store.shared:
            return None
        return Lease(
            service.store,
            hub_name(self.folder),
            self.url_for_others(),
            __version__,
            self.config.zone,
            drained=drained,
        )

    def url_for_others(self) -> str:
        """Where other machines reach this hub: by its first name, or this machine's, if it listens everywhere."""
        at = self.config.listen
        if at.host not in EVERYWHERE:
            return self.url
        parts = urlsplit(self.url)
        return f"{parts.scheme}://{(*at.names, socket.gethostname())[0]}:{parts.port}"

    async def _introduce(self, service: Service, *, ask: bool) -> None:
        """Among the hubs on the bus; a process that has just started asks first, whether it will judge or stand by."""
        from lifesigns.assembly.links import bus_at
        from lifesigns.hub.bus_neighbours import BusNeighbours, HubCard
        from lifesigns.hub.state_folder import hub_name

        bus = self.config.bus
        if bus.url is None or bus.other_hubs == "allowed":
            return
        store = str(self.config.effective.get("store") or f"SQLite in {self.folder}")
        card = HubCard(hub_name(self.folder), self.url_for_others(), store, await service.store.identity())
        if ask:
            await BusNeighbours(bus_at(bus.url), card, service.clock).refuse_to_share()
        service.introduce(card)

    async def _stand_by(self, service: Service, lease: Lease) -> bool:
        """Stand by while another hub leads, then take over; whether this hub leads now. A store that is not reached at
        the start is an error to be seen; later the hub waits for it."""
        from lifesigns.hub.state_folder import announced
        from lifesigns.web.host_policy import HostPolicy
        from lifesigns.web.server import served, while_standing_by
        from lifesigns.web.standby import StandbySite

        if lease.leader is not None:
            say(f"lifesigns {__version__} stands by on {self.url}: {lease.leader.name} judges", err=True)
        site = StandbySite(service, HostPolicy.of(self.config.listen), self.config.limits)
        with (
            announced(self.folder, self.url),
            self.listener.dup() as listener,
        ):  # The server closes its listener.
            connections = while_standing_by(self.config.listen, self.config.limits)
            async with served(site, listener, connections, self.config.listen.tls), site.following():
                await first_of(service.stand_by(), self.until_stopped(lambda: f"stands by on {self.url}"))
                return not self.stopping.is_set() and await service.take_over()

    async def _lead(self, service: Service, leading: Leading) -> None:
        """Judge until the process stops or another hub takes over."""
        try:
            with self.listener.dup() as listener:
                async with leading.answering(listener, self.grpc_port, self.maestro_at, self.trace):
                    await first_of(self.until_stopped(leading.status), service.until_replaced())
                    await service.hand_over()
        finally:
            await service.stop()

    async def until_stopped(self, status: Callable[[], str]) -> None:
        """Wait for the end, and tell systemd meanwhile that we live, from the very loop that does the work."""
        from lifesigns.agent.service_manager import ServiceManager

        manager = ServiceManager()
        manager.say(READY="1", STATUS=status())
        while not self.stopping.is_set():
            with suppress(TimeoutError):
                await asyncio.wait_for(self.stopping.wait(), manager.every)
            if manager.every is not None:
                manager.say(WATCHDOG="1", STATUS=status())
        manager.say(STOPPING="1")


async def _start(service: Service) -> bool:
    """Whether this hub leads now: another one that stood by may have been quicker."""
    try:
        await service.start()
    except Deposed:
        return False
    return True


async def first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Return when one of them is done, and cancel the others."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _loop_factory() -> Any:
    """uvloop if installed: it takes half as many beats again on the same core."""
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


@contextmanager
def _listening(at: Listen) -> Iterator[socket.socket]:
    from lifesigns.web.server import listen

    try:
        listener = listen(at.host, at.port)
    except OSError as error:
        raise UsageError(
            f"{at} cannot be listened on: {error.strerror or error}. "
            "Is a hub there already (lifesigns doctor)? Another --port would do."
        ) from error
    with listener:
        yield listener


def _heed_signals(stopping: asyncio.Event) -> None:
    """The first Ctrl-C (or SIGTERM) stops cleanly, the second one at once."""
    loop = asyncio.get_running_loop()

    def stop(number: int) -> None:
        if stopping.is_set():
            os._exit(128 + number)
        stopping.set()

    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop, number)
        except NotImplementedError:  # Windows
            signal.signal(number, lambda got, _: loop.call_soon_threadsafe(stop, got))


def _url(at: Listen, listener: socket.socket) -> str:
    host = EVERYWHERE.get(at.host, at.host)
    scheme = "http" if at.tls is None else "https"
    port = listener.getsockname()[1]
    return f"{scheme}://[{host}]:{port}" if ":" in host else f"{scheme}://{host}:{port}"
