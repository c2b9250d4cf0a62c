"""Supervision: assembles `lifesigns run`: settings, and the watch that judges."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Any, Final

from lifesigns.agent.identity import checked_id
from lifesigns.agent.supervise.child import End
from lifesigns.agent.supervise.life import watchdog_policy
from lifesigns.agent.supervise.settings import NudgeBy, Restart, Settings
from lifesigns.agent.supervise.supervisor import MakeWatch, Supervisor
from lifesigns.agent.supervise.watch import LocalWatch
from lifesigns.core.policy import Policy
from lifesigns.core.profiles import DEFAULT_PROFILE, PROFILES
from lifesigns.core.profiles import profile as named

LOOKS_WHILE_IDLE: Final = 4
"""Beats within the allowed silence: enough to know that no CPU was used all the while."""
BEAT_MIN: Final = 0.5
NO_LIMIT: Final = 1e9


def supervise(settings: Settings, policy: Policy, profile: str | None = None) -> End:
    """Run the command to its end, watched by `policy`, or by the configured hub, which gets the profile.

    Needs the main thread.
    """
    checked_id(settings.agent_id)
    own = _own_policy(settings)
    nudged = {"ladder": {"nudge_enabled": settings.nudge is not NudgeBy.NONE}}
    if settings.hub is None:
        make = _alone(settings, policy.with_changes({**own, **nudged}))
    else:
        make = _at_hub(settings, profile)
        own = {
            **PROFILES.get(profile or "", {}),
            **own,
            "respawn": {"enabled": settings.restart.when is not Restart.NEVER},
        }
        if settings.nudge is not NudgeBy.NONE:
            own |= nudged  # Without a way of ours, it depends on whether the program itself takes nudges.
    return Supervisor(settings, make, own).run()


def _alone(settings: Settings, policy: Policy) -> MakeWatch:
    every = _beat_every(settings, policy)
    return lambda _wake: LocalWatch(policy, beat_every=every)


def _at_hub(settings: Settings, profile: str | None) -> MakeWatch:
    from lifesigns.agent.supervise.remote import (
        HubWatch,  # These two import asyncio, which a local watch does not need.
    )
    from lifesigns.assembly.senders import relay_to

    # Verdicts report what matters of the relay's log; its lines would stand in the child's output.
    logging.getLogger("lifesigns").addHandler(logging.NullHandler())
    relay = relay_to(settings.hub)
    every = _beat_every(settings, named(profile or DEFAULT_PROFILE))
    return lambda wake: HubWatch(relay, settings.agent_id, every, wake)


def _beat_every(settings: Settings, policy: Policy) -> float:
    bounds = [bound for bound in (settings.idle_after, settings.watchdog) if bound is not None]
    every = policy.silence.interval
    return min([every, *(max(BEAT_MIN, bound / LOOKS_WHILE_IDLE) for bound in bounds)])


def _own_policy(settings: Settings) -> Mapping[str, Any]:
    """The policy for a program that knows nothing of us.

    Using all the CPU it can get is normal for a compiler: no finding. And a program at a terminal that is quiet and
    does nothing waits for its user: idle is healthy, unless the user says otherwise.
    """
    own: dict[str, Any] = {
        "overload": {"cpu_degraded": NO_LIMIT, "cpu_unhealthy": NO_LIMIT},
    }
    if settings.idle_after is not None:
        own["stall"] = dict.fromkeys(("output_after", "spin_after", "repeat_after"), settings.idle_after)
    elif os.isatty(0):
        own["stall"] = {"output_after": NO_LIMIT}
    if settings.watchdog is not None:
        own |= watchdog_policy(settings.watchdog)
    return own
