"""Monitors: the public `Monitor`, whose agents are seen at the hub of this machine, if one runs."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from lifesigns.agent import monitor as agent

if TYPE_CHECKING:
    from lifesigns.agent.sender.relay import Relay


class Monitor(agent.Monitor):
    """The health of agents in this very process.

    `profile` names a policy, `policy` is one (or changes to the profile); `fleet` holds for all agents together. The
    monitor removes dead agents from a `registry` (a mapping by name, or an object with `remove(name)` or
    `unregister(name)`). It starts with the first `watch` and ends with `stop`, its `with` block or the interpreter.

    Its agents are also seen at `hub`: by default `LIFESIGNS_HUB`, else the one on this machine if it runs; `none` stays alone.
    A hub changes nothing about its own judgement, and does not act on its agents.
    """

    def _relay_to(self, hub: str | None) -> Relay | None:
        from lifesigns.config.hub_locator import NO_HUB, running_hub

        address = running_hub(os.environ) if hub is None else hub
        if address is None or address == NO_HUB:
            return None
        from lifesigns.assembly.senders import relay_to  # Not imported by a monitor that is alone.

        return relay_to(address)
