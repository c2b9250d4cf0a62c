"""Troubles of the hub itself, announced when they begin and when they are over."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from lifesigns.core.effects import Fact
from lifesigns.events import event_of
from lifesigns.events.hub_facts import HubPart, HubTroubleBegan, HubTroubleOver
from lifesigns.ports import Event


class HubTroubles:
    """The present troubles. `announce` stores and publishes a fact, `publish` only publishes its event."""

    def __init__(self, announce: Callable[[Fact], None], publish: Callable[[Sequence[Event]], None]) -> None:
        self._announce = announce
        self._publish = publish
        self._now: dict[HubPart, HubTroubleBegan] = {}

    def now(self) -> list[HubTroubleBegan]:
        """What is wrong right now."""
        return [self._now[part] for part in HubPart if part in self._now]

    def note(self, part: HubPart, why: str, now: float) -> None:
        """Set the reason of a part's trouble; empty if it is fine. While the store is away the event is published at
        once, without a number."""
        trouble = self._now.get(part)
        if why and trouble is None:
            began = self._now[part] = HubTroubleBegan(now, part, why)
            if HubPart.STORE not in self._now:
                self._announce(began)
            else:
                self._publish([event_of(0, began)])
        elif why and trouble is not None:
            self._now[part] = replace(trouble, reason=why)
        elif trouble is not None:
            del self._now[part]
            self._announce(HubTroubleOver(now, part, trouble.reason, round(now - trouble.at, 3)))
