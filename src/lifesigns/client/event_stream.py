"""Event stream: Server-Sent Events, from pieces of bytes to events. No I/O."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

import msgspec

from lifesigns.client.tries import backoff, error_text
from lifesigns.errors import HubError
from lifesigns.views import EventView

LINE_MAX: Final = 8 * 1024 * 1024
"""Longer than any event: no hub sends such a line."""
RETRY_AFTER: Final = 1.0
RETRY_MAX: Final = 30.0

_END: Final = re.compile(rb"\r\n|\n|\r(?!$)")
"""The end of a line; a `\\r` that is the last byte so far may be half of a `\\r\\n`."""
_EVENT: Final = msgspec.json.Decoder(EventView)

OnLink = Callable[[str | None], object]
"""Called with the reason when the stream is lost, and with None when it is connected."""


class EventStream:
    """The state of one listener: where to continue, and how long to wait before that."""

    def __init__(self, on_link: OnLink | None = None) -> None:
        self.last_id = ""
        self._on_link = on_link
        self.connected = False
        """Whether it ever connected; before that an absent hub is an error, after that it will come back."""
        self._retry_after = RETRY_AFTER
        self._failures = 0
        self.begin()

    def begin(self) -> None:
        """Begin a new connection: half of an event from the old one is dropped."""
        self._up = False
        self._rest = b""
        self._data: list[bytes] = []
        self._id: str | None = None

    def feed(self, piece: bytes) -> list[EventView]:
        """The events that this piece completes. Raises `HubError` if it is no such stream.

        The first piece shows that it is connected: the hub sends something as soon as it has subscribed us, and not
        before.
        """
        if not self._up:
            self._up = self.connected = True
            if self._on_link is not None:
                self._on_link(None)
        *lines, self._rest = _END.split(self._rest + piece)
        if len(self._rest) > LINE_MAX:
            raise HubError(f"a line of the event stream is longer than {LINE_MAX} bytes", transient=False)
        events = []
        for line in lines:
            if line:
                self._take(line)
            elif (event := self._event()) is not None:
                events.append(event)
        if events:
            self._failures = 0
        return events

    def lost(self, error: Exception | None, hub: str, *, reconnect: bool) -> float | None:
        """The connection is over: how long to wait before the next; None if there shall be none. Raises `HubError` if
        there never was one, or the hub refuses."""
        if error is not None and not isinstance(error, HubError):
            trouble: HubError | None = HubError(f"{hub}: {error_text(error)}")
        else:
            trouble = error
        if trouble is not None and not (reconnect and self.connected and trouble.transient):
            raise trouble from error
        if not reconnect:
            return None
        if self._on_link is not None:
            self._on_link(f"{hub} has ended the stream" if trouble is None else str(trouble))
        self._failures += 1
        return min(self._retry_after + (backoff(self._failures) if self._failures > 1 else 0.0), RETRY_MAX)

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"id" and b"\0" not in value:
            self._id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self._retry_after = min(int(value) / 1000, RETRY_MAX)

    def _event(self) -> EventView | None:
        """The event that the empty line ends; its id counts only now that it is complete."""
        data, self._data = self._data, []
        if self._id is not None:
            self.last_id, self._id = self._id, None
        if not data:
            return None
        try:
            return _EVENT.decode(b"\n".join(data))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HubError(f"an event cannot be read: {error}", transient=False) from error
