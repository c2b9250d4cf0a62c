"""The fleet of the demo: its agents, what happens to each, and what lifesigns should do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import Final

from msgspec import Struct

from lifesigns.core.effects import Kind
from lifesigns.core.health import Cause, Doing, Health


class Action(StrEnum):
    """What can be done about an agent."""

    NUDGED = "nudged"
    ESCALATED = "people asked"
    STOPPED = "stopped"
    RESPAWNED = "respawned"
    TOLD = "people told"
    ANSWERED = "answered by a person"


class DemoAgent(Struct, frozen=True):
    """An agent of the demo."""

    id: str
    task: str
    does: str
    """What it does, in a person's words."""
    runs: str = ""
    """The name of its program, if that is not its id."""
    begins: str = ""
    """The beginning of the line it prints when its trouble begins."""
    found: Kind | Doing | None = None
    """What lifesigns should find; None: nothing."""
    cause: Cause | None = None
    actions: tuple[Action, ...] = ()
    """What should be done about it, in this order, and nothing else."""
    ends: Health = Health.HEALTHY

    @property
    def program(self) -> str:
        return self.runs or self.id


FLEET: Final = (
    DemoAgent("coder", "fix-parser", "works"),
    DemoAgent(
        "indexer",
        "index-docs",
        "freezes its event loop",
        begins="fetches page",
        found=Kind.FREEZE,
        cause=Cause.FREEZE,
        actions=(Action.NUDGED, Action.ESCALATED, Action.STOPPED, Action.RESPAWNED),
    ),
    DemoAgent(
        "searcher",
        "find-usage",
        "repeats the same call",
        begins="searches for",
        found=Kind.LOOPING,
        actions=(Action.NUDGED,),
    ),
    DemoAgent(
        "builder",
        "build-image",
        "crashes",
        begins="runs out of memory",
        found=Kind.EXIT,
        cause=Cause.CRASH,
        actions=(Action.RESPAWNED,),
    ),
    DemoAgent(
        "deployer",
        "release-2",
        "waits for a human",
        begins="asks whether",
        found=Doing.WAITING_FOR_HUMAN,
        actions=(Action.TOLD, Action.ANSWERED),
    ),
    DemoAgent(
        "writer",
        "write-guide",
        "meets a rate limit",
        begins="has used up",
        found=Doing.RATE_LIMITED,
    ),
    DemoAgent(
        "researcher",
        "survey",
        "overspends",
        begins="asks the dearest",
        found=Kind.SPENDING,
        actions=(Action.STOPPED,),
        ends=Health.TERMINATED,
    ),
)

HUBS_FLEET: Final = (
    DemoAgent("coder", "fix-parser", "works, and knows every hub"),
    DemoAgent("tester", "test-parser", "works, and knows the bus alone", runs="coder"),
    DemoAgent("reviewer", "review-parser", "works, and knows the bus alone", runs="coder"),
    DemoAgent("builder", "build-image", "is killed while no hub judges", runs="coder"),
)
"""The agents of `lifesigns demo --hubs`."""
BY_BUS: Final = frozenset({"tester", "reviewer"})
"""Those of them that speak over the bus."""
VICTIM: Final = "builder"
"""The one whose process is killed right after the hub."""

QUESTION: Final = "deployer"
"""The agent that asks a person something."""
ANSWER: Final = "Yes, deploy it."
