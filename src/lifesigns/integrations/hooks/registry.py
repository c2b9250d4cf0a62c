"""The registry: all sessions a hub knows by their hooks, and the watch over their processes.

An event comes in, is heard as signals, and is answered with what waits for its agent. Only the first one of a session waits,
until the session is written down: the program stands still meanwhile. Between events the watch looks at each process once a second: while it runs its agents
beat, and when it is gone without a word that is an exit. The sessions are written down beside the hub's other things, so
that a hub that is started anew goes on watching processes whose model happens to think.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from time import thread_time
from typing import Final

import msgspec

from lifesigns.core.effects import Order, TurnBreaker
from lifesigns.core.health import Doing
from lifesigns.core.signals import (
    TOKENS_ONLY,
    ActivitySeen,
    AgentLeft,
    BeatReceived,
    DoingChanged,
    ModelFinished,
    ProcessExited,
    Signal,
    TerminationDone,
    ToolFinished,
)
from lifesigns.errors import LifesignsError
from lifesigns.files import read_private, write_whole
from lifesigns.hub.hub import Hub
from lifesigns.hub.shares import TURN_FOR
from lifesigns.integrations.hooks import commits, processes, spool, turns, waiting
from lifesigns.integrations.hooks.answers import Reply, reply_to
from lifesigns.integrations.hooks.breakers import ToolBreakers
from lifesigns.integrations.hooks.events import HookEvent, Origin
from lifesigns.integrations.hooks.program import PRE_TOOL
from lifesigns.integrations.hooks.programs import PROGRAMS
from lifesigns.integrations.hooks.sessions import Session, Speaker, begin, registered
from lifesigns.integrations.hooks.transcripts import Transcript, transcript

SESSIONS_MAX: Final = 1000
"""When there are more, the token that has most of them loses its oldest, and nobody else does: a forgotten session looks silent."""
LOOK_EVERY: Final = 1.0
STOPPED_AFTER: Final = 3.0
"""Seconds without an event after a program was told to stop: then it has stopped. It does not say so itself."""
FORGET_AFTER: Final = 24 * 3600.0
"""Of a session whose process we cannot see."""
ON_TIME: Final = 0.02
"""Seconds by which the watch may be late in a hub that answers its hooks in time: half of what they wait."""
FILE: Final = "sessions.json"
SLOW: Final = "slow"
"""Where the client notes that the hub did not answer in time."""
FILE_MAX: Final = 4 * 1024 * 1024
"""Bytes of all sessions, as they are written down. Beyond that it is as with `SESSIONS_MAX`."""

END: Final = HookEvent(session_id="", hook_event_name="SessionEnd", reason="its process ended at rest")

_Key = tuple[str, str]
"""Of a session: its program, and its id there."""

log: Final = logging.getLogger("lifesigns.hooks")


class NoRoom(LifesignsError):
    """The hub's inbox is full."""


