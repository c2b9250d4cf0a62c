"""The hub, assembled: store, bus and policies."""

from __future__ import annotations

import os
from pathlib import Path

from lifesigns.adapters.signing.verifying import fastest
from lifesigns.assembly.ai_maestro import messenger_of, messenger_rules_of
from lifesigns.assembly.channels import channels_of, rules_of
from lifesigns.assembly.dead_man_switch import dead_man_switch_of
from lifesigns.assembly.executors import contents_in
from lifesigns.assembly.links import bus_at
from lifesigns.assembly.locks import lock_rules_of, tracker_of
from lifesigns.assembly.witnesses import witnesses_of
from lifesigns.audit.keys import signer_in
from lifesigns.config.values import Config
from lifesigns.errors import UsageError
from lifesigns.hub.bus_receiver import Relays
from lifesigns.hub.housekeeping import Retention
from lifesigns.hub.principals import Patterns
from lifesigns.hub.service import Service
from lifesigns.hub.state_folder import check, default_store, sqlite_path
from lifesigns.ports import HubCaller, Store
from lifesigns.wire.otlp import Identities


def hub_of(config: Config, state: Path, url: str = "") -> Service:
    """A configured hub at `url`, not started yet."""
    if config.store and (database := sqlite_path(config.store)) is not None:
        for ending in ("", "-wal", "-shm", "-journal"):
            check(database.with_name(database.name + ending))
    service = Service(
        store_at(config.store or default_store(state)),
        None if config.bus.url is None else bus_at(config.bus.url),
        relays=Relays(config.bus.relays),
        verifies=fastest(),
        must_sign=Patterns.of(",".join(config.access.signed)) if config.access.signed else None,
        policies=config.policies,
        fleet=config.fleet,
        retention=Retention(config.limits.history_for, config.limits.audit_for, config.limits.raw_for),
        state=state,
        session_for=config.limits.session_for,
        identities=Identities(config.otlp.agent_id, config.otlp.task_id, config.otlp.role),
        reorder_for=config.otlp.reorder_for,
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
        signer=None if (config.store or "").startswith("memory:") else signer_in(state, config.audit.key),
        witnesses=witnesses_of(config.audit, os.environ),
        contents=contents_in(state, config.checkpoints),
        hub_caller=_hub_caller() if config.zone else None,
    )
    if (switch := dead_man_switch_of(config.dead_man_switch, os.environ)) is not None:
        service.ping_dead_man_switch(switch, config.dead_man_switch.every)
    if (tracker := tracker_of(config.github, os.environ)) is not None:
        service.watch_locks(tracker, lock_rules_of(config.github))
    if (messenger := messenger_of(config.ai_maestro)) is not None:
        service.watch_messenger(messenger, messenger_rules_of(config.ai_maestro))
    return service


def _hub_caller() -> HubCaller:
    """Calls hubs in other zones. Its client is loaded by hubs with a zone only."""
    from lifesigns.adapters.hubs.http import HttpHubCaller

    return HttpHubCaller()


def store_at(url: str) -> Store:
    """The store at this address: `sqlite:///path`, `postgres://...` or `memory://name`."""
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        from lifesigns.adapters.store.sqlite import SqliteStore

        path = sqlite_path(url)
        if path is None:
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


def store_to_read(url: str) -> Store:
    """The store at this address, for reading beside a running hub; does not create a missing one."""
    from lifesigns.adapters.store.sqlite import SqliteStore

    store = store_at(url)
    if isinstance(store, SqliteStore) and not store.path.is_file():
        raise UsageError(f"there is no database {store.path}; has a hub run with this store?")
    return store
