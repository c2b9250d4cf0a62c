"""The dead-man's switch, put together from what is configured."""

from __future__ import annotations

from collections.abc import Mapping

from lifesigns.assembly.channels import secret
from lifesigns.config.values import DeadManSettings
from lifesigns.errors import UsageError
from lifesigns.ports import DeadManSwitch


def dead_man_switch_of(settings: DeadManSettings, environ: Mapping[str, str]) -> DeadManSwitch | None:
    """Who is to be pinged while all is well; None if nobody is."""
    if settings.url is None:
        return None
    from lifesigns.adapters.observe.dead_man_switch import HttpDeadManSwitch

    try:
        return HttpDeadManSwitch(secret(settings.url, "dead_man_switch", environ))
    except UsageError as error:
        raise UsageError(f"dead_man_switch: {error}") from error
