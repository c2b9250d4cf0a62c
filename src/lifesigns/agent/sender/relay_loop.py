"""Relay loop: what the relay does, over and over, on its own event loop.

Wake-ups cost, not work: whoever is due goes out as one message, and whatever was said since as another. What cannot be
sent is tried again, for ever: beats are made anew; reports stay one load, the same each time, until the hub has kept it.

    turn: who is due ──► link.carry_beats ──► what was said ──► link.carry_reports, beside ──► rest until the next is due, or rung
                            │ failed: wait a little longer each time

Beats go first and wait for nothing: a hub that cannot keep reports, or none behind a bus, holds up no beat.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import random
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lifesigns.agent.probe import LoopProbe
from lifesigns.agent.sender.farewells import SpooledReports
from lifesigns.agent.sender.rhythm import next_on_grid
from lifesigns.agent.sender.session import AgentSession, Track
from lifesigns.agent.sender.vitals import VitalSigns
from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Report
from lifesigns.errors import AdapterError
from lifesigns.ports import Link, SavedState

if TYPE_CHECKING:
    from lifesigns.agent.sender.relay import Relay

log: Final = logging.getLogger("lifesigns.sender")

WINDOW: Final = 0.2
"""Words of one window go out together: a chatty agent wakes us five times a second and not more."""
LISTEN_FOR: Final = 3
"""Windows without a word before we go to sleep. While we listen nobody has to ring, and ringing is the one thing in an
agent's call that lets go of the GIL and may have to wait for it."""
GATHER_FOR: Final = 0.02
"""After a quiet time the first word waits this long for those that come with it."""
SLACK: Final = 0.002
"""Timers may fire early; who is due within this is due."""
REPORTS_AT_ONCE: Final = 2_000
BREATH: Final = 20
"""After so many beats the GIL is let go: nobody in this process should feel a thousand of them being made."""
BREATH_FOR: Final = 0.001
"""Not 0: who lets go and takes again at once is faster than anybody who waits."""
CARRY_FOR: Final = 5.0
CLOSE_FOR: Final = 1.0
FIRST_WAIT: Final = 0.25
WAIT_MAX: Final = 1.0
"""Between two tries while it fails. A bus looks for its server by itself, every second; with this on top everybody is
back within 2 s of the server's return, and has 3 s left for a machine that is busy."""
OVERSLEPT: Final = 0.5
"""If we wake up so late, the whole process stood still (stopped, swapped out, no CPU): no loop is to blame for it."""
NEVER: Final = float("inf")
ASK_HUB_AFTER: Final = 60.0
"""On a bus beats show that the server is there, not that a hub is. If no hub has answered for so long somebody introduces
itself again, which is acknowledged."""
ECHO_AFTER: Final = 1.5
"""After an outage everybody beats once more so soon: a bus keeps nothing, and the hub may be back on it after us, though
not by more than the second in which it looks for the server."""
ECHOES_MAX: Final = 3
"""So many, until a hub answers: a machine that is busy may need longer than a second. On an answer everybody beats at once."""
UPLOAD_FOR: Final = 60.0
UPLOAD_TRIES: Final = 3
"""So often may it take longer. Then only the digest is told: what was said later has waited long enough."""
UPLOAD_WAIT_MAX: Final = 5.0
LAST_WORDS_FOR: Final = 0.5
"""Of the time an agent has to leave, what uploads have to leave for its last words."""
SLOW_WAIT_MAX: Final = 60.0
"""Between two tries when trying again is not expected to help (a wrong token)."""


@dataclass(slots=True)
class BeatBatch:
    """Beats that go out together, and whose they are."""

    beats: list[Beat] = field(default_factory=list)
    sessions: list[AgentSession] = field(default_factory=list)
    probes: set[LoopProbe] = field(default_factory=set)
    """The loops those live on who beat."""


