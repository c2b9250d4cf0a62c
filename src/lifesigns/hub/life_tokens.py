"""Life tokens: whoever is started anew by the hub gets a token for that one life.

It is of role `agent`, for that agent's id alone. The tokens of its earlier lives are revoked, but for those that were
started and may still come.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.access import NAME_MAX, Access
from lifesigns.hub.principals import Role

PREFIX: Final = "life "


async def token_for_life(
    access: Access, agent_id: str, incarnation: str, may_come: Iterable[str], now: float
) -> str:
    """A new token for this life of this agent. Raises `AdapterError` if it cannot be made."""
    valid = {_name(life) for life in (incarnation, *may_come)}
    for token in access.list():
        if token.agents == agent_id and token.name.startswith(PREFIX) and token.name not in valid:
            await access.revoke(token.id, now)
    try:
        made = await access.create(role=Role.AGENT, name=_name(incarnation), now=now, agents=agent_id)
    except WireError as error:
        raise AdapterError(f"there is no token for it: {error}", transient=False) from error
    return made.token


def _name(incarnation: str) -> str:
    """Incarnations of one agent differ at their ends."""
    return PREFIX + incarnation[-(NAME_MAX - len(PREFIX)) :]
