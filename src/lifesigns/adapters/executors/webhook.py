"""Orders posted to somebody's server, which carries them out. What its answer means, and how a post is signed: `posting`.

By two headers its receiver knows an order again:

    Idempotency-Key   the same for every try of an order, also after a crash of the hub
    Lifesigns-Epoch   of the hub that gave it: refuse one that is lower than you have seen
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
        """Let go of the connection."""
        await self._poster.close()


def identity(order: Order) -> dict[str, Any]:
    """What every post says of its order."""
    return {
        "id": order.order_id,
        "epoch": order.epoch,
        "agent_id": order.agent_id,
        "incarnation": order.incarnation,
    }


def _json(body: bytes) -> Any:
    """An answer that is no JSON says nothing: a bare `ok` is as good as an empty one."""
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
