"""Notifier: carries notices to channels, one task each.

A channel that is slow or away keeps nobody waiting but itself, and is asked again for as long as it takes. After a restart
the events since the last one that was looked at are read from the store: nothing is lost, and what may have been told in
the moment of a crash is told again under the same key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from traceback import format_tb
from typing import Final

from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.agent_lookup import AgentLookup
from lifesigns.hub.alerting.alerting import Alerting
from lifesigns.hub.alerting.alerts import Ack, Alert
from lifesigns.hub.alerting.rules import Rules, Silence
from lifesigns.hub.clock import Clock
from lifesigns.ports import Belief, Channel, Event, NotDelivered, Notice, NoticeStage, Store

TELL_FOR: Final = 30.0
"""How long a channel may take for one notice: an SMTP server with greylisting takes ten seconds."""

KEEP_FOR: Final = 2.0
CLOSE_FOR: Final = 5.0

LOOK_BACK_FOR: Final = 3600.0
"""Whoever alerts for the first time looks so far back: what is wrong now began not long ago, or is told elsewhere."""

READ_MAX: Final = 1000
RETRY_AFTER: Final = 2.0

log: Final = logging.getLogger("lifesigns.alerting")


class Notifier:
    """Tells people. `wanted` asks for a page to be written, because there is something to keep; `kept` returns when it is.

    What is begun is kept before it is told, so that the next hub ends it under the same key. Not for long: if the store is
    what failed, people are told all the same.
    """

    def __init__(
        self,
        rules: Rules,
        channels: Mapping[str, Channel],
        lookout: AgentLookup,
        *,
        store: Store,
        clock: Clock,
        wanted: Callable[[], None],
        kept: Callable[[], Awaitable[None]],
    ) -> None:
        self.alerting = Alerting(rules, lookout)
        self._channels = channels
        self._store = store
        self._clock = clock
        self._wanted = wanted
        self._kept = kept
        self._bells = {name: asyncio.Event() for name in channels}
        self._known = False
        self._began_at = 0.0
        self._behind: int | None = 0
        """The last event that has to be read from the store; None: we are told everything as it happens."""
        self._tasks: list[asyncio.Task[None]] = []

    # --- beginning and end ----------------------------------------------------------------------------

    def recall(self, beliefs: Iterable[Belief]) -> None:
        """Go on from what was kept. Before `start`."""
        self._known = self.alerting.recall(beliefs, self._clock())

    def start(self) -> None:
        """Begin telling, after looking at what happened meanwhile."""
        self._began_at = self._clock()
        self._tasks = [asyncio.create_task(self._run(), name="lifesigns alerting")]

    async def stop(self) -> None:
        """Tell nothing more. What was not told is told by the next hub."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for name, channel in self._channels.items():
            try:
                async with asyncio.timeout(CLOSE_FOR):
                    await channel.close()
            except (AdapterError, TimeoutError, OSError) as error:
                log.warning("%s did not close: %s", name, error, extra={"action": "channel_not_closed"})

    # --- what happened --------------------------------------------------------------------------------

    def hear(self, events: Sequence[Event]) -> None:
        """Events were kept, or (without an id) just happened. Without any channel there is nobody to tell."""
        if not self._channels:
            return
        if self._behind is not None:
            # Those with an id are in the store, and are read from there in their turn.
            self._behind = max([self._behind, *(event.id for event in events)])
            events = [event for event in events if not event.id]
        if self.alerting.hear(events):
            self._changed()

    def silence(self, silence: Silence) -> None:
        """A person wants to hear nothing of some alerts for a while."""
        self.alerting.silence(silence)
        self._changed()

    def end_silence(self, silence_id: str) -> bool:
        """Whether there was one."""
        ended = self.alerting.end_silence(silence_id)
        self._changed()
        return ended

    def acknowledge(self, key: str, ack: Ack) -> Sequence[Alert]:
        """Somebody has taken on the alert with this key, or those told under it; the ones there are."""
        found = self.alerting.acknowledge(key, ack)
        self._changed()
        return found

    def changed(self) -> Sequence[Belief]:
        """The rows for the next page."""
        return self.alerting.changed()

    def _changed(self) -> None:
        self._wanted()
        for bell in self._bells.values():
            bell.set()

    # --- catching up ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._catch_up()
        async with asyncio.TaskGroup() as group:
            for name, channel in self._channels.items():
                group.create_task(self._keep_telling(name, channel), name=f"lifesigns channel {name}")

    async def _catch_up(self) -> None:
        """Read what happened since the last look. Nothing is told before all of it is known: most of it is over."""
        since = None if self._known else self._clock() - LOOK_BACK_FOR
        while self._behind is not None:
            try:
                events = await self._store.events(after=self.alerting.cursor, since=since, limit=READ_MAX)
            except AdapterError as error:
                log.warning("events cannot be read: %s", error, extra={"action": "catching_up_failed"})
                await asyncio.sleep(RETRY_AFTER)
                continue
            if events:
                self.alerting.hear(events)
            elif self._behind <= self.alerting.cursor:
                self._behind = None
            else:
                self._behind = 0  # They are too old, or were lost: no use waiting for them.
        self.alerting.leave_behind(self._began_at, self._clock())
        self._changed()

    # --- telling --------------------------------------------------------------------------------------

    async def _keep_telling(self, name: str, channel: Channel) -> None:
        while True:
            try:
                await self._tell_on(name, channel)
            except Exception as error:  # noqa: BLE001 -- alerting that has died is not missed until it is needed
                _report(name, error)
                await asyncio.sleep(RETRY_AFTER)

    async def _tell_on(self, name: str, channel: Channel) -> None:
        bell = self._bells[name]
        while True:
            bell.clear()
            notice = self.alerting.next(name, self._clock())
            if notice is not None:
                await self._tell(name, channel, notice)
                self._changed()
                continue
            if self.alerting.unkept:
                self._wanted()
            wait_for = self.alerting.wake_at(name) - self._clock()
            try:
                async with asyncio.timeout(max(0.0, wait_for) if wait_for != float("inf") else None):
                    await bell.wait()
            except TimeoutError:
                continue

    async def _tell(self, name: str, channel: Channel, notice: Notice) -> None:
        if notice.stage is NoticeStage.OPENED:
            await self._keep()
        try:
            async with asyncio.timeout(TELL_FOR):
                await channel.tell(notice)
        except TimeoutError:
            late = NotDelivered(f"no answer within {TELL_FOR:g} s", uncertain=True)
            self.alerting.failed(name, late, self._clock())
        except AdapterError as error:
            self.alerting.failed(name, error, self._clock())
        except Exception as error:  # noqa: BLE001 -- a bug in a channel must not silence it for good
            _report(name, error)
            self.alerting.failed(
                name, NotDelivered("a bug of ours", transient=False, uncertain=True), self._clock()
            )
        else:
            self.alerting.told(name, self._clock())

    async def _keep(self) -> None:
        with suppress(TimeoutError, AdapterError):
            async with asyncio.timeout(KEEP_FOR):
                await self._kept()


def _report(name: str, error: Exception) -> None:
    """A bug of ours, by its place: its message may hold what belongs to the channel alone."""
    place = "".join(format_tb(error.__traceback__)[-3:])
    extra = {"action": "channel_raised", "channel": name}
    log.error("telling %s raised %s\n%s", name, type(error).__name__, place, extra=extra)
