"""Sessions: what we know of a coding agent's session, and of the agents in it.

Plain data, so that a hub can write it down and go on with it after a restart. An agent's id says where it works:
`claude/PROJECT/SESSION` for the session itself, `claude/PROJECT/SESSION/TYPE-ID` for a subagent.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import msgspec

from lifesigns.core.signals import AgentRegistered, ModelFinished, ModelStarted, NudgeSeen, Signal
from lifesigns.integrations.hooks.events import HookEvent, Origin, name_of

PREFIXES: Final = {
    "claude-code": "claude",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "opencode": "opencode",
}
"""How the ids of each program's agents begin."""
NUMBERED_BY_TIME: Final = frozenset({"codex", "opencode"})
"""Programs whose sessions of one minute begin with the same eight signs, and end with chance."""

SUBAGENTS_MAX: Final = 100
CALLS_MAX: Final = 64
PROJECT_MAX: Final = 48

POLICY: Final = {
    # Nobody but its user can start a session anew.
    "respawn": {"enabled": False},
    # A coding agent works by failing: by tests that do not pass yet, by files it looks for. That the *same* call fails over
    # and over is found by `looping`, which compares calls.
    "erring": {"rate_max": 0.8, "consecutive_max": 8},
}
"""What is different about a coding agent; as far as the administrator leaves it open."""

UNWATCHED: Final = {"silence": {"interval": 600.0, "timeout": 3600.0}}
"""Of a session whose process we cannot see: it says nothing while its model thinks."""


class Speaker(msgspec.Struct):
    """One agent of a session: the session itself, or a subagent."""

    id: str
    thinks: bool = False
    """A model call is open."""
    thoughts: int = 0
    """Model calls so far: they have no ids of their own."""
    asked_for: int = 0
    """The last of them for which the program was heard to ask its model."""
    calls: dict[str, str] = {}
    """Open tool calls, by id: their tools."""
    numbered: int = 0
    """Calls that had no id and were given one."""
    question: str = ""
    """What the program is about to ask its user, as far as it was told."""
    waits: bool = False
    """It waits for its user."""
    unseen: list[str] = []
    """Nudges that were handed over, and that the model has not read for certain."""

    def begin_call(self, call_id: str, tool: str) -> None:
        if len(self.calls) >= CALLS_MAX:
            del self.calls[next(iter(self.calls))]
        self.calls[call_id] = tool


class Session(msgspec.Struct, kw_only=True):
    """One session of a program."""

    program: str
    id: str
    main: Speaker
    pid: int | None = None
    started: str = ""
    life: int = 0
    """A session that was stopped and is taken up again has another life in the same process."""
    source: str = ""
    """The token that speaks for it."""
    project: str = ""
    transcript: str = ""
    subagents: dict[str, Speaker] = {}
    prolonged: int = 0
    """How often its end was put off by a nudge since its user last spoke."""
    prolonging: bool = False
    """Its end was put off just now: the prompt that follows is not its user's."""
    stopping: str = ""
    """The order that ends it, handed over to the program."""
    stopping_at: float = 0.0
    stopped: bool = False
    """It was stopped, and has not been taken up again: it rests in its terminal, and does not beat."""
    spoke_at: float = 0.0
    announced: bool = False

    @property
    def incarnation(self) -> str:
        """The process is the life: one that takes up an old session is another life of the same agent."""
        process = f"{self.pid}-{self.started}" if self.pid is not None else self.id
        return f"{process}.{self.life}" if self.life else process

    def speakers(self) -> Iterator[Speaker]:
        yield self.main
        yield from self.subagents.values()


def agent_id(program: str, event: HookEvent, origin: Origin) -> str:
    """The id of the agent that this session is."""
    folder = origin.project or event.cwd.rstrip("/").rpartition("/")[2]
    short = event.session_id[-8:] if program in NUMBERED_BY_TIME else event.session_id[:8]
    return f"{PREFIXES[program]}/{name_of(folder, PROJECT_MAX, 'root')}/{name_of(short, 8)}"


def begin(program: str, event: HookEvent, origin: Origin, source: str) -> Session:
    """A session that was not known."""
    main = Speaker(agent_id(program, event, origin))
    project = event.cwd or origin.project
    session = Session(
        program=program, id=event.session_id, main=main, pid=origin.pid, source=source, project=project
    )
    session.started = origin.started
    return session


def registered(session: Session, speaker: Speaker, host: str) -> Signal:
    """An agent as it is announced."""
    return AgentRegistered(
        agent_id=speaker.id,
        incarnation=session.incarnation,
        host=host,
        policy=POLICY if session.pid is not None else {**POLICY, **UNWATCHED},
        source=session.source,
        bounded=True,
    )


def subagent(session: Session, agent: str, kind: str) -> Speaker:
    """The subagent of this id, known or new."""
    known = session.subagents.get(agent)
    if known is None:
        if len(session.subagents) >= SUBAGENTS_MAX:
            del session.subagents[next(iter(session.subagents))]
        name = f"{name_of(kind, 24, 'agent')}-{name_of(agent[-6:], 6)}"
        known = session.subagents[agent] = Speaker(f"{session.main.id}/{name}")
    return known


# --- model calls --------------------------------------------------------------------------------------


def begin_thought(session: Session, speaker: Speaker) -> Iterator[Signal]:
    """The model is called, unless it is already."""
    if not speaker.thinks:
        speaker.thinks = True
        speaker.thoughts += 1
        yield ModelStarted(
            agent_id=speaker.id, incarnation=session.incarnation, call_id=f"model-{speaker.thoughts}"
        )


def end_thought(
    session: Session,
    speaker: Speaker,
    *,
    ok: bool = True,
    error_kind: str | None = None,
    tokens: tuple[int, int] = (0, 0),
) -> Iterator[Signal]:
    """The model has answered, and so has read what it was given before."""
    if not speaker.thinks:
        return
    speaker.thinks = False
    yield ModelFinished(
        agent_id=speaker.id,
        incarnation=session.incarnation,
        call_id=f"model-{speaker.thoughts}",
        tokens_in=tokens[0],
        tokens_out=tokens[1],
        ok=ok,
        error_kind=error_kind,
    )
    if ok:
        seen, speaker.unseen = speaker.unseen, []
        for order_id in seen:
            yield NudgeSeen(agent_id=speaker.id, incarnation=session.incarnation, nudge_id=order_id)
