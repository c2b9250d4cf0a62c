"""Executors, assembled from the configuration, and the store for contents of checkpoints.

Secrets are looked up here (`env:NAME`, `file:/path`), once, when the hub starts.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from lifesigns.assembly.channels import secret
from lifesigns.assembly.keys import key_pair
from lifesigns.config.executors import (
    CheckpointSettings,
    CommandSettings,
    ExecutorSettings,
    TmuxSettings,
    WebhookSettings,
)
from lifesigns.config.values import Config
from lifesigns.core.agent import Agent
from lifesigns.core.commands import CLEANUP_FACTS, RESPAWN_FACTS
from lifesigns.core.detectors.call_history import past_calls
from lifesigns.core.effects import CleanUp, Escalate, Order, Respawn, SendNudge, Terminate
from lifesigns.core.respawn import Checkpoint
from lifesigns.errors import UsageError
from lifesigns.hub.life_tokens import LifeCredentials, credentials_for_life
from lifesigns.hub.service import Service
from lifesigns.ports import Contents, OrderExecutor
from lifesigns.ports.checkpoints import HERE
from lifesigns.views import moment
from lifesigns.views.builders.agents import agent_health
from lifesigns.views.builders.tasks import checkpoint_view

if TYPE_CHECKING:
    from lifesigns.adapters.executors.commands import Command
    from lifesigns.adapters.executors.webhook import Webhook

CONTENTS: Final = "checkpoints"
RESPAWNS: Final = "respawns"
CLEANUPS: Final = "cleanups"
TOOL_CALLS_MAX: Final = 20

ORDERS: Final[Mapping[str, type[Order]]] = {
    "terminate": Terminate,
    "cleanup": CleanUp,
    "respawn": Respawn,
    "nudges": SendNudge,
    "escalation": Escalate,
}
"""The orders of each section of the configuration."""


def contents_in(state: Path, settings: CheckpointSettings | None = None) -> Contents:
    """The store for contents of checkpoints, in a hub's state folder."""
    from lifesigns.adapters.checkpoints.folder import MB, FolderContents, Room

    given = settings or CheckpointSettings()
    usual = Room()
    return FolderContents(
        state / CONTENTS,
        Room(
            content_bytes=_bytes(given.content_mb, MB, usual.content_bytes),
            task_bytes=_bytes(given.task_mb, MB, usual.task_bytes),
            total_bytes=_bytes(given.total_mb, MB, usual.total_bytes),
        ),
    )


def assign_executors(
    service: Service, config: Config, environ: Mapping[str, str], state: Path, link: str
) -> None:
    """Give a hub its executors before it starts. `link` is its address."""
    maker = _Maker(service, environ, state, link.rstrip("/"))
    for section, order in ORDERS.items():
        for one in config.executors[section]:
            executor = maker.executor(section, one)
            service.executors.assign(order, executor, agents=one.agents, roles=one.roles)
    checkpoints = config.checkpoints
    if checkpoints.verify is not None:
        from lifesigns.adapters.executors.checkpoint_webhook import CheckpointWebhook

        webhook = WebhookSettings(checkpoints.verify, checkpoints.secret, checkpoints.headers)
        service.checkpoints.elsewhere = CheckpointWebhook(maker.webhook(webhook, "checkpoints.verify"))


