"""Posts orders to a server that carries them out. `posting` has the meaning of its answers, and the signature.

Its receiver recognizes an order by two headers:

    Idempotency-Key   the same for every try of an order, also after a crash of the hub
    Lifesigns-Epoch   the hub's epoch: refuse one that is lower than you have seen
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from lifesigns.adapters.posting import Poster, signed
from lifesigns.core.effects import Order
from lifesigns.ports import NotExecuted, sameness

TIMEOUT: Final = 20.0
VERSION: Final = 1


class Webhook:
    """Posts orders to one address."""

    def __init__(
        self,
        url: str,
        *,
        secret: str | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
    ) -> None:
        self._secret = secret
        self._headers = dict(headers or {})
        secrets = (secret or "", *self._headers.values())
        self._poster = Poster(url, NotExecuted, secrets=secrets, timeout=timeout)

    async def post(self, order: Order, kind: str, facts: Mapping[str, Any]) -> Any:
        """The JSON of a 2xx answer, None if it has none; `NotExecuted` for anything else."""
        body = msgspec.json.encode({"version": VERSION, "type": kind, **facts})
        known_by = {"Idempotency-Key": sameness(order), "Lifesigns-Epoch": str(order.epoch)}
        headers = {**self._headers, **known_by, **signed(self._secret, body)}
        return _json((await self._poster.post("", body, headers)).body)

    async def close(self) -> None:
        """Close the connection."""
        await self._poster.close()


def identity(order: Order) -> dict[str, Any]:
    """The fields of an order that every post has."""
    return {
        "id": order.order_id,
        "epoch": order.epoch,
        "agent_id": order.agent_id,
        "incarnation": order.incarnation,
    }


def _json(body: bytes) -> Any:
    """The parsed answer; None if it is no JSON: a bare `ok` counts as empty."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
