"""The watch over AI Maestro's agents, put together from what is configured."""

from __future__ import annotations

from lifesigns.config.ai_maestro import AiMaestroSettings
from lifesigns.hub.ai_maestro.watch import MessengerRules
from lifesigns.ports import Messenger


def messenger_of(settings: AiMaestroSettings) -> Messenger | None:
    """The way to AI Maestro; None if there is none."""
    if settings.url is None:
        return None
    from lifesigns.adapters.messenger.ai_maestro import AiMaestro

    return AiMaestro(settings.url, settings.name, timeout=settings.timeout)


def messenger_rules_of(settings: AiMaestroSettings) -> MessengerRules:
    """Who is watched there, and how."""
    return MessengerRules(
        settings.agents, settings.role, look_every=settings.look_every, inquiry_wait=settings.inquiry_wait
    )