class HookSessions:
    """The sessions of one hub. In `folder`, if there is one, it keeps them; `home` is where transcripts are. If `commits_count`, commits
    are checkpoints."""

    def __init__(self, hub: Hub, folder: Path | None, home: Path, *, commits_count: bool = False) -> None:
        self._hub = hub
        self._folder = folder
        self._home = home
        self._commits_count = commits_count
        self._host = socket.gethostname()
        self._sessions: dict[_Key, Session] = {}
        self._transcripts: dict[tuple[str, str], Transcript | None] = {}
        self._breakers = ToolBreakers()
        self._beaten: dict[str, float] = {}
        self._changed = False
        self._keeping = asyncio.Lock()

    # --- events ---------------------------------------------------------------------------------------

    def find(self, program: str, event: HookEvent, origin: Origin, source: str) -> Session:
        """The session this event is from; one that is not known begins here, but is not kept before it is heard."""
        known = self._sessions.get((program, event.session_id))
        if known is not None and (_is_same(known, origin) or _lives_on(known)):
            return known
        if origin.pid is not None:
            origin.started = origin.started or processes.started(origin.pid)
            if processes.look(origin.pid, origin.started) is processes.ProcessState.GONE:
                origin = Origin(project=origin.project)  # In a container, or over: nothing to look at.
        if known is not None and origin.pid is None:
            return known
        begun = begin(program, event, origin, source)
        if known is not None:
            begun.main.id = known.main.id  # The same session in another process.
        return begun

    async def introduce(self, session: Session) -> None:
        """Write a new session down. Before anything of it is heard: a hub that is killed the next moment would leave an agent
        behind that the next one believes to be silent, because it looks at no process."""
        if self._add(session):
            await self._keep()

    def hear(self, session: Session, event: HookEvent, now: float) -> Reply:
        """Hear an event of a session, and say what it is answered. Raises `NoRoom`."""
        self.catch_up(now)
        program = PROGRAMS[session.program]
        said = self._introduced(session)
        refusal = ""
        if session.stopping and event.hook_event_name == "UserPromptSubmit":
            said += self._stopped(session)
        session.stopped = False
        said += self._mapped(session, event)
        if session.stopping and event.hook_event_name in ("Stop", "Interrupt"):
            said += self._stopped(session)
        speaker = _speaker(session, event)
        if self._commits_count:
            said += commits.checkpoints(session, speaker, event)
        if event.hook_event_name == PRE_TOOL:
            refusal = self._breakers.begin(speaker.id, event.tool_name, event.tool_use_id, now)
        reply = reply_to(program, session, speaker, event, self._orders(speaker), refusal, now)
        if reply.prolongs:
            said = [one for one in said if not _is_idle(one)]
        if reply.denies and program.denials_are_silent:
            said += turns.forget_call(session, speaker, event.tool_use_id)
        for one in said:
            if isinstance(one, ToolFinished):
                self._breakers.end(one.agent_id, one.tool, one.call_id, now, ok=one.ok)
        said += [*reply.outcomes, *self._breakers.news(speaker.id, session.incarnation, now)]
        session.spoke_at = now
        self._follow(session, event.transcript_path)
        if event.hook_event_name == "SessionEnd":
            said = self._over(session, [*self._look_at_transcripts(session), *said])
        self._tell(session, said, now)
        for order_id in reply.acknowledged:
            self._hub.ledger.acknowledge(speaker.id, order_id)
        return reply

    def catch_up(self, now: float) -> None:
        """Hear what the client left while the hub was away, before anything newer."""
        if self._folder is None:
            return
        for program, event, origin in spool.take(self._folder / "spool"):
            if program not in PROGRAMS:
                continue
            event = PROGRAMS[program].read(event)
            if event.hook_event_name not in spool.LATE:
                continue
            known = (program, event.session_id) in self._sessions
            gone = (
                origin.pid is None
                or processes.look(origin.pid, origin.started) is processes.ProcessState.GONE
            )
            if gone and not known:
                continue  # It came and went while nobody looked.
            session = self.find(program, event, origin, "spool")
            said = self._introduced(session) + self._mapped(session, event)
            if event.hook_event_name == "SessionEnd":
                said = self._over(session, said)
            self._tell(session, said, now)

    # --- the watch --------------------------------------------------------------------------------------

    @asynccontextmanager
    async def watching(self) -> AsyncIterator[None]:
        """Look at every process once a second, for the time of the block."""
        self._recall()
        task = asyncio.create_task(self._watch(), name="lifesigns hooks")
        try:
            yield
        finally:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task
            await self._keep()

    async def _watch(self) -> None:
        due_at = self._hub.clock()
        while True:
            try:
                self.catch_up(self._hub.clock())
                if self._hub.clock() - due_at < ON_TIME:
                    self._is_well()
                await self._keep()
                await self._look()
            except Exception:
                log.exception("looking at the processes of sessions failed", extra={"action": "hooks_watch"})
            due_at = self._hub.clock() + LOOK_EVERY
            await asyncio.sleep(LOOK_EVERY)

    def _is_well(self) -> None:
        """The hub answers in time: a client that was left without an answer need not wait until it tries again."""
        if self._folder is not None:
            (self._folder / SLOW).unlink(missing_ok=True)

    async def _look(self) -> None:
        """Look at every process, once; in turns, because one token may have a thousand sessions with a hundred subagents each."""
        turn_ends = thread_time() + TURN_FOR
        for key, session in list(self._sessions.items()):
            if thread_time() >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = thread_time() + TURN_FOR
            if self._sessions.get(key) is session:
                self._look_at(session, self._hub.clock())

    def _look_at(self, session: Session, now: float) -> None:
        said: list[Signal] = []
        state = processes.ProcessState.RUNS
        if session.pid is not None:
            state = processes.look(session.pid, session.started)
        elif now - session.spoke_at > FORGET_AFTER:
            self._forget(session)
            return
        said += self._look_at_transcripts(session)
        if state is processes.ProcessState.GONE:
            said += self._gone(session)
        else:
            if self._shows_life(session, state):
                said += self._beats(session, now)
            quiet = now - max(session.stopping_at, session.spoke_at) > STOPPED_AFTER
            if session.stopping and quiet and PROGRAMS[session.program].can_be_stopped:
                said += self._stopped(session)
            said += self._turned(session, now)
        self._tell(session, said, now)

    def _shows_life(self, session: Session, state: processes.ProcessState) -> bool:
        """A halted process is as good as gone while it has something to do; at rest it may be halted for long."""
        if session.pid is None or session.stopped:
            return False
        return state is processes.ProcessState.RUNS or not _is_busy(session.main)

    def _beats(self, session: Session, now: float) -> Iterator[Signal]:
        for speaker in session.speakers():
            agent = self._hub.engine.agent(speaker.id)
            every = 5.0 if agent is None else self._hub.engine.policy_of(agent).silence.interval
            if now - self._beaten.get(speaker.id, 0.0) < min(every, 60.0) - LOOK_EVERY / 2:
                continue
            self._beaten[speaker.id] = now
            metadata = {"program": session.program, "folder": session.project[:1000], "session": session.id}
            if speaker is not session.main:
                metadata["parent"] = session.main.id
            yield BeatReceived(
                speaker.id,
                incarnation=session.incarnation,
                host=self._host,
                pid=session.pid,
                metadata=metadata,
                source=session.source,
            )

    def _look_at_transcripts(self, session: Session) -> Iterator[Signal]:
        for speaker in session.speakers():
            found = self._transcripts.get((session.id, speaker.id))
            growth = None if found is None else found.look()
            if growth is None or not growth.size:
                continue
            life = session.incarnation
            yield ActivitySeen(agent_id=speaker.id, incarnation=life, kind="transcript")
            if growth.tokens_in or growth.tokens_out:
                yield ModelFinished(
                    agent_id=speaker.id,
                    incarnation=life,
                    call_id=TOKENS_ONLY,
                    tokens_in=growth.tokens_in,
                    tokens_out=growth.tokens_out,
                )
            if growth.rested_at > session.spoke_at and speaker is session.main:
                yield from turns.rest(session, speaker)  # Its user has interrupted it.
            if growth.refused and speaker.thinks:
                yield from waiting.parked(session, speaker, growth.refused)
            elif speaker.thinks and (growth.tokens_in or growth.tokens_out):
                yield from waiting.goes_on(session, speaker)

    def _follow(self, session: Session, path: str | None) -> None:
        """Note where the transcripts of a session and its subagents are, when they are first heard of."""
        program = PROGRAMS[session.program]
        if program.transcripts is None:
            return
        if program.transcript:
            path = str(self._home / program.transcripts / program.transcript.format(session.id))
        if not path:
            return
        session.transcript = path
        for key, speaker in ((None, session.main), *session.subagents.items()):
            if (session.id, speaker.id) not in self._transcripts:
                own = path if key is None else f"{path.removesuffix('.jsonl')}/subagents/agent-{key}.jsonl"
                self._transcripts[session.id, speaker.id] = transcript(program.transcripts, own, self._home)

    # --- ends -------------------------------------------------------------------------------------------

    def _gone(self, session: Session) -> Sequence[Signal]:
        """Its process is gone, and it did not say good-bye."""
        said = self._stopped(session) if session.stopping else []
        stopped = session.stopped
        if PROGRAMS[session.program].leaves_silently and not _is_busy(session.main):
            said += turns.session_end(session, session.main, END)
            self._forget(session)
            return said
        detail = f"process {session.pid} of {session.program} is gone, and its session did not end"
        for speaker in session.speakers():
            if not (stopped and speaker is session.main):
                said.append(
                    ProcessExited(agent_id=speaker.id, incarnation=session.incarnation, detail=detail)
                )
        self._forget(session)
        return said

    def _stopped(self, session: Session) -> list[Signal]:
        """The run that was to be stopped has stopped. If its user goes on with the session, that is another life."""
        done = TerminationDone(
            agent_id=session.main.id, incarnation=session.incarnation, order_id=session.stopping
        )
        session.stopping, session.stopped = "", True
        session.life += 1
        self._changed = True
        return [done]

    def _over(self, session: Session, said: list[Signal]) -> list[Signal]:
        if session.stopping:
            end = self._stopped(session)
            said = [
                one for one in said if not (isinstance(one, AgentLeft) and one.agent_id == session.main.id)
            ]
            said += end
        self._forget(session)
        return said

    def _forget(self, session: Session) -> None:
        self._sessions.pop((session.program, session.id), None)
        for speaker in session.speakers():
            self._forget_speaker(session, speaker)
        self._changed = True

    def _forget_speaker(self, session: Session, speaker: Speaker) -> None:
        self._breakers.forget(speaker.id)
        self._beaten.pop(speaker.id, None)
        self._transcripts.pop((session.id, speaker.id), None)

    # --- parts ------------------------------------------------------------------------------------------

    def _introduced(self, session: Session) -> list[Signal]:
        self._add(session)
        if session.announced:
            return []
        session.announced = True
        return [registered(session, session.main, self._host)]

    def _add(self, session: Session) -> bool:
        """Whether it was not known."""
        key = (session.program, session.id)
        known = self._sessions.get(key)
        if known is session:
            return False
        if known is not None:
            self._forget(known)  # Its life in another process.
        while len(self._sessions) >= SESSIONS_MAX:
            self._forget(self._sessions[self._oldest_of_greediest(dict.fromkeys(self._sessions, 1))])
        self._sessions[key] = session
        self._changed = True
        return True

    def _oldest_of_greediest(self, sizes: Mapping[_Key, int]) -> _Key:
        """The first session, as they began, of the token whose sessions have most of this."""
        by_source = Counter[str]()
        for key, size in sizes.items():
            by_source[self._sessions[key].source] += size
        (greediest, _), *_ = by_source.most_common(1)
        return next(key for key in self._sessions if self._sessions[key].source == greediest)

    def _mapped(self, session: Session, event: HookEvent) -> list[Signal]:
        """What the event says; a subagent that is new is announced before, one that is over is forgotten."""
        known = dict(session.subagents)
        said = PROGRAMS[session.program].signals(session, event)
        new = [one for key, one in session.subagents.items() if key not in known]
        for key in known.keys() - session.subagents:
            self._forget_speaker(session, known[key])
        self._changed = True
        return [*(registered(session, one, self._host) for one in new), *said]

    def _orders(self, speaker: Speaker) -> list[Order]:
        return self._hub.ledger.waiting_for([speaker.id]).get(speaker.id, [])

    def _turned(self, session: Session, now: float) -> Iterator[Signal]:
        for speaker in session.speakers():
            outcomes = [
                self._breakers.turn(order, now)
                for order in self._orders(speaker)
                if isinstance(order, TurnBreaker)
            ]
            # The new state first: who reads the outcome can already see it.
            yield from self._breakers.news(speaker.id, session.incarnation, now)
            yield from outcomes

    def _tell(self, session: Session, said: Sequence[Signal], now: float) -> None:
        if said and not self._hub.hear(said, now, session.source):
            raise NoRoom

    # --- across a restart -------------------------------------------------------------------------------

    async def _keep(self) -> None:
        """Write the sessions down, one writing after the other: an older one must not replace a newer."""
        async with self._keeping:
            if self._changed and self._folder is not None:
                written = self._written()
                self._changed = False
                try:
                    await asyncio.to_thread(write_whole, self._folder / FILE, written)
                except OSError as error:
                    self._changed = True  # Tried again with the next look; events are heard meanwhile.
                    log.warning(
                        "sessions are not written down: %s", error, extra={"action": "hooks_not_kept"}
                    )

    def _written(self) -> bytes:
        written = {key: msgspec.json.encode(session) for key, session in self._sessions.items()}
        while sum(map(len, written.values())) + len(written) + 1 > FILE_MAX:
            key = self._oldest_of_greediest({key: len(text) for key, text in written.items()})
            self._forget(self._sessions[key])
            del written[key]
        return b"[%s]" % b",".join(written.values())

    def _recall(self) -> None:
        if self._folder is None:
            return
        with suppress(msgspec.MsgspecError, LifesignsError, OSError):
            found = read_private(self._folder / FILE, FILE_MAX)
            if found is not None:
                kept = msgspec.json.decode(found[0], type=list[Session])
                self._sessions = {(one.program, one.id): one for one in kept[:SESSIONS_MAX]}
        for session in self._sessions.values():
            if session.transcript:
                self._follow(session, session.transcript)


def _lives_on(known: Session) -> bool:
    """Whether the process that we know is there, of a program whose hooks may be started by another one."""
    if not PROGRAMS[known.program].helpers_speak or known.pid is None:
        return False
    return processes.look(known.pid, known.started) is not processes.ProcessState.GONE


def _is_same(known: Session, origin: Origin) -> bool:
    """Whether this comes from the process we know; who does not say from which, is believed."""
    if origin.pid is None:
        return True
    return origin.pid == known.pid and origin.started in ("", known.started)


def _speaker(session: Session, event: HookEvent) -> Speaker:
    return session.subagents.get(event.agent_id or "", session.main)


def _is_busy(speaker: Speaker) -> bool:
    return speaker.thinks or bool(speaker.calls)


def _is_idle(signal: Signal) -> bool:
    return isinstance(signal, DoingChanged) and signal.doing is Doing.IDLE
