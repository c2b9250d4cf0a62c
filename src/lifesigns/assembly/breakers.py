"""Breakers: the public `Breaker`, `guard` and `SaveQueue`, with the configured defaults.

A breaker lives in the agent's process, so the configuration is the one found there: `LIFESIGNS_CONFIG`,
`./lifesigns.yaml`, the user's, and `LIFESIGNS_POLICY__BREAKERS__...` in the environment. The first breaker reads it.
"""

from __future__ import annotations

import logging
import os
from functools import cache
from typing import Final

from lifesigns.agent.guard.breakers import BREAKERS
from lifesigns.agent.guard.guard import Breaker, guard
from lifesigns.agent.guard.saving import AsyncSaveQueue, SaveQueue
from lifesigns.core.policy import Policy
from lifesigns.errors import PolicyError

__all__ = ["BREAKERS", "AsyncSaveQueue", "Breaker", "SaveQueue", "guard"]

log: Final = logging.getLogger("lifesigns.guard")


@cache
def configured() -> Policy:
    """The policy of this process. A wrong configuration must not end an agent that only wants a breaker."""
    from lifesigns.config.load import load  # A process without a breaker reads no configuration.

    try:
        return load(environ=os.environ).policies.default
    except PolicyError as error:
        log.warning("breakers have their defaults, for the configuration is wrong: %s", error)
        return Policy()


BREAKERS.defaults = configured
