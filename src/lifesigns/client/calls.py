"""Every call of the hub's API, described once; `Client` and `AsyncClient` send them.

A call that changes something is retried after a failure only where the hub does it once however often it receives it:
beats, acknowledgements, and calls with an id of their own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Unpack

from lifesigns.client.acts import Acts
from lifesigns.client.alerts import Alerts
from lifesigns.client.call import Call
from lifesigns.client.parameters import (
    PAGE_MAX,
    AgentFilterFields,
    BeatFields,
    batch,
    beat_body,
    new_id,
    written,
)
from lifesigns.client.request import Request, agent_path, encoded, get, nothing, path, post, query_of, reader
from lifesigns.views import (
    AgentHealth,
    AgentList,
    Alive,
    AuditConsistency,
    AuditList,
    AuditProof,
    BreakerList,
    CheckpointList,
    CheckpointView,
    ClaimGranted,
    EventList,
    FleetView,
    History,
    Inbox,
    InboxMessage,
    LastBeat,
    Me,
    MessageList,
    MessageView,
    NewTokenView,
    Orders,
    OrdersByAgent,
    Ready,
    Receipt,
    SessionList,
    SignInLink,
    TaskList,
    TaskView,
    TokenList,
    TokenView,
)
from lifesigns.views.calls import CallHistoryView
from lifesigns.views.hubs import HubList
from lifesigns.views.rhythm import Rhythm


class Calls(Acts, Alerts):
    """The calls of the API."""

    # --- sending ------------------------------------------------------------------------------------------

    @Call
    def beat(self, agent_id: str, **fields: Unpack[BeatFields]) -> Request[Receipt]:
        """One beat: this agent lives. The contract of a beat has its other fields."""
        body = beat_body(agent_id, fields)
        return Request("POST", "/api/v1/beats", reader(Receipt), body=body, repeatable=True)

    @Call
    def beats(self, beats: Iterable[Mapping[str, Any]]) -> Request[Receipt]:
        """Many beats at once, at most 10,000. A bad one is in `rejected`, the others count."""
        return Request("POST", "/api/v1/beats", reader(Receipt), body=batch(beats), repeatable=True)

    @Call
    def signal(self, kind: str, agent_id: str, /, **fields: Any) -> Request[Receipt]:
        """One other signal, by its type: `client.signal("progress", "coder-7", note="12/40 files")`."""
        return post("/api/v1/signals", Receipt, {"type": kind, "agent_id": agent_id, **fields})

    @Call
    def signals(self, signals: Iterable[Mapping[str, Any]]) -> Request[Receipt]:
        """Many signals at once, at most 10,000. Returns when their changes are stored."""
        return Request("POST", "/api/v1/signals", reader(Receipt), body=batch(signals))

    # --- agents ---------------------------------------------------------------------------------------

    @Call
    def agent_list(
        self,
        *,
        limit: int = 100,
        cursor: str | None = None,
        since: str | None = None,
        sort: str | None = None,
        **which: Unpack[AgentFilterFields],
    ) -> Request[AgentList]:
        """One page of agents. `sort="need"`: the neediest first, in one page only; `since`: only those that changed
        since `updated` of an earlier answer."""
        limit = min(limit, PAGE_MAX)
        return get("/api/v1/agents", AgentList, limit=limit, cursor=cursor, since=since, sort=sort, **which)

    @Call
    def agent(self, agent_id: str) -> Request[AgentHealth]:
        """Everything that the hub believes about one agent."""
        return get(agent_path(agent_id), AgentHealth)

    @Call
    def heartbeat(self, agent_id: str) -> Request[LastBeat]:
        """Its last beat as received."""
        return get(agent_path(agent_id, "heartbeat"), LastBeat)

    @Call
    def history(
        self,
        agent_id: str,
        *,
        for_: float | str | None = None,
        from_: datetime | float | str | None = None,
        to: datetime | float | str | None = None,
    ) -> Request[History]:
        """Its life in the order of time: samples, flips, findings and interventions, at most 2,000 points. The last
        hour, or `for_` (seconds, or `"30m"`), or between two moments."""
        place = agent_path(agent_id, "history")
        return get(place, History, for_=for_, from_=written(from_), to=written(to))

    @Call
    def calls(self, agent_id: str) -> Request[CallHistoryView]:
        """Its last tool calls, oldest first, with repeats marked; and its open calls."""
        return get(agent_path(agent_id, "calls"), CallHistoryView)

    @Call
    def rhythm(self, agent_id: str) -> Request[Rhythm]:
        """The times of its beats, of the next one, and how surprising its silence is by now."""
        return get(agent_path(agent_id, "rhythm"), Rhythm)

    @Call
    def orders(self, agent_id: str, *, wait: float = 0.0) -> Request[Orders]:
        """The orders waiting for an agent: pings, nudges, stop. If there are none, waits for one for so many seconds."""
        return get(agent_path(agent_id, "orders"), Orders, wait=wait, waits_for=wait)

    @Call
    def orders_of(self, agent_ids: Sequence[str], *, wait: float = 0.0) -> Request[OrdersByAgent]:
        """The orders waiting for several agents, in one request."""
        return get("/api/v1/orders", OrdersByAgent, agent=list(agent_ids), wait=wait, waits_for=wait)

    @Call
    def ack_order(self, agent_id: str, order_id: str) -> Request[None]:
        """Acknowledge an order: the hub need not offer it again."""
        return Request("POST", agent_path(agent_id, "orders", order_id, "ack"), nothing, body=b"")

    # --- events -------------------------------------------------------------------------------------------

    @Call
    def event_list(
        self,
        *,
        after: int | None = None,
        limit: int | None = None,
        types: Sequence[str] = (),
        agent: str | None = None,
    ) -> Request[EventList]:
        """One page of past events, oldest first; `events()` has them live."""
        types_ = ",".join(types) or None
        return get("/api/v1/events/list", EventList, after=after, limit=limit, types=types_, agent=agent)

    @Call
    def audit(
        self,
        *,
        limit: int | None = None,
        before: int | None = None,
        agent: str | None = None,
        who: str | None = None,
    ) -> Request[AuditList]:
        """Who did what, the newest first."""
        return get("/api/v1/audit", AuditList, limit=limit, before=before, agent=agent, who=who)

    @Call
    def audit_checkpoint(self) -> Request[str]:
        """The newest checkpoint of the audit log, signed by the hub."""
        return Request("GET", "/api/v1/audit/checkpoint", bytes.decode, repeatable=True)

    @Call
    def audit_proof(self, n: int) -> Request[AuditProof]:
        """The proof that entry `n` is in the log of the newest checkpoint."""
        return get(path("audit", "proof", str(n)), AuditProof)

    @Call
    def audit_consistency(self, from_size: int) -> Request[AuditConsistency]:
        """The proof that this log begins with the one of `from_size` entries."""
        return get("/api/v1/audit/consistency", AuditConsistency, from_=from_size)

    # --- work -----------------------------------------------------------------------------------------

    @Call
    def breakers(
        self,
        *,
        state: str | Sequence[str] | None = None,
        agent: str | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[BreakerList]:
        """Circuit breakers of all agents."""
        return get("/api/v1/breakers", BreakerList, state=state, agent=agent, limit=limit, cursor=cursor)

    @Call
    def breaker(
        self, name: str, *, limit: int | None = None, cursor: str | None = None
    ) -> Request[BreakerList]:
        """The breakers of this name, one of each agent that has it."""
        return get(path("breakers", name), BreakerList, limit=limit, cursor=cursor)

    @Call
    def tasks(self, *, limit: int | None = None, cursor: str | None = None) -> Request[TaskList]:
        """Tasks with agents, a claim or a deadline."""
        return get("/api/v1/tasks", TaskList, limit=limit, cursor=cursor)

    @Call
    def task(self, task_id: str) -> Request[TaskView]:
        """One task: its agents, its claim, its deadline."""
        return get(path("tasks", task_id), TaskView)

    @Call
    def claim(self, task_id: str, agent_id: str, *, incarnation: str | None = None) -> Request[ClaimGranted]:
        """Claim a task. If another agent holds it, a `HubError` of status 409 names the holder.

        With an `incarnation` a retry is safe: the same life of the same agent gets the same claim.
        """
        body = {"agent_id": agent_id, "incarnation": incarnation}
        return post(path("tasks", task_id, "claim"), ClaimGranted, body, repeatable=incarnation is not None)

    @Call
    def release(
        self, task_id: str, agent_id: str, token: int, *, incarnation: str | None = None
    ) -> Request[None]:
        """Release a task, with the token of the claim: others may claim it."""
        body = encoded({"agent_id": agent_id, "token": token, "incarnation": incarnation})
        return Request("POST", path("tasks", task_id, "release"), nothing, body=body)

    @Call
    def checkpoints(self, task_id: str) -> Request[CheckpointList]:
        """The checkpoints of a task, oldest first."""
        return get(path("tasks", task_id, "checkpoints"), CheckpointList)

    @Call
    def upload_checkpoint(
        self,
        task_id: str,
        agent_id: str,
        checkpoint_id: str,
        content: bytes,
        *,
        parent: str | None = None,
        token: int | None = None,
        incarnation: str | None = None,
    ) -> Request[CheckpointView]:
        """Save a checkpoint with its content: it counts when it is on the hub's disk, and the hub reads it back and
        compares it before a later life continues from it."""
        query = {"agent_id": agent_id, "parent": parent, "token": token, "incarnation": incarnation}
        return Request(
            "PUT",
            path("tasks", task_id, "checkpoints", checkpoint_id),
            reader(CheckpointView),
            query_of(query),
            body=content,
            repeatable=True,
        )

    @Call
    def download_checkpoint(self, task_id: str, checkpoint_id: str) -> Request[bytes]:
        """The content of a checkpoint, as saved."""
        return Request("GET", path("tasks", task_id, "checkpoints", checkpoint_id), bytes, repeatable=True)

    @Call
    def save_checkpoint(
        self,
        task_id: str,
        agent_id: str,
        checkpoint_id: str,
        *,
        parent_id: str | None = None,
        digest: str = "",
        size: int = 0,
        token: int | None = None,
        incarnation: str | None = None,
    ) -> Request[CheckpointView]:
        """Report a saved checkpoint: it counts as progress, and a respawn would begin there. `token` is that of the
        claim under which it was saved, if there is one."""
        body = {
            "agent_id": agent_id,
            "checkpoint_id": checkpoint_id,
            "parent_id": parent_id,
            "digest": digest,
            "size": size,
            "token": token,
            "incarnation": incarnation,
        }
        return post(path("tasks", task_id, "checkpoints"), CheckpointView, body)

    @Call
    def messages(
        self,
        *,
        agent: str | None = None,
        to: str | None = None,
        priority: str | Sequence[str] | None = None,
        limit: int | None = None,
        cursor: str | None = None,
    ) -> Request[MessageList]:
        """Messages between agents that are not acknowledged yet, oldest first."""
        place = "/api/v1/messages"
        return get(place, MessageList, agent=agent, to=to, priority=priority, limit=limit, cursor=cursor)

    @Call
    def send_message(
        self,
        agent_id: str,
        to: str,
        *,
        priority: str = "normal",
        message_id: str | None = None,
        subject: str = "",
        content: Mapping[str, Any] | None = None,
    ) -> Request[MessageView]:
        """Report that `agent_id` sent a message to `to`, which has to acknowledge it; how soon depends on its priority. With a
        content the hub carries it, too."""
        body = {"message_id": message_id or new_id(), "agent_id": agent_id, "to": to, "priority": priority}
        carried = {} if content is None else {"content": dict(content)}
        return post("/api/v1/messages", MessageView, {**body, "subject": subject, **carried}, repeatable=True)

    @Call
    def inbox(self, agent_id: str) -> Request[Inbox]:
        """The messages to an agent, with their contents: they are delivered by that."""
        return get(agent_path(agent_id, "messages"), Inbox)

    @Call
    def read_message(self, message_id: str, agent_id: str) -> Request[InboxMessage]:
        """Open a message for its recipient: it is read, and not yet acknowledged."""
        body = {"agent_id": agent_id}
        return post(path("messages", message_id, "read"), InboxMessage, body, repeatable=True)

    @Call
    def ack_message(self, message_id: str, agent_id: str) -> Request[None]:
        """Acknowledge a message for its recipient."""
        body = encoded({"agent_id": agent_id})
        return Request("POST", path("messages", message_id, "ack"), nothing, body=body)

    @Call
    def withdraw_message(self, message_id: str) -> Request[None]:
        """Withdraw a message: its sender no longer waits for an acknowledgement."""
        return Request("DELETE", path("messages", message_id), nothing)

    # --- the hub --------------------------------------------------------------------------------------

    @Call
    def fleet(self) -> Request[FleetView]:
        """Counts by state, agents with room for more work, and how far the hub itself can be trusted."""
        return get("/api/v1/fleet", FleetView)

    @Call
    def health(self) -> Request[Alive]:
        """Whether its process answers. Needs no token."""
        return get("/healthz", Alive)

    @Call
    def ready(self) -> Request[Ready]:
        """Whether its store and bus are there and it can see; an unready hub is an answer, not an error."""
        return Request("GET", "/readyz", reader(Ready), repeatable=True, also_good=frozenset({503}))

    @Call
    def metrics(self) -> Request[str]:
        """Its metrics, in the text format of Prometheus."""
        return Request("GET", "/metrics", lambda raw: raw.decode(), repeatable=True)

    # --- access ---------------------------------------------------------------------------------------

    @Call
    def me(self) -> Request[Me]:
        """Your own identity, by your token."""
        return get("/api/v1/me", Me)

    @Call
    def tokens(self) -> Request[TokenList]:
        """All tokens, without their secrets. For admins."""
        return get("/api/v1/tokens", TokenList)

    @Call
    def create_token(
        self, role: str, name: str, *, agents: str = "", expires_after: float | str | None = None
    ) -> Request[NewTokenView]:
        """Make a token: it is in this answer and nowhere else. For admins.

        `agents`, for role `agent`: ids or beginnings of ids with a `*`, with commas between. `expires_after` is in
        seconds, or `"never"`; without it an agent's token is valid for 90 days, or as the hub is configured.
        """
        body = {"role": role, "name": name, "agents": agents, "expires_after": expires_after}
        return post("/api/v1/tokens", NewTokenView, body)

    @Call
    def create_key(
        self, public_key: str, name: str, agents: str, *, expires_after: float | None = None
    ) -> Request[TokenView]:
        """Let these agents sign with the key of this public half (64 hex digits). For admins. It is listed and revoked
        like a token."""
        body = {"public_key": public_key, "name": name, "agents": agents, "expires_after": expires_after}
        return post("/api/v1/keys", TokenView, body)

    @Call
    def rotate_token(self, token_id: str, *, grace: float = 86400.0) -> Request[NewTokenView]:
        """Give a token a new secret; the old one is valid for `grace` seconds more. For admins."""
        return post(path("tokens", token_id, "rotate"), NewTokenView, {"grace": grace})

    @Call
    def revoke_token(self, token_id: str) -> Request[None]:
        """Revoke a token at once. For admins."""
        return Request("DELETE", path("tokens", token_id), nothing)

    @Call
    def hubs(self) -> Request[HubList]:
        """The hubs on the store of this one; none if it has its store for itself."""
        return get("/api/v1/hubs", HubList)

    @Call
    def forget_hub(self, name: str) -> Request[None]:
        """Forget a hub that is lost and will not come back. For admins."""
        return Request("DELETE", path("hubs", name), nothing)

    @Call
    def drain_hub(self, name: str) -> Request[None]:
        """Let a hub hand over, and not judge until it is resumed or started anew. For admins."""
        return Request("POST", path("hubs", name, "drain"), nothing)

    @Call
    def resume_hub(self, name: str) -> Request[None]:
        """Let a drained hub judge again when it is its turn. For admins."""
        return Request("DELETE", path("hubs", name, "drain"), nothing)

    @Call
    def sessions(self) -> Request[SessionList]:
        """The sessions of the dashboard: all for an admin, those made with the same token for others."""
        return get("/api/v1/sessions", SessionList)

    @Call
    def end_session(self, session_id: str) -> Request[None]:
        """End a session of the dashboard: its browser is signed out."""
        return Request("DELETE", path("sessions", session_id), nothing)

    @Call
    def sign_in_link(self) -> Request[SignInLink]:
        """A link that signs its first visitor in to the dashboard, as you. It works once, for five minutes."""
        return post("/api/v1/sign-in-links", SignInLink, None)