class _Maker:
    """Makes executors. Imports only the drivers they need."""

    def __init__(self, service: Service, environ: Mapping[str, str], state: Path, link: str) -> None:
        self._where = OrderFacts(service, link)
        self._environ = environ
        self._state = state
        self._link = link

    def executor(self, section: str, settings: ExecutorSettings) -> OrderExecutor:
        match settings.by:
            case WebhookSettings() as by:
                return self._order_webhook(section, by, settings.name)
            case TmuxSettings() as by:
                from lifesigns.adapters.executors.tmux import TmuxNudge

                is_busy = self._where.is_busy
                return TmuxNudge(by.tmux, by.idle_commands, is_busy, quiet_for=by.quiet_for, socket=by.socket)
            case CommandSettings() as by if section == "cleanup":
                from lifesigns.adapters.executors.cleanup_command import CleanupCommand

                command = self._command(by, CLEANUP_FACTS, section)
                return CleanupCommand(command, self._state / CLEANUPS, hub=self._link)
            case CommandSettings() as by:
                from lifesigns.adapters.executors.respawn_command import RespawnCommand

                return RespawnCommand(
                    self._command(by, RESPAWN_FACTS, section),
                    self._state / RESPAWNS,
                    self._where.checkpoint_url,
                    hub=self._link,
                    credentials=self._where.credentials,
                )

    def _command(self, by: CommandSettings, facts: Mapping[str, str], section: str) -> Command:
        from lifesigns.adapters.executors.commands import Command

        for name in by.env:
            if name not in self._environ:
                raise UsageError(f"{section}.env: {name} is not in the hub's environment")
        return Command(by.command, facts, by.shell, by.cwd, by.env)

    def _order_webhook(self, section: str, by: WebhookSettings, name: str) -> OrderExecutor:
        webhook = self.webhook(by, f"{section}.webhook")
        if section == "escalation":
            from lifesigns.adapters.executors.orchestrator_webhook import OrchestratorWebhook

            return OrchestratorWebhook(webhook, self._where.escalated, name=name)
        from lifesigns.adapters.executors.order_webhook import OrderWebhook

        if section == "respawn":
            return OrderWebhook(webhook, lambda order: {"checkpoint_url": self._where.checkpoint_url(order)})
        return OrderWebhook(webhook)

    def webhook(self, settings: WebhookSettings, key: str) -> Webhook:
        from lifesigns.adapters.executors.webhook import Webhook

        def looked_up(written: str, name: str) -> str:
            return secret(written, f"{key.partition('.')[0]}.{name}", self._environ)

        key_ = None if settings.secret is None else looked_up(settings.secret, "secret")
        headers = {name: looked_up(written, f"headers.{name}") for name, written in settings.headers.items()}
        try:
            return Webhook(looked_up(settings.webhook, key.rpartition(".")[2]), secret=key_, headers=headers)
        except UsageError as error:
            raise UsageError(f"{key}: {error}") from error


class OrderFacts:
    """What the hub knows about the agents of its orders."""

    def __init__(self, service: Service, link: str) -> None:
        self._service = service
        self._link = link

    def is_busy(self, agent_id: str) -> bool:
        """Whether a call of this agent is open."""
        agent = self._service.engine.agent(agent_id)
        return agent is not None and agent.busy

    def checkpoint_url(self, order: Respawn) -> str | None:
        """The URL of its checkpoint's content; None if the hub does not have it."""
        saved = self._saved(order.agent_id, order.checkpoint_id)
        if saved is None or order.task_id is None or not saved.digest.startswith(HERE):
            return None
        return f"{self._link}/api/v1/tasks/{_part(order.task_id)}/checkpoints/{_part(saved.id)}"

    async def credentials(self, order: Respawn) -> LifeCredentials:
        """A token for the coming life, and a key if it has to sign."""
        service, agent_id = self._service, order.agent_id
        return await credentials_for_life(
            service.access,
            agent_id,
            order.new_incarnation,
            order.instead_of,
            service.clock(),
            key_pair if service.signatures.has_to_sign(agent_id) else None,
        )

    def escalated(self, order: Escalate) -> dict[str, Any]:
        """Everything an orchestrator needs to decide."""
        engine = self._service.engine
        agent = engine.agent(order.agent_id)
        saved = self._saved(order.agent_id, order.checkpoint_id)
        return {
            "agent": None if agent is None else agent_health(agent, engine.beliefs, self._service.clock()),
            "last_tool_calls": [] if agent is None else tool_calls(agent),
            "checkpoint": None if saved is None else checkpoint_view(order.agent_id, saved),
            "decision_url": f"{self._link}/api/v1/escalations/{_part(order.order_id)}/decision",
        }

    def _saved(self, agent_id: str, checkpoint_id: str | None) -> Checkpoint | None:
        lineage = self._service.engine.beliefs.lineages.get(agent_id)
        chain = () if lineage is None else lineage.chain
        return next((one for one in chain if one.id == checkpoint_id), None)


def tool_calls(agent: Agent) -> list[dict[str, object]]:
    """Its last tool calls, the newest last; the same call has the same digests."""
    call_history = agent.call_history
    if call_history is None:
        return []
    return [
        {
            "at": moment(call.at),
            "tool": call.tool or None,
            "args_digest": call.args or None,
            "outcome_digest": call.outcome or None,
            "ok": None if not call.outcome else not call.failed,
        }
        for call in [*past_calls(call_history)][-TOOL_CALLS_MAX:]
    ]


def _bytes(megabytes: float | None, unit: int, usual: int) -> int:
    return usual if megabytes is None else int(megabytes * unit)


def _part(name: str) -> str:
    return quote(name, safe="")
