"""Life tokens: each incarnation that the hub starts gets a token of its own, and a key if it has to sign.

The token has role `agent`, and both are for that agent's id alone. The token cannot replace the key: its holder shows
it to any peer, and a bus does not ask for it. The hub makes the key when the incarnation starts, hands it over and does
not store it.

The hub revokes both when the incarnation has ended and is quiet; those of earlier incarnations also when it starts the
next one, except of those that were started and may still come.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from lifesigns.core.agent import Agent
from lifesigns.core.handlers.incarnations import ended
from lifesigns.errors import AdapterError, WireError
from lifesigns.hub.access import Access
from lifesigns.hub.principals import Role
from lifesigns.hub.slots import slot_of
from lifesigns.hub.token_table import NAME_MAX
from lifesigns.ports import StoredToken

PREFIX: Final = "life "
QUIET_FOR: Final = 300.0
"""An ended incarnation may send last reports, and a replaced one fetches the order to stop: both use their token."""
UNKNOWN_FOR: Final = 86400.0
"""For an agent unknown to the engine: the engine may have lost its memory while the agent is away."""

KeyPair = Callable[[], tuple[str, str]]
"""Makes a key: in the agent's form, and its public half in hex."""


class LifeCredentials(NamedTuple):
    """The credentials of one incarnation."""

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
    """Make a token for this incarnation, and with `key_pair` a key. Raises `AdapterError` if that fails."""
    valid = {_name(life) for life in (incarnation, *may_come)}
    for token in access.tokens.list():
        if token.agents == agent_id and token.name.startswith(PREFIX) and token.name not in valid:
            await access.tokens.revoke(token.id, now)
    name = _name(incarnation)
    try:
        made = await access.tokens.create(role=Role.AGENT, name=name, now=now, agents=agent_id)
        if key_pair is None:
            return LifeCredentials(made.token)
        key, public = key_pair()
        await access.tokens.add_key(bytes.fromhex(public), name=name, agents=agent_id, now=now)
    except WireError as error:
        raise AdapterError(f"there is no token for it: {error}", transient=False) from error
    return LifeCredentials(made.token, key)


async def revoke_ended(
    access: Access, agents: Mapping[str, Agent], now: float, slot: int | None = None
) -> None:
    """Revoke the tokens and keys of ended incarnations, of the agents of this slot. Raises `AdapterError` if the store has not
    deleted one yet."""
    for token in access.tokens.list():
        if slot is not None and slot_of(token.agents) != slot:
            continue
        if token.name.startswith(PREFIX) and _is_over(token, agents.get(token.agents), now):
            await access.tokens.revoke(token.id, now)


def _is_over(token: StoredToken, agent: Agent | None, now: float) -> bool:
    quiet_for = now - max(token.made_at, token.used_at or 0.0)
    if agent is None:
        return quiet_for >= UNKNOWN_FOR
    lives = [*agent.past.retired, *([agent.incarnation] if agent.incarnation and ended(agent) else [])]
    return quiet_for >= QUIET_FOR and token.name in map(_name, lives)


def _name(incarnation: str) -> str:
    """Incarnations of one agent differ at their ends."""
    return PREFIX + incarnation[-(NAME_MAX - len(PREFIX)) :]
