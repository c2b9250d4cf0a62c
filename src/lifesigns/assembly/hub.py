"""The hub, assembled: store, bus and policies."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from lifesigns.adapters.signing.verifying import fastest
from lifesigns.assembly.ai_maestro import messenger_of, messenger_rules_of
from lifesigns.assembly.channels import channels_of, rules_of
from lifesigns.assembly.dead_man_switch import dead_man_switch_of
from lifesigns.assembly.executors import contents_in
from lifesigns.assembly.links import bus_at
from lifesigns.assembly.locks import lock_rules_of, tracker_of
from lifesigns.assembly.witnesses import witnesses_of
from lifesigns.audit.keys import KEY, signer_in
from lifesigns.config.values import Config
from lifesigns.errors import UsageError
from lifesigns.hub.access import Access
from lifesigns.hub.bus_receiver import Relays
from lifesigns.hub.housekeeping import Retention
from lifesigns.hub.principals import Patterns
from lifesigns.hub.service import Service
from lifesigns.hub.shares import Shares
from lifesigns.hub.state_folder import check, default_store, sqlite_path
from lifesigns.ports import Bus, HubCaller, Store
from lifesigns.wire.otlp import Identities

if TYPE_CHECKING:
    from lifesigns.adapters.store.postgres import PostgresStore


class SlotParts(NamedTuple):
    """What the hub of one slot is made with, and shares with those of the other slots of its process."""

    slot: int
    store: Store
    bus: Bus | None
    access: Access
    shares: Shares


def hub_of(config: Config, state: Path, url: str = "", parts: SlotParts | None = None) -> Service:
    """A configured hub at `url`, not started yet: of all agents, or of one slot."""
    if config.store and (database := sqlite_path(config.store)) is not None:
        for ending in ("", "-wal", "-shm", "-journal"):
            check(database.with_name(database.name + ending))
    audit_key = config.audit.key
    if parts is None:
        store = store_at(config.store or default_store(state))
        bus = None if config.bus.url is None else bus_at(config.bus.url)
        own_folder = state
    else:
        store, bus, own_folder = parts.store, parts.bus, slot_folder(state, parts.slot)
        audit_key = audit_key or state / KEY
    service = Service(
        store,
        bus,
        # What a relay says for agents of several slots would be acknowledged when one of them has it.
        relays=Relays(config.bus.relays) if parts is None else Relays.APART,
        verifies=fastest(),
        must_sign=Patterns.of(",".join(config.access.signed)) if config.access.signed else None,
        policies=config.policies,
        fleet=config.fleet,
        retention=Retention(config.limits.history_for, config.limits.audit_for, config.limits.raw_for),
        state=own_folder,
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
        signer=None if (config.store or "").startswith("memory:") else signer_in(own_folder, audit_key),
        witnesses=witnesses_of(config.audit, os.environ),
        contents=contents_in(state, config.checkpoints),
        hub_caller=_hub_caller() if config.zone else None,
        slot=None if parts is None else parts.slot,
        access=None if parts is None else parts.access,
        shares=None if parts is None else parts.shares,
    )
    if parts is not None and parts.slot:
        return service  # What a fleet has once goes with its first slot.
    if (switch := dead_man_switch_of(config.dead_man_switch, os.environ)) is not None:
        service.ping_dead_man_switch(switch, config.dead_man_switch.every)
    if (tracker := tracker_of(config.github, os.environ)) is not None:
        service.watch_locks(tracker, lock_rules_of(config.github))
    if (messenger := messenger_of(config.ai_maestro)) is not None:
        service.watch_messenger(messenger, messenger_rules_of(config.ai_maestro))
    return service


def slot_folder(state: Path, slot: int) -> Path:
    """Where the hub of a slot keeps what is its own: the seals of its audit log."""
    folder = state / "slots" / str(slot)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    return folder


def whole_store_of(config: Config) -> PostgresStore:
    """The store of a fleet that several hubs judge. Raises `UsageError` if the configured one is for one hub that judges."""
    store = store_at(config.store or "memory://")
    if not store.shared:
        raise UsageError(
            "hubs.judge is 'all', which needs a PostgreSQL that all hubs reach: store: postgres://..."
        )
    return cast("PostgresStore", store)


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
