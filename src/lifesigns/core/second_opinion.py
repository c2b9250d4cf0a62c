"""Second opinion: before an agent is convicted of silence, hubs in other zones say whether they hear it.

The law: an opinion can only make a verdict milder, never harsher. *Heard* means that the agent is cut off from us, not dead.
A zone that cannot be asked may hear it, for all we know. Both make it a partition: people are asked, and no agent is ended
or replaced for it. *Not heard* and *cannot tell* change nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from lifesigns.core.agent import Suspicion
from lifesigns.core.signals import Opinion

OPINIONS_MAX: Final = 16
"""Zones whose opinions about one suspicion we remember."""


class Doubt(NamedTuple):
    """Why a silent agent may live: zones that hear it, and zones that could not be asked."""

    heard_in: tuple[str, ...] = ()
    not_asked: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """For people, after the sentence about the silence; empty if nothing speaks for the agent."""
        if self.heard_in:
            return f" It is heard in {_zones(self.heard_in)}: it is cut off from this hub, not dead."
        if self.not_asked:
            return f" Whether it is heard in {_zones(self.not_asked)} could not be asked: it may be cut off, not dead."
        return ""

    @property
    def numbers(self) -> dict[str, str]:
        return {name: ", ".join(zones) for name, zones in self._asdict().items() if zones}


NO_DOUBT: Final = Doubt()


def note(suspicion: Suspicion, zone: str, opinion: Opinion) -> None:
    """Note what a zone says. Whoever has heard the agent once has heard it, whatever follows."""
    opinions = suspicion.opinions
    if zone not in opinions and len(opinions) >= OPINIONS_MAX:
        return
    if suspicion.zones is None or zone in suspicion.zones:
        opinions[zone] = Opinion.HEARD if opinions.get(zone) is Opinion.HEARD else opinion


def doubt(suspicion: Suspicion, zones: Collection[str]) -> Doubt:
    """What speaks against a verdict, with the zones that have a hub now. One that was asked and has not answered in time
    cannot be asked; one whose hub was stopped or forgotten meanwhile does not count."""
    opinions = suspicion.opinions
    heard = [zone for zone, opinion in opinions.items() if opinion is Opinion.HEARD]
    away = [zone for zone, opinion in opinions.items() if opinion is Opinion.CANNOT_BE_ASKED]
    late = [zone for zone in suspicion.zones or () if zone in zones and zone not in opinions]
    return Doubt(tuple(sorted(heard)), tuple(sorted((*away, *late))))


def _zones(names: tuple[str, ...]) -> str:
    return f"zone {names[0]}" if len(names) == 1 else f"the zones {', '.join(names)}"
