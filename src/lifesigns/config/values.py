"""The result of configuration: one frozen value, with the source of each part."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, ClassVar

from msgspec import Struct, field

from lifesigns.config import readers
from lifesigns.config.ai_maestro import AiMaestroSettings
from lifesigns.config.alerting import MaintenanceSettings, PacingSettings, RouteSettings, SilenceSettings
from lifesigns.config.channels import ChannelSettings
from lifesigns.config.document import Source
from lifesigns.config.executors import CheckpointSettings, ExecutorSettings
from lifesigns.config.github import GitHubSettings
from lifesigns.config.secretive import Secretive
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook


class Listen(Struct, frozen=True):
    """Where the hub listens, and how clients reach it. `listening.py` checks it."""

    host: Annotated[str, readers.host] = "127.0.0.1"
    port: Annotated[int, readers.port] = 8710
    tls_cert: Annotated[Path | None, readers.file] = None
    """PEM; the key may be in the same file."""
    tls_key: Annotated[Path | None, readers.file] = None
    behind_proxy: bool = False
    """A reverse proxy in front of the hub has TLS; the hub believes its `X-Forwarded-*` headers."""
    names: Annotated[tuple[str, ...], readers.host_names] = ()
    """Names of the hub, beside those of its machine."""

    @property
    def tls(self) -> tuple[str, str] | None:
        """The files of certificate and key; None without TLS."""
        return None if self.tls_cert is None else (str(self.tls_cert), str(self.tls_key or self.tls_cert))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class BusSettings(Secretive, frozen=True):
    """A bus for beats beside HTTP, and whose messages count there."""

    secrets: ClassVar[tuple[str, ...]] = ("url",)

    url: Annotated[str | None, readers.bus] = None
    """None: beats come over HTTP only."""
    relays: Annotated[str, readers.one_of("open", "signed", "refused")] = "open"
    """Whether messages count whose subject does not name the speaker: those of processes with several agents."""
    other_hubs: Annotated[str, readers.one_of("refused", "allowed")] = "refused"
    """Whether a hub with another store may hear the same bus. Both would judge the same agents."""


class HubsSettings(Struct, frozen=True):
    """Several hubs on one store."""

    judge: Annotated[str, readers.one_of("one", "all")] = "one"
    """`one`: one of them judges, and the others stand by. `all`: each judges its own slots of agents."""


class DeadManSettings(Secretive, frozen=True):
    """Somebody outside who is pinged while all is well, and raises an alarm when no ping comes."""

    secrets: ClassVar[tuple[str, ...]] = ("url",)

    url: Annotated[str | None, readers.secret_url] = None
    """None: nobody is pinged. The address is a secret: whoever has it can ping in the hub's place."""
    every: Annotated[float, readers.within(readers.seconds, lambda every: every >= 1, "a second or more")] = (
        60.0
    )


class AccessSettings(Struct, frozen=True):
    """What agents need beside a token or a subject."""

    signed: Annotated[tuple[str, ...], readers.signed] = ()
    """The agents that have to sign their messages: ids, or beginnings of ids with a `*`."""


class Limits(Struct, frozen=True):
    """How much the hub takes in at once, and how long it keeps it. The limits of a beat are fixed."""

    body_bytes: int = 8 * 1024 * 1024
    """A whole batch of beats."""
    connections: int = 10_000
    """Open at the same time, as far as the system's limit on files allows."""
    connections_per_address: int = 1_000
    """Of these, from one address; this machine's own do not count, and behind a proxy all come from one."""
    requests_per_second: int = 2_000
    """With one token of role agent. A client with more sends batches."""
    signals_per_second: int = 20_000
    """Beats and reports with one token of role agent, in however many requests: 200,000 agents that beat every 10 s."""
    bytes_per_second: int = 4 * 1024 * 1024
    """Of bodies, unpacked, with one token of role agent."""
    busy_share_per_token: Annotated[float, readers.part] = 0.25
    """Of the time of the hub's one thread, for one token of role agent: whatever it says, the others get theirs."""
    unknown_requests_per_second: int = 500
    """From one address without a valid token: probes, files of the dashboard, wrong tokens."""
    events_per_second: int = 500
    """Kept because of reports with one token of role agent, over a minute: what it fills the disk with. Beats always count."""
    streams_per_token: int = 200
    """Listeners to the live events, of 1,000 in all."""
    links_per_token: int = 20
    """Sign-in links that nobody opened yet, of 200 in all."""
    sessions_per_token: int = 200
    """Of 2,000 in all: one more ends the one that was not used for longest."""
    agent_token_for: float = 90 * 86400.0
    """For a token of role agent that was made without an expiry."""
    session_for: float = 7 * 86400.0
    """For a sign-in to the dashboard, used or not."""
    history_for: float = 30 * 86400.0
    """Flips, findings, interventions and alerts."""
    raw_for: float = 86400.0
    """Raw signals, for `lifesigns replay`."""
    audit_for: float = 365 * 86400.0
    """Acts, with whom they concern and who did them. Their hashes are kept for ever."""


