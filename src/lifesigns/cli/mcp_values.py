"""What the tools of `lifesigns mcp` answer. Dataclasses, because their fields become the schema that a model reads."""

from __future__ import annotations

from dataclasses import dataclass

from lifesigns.views import AgentHealth
from lifesigns.views.alerts import Alert
from lifesigns.views.calls import PastCallView
from lifesigns.views.interventions import InterventionRecord


@dataclass
class ReportOutcome:
    """What became of a report."""

    heard: bool
    detail: str = ""


@dataclass
class Health:
    """How an agent is."""

    agent_id: str
    state: str
    doing: str
    why: str
    """What is wrong with it, or what is done about it; empty if it is simply well."""
    findings: list[str]
    task_id: str | None = None
    note: str = ""
    """In its own words: what it asks a human, what it is busy with."""


@dataclass
class HubMessage:
    """What the hub wants an agent to read."""

    id: str
    kind: str
    """`nudge`: answer it with answer_nudge. `status_inquiry`: report progress. `reminder`: acknowledge that message."""
    text: str


@dataclass
class Need:
    """What a person is needed for."""

    agent_id: str
    kind: str
    title: str
    text: str
    intervention_id: str
    """To be decided with decide; empty if there is nothing to decide."""
    since: str | None
    until: str | None
    """When it is decided without a person."""


@dataclass
class Evidence:
    """Why the hub judges an agent as it does."""

    health: Health
    calls: list[str]
    """Its last tool calls, oldest first: which, how often in a row, whether they failed. Contents are not kept."""
    interventions: list[str]
    """What was done about it, the newest first."""


@dataclass
class Act:
    """A step of the ladder that was taken."""

    intervention_id: str
    agent_id: str
    rung: str
    stage: str
    reason: str


def health_of(agent: AgentHealth) -> Health:
    """An agent in few words."""
    findings = [f"{found.severity}: {found.text}" for found in agent.findings]
    return Health(
        agent.agent_id,
        str(agent.state),
        str(agent.doing),
        agent.why,
        findings,
        agent.task_id,
        agent.doing_note,
    )


def need_of(alert: Alert) -> Need:
    """A need with whom it is about."""
    need = alert.need
    assert need is not None
    return Need(
        alert.agent_id, str(need.kind), need.title, need.text, need.intervention_id, alert.at, need.until
    )


def act_of(record: InterventionRecord) -> Act:
    """An intervention in few words."""
    return Act(record.id, record.agent_id, str(record.rung), str(record.stage), record.reason)


def line_of(call: PastCallView) -> str:
    """A call in a line."""
    repeats = f", {call.in_a_row} times in a row" if call.in_a_row > 1 else ""
    return f"{call.at} {call.tool or 'a call without arguments'}{repeats}{', failed' if call.failed else ''}"
