"""Rounds: what the relay does, over and over, on its own loop.

Wake-ups cost, not work: whoever is due, and whatever was said since, goes out as one message. What cannot be sent is
tried again, for ever: words go back into their queues, beats are made anew.

    turn: who is due, what was said ──► link.carry ──► rest until the next is due, or rung
                                           │ failed: words go back, wait a little longer each time
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from lifesigns.agent.probe import LoopProbe
from lifesigns.agent.sender.pulse import next_on_grid
from lifesigns.agent.sender.vitals import VitalSigns
from lifesigns.agent.sender.voice import Voice
from lifesigns.core.effects import Order
from lifesigns.core.signals import Beat, Word
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
WORDS_AT_ONCE: Final = 2_000
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
ECHO_AFTER: Final = 1.5
"""After an outage everybody beats once more so soon: a bus keeps nothing, and the hub may be back on it after us, though
not by more than the second in which it looks for the server."""
UPLOAD_FOR: Final = 60.0
UPLOAD_TRIES: Final = 3
"""So often may it take longer. Then only the digest is told: what was said later has waited long enough."""
UPLOAD_WAIT_MAX: Final = 5.0
LAST_WORDS_FOR: Final = 0.5
"""Of the time an agent has to leave, what uploads have to leave for its last words."""
SLOW_WAIT_MAX: Final = 60.0
"""Between two tries when trying again is not expected to help (a wrong token)."""


@dataclass(slots=True)
class Load:
    """What one message carries, and whose it is."""

    beats: list[Beat] = field(default_factory=list)
    words: list[Word] = field(default_factory=list)
    beaten: list[Voice] = field(default_factory=list)
    spoken: list[tuple[Voice, list[Word]]] = field(default_factory=list)
    probes: set[LoopProbe] = field(default_factory=set)
    """The loops those live on who beat."""

    def counts(self) -> dict[Voice, int]:
        """How many of each voice are in it."""
        counts = dict.fromkeys(self.beaten, 1)
        for voice, words in self.spoken:
            counts[voice] = counts.get(voice, 0) + len(words)
        return counts


class Rounds:
    """One loop's work. `ring` and `hurry` are called on that loop."""

    def __init__(self, link: Link, relay: Relay) -> None:
        self._link = link
        self._relay = relay
        self._wake = asyncio.Event()
        self._vitals = VitalSigns()
        self._followed: set[str] = set()
        self._uploads: dict[Voice, asyncio.Task[None]] = {}
        self._open = False
        self._failures = 0
        self._retry_at = 0.0
        self._carried_at = 0.0
        self._asked_at = 0.0
        """When the loops were last asked: until the end of the rest we do nothing that takes long."""
        self._words_left = False
        self._look_at = NEVER
        """When to look for words again, while we listen."""
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
            for upload in self._uploads.values():
                upload.cancel()
            with suppress(AdapterError, TimeoutError, OSError):
                await asyncio.wait_for(self._link.close(), CLOSE_FOR)

    # --- a turn -----------------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        now = time.monotonic()
        for voice in self._relay.voices:
            if voice.leaving_by is not None and now >= voice.leaving_by - LAST_WORDS_FOR:
                self._give_up_uploads(voice)
        if now + SLACK >= self._retry_at:
            await self._send(now)
            self._begin_uploads()
        for voice in self._relay.voices:
            if voice.leaving_by is not None and (not voice.has_words or time.monotonic() >= voice.leaving_by):
                await self._part_with(voice)

    async def _send(self, now: float) -> None:
        load = await self._gather(now)
        try:
            async with asyncio.timeout(CARRY_FOR):
                await self._reach()
                if load.beats or load.words:
                    await self._link.carry(load.beats, load.words)
        except AdapterError as error:
            self._failed(load, str(error), transient=error.transient)
        except TimeoutError:
            self._failed(load, f"no answer within {CARRY_FOR:g} s", transient=True)
        except Exception as error:
            log.exception("carrying beats and words failed in a way it never should")
            self._failed(load, f"{type(error).__name__}: {error}", transient=False)
        else:
            await self._arrived(load)
        # Right before the rest, not before the carrying: if we all stand still from here on, we notice it.
        if load.probes:
            self._asked_at = time.monotonic()
        for probe in load.probes:
            probe.ask(self._asked_at)

    async def _gather(self, now: float) -> Load:
        """Who is due, and what was said."""
        self._look_at = NEVER
        load, vitals = Load(), None
        for voice in self._relay.voices:
            room = WORDS_AT_ONCE - len(load.words)
            if voice.has_words and room > 0:
                words = voice.take(room)
                load.words += words
                load.spoken.append((voice, words))
            if voice.leaving_by is not None or not self._is_due(voice, now):
                continue
            vitals = vitals or self._vitals.measure()
            load.beats.append(voice.beat(now, vitals))
            load.beaten.append(voice)
            if voice.probe is not None:
                load.probes.add(voice.probe)
            if len(load.beats) % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)
        self._words_left = len(load.words) >= WORDS_AT_ONCE
        self._listen(now, bool(load.words))
        return load

    def _listen(self, now: float, heard: bool) -> None:
        """Look again after a window, until nobody has said anything for some; then who speaks has to ring."""
        self._quiet = 0 if heard else self._quiet + 1
        asleep = self._quiet > LISTEN_FOR
        if asleep:
            self._relay.rung = False
        # Whoever spoke just before it could know that it has to ring must not wait for somebody else's beat.
        if not asleep or any(voice.has_words for voice in self._relay.voices):
            self._look_at = min(self._look_at, now + WINDOW)

    def _is_due(self, voice: Voice, now: float) -> bool:
        """Whether to beat now; if so, its next beat is already planned."""
        every = voice.every(now)
        if voice.due_at > now + every:  # Its rhythm has become faster since this was planned.
            voice.due_at = next_on_grid(now, every, self._relay.phase)
        if voice.due_at > now + SLACK:
            return False
        voice.due_at = next_on_grid(now + SLACK, every, self._relay.phase)
        return True

    async def _reach(self) -> None:
        """Be connected, and hear the orders of everybody here."""
        if not self._open:
            await self._link.open(self._obey)
            self._open = True
        for voice in self._relay.voices:
            if voice.agent_id not in self._followed and voice.leaving_by is None:
                await self._link.follow(voice.agent_id)
                self._followed.add(voice.agent_id)

    def _obey(self, order: Order) -> bool:
        """Whether it was for one of our voices; what is for none, because it has left, is for nobody."""
        self._retry_at = 0.0  # We hear the hub: the way is open.
        asked = [voice.obey for voice in self._relay.voices if voice.agent_id == order.agent_id]
        taken = [obey(order) for obey in asked if obey is not None]
        return any(taken) or not taken

    # --- states of checkpoints ----------------------------------------------------------------------------------

    def _begin_uploads(self) -> None:
        """Beside the carrying, because it may take a while: one for each voice whose next word is a state."""
        for voice in self._relay.voices:
            if voice not in self._uploads and (state := voice.next_state()) is not None:
                self._uploads[voice] = asyncio.create_task(self._upload(voice, state))

    async def _upload(self, voice: Voice, state: SavedState) -> None:
        try:
            voice.uploaded(state, kept=await self._try_to_upload(state))
        finally:
            self._uploads.pop(voice, None)
            self.hurry()

    def _give_up_uploads(self, voice: Voice) -> None:
        """It leaves: what its last words are is more important."""
        voice.give_up_states()
        upload = self._uploads.pop(voice, None)
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

    async def _arrived(self, load: Load) -> None:
        if not (load.beats or load.words):
            return
        if self._failures >= self._patience():
            log.warning("sending to %s works again after %d failures", self._relay.name, self._failures)
        was_away, self._failures, self._retry_at = self._failures > 0, 0, 0.0
        self._carried_at = time.monotonic()
        for number, (voice, count) in enumerate(load.counts().items(), 1):
            voice.arrived(count)
            if was_away:
                voice.due_at = min(voice.due_at, self._carried_at + ECHO_AFTER)
            if number % BREATH == 0:
                await asyncio.sleep(BREATH_FOR)

    def _failed(self, load: Load, error: str, *, transient: bool) -> None:
        now = time.monotonic()
        self._failures += 1
        self._retry_at = now + self._wait(transient=transient)
        for voice, words in load.spoken:
            voice.put_back(words)
        for voice in load.beaten:
            voice.due_at = now
        for voice in load.counts():
            voice.lost(error)
        if self._failures == self._patience():
            log.warning("sending to %s failed %d times in a row: %s", self._relay.name, self._failures, error)

    def _patience(self) -> int:
        """After how many failures in a row it is worth a word in the log: one, however many agents are concerned."""
        return min((voice.retries for voice in self._relay.voices), default=1)

    def _wait(self, *, transient: bool) -> float:
        """Longer each time, up to a bound, and never all at once."""
        asked_for = min((voice.retry_after for voice in self._relay.voices), default=WAIT_MAX)
        times = 2.0 ** min(self._failures - 1, 10)
        wait = (
            min(FIRST_WAIT * times, asked_for, WAIT_MAX)
            if transient
            else min(asked_for * times, SLOW_WAIT_MAX)
        )
        return wait * random.uniform(0.75, 1.0)  # noqa: S311 -- spreads, hides nothing

    async def _part_with(self, voice: Voice) -> None:
        self._relay.dismiss(voice)
        if voice.agent_id in self._followed and all(
            other.agent_id != voice.agent_id for other in self._relay.voices
        ):
            self._followed.discard(voice.agent_id)
            with suppress(AdapterError, TimeoutError):
                async with asyncio.timeout(CLOSE_FOR):
                    await self._link.unfollow(voice.agent_id)

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
            for voice in self._relay.voices:
                if voice.probe is not None:
                    voice.probe.forgive(now)

    def _next_at(self) -> float:
        voices = self._relay.voices
        if not voices:
            return 0.0
        staying = (voice.due_at for voice in voices if voice.leaving_by is None)
        send_at = 0.0 if self._words_left else min(self._look_at, min(staying, default=NEVER))
        leaving = (
            voice.leaving_by - (LAST_WORDS_FOR if voice in self._uploads else 0.0)
            for voice in voices
            if voice.leaving_by is not None
        )
        return min(max(send_at, self._retry_at), min(leaving, default=NEVER))