@dataclass(slots=True)
class ReportBatch:
    """Reports that go out together until they have arrived, and how many of each session are in it."""

    number: int
    reports: list[Report] = field(default_factory=list)
    counts: list[tuple[AgentSession, int]] = field(default_factory=list)
    spooled: list[SpooledReports] = field(default_factory=list)
    """Good-byes of processes that have ended, and where they lie."""


@dataclass(slots=True)
class Attempts:
    """How carrying goes, for one kind of load."""

    failures: int = 0
    retry_at: float = 0.0


class RelayLoop:
    """One loop's work. `ring` and `hurry` are called on that loop."""

    def __init__(self, link: Link, relay: Relay) -> None:
        self._link = link
        self._relay = relay
        self._wake = asyncio.Event()
        self._vitals = VitalSigns()
        self._followed: set[str] = set()
        self._uploads: dict[AgentSession, asyncio.Task[None]] = {}
        self._open = False
        self._attempts = {track: Attempts() for track in Track}
        self._complained = False
        self._reports: ReportBatch | None = None
        """What is being carried, or carried again."""
        self._reporting: asyncio.Task[None] | None = None
        self._numbers = itertools.count(1)
        self._farewells_due = True
        """Somebody may have left good-byes behind: at the beginning, and after every outage."""
        self._unanswered_since: float | None = None
        """When the first try failed after which no hub has answered."""
        self._hub_asked_at = time.monotonic()
        self._echoes = 0
        """How often everybody beats once more after an outage."""
        self._carried_at = 0.0
        self._asked_at = 0.0
        """When the loops were last asked: until the end of the rest we do nothing that takes long."""
        self._reports_left = False
        self._look_at = 0.0
        """When to look for words again, while we listen. At first now: who spoke before we were there could not ring."""
        self._quiet = 0

    def ring(self) -> None:
        """Words are waiting. They are looked at when the window ends."""
        window_ends_at = max(self._carried_at + WINDOW, time.monotonic() + GATHER_FOR)
        self._look_at = min(self._look_at, window_ends_at)
        self._wake.set()

    def hurry(self) -> None:
        """Look now, or as soon as it is time to try again."""
        self._look_at = 0.0
        self._wake.set()

    async def live(self) -> None:
        """Until nobody is left."""
        try:
            while not self._relay.may_end():
                await self._turn()
                await self._rest()
        finally:
            for task in (*self._uploads.values(), *([self._reporting] if self._reporting else ())):
                task.cancel()
            with suppress(AdapterError, TimeoutError, OSError):
                await asyncio.wait_for(self._link.close(), CLOSE_FOR)

    # --- a turn -----------------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        now = time.monotonic()
        for session in self._relay.sessions:
            if session.leaving_by is not None and now >= session.leaving_by - LAST_WORDS_FOR:
                self._give_up_uploads(session)
            if session.leaving_by is not None and self._link.tells_stopping:
                session.stops()
        if now + SLACK >= self._attempts[Track.BEATS].retry_at:
            await self._send_beats(now)
            self._begin_uploads()
        now = time.monotonic()
        if self._reporting is None and now + SLACK >= self._report_at():
            self._begin_report(now)
        for session in self._relay.sessions:
            if session.leaving_by is not None and (
                not session.has_reports or time.monotonic() >= session.leaving_by
            ):
                await self._part_with(session)

    # --- beats --------------------------------------------------------------------------------------------------

    async def _send_beats(self, now: float) -> None:
        load = await self._gather_beats(now)
        try:
            async with asyncio.timeout(CARRY_FOR):
                await self._reach()
                answered = await self._link.carry_beats(load.beats) if load.beats else None
        except Exception as error:  # noqa: BLE001 -- sorted there
            self._failed(Track.BEATS, load.sessions, error)
            for session in load.sessions:
                session.due_at = time.monotonic()
        else:
            if answered is not None:
                await self._beats_arrived(load, hub_answered=answered)
        # Right before the rest, not before the carrying: if we all stand still from here on, we notice it.
        if load.probes:
            self._asked_at = time.monotonic()
        for probe in load.probes:
            probe.ask(self._asked_at)

    async def _gather_beats(self, now: float) -> BeatBatch:
        """Who is due, and who leaves with something unsaid."""
        load, vitals = BeatBatch(), None
        for session in self._relay.sessions:
            leaves = session.leaving_by is not None
            if not (session.owes_last_beat if leaves else self._is_due(session, now)):
                continue
            vitals = vitals or self._vitals.measure()
            load.beats.append(session.beat(now, vitals))
            load.sessions.append(session)
            if session.probe is not None and not leaves:
                load.probes.add(session.probe)
            if len(load.beats) % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)
        return load

    async def _beats_arrived(self, load: BeatBatch, *, hub_answered: bool) -> None:
        if self._arrived(Track.BEATS):
            self._echoes = 1 if hub_answered else ECHOES_MAX
        echoes = self._echoes > 0
        self._echoes -= echoes
        if hub_answered:
            self._hub_answered()
        elif time.monotonic() - self._hub_asked_at >= ASK_HUB_AFTER:
            self._hub_asked_at = time.monotonic()
            load.sessions[0].introduce()
        for number, session in enumerate(load.sessions, 1):
            session.owes_last_beat = False
            session.arrived(1, Track.BEATS)
            if echoes and session.may_repeat:
                session.due_at = min(session.due_at, self._carried_at + ECHO_AFTER)
            if number % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)

    # --- reports ------------------------------------------------------------------------------------------------

    def _begin_report(self, now: float) -> None:
        if self._reports is None:
            self._reports = self._spooled_reports() or self._gather_reports(now)
        if self._reports is not None:
            self._reporting = asyncio.create_task(self._report(self._reports))

    def _report_at(self) -> float:
        """When to carry what was said, if nothing is being carried. While beats fail they are the ones that try."""
        staying = any(session.leaving_by is None for session in self._relay.sessions)
        if staying and self._attempts[Track.BEATS].failures:
            return NEVER
        look_at = 0.0 if self._reports_left or self._reports is not None else self._look_at
        return max(look_at, self._attempts[Track.REPORTS].retry_at)

    def _gather_reports(self, now: float) -> ReportBatch | None:
        """What was said; None if nothing was."""
        self._look_at = NEVER
        load = ReportBatch(0)
        for session in self._relay.sessions:
            room = REPORTS_AT_ONCE - len(load.reports)
            if session.has_reports and room > 0 and not self._holds_back(session, now):
                reports = session.take(room)
                load.reports += reports
                load.counts.append((session, len(reports)))
        self._reports_left = len(load.reports) >= REPORTS_AT_ONCE
        self._listen(now, bool(load.reports))
        if not load.reports:
            return None
        load.number = next(self._numbers)
        return load

    def _holds_back(self, session: AgentSession, now: float) -> bool:
        """Whether its last words wait for its last beat: what comes after a good-bye is not believed."""
        return (
            session.leaving_by is not None
            and session.owes_last_beat
            and now < session.leaving_by - LAST_WORDS_FOR
        )

    def _spooled_reports(self) -> ReportBatch | None:
        """What others could not say before they ended, once the hub can be reached."""
        if not self._farewells_due or self._attempts[Track.BEATS].failures or not self._open:
            return None
        spooled = self._relay.farewells.collect()
        self._farewells_due = False
        reports = [word for one in spooled for word in one.reports]
        return ReportBatch(next(self._numbers), reports, spooled=spooled) if reports else None

    async def _report(self, load: ReportBatch) -> None:
        try:
            async with asyncio.timeout(CARRY_FOR):
                await self._link.carry_reports(load.number, load.reports)
        except asyncio.CancelledError:
            raise
        except Exception as error:  # noqa: BLE001 -- sorted there
            if load.spooled and isinstance(error, AdapterError) and not error.transient:
                self._reports = None  # Words of others, which are not ours to say here; they must not stand before our own.
                log.info("good-byes of others are left to others: %s", error)
            else:
                self._failed(Track.REPORTS, [session for session, _ in load.counts], error)
        else:
            self._reports = None
            if self._arrived(Track.REPORTS) or self._echoes:
                self._beat_anew()
            self._hub_answered()
            for session, count in load.counts:
                session.carried()
                session.arrived(count, Track.REPORTS)
            for one in load.spooled:
                one.forget()
        finally:
            self._reporting = None
            self._look_at = min(self._look_at, self._carried_at + WINDOW)
            self._wake.set()

    def _listen(self, now: float, heard: bool) -> None:
        """Look again after a window, until nobody has said anything for some; then who speaks has to ring."""
        self._quiet = 0 if heard else self._quiet + 1
        asleep = self._quiet > LISTEN_FOR
        if asleep:
            self._relay.rung = False
        # Whoever spoke just before it could know that it has to ring must not wait for somebody else's beat.
        if not asleep or any(session.has_reports for session in self._relay.sessions):
            self._look_at = min(self._look_at, now + WINDOW)

    def _is_due(self, session: AgentSession, now: float) -> bool:
        """Whether to beat now; if so, its next beat is already planned."""
        every = session.every(now)
        if session.due_at > now + every:  # Its rhythm has become faster since this was planned.
            session.due_at = next_on_grid(now, every, self._relay.phase)
        if session.due_at > now + SLACK:
            return False
        session.due_at = next_on_grid(now + SLACK, every, self._relay.phase)
        return True

    async def _reach(self) -> None:
        """Be connected, and hear the orders of everybody here."""
        if not self._open:
            await self._link.open(self._obey)
            self._open = True
        for session in self._relay.sessions:
            if session.agent_id not in self._followed and session.leaving_by is None:
                await self._link.follow(session.agent_id)
                self._followed.add(session.agent_id)

    def _obey(self, order: Order) -> bool:
        """Whether it was for one of our sessions. An order for a session that has left is for nobody."""
        for attempts in self._attempts.values():
            attempts.retry_at = 0.0  # We hear the hub: the way is open.
        taken = [
            session.obey(order) for session in self._relay.sessions if session.agent_id == order.agent_id
        ]
        return any(taken) or not taken

    # --- states of checkpoints ----------------------------------------------------------------------------------

    def _begin_uploads(self) -> None:
        """Beside the carrying, because it may take a while: one for each session whose next report is a state."""
        for session in self._relay.sessions:
            if session not in self._uploads and (state := session.next_state()) is not None:
                self._uploads[session] = asyncio.create_task(self._upload(session, state))

    async def _upload(self, session: AgentSession, state: SavedState) -> None:
        try:
            session.uploaded(state, kept=await self._try_to_upload(state))
        finally:
            self._uploads.pop(session, None)
            self.hurry()

    def _give_up_uploads(self, session: AgentSession) -> None:
        """It leaves: what its last words are is more important."""
        session.give_up_states()
        upload = self._uploads.pop(session, None)
        if upload is not None:
            upload.cancel()

    async def _try_to_upload(self, state: SavedState) -> bool:
        """Whether the hub keeps it. A hub that is away is waited for, as words wait for it."""
        wait, slow = FIRST_WAIT, 0
        while True:
            try:
                async with asyncio.timeout(UPLOAD_FOR):
                    return await self._link.upload(state)
            except TimeoutError:
                error, slow = f"no answer within {UPLOAD_FOR:g} s", slow + 1
            except AdapterError as failed:
                error, slow = str(failed), slow if failed.transient else UPLOAD_TRIES
            if slow >= UPLOAD_TRIES:
                log.warning("checkpoint %s is not kept at the hub: %s", state.saved.checkpoint_id, error)
                return False
            await asyncio.sleep(wait)
            wait = min(2 * wait, UPLOAD_WAIT_MAX)

    # --- how it went --------------------------------------------------------------------------------------------

    def _arrived(self, track: Track) -> bool:
        """Whether it was away before."""
        attempts = self._attempts[track]
        failures, attempts.failures, attempts.retry_at = attempts.failures, 0, 0.0
        self._carried_at = time.monotonic()
        if self._complained and not any(each.failures for each in self._attempts.values()):
            self._complained = False
            log.warning("sending to %s works again after %d failures", self._relay.name, failures)
        self._farewells_due = self._farewells_due or failures > 0
        return failures > 0

    def _beat_anew(self) -> None:
        """A hub hears us again: what went before may have met nobody."""
        self._echoes = 0
        for session in self._relay.sessions:
            if session.may_repeat:
                session.due_at = min(session.due_at, self._carried_at)

    def _hub_answered(self) -> None:
        self._unanswered_since, self._hub_asked_at = None, time.monotonic()

    def _failed(self, track: Track, sessions: Sequence[AgentSession], error: Exception) -> None:
        match error:
            case AdapterError():
                text, transient = str(error), error.transient
            case TimeoutError():
                text, transient = f"no answer within {CARRY_FOR:g} s", True
            case _:
                log.error("carrying %s failed in a way it never should", track, exc_info=error)
                text, transient = f"{type(error).__name__}: {error}", False
        now, attempts = time.monotonic(), self._attempts[track]
        attempts.failures += 1
        attempts.retry_at = now + self._wait(attempts.failures, transient=transient)
        for session in sessions:
            session.lost(text, track)
        if attempts.failures == self._patience() and not self._complained:
            self._complained = True
            log.warning(
                "sending to %s failed %d times in a row: %s", self._relay.name, attempts.failures, text
            )
        self._unanswered_since = self._unanswered_since or now
        for session in self._relay.sessions:
            session.no_hub(now - self._unanswered_since, text)

    def _patience(self) -> int:
        """After how many failures in a row it is worth a word in the log: one, however many agents are concerned."""
        return min((session.retries for session in self._relay.sessions), default=1)

    def _wait(self, failures: int, *, transient: bool) -> float:
        """Longer each time, up to a bound, and never all at once."""
        asked_for = min((session.retry_after for session in self._relay.sessions), default=WAIT_MAX)
        times = 2.0 ** min(failures - 1, 10)
        wait = (
            min(FIRST_WAIT * times, asked_for, WAIT_MAX)
            if transient
            else min(asked_for * times, SLOW_WAIT_MAX)
        )
        return wait * random.uniform(0.75, 1.0)  # noqa: S311 -- spreads, hides nothing

    async def _part_with(self, session: AgentSession) -> None:
        session.leave_farewell()
        self._relay.dismiss(session)
        if session.agent_id in self._followed and all(
            other.agent_id != session.agent_id for other in self._relay.sessions
        ):
            self._followed.discard(session.agent_id)
            with suppress(AdapterError, TimeoutError):
                async with asyncio.timeout(CLOSE_FOR):
                    await self._link.unfollow(session.agent_id)

    # --- the rest -----------------------------------------------------------------------------------------------

    async def _rest(self) -> None:
        """Until somebody is due, or rings."""
        at = self._next_at()
        if at <= time.monotonic():
            await asyncio.sleep(0)
        else:
            timer = asyncio.get_running_loop().call_at(at, self._wake.set)
            await self._wake.wait()
            self._wake.clear()
            timer.cancel()
        now = time.monotonic()
        if now - max(at, self._asked_at) > OVERSLEPT:
            for session in self._relay.sessions:
                if session.probe is not None:
                    session.probe.forgive(now)

    def _next_at(self) -> float:
        sessions = self._relay.sessions
        if not sessions:
            return 0.0
        staying = (
            session.due_at for session in sessions if session.leaving_by is None or session.owes_last_beat
        )
        beats_at = max(min(staying, default=NEVER), self._attempts[Track.BEATS].retry_at)
        reports_at = NEVER if self._reporting else self._report_at()
        leaving = (
            session.leaving_by
            - (LAST_WORDS_FOR if session in self._uploads or session.owes_last_beat else 0.0)
            for session in sessions
            if session.leaving_by is not None
        )
        return min(beats_at, reports_at, min(leaving, default=NEVER))
