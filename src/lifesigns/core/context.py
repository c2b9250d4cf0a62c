"""The engine's context: its parts, assembled once, for the handlers of signals and of deadlines."""

from __future__ import annotations

from typing import Final

from lifesigns.core.agent import NEVER, Agent
from lifesigns.core.beliefs import Beliefs, Complaint
from lifesigns.core.changed_keys import ChangedKeys
from lifesigns.core.claims import Claim, Claims
from lifesigns.core.deadlines import Deadlines
from lifesigns.core.effects import Refusal, SendCanary
from lifesigns.core.failures import Failures
from lifesigns.core.fleet import Fleet
from lifesigns.core.intervals import Intervals
from lifesigns.core.judgement import Judge
from lifesigns.core.ladder import Ladder
from lifesigns.core.messages import Messages, OpenMessages, PendingMessage
from lifesigns.core.outbox import Outbox
from lifesigns.core.policy import MINUTE, FleetPolicy, Policy
from lifesigns.core.profiles import PolicyBook
from lifesigns.core.quotas import Quota, Quotas
from lifesigns.core.rebalancing import Rebalancing
from lifesigns.core.respawn import Lineage, Respawns
from lifesigns.core.side_orders import SideOrders
from lifesigns.core.tasks import Task, Tasks
from lifesigns.errors import PolicyError

POLICY: Final = "policy"
"""How the refusal of a policy an agent asks for begins."""

COMPLAINTS_MAX: Final = 4096
"""How many different refusals we remember; more at once are the noise of one attacker."""


class EngineContext:
    """Beliefs, policies, and the parts that work on them."""

    def __init__(
        self, beliefs: Beliefs, book: PolicyBook, fleet: FleetPolicy, epoch: int, changes: ChangedKeys
    ) -> None:
        self.beliefs = beliefs
        self.changes = changes
        self.book = book
        self.limits = fleet
        self.host = ""
        """Where we run ourselves."""
        self.other_zones: tuple[str, ...] = ()
        """The zones beside ours that have a hub: before a verdict of silence they are asked."""
        self.awareness = beliefs.awareness
        self.deadlines = Deadlines()
        self.outbox = Outbox(epoch, beliefs.numbered, changes)
        self.fleet = Fleet(fleet, beliefs.fleet, beliefs.agents)
        self.quotas = Quotas(
            fleet,
            {
                Quota.MESSAGES: beliefs.messages.values(),
                Quota.CLAIMS: beliefs.claims.values(),
                Quota.TASKS: beliefs.tasks.values(),
            },
        )
        self.open_messages = OpenMessages(beliefs.messages)
        self.failures = Failures(
            self.outbox, self.awareness, beliefs.lineages, lambda agent: self.policy(agent).respawn
        )
        self.judge = Judge(self.outbox, self.fleet, self.failures)
        self.ladder = Ladder(self.outbox, self.fleet, self.awareness)
        self.side_orders = SideOrders(
            self.outbox, self.awareness, self.deadlines, beliefs.side_orders, beliefs.next_order
        )
        self.respawns = Respawns(self.outbox, self.fleet, self.awareness, self.side_orders)
        self.intervals = Intervals(self.outbox, self.awareness)
        self.claims = Claims(self.outbox, self.awareness)
        self.rebalancing = Rebalancing(
            self.outbox,
            self.deadlines,
            self.fleet,
            beliefs.moves,
            beliefs.agents,
            beliefs.claims,
            beliefs.lineages,
            beliefs.next_order,
        )
        self.messages = Messages(self.outbox, self.awareness)
        self.tasks = Tasks(self.outbox, self.awareness, self.judge)

    def policy(self, agent: Agent) -> Policy:
        return self.book.policies[agent.policy_no]

    def look_up_policy(self, agent: Agent, now: float) -> None:
        """Look the agent's policy up again. The values it asked for may be impossible under another role or configuration."""
        own = self.beliefs.own_policies.get(agent.id)
        try:
            self.use_policy(agent, self.book.number(agent.id, agent.role, own))
        except PolicyError as error:
            del self.beliefs.own_policies[agent.id]
            self.use_policy(agent, self.book.number(agent.id, agent.role))
            self.refuse(agent.id, f"{POLICY} {error}", now, about=POLICY)

    def use_policy(self, agent: Agent, number: int) -> None:
        """The agent has this policy of the book from now on."""
        self.book.move(agent.policy_no, number)
        agent.policy_no = number
        self.arm_claims(agent)

    def arm_claims(self, agent: Agent) -> None:
        """Its claims may fall due earlier: another policy may be shorter, and its first word after a claim ends the grace."""
        for task_id in agent.claims:
            claim = self.beliefs.claims[task_id]
            self.deadlines.arm(claim, self.claims.due_at(claim, agent, self.policy(agent).claim))

    def lineage(self, agent: Agent) -> Lineage:
        """The agent's lineage, created on first use."""
        lineage = self.beliefs.lineages.get(agent.id)
        if lineage is None:
            lineage = Lineage(agent.id, self.beliefs.next_order(), task_id=agent.task_id)
            self.beliefs.lineages[agent.id] = lineage
        return lineage

    def send_canary(self, now: float) -> None:
        """Send our own beat through the bus."""
        self.outbox.add(SendCanary(now, self.awareness.canary_sent(now)))

    def ask_ourselves(self, now: float) -> None:
        """Send a canary with every ping: before the engine convicts the agent, it must have heard something."""
        if self.limits.canary_every and self.awareness.canary_at == NEVER:
            self.send_canary(now)

    def close_message(self, message: PendingMessage) -> None:
        """Nothing more happens to this message."""
        message.armed_at = NEVER
        self.open_messages.remove(message)
        self.quotas.give_back(Quota.MESSAGES, message.source)
        self.changes.messages[message.id] = None
        self.changes.agents[message.sender] = None
        sender = self.beliefs.agents.get(message.sender)
        if sender is not None:
            sender.messages -= 1

    def drop_claim(self, claim: Claim) -> None:
        """Nobody holds this task any more."""
        claim.armed_at = NEVER
        del self.beliefs.claims[claim.task_id]
        self.changes.tasks[claim.task_id] = None
        self.quotas.give_back(Quota.CLAIMS, claim.source)
        agent = self.beliefs.agents.get(claim.agent_id)
        if agent is not None:
            agent.claims = tuple(task for task in agent.claims if task != claim.task_id)

    def drop_task(self, task: Task) -> None:
        """Nobody waits for this task any more."""
        task.armed_at = NEVER
        del self.beliefs.tasks[task.id]
        self.changes.tasks[task.id] = None
        self.quotas.give_back(Quota.TASKS, task.source)

    def refuse_over_quota(self, quota: Quota, agent_id: str, source: str, reason: str, now: float) -> None:
        """A source wants to keep more here than it may."""
        self.quotas.refused[quota] += 1
        self.refuse(agent_id, reason, now, key=f"source {source}")

    def refuse(self, agent_id: str, reason: str, now: float, key: str = "", about: str = "") -> None:
        """Refuse a signal; record it at most once a minute per agent (or `key`) and reason. `about` stands for a
        reason that quotes the speaker, and so may differ each time."""
        complaints = self.beliefs.complaints
        name = f"{key or agent_id} {about or reason}"
        complaint = complaints.get(name)
        if complaint is None:
            if len(complaints) >= COMPLAINTS_MAX:
                complaints.clear()
            complaint = complaints[name] = Complaint()
        complaint.count += 1
        if now - complaint.told_at >= MINUTE:
            self.outbox.fact(Refusal(now, agent_id, reason, complaint.count))
            complaint.count, complaint.told_at = 0, now
