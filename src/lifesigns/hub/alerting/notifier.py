"""Notifier: sends notices to channels, with one task for each.

A slow or failing channel delays no other, and is tried until it works. After a restart the notifier reads from the
store the events since the last one it read: nothing is lost, and a notice that may have been sent just before a crash
is sent again under the same key.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from traceback import format_tb
from typing import Final

from msgspec.structs import replace

from lifesigns.errors import AdapterError
from lifesigns.hub.alerting.agent_lookup import AgentLookup
from lifesigns.hub.alerting.alerting import Alerting
from lifesigns.hub.alerting.alerts import Ack, Alert
from lifesigns.hub.alerting.rules import Rules, Silence
from lifesigns.hub.clock import Clock
from lifesigns.ports import Belief, Channel, Event, NotDelivered, Notice, NoticeStage, Store

SEND_FOR: Final = 30.0
"""How long a channel may take for one notice: an SMTP server with greylisting takes ten seconds."""

STORE_FOR: Final = 2.0
CLOSE_FOR: Final = 5.0

LOOK_BACK_FOR: Final = 3600.0
"""How far back the very first run reads: what is wrong now began not long ago, or other alerts show it."""

READ_MAX: Final = 1000
RETRY_AFTER: Final = 2.0

log: Final = logging.getLogger("lifesigns.alerting")


class Notifier:
    """Sends notices. `request_commit` asks for a commit of changed rows; `wait_until_stored` returns when it is stored.

    The start of a group is stored before its notice goes out, so that the next hub ends it under the same key. The wait
    is short: if it is the store that failed, people get the notice all the same.
    """

    def __init__(
        self,
        rules: Rules,
        channels: Mapping[str, Channel],
        lookup: AgentLookup,
        *,
        store: Store,
        clock: Clock,
        request_commit: Callable[[], None],
        wait_until_stored: Callable[[], Awaitable[None]],
        part: str = "",
    ) -> None:
        self.alerting = Alerting(rules, lookup)
        self._part = part
        """Of the fleet, if this is not all of it: others tell of theirs, and what is not about one agent needs another key."""
        self._channels = channels
        self._store = store
        self._clock = clock
        self._request_commit = request_commit
        self._wait_until_stored = wait_until_stored
        self._wakeups = {name: asyncio.Event() for name in channels}
        self._known = False
        self._began_at = 0.0
        self._behind: int | None = 0
        """The last event to be read from the store; None: all are read, and new ones come directly."""
        self._tasks: list[asyncio.Task[None]] = []

    # --- beginning and end ----------------------------------------------------------------------------

    @property
    def caught_up(self) -> bool:
        """Whether it has read all events that were stored before it started."""
        return self._behind is None

    def recall(self, beliefs: Iterable[Belief]) -> None:
        """Continue from the rows of the store. Call it before `start`."""
        self._known = self.alerting.recall(beliefs, self._clock())

    def start(self) -> None:
        """Begin to send, after reading what happened meanwhile."""
        self._began_at = self._clock()
        self._tasks = [asyncio.create_task(self._run(), name="lifesigns alerting")]

    async def stop(self) -> None:
        """Send nothing more. The next hub sends the rest."""
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
        """Read events that are stored, or (without an id) just happened. Without channels there is nothing to do."""
        if not self._channels:
            return
        if self._behind is not None:
            # Those with an id are in the store, and are read from there in order.
            self._behind = max([self._behind, *(event.id for event in events)])
            events = [event for event in events if not event.id]
        if self.alerting.hear(events):
            self._changed()

    def silence(self, silence: Silence) -> None:
        """Add a person's silence."""
        self.alerting.silence(silence)
        self._changed()

    def end_silence(self, silence_id: str) -> bool:
        """Whether there was one."""
        ended = self.alerting.end_silence(silence_id)
        self._changed()
        return ended

    def acknowledge(self, key: str, ack: Ack) -> Sequence[Alert]:
        """A person acknowledged the alert with this key, or those in its group; returns them."""
        found = self.alerting.acknowledge(key, ack)
        self._changed()
        return found

    def changed(self) -> Sequence[Belief]:
        """The rows for the next commit."""
        return self.alerting.changed()

    def _changed(self) -> None:
        self._request_commit()
        for wakeup in self._wakeups.values():
            wakeup.set()

    # --- catching up ----------------------------------------------------------------------------------

    async def _run(self) -> None:
        await self._catch_up()
        async with asyncio.TaskGroup() as group:
            for name, channel in self._channels.items():
                group.create_task(self._run_channel(name, channel), name=f"lifesigns channel {name}")

    async def _catch_up(self) -> None:
        """Read what happened since the last run. Nothing is sent before all of it is read: most of it is over."""
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
                self._behind = 0  # They are too old, or were lost: do not wait for them.
        self.alerting.close_older(self._began_at, self._clock())
        self._changed()

    # --- telling --------------------------------------------------------------------------------------

    async def _run_channel(self, name: str, channel: Channel) -> None:
        while True:
            try:
                await self._send_notices(name, channel)
            except Exception as error:  # noqa: BLE001 -- alerting that has died is not missed until it is needed
                _report(name, error)
                await asyncio.sleep(RETRY_AFTER)

    async def _send_notices(self, name: str, channel: Channel) -> None:
        wakeup = self._wakeups[name]
        while True:
            wakeup.clear()
            notice = self.alerting.next(name, self._clock())
            if notice is not None:
                await self._send(name, channel, notice)
                self._changed()
                continue
            if self.alerting.has_changes:
                self._request_commit()
            wait_for = self.alerting.wake_at(name) - self._clock()
            try:
                async with asyncio.timeout(max(0.0, wait_for) if wait_for != float("inf") else None):
                    await wakeup.wait()
            except TimeoutError:
                continue

    async def _send(self, name: str, channel: Channel, notice: Notice) -> None:
        if notice.stage is NoticeStage.OPENED:
            await self._store_rows()
        try:
            async with asyncio.timeout(SEND_FOR):
                await channel.tell(self._named(notice))
        except TimeoutError:
            late = NotDelivered(f"no answer within {SEND_FOR:g} s", uncertain=True)
            self.alerting.failed(name, late, self._clock())
        except AdapterError as error:
            self.alerting.failed(name, error, self._clock())
        except Exception as error:  # noqa: BLE001 -- a bug in a channel must not silence it for good
            _report(name, error)
            self.alerting.failed(
                name, NotDelivered("a bug of ours", transient=False, uncertain=True), self._clock()
            )
        else:
            self.alerting.delivered(name, self._clock())

    def _named(self, notice: Notice) -> Notice:
        if not self._part or (len(notice.agents) == 1 and not notice.group):
            return notice
        return replace(notice, key=f"{notice.key} ({self._part})", title=f"{notice.title} ({self._part})")

    async def _store_rows(self) -> None:
        with suppress(TimeoutError, AdapterError):
            async with asyncio.timeout(STORE_FOR):
                await self._wait_until_stored()


def _report(name: str, error: Exception) -> None:
    """Log a bug of ours by its place: its message may hold secrets of the channel."""
    place = "".join(format_tb(error.__traceback__)[-3:])
    extra = {"action": "channel_raised", "channel": name}
    log.error("telling %s raised %s\n%s", name, type(error).__name__, place, extra=extra)
