"""Faults: what can go wrong around the agents, and how often. `Faults.parse` reads what `--faults` says.

    loss=0.001 duplicate=0.001 reorder=0.001   the chance per message
    delay=0.02                                 the mean of the way, in seconds
    partition stall restart crash blind clock host half split zone = how many times a day

A lost beat is lost. Any other signal is sent again until it arrives, as a sender does: for those a loss is a delay,
and while a link is cut they wait at the sender.
"""

from __future__ import annotations

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from lifesigns.errors import UsageError


class Faults(Struct, frozen=True):
    """How the world around the agents misbehaves."""

    loss: float = 0.0
    delay: float = 0.005
    """Even a perfect bus takes a little time."""
    duplicate: float = 0.0
    reorder: float = 0.0
    partition: float = 0.0
    """A host's link is cut for up to ten minutes."""
    stall: float = 0.0
    """The monitor stands still for a minute."""
    restart: float = 0.0
    """The monitor ends and comes back from its snapshot, after ten seconds to five minutes."""
    crash: float = 0.0
    """The monitor is killed between storing an order and carrying it out, and comes back within a minute."""
    blind: float = 0.0
    """The bus is cut for all agents and the monitor's own canary for ten minutes."""
    clock: float = 0.0
    """All wall clocks jump by an hour, forwards or backwards, and the monitor restarts."""
    host: float = 0.0
    """A host vanishes: all its agents are cut off, and some are really dead."""
    half: float = 0.0
    """Half of the fleet vanishes at once for five minutes, and some of the agents are really dead."""
    split: float = 0.0
    """Where there are zones: agents do not reach the monitor, while others hear them, and could end them."""
    zone: float = 0.0
    """Where there are zones: the hub of another one is frozen, dead or cut off."""

    @classmethod
    def parse(cls, text: str) -> Faults:
        """`none`, `default`, or a comma list of names, each with or without `=value`."""
        faults = NONE
        for word in filter(None, (part.strip() for part in text.split(","))):
            if word in ("none", "default", "all"):
                faults = {"none": NONE, "default": MILD, "all": ALL}[word]
                continue
            name, _, value = word.partition("=")
            if name not in USUAL:
                names = ", ".join(USUAL)
                raise UsageError(f"--faults: {name!r} is unknown; known are none, default, all, {names}")
            faults = replace(faults, **{name: _number(name, value) if value else USUAL[name]})
        return faults

    def __str__(self) -> str:
        """As `--faults` would say it."""
        shown = (name for name in self.__struct_fields__ if getattr(self, name) != getattr(NONE, name))
        return ",".join(f"{name}={getattr(self, name):g}" for name in shown) or "none"


NONE: Final = Faults()

USUAL: Final = {
    "loss": 0.001,
    "delay": 0.02,
    "duplicate": 0.001,
    "reorder": 0.001,
    "partition": 1.0,
    "stall": 1.0,
    "restart": 1.0,
    "crash": 1.0,
    "blind": 0.5,
    "clock": 0.5,
    "host": 0.5,
    "half": 0.25,
    "split": 1.0,
    "zone": 0.5,
}
"""What a name without a value means."""

MILD: Final = Faults(
    loss=0.001, delay=0.02, duplicate=0.0005, reorder=0.0005, partition=1.0, stall=0.5, restart=0.5
)
"""A bus that is not perfect, and a monitor that is deployed every other day."""

ALL: Final = Faults(**USUAL)


def _number(name: str, text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"--faults: {name}={text!r} is not a number") from None
    chance = name in ("loss", "duplicate", "reorder")
    if not 0 <= value < (0.5 if chance else 1000):
        limit = "0 and 0.5" if chance else "0 and 1000"
        raise UsageError(f"--faults: {name}={text} is not between {limit}")
    return value
