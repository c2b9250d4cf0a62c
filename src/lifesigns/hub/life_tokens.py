"""Life tokens: whoever is started anew by the hub gets a token for that one life, and a key if it has to sign what it says.

The token is of role `agent`, and both are for that agent's id alone. A key, and not the token in place of a signature: the token is shown
to whoever is at the other end, and on a bus it is not asked for at all. The key is made when the life begins, is handed to it, and
is kept by nobody here.

Both are revoked when the life is over and quiet; those of earlier lives also when the next one is started, but for those that were
started and may still come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from lifesigns.core.agent import Agent
from lifesigns.core.handlers.incarnations import ended
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.access import NAME_MAX, Access
from lifesigns.hub.principals import Role
from lifesigns.ports import StoredToken

PREFIX: Final = "life "
QUIET_FOR: Final = 300.0
"""A life that is over may have last words, and one that was deposed fetches the order to stop: both use their token."""
UNKNOWN_FOR: Final = 86400.0
"""Of an agent that the engine does not know (any more): it may have lost its memory, and the agent be away."""

KeyPair = Callable[[], tuple[str, str]]
"""Makes a key: as its agent gets it, and its public half in hex."""


class LifeCredentials(NamedTuple):
    """With what one life comes in, and signs."""

    token: str
    key: str = ""
    """Empty if it need not sign."""


async def credentials_for_life(
    access: Access,
    agent_id: str,
    incarnation: str,
    may_come: Iterable[str],
    now: float,
    key_pair: KeyPair | None = None,
) -> LifeCredentials:
    """A new token for this life of this agent, and with `key_pair` a key. Raises `AdapterError` if they cannot be made."""
    valid = {_name(life) for life in (incarnation, *may_come)}
    for token in access.list():
        if token.agents == agent_id and token.name.startswith(PREFIX) and token.name not in valid:
            await access.revoke(token.id, now)
    name = _name(incarnation)
    try:
        made = await access.create(role=Role.AGENT, name=name, now=now, agents=agent_id)
        if key_pair is None:
            return LifeCredentials(made.token)
        key, public = key_pair()
        await access.add_key(bytes.fromhex(public), name=name, agents=agent_id, now=now)
    except WireError as error:
        raise AdapterError(f"there is no token for it: {error}", transient=False) from error
    return LifeCredentials(made.token, key)


async def revoke_ended(access: Access, agents: Mapping[str, Agent], now: float) -> None:
    """Revoke the tokens and keys of lives that are over. Raises `AdapterError` if the store has not forgotten one of them yet."""
    for token in access.list():
        if token.name.startswith(PREFIX) and _is_over(token, agents.get(token.agents), now):
            await access.revoke(token.id, now)


def _is_over(token: StoredToken, agent: Agent | None, now: float) -> bool:
    quiet_for = now - max(token.made_at, token.used_at or 0.0)
    if agent is None:
        return quiet_for >= UNKNOWN_FOR
    lives = [*agent.retired, *([agent.incarnation] if agent.incarnation and ended(agent) else [])]
    return quiet_for >= QUIET_FOR and token.name in map(_name, lives)


def _name(incarnation: str) -> str:
    """Incarnations of one agent differ at their ends."""
    return PREFIX + incarnation[-(NAME_MAX - len(PREFIX)) :]
