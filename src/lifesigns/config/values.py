"""What comes out of configuration: one frozen value, which also knows where each part came from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from lifesigns.config.alerting import PacingSettings, RouteSettings, SilenceSettings, WindowSettings
from lifesigns.config.channels import ChannelSettings
from lifesigns.config.executors import ExecutorSettings
from lifesigns.core.policy import FleetPolicy
from lifesigns.core.profiles import PolicyBook


@dataclass(frozen=True, slots=True)
class AlertRoute:
    """Who is told about one kind of alert, and how loudly."""

    channels: tuple[str, ...]
    severity: str


DEFAULT_ALERTING: Final[Mapping[str, AlertRoute]] = {
    "stuck_agent": AlertRoute(("slack", "pagerduty"), "warning"),
    "circuit_breaker_open": AlertRoute(("slack",), "warning"),
    "recovery_failed": AlertRoute(("slack", "pagerduty"), "critical"),
}
"""As IMPL-REQ-003 section 7 has them. A channel that is not configured is told nothing."""


@dataclass(frozen=True, slots=True)
class Listen:
    """Where the hub listens, and how it is reached. What of it can work, `listening.py` says."""

    host: str = "127.0.0.1"
    port: int = 8710
    tls_cert: Path | None = None
    """PEM; the key may be in the same file."""
    tls_key: Path | None = None
    behind_proxy: bool = False
    """A reverse proxy stands before the hub and sees to TLS; its `X-Forwarded-*` headers are believed."""
    names: tuple[str, ...] = ()
    """Names the hub is reached under, beside those of its machine."""

    @property
    def tls(self) -> tuple[str, str] | None:
        """The files of certificate and key; None without TLS."""
        return None if self.tls_cert is None else (str(self.tls_cert), str(self.tls_key or self.tls_cert))

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


@dataclass(frozen=True, slots=True)
class Limits:
    """How much the hub takes in at once, and how long it keeps it. The limits of a beat are fixed."""

    body_bytes: int = 8 * 1024 * 1024
    """A whole batch of beats."""
    connections: int = 10_000
    """Open at the same time, as far as the system's limit on files allows."""
    connections_per_address: int = 1_000
    """Of these, from one address; this machine's own do not count, and behind a proxy all come from one."""
    requests_per_second: int = 2_000
    """With one token of role agent. Who has more to say says it in batches."""
    history_for: float = 30 * 86400.0
    """Flips, findings, interventions and alerts."""
    raw_for: float = 86400.0
    """Signals as they were heard, for `lifesigns replay`."""
    audit_for: float = 365 * 86400.0
    """What was done, to whom and by whom. Its hashes are kept for ever."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where a value came from: the key as the user wrote it, and the file, variable or flag it stands in."""

    key: str = ""
    where: str = "default"
    written: bool = False
    """The user wrote this very value; otherwise it is a default, or follows from what was written."""

    def __str__(self) -> str:
        if not self.key:
            return self.where
        follows = "" if self.written else "follows from "
        return f"{follows}{self.key}" + (f" ({self.where})" if self.where else "")


DEFAULT: Final = Source()


@dataclass(frozen=True, slots=True)
class Config:
    """Everything a hub needs to know before it starts.

    `effective` has every setting under its dotted key, fit to be shown: secrets are left out. `sources`
    has the same keys and tells where each value came from.
    """

    policies: PolicyBook
    fleet: FleetPolicy
    profile: str
    enabled: bool
    alerting: Mapping[str, AlertRoute]
    store: str | None = field(repr=False)
    """None: SQLite in the state folder."""
    bus: str | None = field(repr=False)
    """None: beats come over HTTP only."""
    listen: Listen
    channels: Mapping[str, ChannelSettings] = field(repr=False)
    limits: Limits
    effective: Mapping[str, object] = field(repr=False)
    sources: Mapping[str, Source] = field(repr=False)
    routes: Sequence[RouteSettings] = ()
    silences: Sequence[SilenceSettings] = ()
    maintenance: Sequence[SilenceSettings | WindowSettings] = ()
    pacing: PacingSettings = field(default_factory=PacingSettings)
    executors: ExecutorSettings = field(default_factory=ExecutorSettings)
    path: Path | None = None
    """The file that was read, if there was one."""
