"""The hub, put together: which store, which bus, which policies. What web and command line see of it comes from here."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

from lifesigns.assembly.audit_key import signer_in
from lifesigns.assembly.channels import channels_of, rules_of
from lifesigns.assembly.executors import contents_in
from lifesigns.assembly.links import bus_at
from lifesigns.config.values import Config
from lifesigns.errors import UsageError
from lifesigns.hub.access import Access, NewToken
from lifesigns.hub.alerting.alerts import Ack
from lifesigns.hub.alerting.alerts import Alert as OpenAlert
from lifesigns.hub.alerting.rules import Matcher, Silence
from lifesigns.hub.feed import HEARTBEAT, Listener
from lifesigns.hub.housekeeping import Retention
from lifesigns.hub.http_receiver import TAKEN, InboxFull, IngestResult, NotLeader, NotStored
from lifesigns.hub.principals import Principal, Role
from lifesigns.hub.service import Service
from lifesigns.hub.sign_in import LINK_FOR
from lifesigns.hub.telling import message
from lifesigns.ports import Event, Store, StoredToken
from lifesigns.wire import TOGETHER_MAX, fits_together

__all__ = [
    "HEARTBEAT",
    "LINK_FOR",
    "TAKEN",
    "TOGETHER_MAX",
    "Access",
    "Ack",
    "Event",
    "InboxFull",
    "IngestResult",
    "Listener",
    "Matcher",
    "NewToken",
    "NotLeader",
    "NotStored",
    "OpenAlert",
    "Principal",
    "Role",
    "Service",
    "Silence",
    "StoredToken",
    "fits_together",
    "hub_of",
    "message",
    "store_at",
]

DATABASE: Final = "lifesigns.db"


def hub_of(config: Config, state: Path, url: str = "") -> Service:
    """A hub as configured, reached at `url`; it has not started yet."""
    return Service(
        store_at(config.store or default_store(state)),
        None if config.bus is None else bus_at(config.bus),
        policies=config.policies,
        fleet=config.fleet,
        keeping=Retention(config.limits.history_for, config.limits.audit_for, config.limits.raw_for),
        state=state,
        rules=rules_of(
            config.channels,
            alerting=config.alerting,
            routes=config.routes,
            silences=config.silences,
            maintenance=config.maintenance,
            pacing=config.pacing,
            link=url,
        ),
        channels=channels_of(config.channels, os.environ),
        signer=None if (config.store or "").startswith("memory:") else signer_in(state),
        contents=contents_in(state, config.executors.checkpoints),
    )


def default_store(state: Path) -> str:
    """Where a hub keeps what it knows if nothing else is said."""
    return f"sqlite://{state / DATABASE}"


def store_at(url: str) -> Store:
    """The store at this address: `sqlite:///path`, `postgres://...` or `memory://name`."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        from lifesigns.adapters.store.sqlite import SqliteStore

        path = unquote(urlsplit(url).path)
        if not path:
            raise UsageError(f"store is {url!r}, but needs a path: sqlite:///var/lib/lifesigns/lifesigns.db")
        return SqliteStore(path)
    if separator and scheme in ("postgres", "postgresql"):
        try:
            from lifesigns.adapters.store.postgres import PostgresStore
        except ImportError as error:
            raise UsageError("a PostgreSQL store needs: pip install 'lifesigns[postgres]'") from error
        return PostgresStore(url)
    if separator and scheme == "memory":
        from lifesigns.adapters.store.memory import MemoryStore

        return MemoryStore(rest)
    raise UsageError(f"store is {url!r}, but begins with one of sqlite://, postgres://, memory://")