class AuditSettings(Secretive, frozen=True):
    """The audit log: the key that seals it, and who keeps its checkpoints elsewhere."""

    secrets: ClassVar[tuple[str, ...]] = ("witnesses",)

    key: Annotated[Path | None, readers.file] = None
    """None: `audit.key` in the state folder."""
    witnesses: Annotated[tuple[str, ...], readers.witnesses] = ()
    """`file:/path`, `post:https://...`, `put:https://...`, or `env:NAME` that says one of these."""


class MemorySettings(Struct, frozen=True):
    """An MCP memory server that recoveries of locks are written to, beside the store."""

    file: Annotated[Path | None, readers.file] = None
    """The server's file (`MEMORY_FILE_PATH`). None: nothing is written."""


class HookSettings(Struct, frozen=True):
    """How the hooks of coding agents are heard."""

    commits_are_checkpoints: bool = False
    """A `git commit` of a session is a checkpoint of its work."""


class OtlpSettings(Struct, frozen=True):
    """How spans and log events of others become agents. The first attribute that is there counts; `a/b` needs both."""

    agent_id: tuple[str, ...] = (
        "lifesigns.agent.id",
        "resource.gen_ai.agent.id",
        "resource.gen_ai.agent.name",
        "service.name/session.id",
        "service.name/conversation.id",
        "service.name",
    )
    """An attribute of the record or its resource; after `resource.` of the resource alone."""
    task_id: tuple[str, ...] = ("lifesigns.task.id",)
    role: tuple[str, ...] = ("lifesigns.role",)
    reorder_for: float = 5.0
    """How long a batch may be overtaken by later ones."""


class Config(Secretive, frozen=True):
    """Everything a hub needs to know before it starts.

    `effective` has every setting under its dotted key, without secrets. `sources` has the same keys and the source of
    each value.
    """

    secrets: ClassVar[tuple[str, ...]] = (
        "store",
        "channels",
        "effective",
        "sources",
    )

    policies: PolicyBook
    fleet: FleetPolicy
    profile: str
    enabled: bool
    alerting: Mapping[str, RouteSettings]
    """By kind of alert, from the `health_monitoring` tree; `routes` go first."""
    store: str | None
    """None: SQLite in the state folder."""
    bus: BusSettings
    zone: str
    """Where this hub runs, among several hubs: those in other zones are asked before a verdict of silence. Empty: no zone."""
    hubs: HubsSettings
    dead_man_switch: DeadManSettings
    access: AccessSettings
    listen: Listen
    channels: Mapping[str, ChannelSettings]
    limits: Limits
    audit: AuditSettings
    otlp: OtlpSettings
    hooks: HookSettings
    memory: MemorySettings
    routes: Sequence[RouteSettings]
    silences: Sequence[SilenceSettings]
    maintenance: Sequence[MaintenanceSettings]
    pacing: PacingSettings
    executors: Mapping[str, Sequence[ExecutorSettings]]
    """By section: respawn, nudges, ..."""
    checkpoints: CheckpointSettings
    github: GitHubSettings
    ai_maestro: AiMaestroSettings
    effective: Mapping[str, object] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    path: Path | None = None
    """The file that was read, if there was one."""
